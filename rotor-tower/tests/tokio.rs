//! A service that needs tokio, on a loop with a runtime beside it; and large bodies in constant
//! memory.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its sockets")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::ConnectInfo;
use axum::routing::{get, post};
use http_body_util::BodyExt;
use rotor_async::Tokio;
use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopHandle};
use rotor_http::server::{HttpAccept, HttpSeed, ServerConfig};
use rotor_tower::{Tower, TowerServer};

const PATIENCE: Duration = Duration::from_secs(60);

/// Serves routes on a separate thread, with a runtime beside the loop.
fn serve(routes: Router) -> (SocketAddr, LoopHandle, thread::JoinHandle<()>) {
    let (told, heard) = std::sync::mpsc::channel();
    let thread = thread::spawn(move || {
        let mut creator =
            Loop::<HttpAccept<TowerServer<Router, AxumBody>, TcpListener>>::new(&Config::new())
                .expect("a loop");
        let mut bound = None;
        let tower = Tower::new(routes).tokio(Tokio::new().expect("a runtime")).extend(
            |head, extensions| {
                if let Some(address) = head.peer_address() {
                    extensions.insert(ConnectInfo(address));
                }
            },
        );
        let added = creator.add_machine_with(|scope| {
            let address = "127.0.0.1:0".parse().expect("an address");
            let listener =
                TcpListener::bind(&address, &ListenOptions::new(), scope).expect("a port");
            bound = listener.local_address();
            let seed = HttpSeed::new(tower, ServerConfig::new());
            rotor_http::server::listen(listener, seed, scope)
        });
        added.expect("there is room");
        let mut instance = creator.instantiate(());
        told.send((bound.expect("it was bound"), instance.handle())).expect("the test waits");
        instance.run().expect("it runs");
    });
    let (address, handle) = heard.recv_timeout(PATIENCE).expect("it starts");
    (address, handle, thread)
}

fn connect(address: SocketAddr) -> TcpStream {
    let socket = TcpStream::connect(address).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    socket
}

fn ask(address: SocketAddr, path: &str) -> String {
    let mut socket = connect(address);
    write!(socket, "GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .expect("it reads");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer");
    answer.split_once("\r\n\r\n").expect("a head").1.to_owned()
}

#[test]
fn tokio_timers_and_tasks_work_in_routes_and_the_peer_is_known() {
    let (own, others) = (
        get(|| async { "own" }),
        get(|| async {
            tokio::time::sleep(Duration::from_millis(1)).await;
            tokio::spawn(async { "slept" }).await.expect("no panic")
        }),
    );
    let peer =
        get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() });
    let routes = Router::new().route("/own", own).route("/others", others).route("/peer", peer);
    let (address, handle, thread) = serve(routes);
    assert_eq!(ask(address, "/own"), "own");
    assert_eq!(ask(address, "/others"), "slept");
    assert_eq!(ask(address, "/peer"), "127.0.0.1");
    handle.stop();
    thread.join().expect("it ends");
}

/// The peak memory of this process, in KiB.
fn peak_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("on Linux");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("it says so");
    line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).expect("a number")
}

/// `ROTOR_TOWER_MIB` sets the size in MiB; a GiB takes a minute without optimization.
fn bytes() -> usize {
    let mib = std::env::var("ROTOR_TOWER_MIB").ok().and_then(|count| count.parse().ok());
    mib.unwrap_or(64_usize) << 20
}

#[test]
fn large_bodies_stream_both_ways_in_constant_memory() {
    let echo = post(|body: AxumBody| async move { body });
    // Read in a task on a thread of the runtime, which pauses now and then.
    let count = post(|body: AxumBody| async move {
        let counting = tokio::spawn(async move {
            let (mut body, mut count, mut frames) = (body, 0_usize, 0_u32);
            while let Some(frame) = body.frame().await {
                count += frame.expect("it comes").into_data().map_or(0, |data| data.len());
                frames += 1;
                if frames % 256 == 0 {
                    tokio::task::yield_now().await;
                }
            }
            count.to_string()
        });
        counting.await.expect("no panic")
    });
    let (address, handle, thread) =
        serve(Router::new().route("/echo", echo).route("/count", count));
    assert_eq!(upload(address, "/count", 1 << 20).1, b"1048576");
    let before = peak_kib();
    let (length, text) = upload(address, "/count", bytes());
    assert_eq!((length, text), (bytes().to_string().len(), bytes().to_string().into_bytes()));
    assert_eq!(upload(address, "/echo", bytes()).0, bytes());
    let grown = peak_kib() - before;
    assert!(grown < 16 << 10, "{grown} KiB more than before");
    handle.stop();
    thread.join().expect("it ends");
}

/// Sends a body and reads the answer meanwhile. Returns the length of the answer's body, and the
/// bytes of the last read.
fn upload(address: SocketAddr, path: &str, bytes: usize) -> (usize, Vec<u8>) {
    let mut socket = connect(address);
    let mut sending = socket.try_clone().expect("a descriptor");
    let path = path.to_owned();
    let sender = thread::spawn(move || {
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {bytes}\r\n\r\n");
        sending.write_all(head.as_bytes()).expect("it reads");
        let piece = vec![b'x'; 64 << 10];
        for _ in 0..bytes / piece.len() {
            sending.write_all(&piece).expect("it reads");
        }
        sending.shutdown(Shutdown::Write).expect("a socket");
    });
    let (mut buffer, mut head, mut count) = (vec![0; 64 << 10], Vec::new(), 0);
    let mut last = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        socket.read_exact(&mut byte).expect("an answer");
        head.push(byte[0]);
    }
    // The peer ends its side after its body, and the connection ends after the answer.
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => break,
            // The process was stopped and continued meanwhile (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            read => {
                let read = read.expect("an answer");
                count += read;
                last = buffer[..read].to_vec();
            }
        }
    }
    sender.join().expect("it sends");
    (count - chunk_lines(&head, count, bytes), last)
}

/// The length of the lines between the chunks of an answer of unknown length.
fn chunk_lines(head: &[u8], count: usize, bytes: usize) -> usize {
    let is_chunked = String::from_utf8_lossy(head).contains("chunked");
    if is_chunked { count.saturating_sub(bytes) } else { 0 }
}
