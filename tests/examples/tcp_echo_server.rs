//! The TCP echo server.

use std::io::{ErrorKind, Read, Write, pipe};
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::thread;

use rotor_bench::server::Server;

use crate::support::{PATIENCE, again, connect, example, start_example};

/// Bytes in which every gap and every swap is noticed.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|index| (index % 251) as u8).collect()
}

fn echoed(socket: &mut TcpStream, bytes: &[u8]) -> Vec<u8> {
    let mut sender = socket.try_clone().expect("a descriptor is left");
    let mut received = vec![0; bytes.len()];
    thread::scope(|scope| {
        scope.spawn(move || sender.write_all(bytes).expect("the server takes it"));
        socket.read_exact(&mut received).expect("the server sends it back");
    });
    received
}

#[test]
fn the_server_prints_what_to_try() {
    let server = start_example("tcp_echo_server");
    let line = server.next_line(PATIENCE).unwrap_or_default();
    assert!(
        line.starts_with("try: ") && line.contains(&server.address().port().to_string()),
        "{line:?}"
    );
}

#[test]
fn sent_bytes_are_echoed() {
    let server = start_example("tcp_echo_server");
    for len in [1, 4095, 4096, 4097, 100_000, 3_000_000] {
        let (mut socket, bytes) = (connect(server.address()), pattern(len));
        assert!(echoed(&mut socket, &bytes) == bytes, "{len} bytes differ");
        assert!(echoed(&mut socket, &bytes) == bytes, "{len} bytes differ the second time");
    }
}

#[test]
fn bytes_before_the_end_of_the_stream_are_echoed_and_then_the_end() {
    let server = start_example("tcp_echo_server");
    for len in [0, 1, 4096, 20_000] {
        let (mut socket, bytes, mut received) =
            (connect(server.address()), pattern(len), Vec::new());
        socket.write_all(&bytes).expect("the server takes it");
        socket.shutdown(Shutdown::Write).expect("it is connected");
        socket.read_to_end(&mut received).expect("it comes back");
        assert!(received == bytes, "{len} bytes became {}", received.len());
    }
}

#[test]
fn a_slow_reader_gets_everything_once_it_reads() {
    let server = start_example("tcp_echo_server");
    let mut socket = connect(server.address());
    let chunk = pattern(251 * 64);
    socket.set_nonblocking(true).expect("a socket");
    let mut sent = 0;
    // Until the buffers of both sides are full, and the server cannot make progress.
    loop {
        match socket.write(&chunk[sent % 251..]) {
            Ok(count) => sent += count,
            Err(e) if e.kind() == ErrorKind::WouldBlock => break,
            Err(e) => panic!("{e}"),
        }
    }
    socket.set_nonblocking(false).expect("a socket");
    socket.shutdown(Shutdown::Write).expect("it is connected");
    let mut received = Vec::new();
    socket.read_to_end(&mut received).expect("it comes back");
    assert!(received == pattern(sent), "{sent} bytes became {}", received.len());
}

#[test]
fn a_hundred_peers_each_get_their_own_bytes() {
    let server = start_example("tcp_echo_server");
    let mut sockets: Vec<TcpStream> = (0..100).map(|_| connect(server.address())).collect();
    for (number, socket) in sockets.iter_mut().enumerate() {
        socket.write_all(&[number as u8; 1000]).expect("the server takes it");
    }
    for (number, socket) in sockets.iter_mut().enumerate().rev() {
        let mut received = [0; 1000];
        socket.read_exact(&mut received).expect("it comes back");
        assert_eq!(received, [number as u8; 1000]);
    }
}

#[test]
fn sigterm_drains_and_prints_the_totals() {
    let server = start_example("tcp_echo_server");
    let mut socket = connect(server.address());
    assert_eq!(echoed(&mut socket, b"hello"), b"hello");
    // The connection stays open and idle until the server closes it.
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
    assert_eq!(again(|| socket.read(&mut [0])).expect("a good end"), 0);
}

#[test]
fn sigint_drains_too() {
    let server = start_example("tcp_echo_server");
    let try_this = server.next_line(PATIENCE).unwrap_or_default();
    assert!(try_this.starts_with("try"), "{try_this}");
    let mut socket = connect(server.address());
    assert_eq!(echoed(&mut socket, b"hello"), b"hello");
    let signal = Command::new("kill").args(["-INT", &server.pid().to_string()]).status();
    assert!(signal.expect("a Unix system").success());
    assert_eq!(server.next_line(PATIENCE).as_deref(), Some("5 bytes were sent back"));
    assert_eq!(again(|| socket.read(&mut [0])).expect("a good end"), 0);
}

#[test]
fn a_reset_by_the_peer_prints_no_complaint() {
    let (mut complaints, writer) = pipe().expect("a descriptor is left");
    let mut command = example("tcp_echo_server");
    command.stderr(writer);
    let server = Server::start(command, PATIENCE).expect("it starts");
    for _ in 0..20 {
        let mut socket = connect(server.address());
        socket.write_all(&pattern(100_000)).expect("the server takes it");
        socket.read_exact(&mut [0]).expect("the server sends it back");
        // Echoed bytes that are not read make the close a reset.
    }
    // A later client is still served.
    assert_eq!(echoed(&mut connect(server.address()), b"x"), b"x");
    assert!(server.terminate(PATIENCE).expect("it ends").success());
    let mut said = String::new();
    complaints.read_to_string(&mut said).expect("text");
    assert_eq!(said, "");
}
