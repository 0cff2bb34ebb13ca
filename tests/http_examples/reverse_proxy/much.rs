//! High load: large bodies, many clients, and many requests while the upstream stops and restarts.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::thread;

use rotor_bench::server::Server;

use super::{OFFER, OK, proxy_to};
use crate::client::{PATIENCE, again, command, connect, read_until, start};
use crate::upstream::{agreement, read_head, upstream};

#[test]
fn large_bodies_pass_both_ways_while_memory_stays_flat() {
    const COUNT: usize = 200 << 20;
    let server = start("streaming");
    let proxy = proxy_to(server.address());
    let mut client = connect(&proxy);
    write!(client, "GET /big?{COUNT} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("the proxy reads");
    let head = read_until(&mut client, |got| got.windows(4).any(|window| window == b"\r\n\r\n"));
    let at =
        head.windows(4).position(|window| window == b"\r\n\r\n").expect("the end of the head") + 4;
    assert_eq!(drain(&mut client) + head.len() - at, COUNT);

    let (address, _heads) = upstream(|client, _| {
        let mut left = COUNT;
        let mut chunk = vec![0; 256 << 10];
        while left > 0 {
            let count = again(|| client.read(&mut chunk)).expect("the proxy writes");
            assert!(count > 0 && chunk[..count].iter().all(|octet| *octet == b'u'));
            left -= count;
        }
        client.write_all(OK).expect("the proxy reads");
    });
    let uploads = proxy_to(address);
    let mut client = connect(&uploads);
    write!(client, "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: {COUNT}\r\n\r\n")
        .expect("the proxy reads");
    let piece = vec![b'u'; 1 << 20];
    for _ in 0..COUNT / piece.len() {
        client.write_all(&piece).expect("the proxy reads");
    }
    read_until(&mut client, |got| got.ends_with(b"\r\n\r\nhi"));
    for proxy in [&proxy, &uploads] {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", proxy.pid())).unwrap_or_default();
        let peak =
            status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB"));
        if let Some(kib) = peak.and_then(|kib| kib.parse::<usize>().ok()) {
            assert!(kib < 32 << 10, "{kib} KiB for a body of 200 MiB");
        }
    }
}

fn drain(client: &mut TcpStream) -> usize {
    let mut chunk = vec![0; 256 << 10];
    let mut total = 0;
    loop {
        match again(|| client.read(&mut chunk)).expect("the proxy writes") {
            0 => return total,
            count => total += count,
        }
    }
}

#[test]
fn requests_of_many_clients_get_their_own_answers() {
    let server = start("http_echo");
    let proxy = proxy_to(server.address());
    let mut clients: Vec<TcpStream> = (0..20).map(|_| connect(&proxy)).collect();
    for request in 0..50 {
        let body = |client: usize| format!("client {client} request {request}");
        for (client, socket) in clients.iter_mut().enumerate() {
            let body = body(client);
            let length = body.len();
            write!(socket, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
                .expect("the proxy reads");
        }
        for (client, socket) in clients.iter_mut().enumerate() {
            let got = read_until(socket, |got| got.ends_with(body(client).as_bytes()));
            assert!(got.starts_with(b"HTTP/1.1 200 "), "{}", got.escape_ascii());
        }
    }
}

#[test]
fn each_request_is_answered_while_the_upstream_is_killed_and_restarted() {
    const CLIENTS: u32 = 4;
    let mut upstream = start("http_echo");
    let address = upstream.address();
    let proxy = proxy_to(address);
    let (outcomes, answers) = channel();
    let is_over = AtomicBool::new(false);
    thread::scope(|threads| {
        // Stops the clients however this ends.
        let _end = SetWhenDropped(&is_over);
        for number in 0..CLIENTS {
            let (outcomes, is_over, client) = (outcomes.clone(), &is_over, connect(&proxy));
            threads.spawn(move || ask_on(number, client, is_over, &outcomes));
        }
        drop(outcomes);
        let wait_for = |code: u16, count: usize| {
            let mut left = count;
            while left > 0 {
                let answer = answers.recv_timeout(PATIENCE).expect("each request has an answer");
                left -= usize::from(answer == code);
            }
        };
        for _ in 0..5 {
            wait_for(200, 50);
            drop(upstream);
            wait_for(502, 1);
            let mut again = command("http_echo");
            again.arg(address.to_string());
            upstream = Server::start_on(again, address).expect("it starts");
            upstream.next_line(PATIENCE).expect("it says that it listens");
        }
        wait_for(200, 50);
    });
}

struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Sends one request after the other on one connection. Each response has the request's own body,
/// or is a 502.
fn ask_on(number: u32, mut client: TcpStream, is_over: &AtomicBool, outcomes: &Sender<u16>) {
    for request in 0.. {
        if is_over.load(Relaxed) {
            return;
        }
        let body = format!("client {number} request {request}.");
        let length = body.len();
        write!(client, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n{body}")
            .expect("the proxy reads");
        let got = read_until(&mut client, |got| {
            got.ends_with(body.as_bytes()) || got.ends_with(b"Bad Gateway\n")
        });
        let is_own = got.starts_with(b"HTTP/1.1 200 ") && got.ends_with(body.as_bytes());
        assert!(is_own || got.starts_with(b"HTTP/1.1 502 "), "{}", got.escape_ascii());
        let _test_is_over = outcomes.send(if is_own { 200 } else { 502 });
    }
}

/// The client reads only as long as what it sends back is taken. A proxy that does not read from a
/// peer that takes nothing would stop it for good.
#[test]
fn a_tunnel_goes_on_although_its_client_reads_only_while_it_can_write() {
    const BYTES: usize = 64 << 20;
    let echo = start("ws_echo");
    let knows = echo.address();
    let (came_back, count) = channel();
    let (address, _heads) = upstream(move |socket, head| {
        socket.write_all(agreement(knows, head, "").as_bytes()).expect("the proxy reads");
        let reader = socket.try_clone().expect("a descriptor");
        let reading =
            thread::spawn(move || io::copy(&mut reader.take(BYTES as u64), &mut io::sink()));
        let _all_or_a_timeout = socket.write_all(&vec![b'x'; BYTES]);
        let read = reading.join().expect("it does not panic");
        let _test_is_over = came_back.send(read.expect("no reset"));
    });
    let proxy = proxy_to(address);
    let mut client = connect(&proxy);
    let fields = format!("Host: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{OFFER}\r\n");
    client.write_all(format!("GET / HTTP/1.1\r\n{fields}").as_bytes()).expect("the proxy reads");
    assert!(read_head(&mut client).starts_with("HTTP/1.1 101 "));
    let echoing = client.try_clone().expect("a descriptor");
    thread::spawn(move || io::copy(&mut &echoing, &mut &echoing));
    assert_eq!(count.recv_timeout(PATIENCE), Ok(BYTES as u64));
}
