//! An echo server and a hello server in one loop.

use std::io::{Read, Write};

use rotor_bench::load::Generator;
use rotor_bench::server::find_address;

use crate::support::{PATIENCE, again, connect, start_example};

#[test]
fn both_protocols_are_served_by_one_loop_and_count_in_one_context() {
    let server = start_example("two_protocols");
    let echo =
        find_address(&server.next_line(PATIENCE).unwrap_or_default()).expect("the second address");
    let line = server.next_line(PATIENCE).unwrap_or_default();
    assert!(
        line.starts_with("try: curl ") && line.contains(&format!("http://{}/", server.address())),
        "{line}"
    );

    let mut idle = connect(echo);
    for pipeline in [1, 16] {
        let mut clients =
            Generator::connect(server.address(), 20, pipeline).expect("the server accepts");
        clients.run(2_000).expect("right answers");
        let mut received = [0; 5];
        idle.write_all(b"hello").expect("the server takes it");
        idle.read_exact(&mut received).expect("it comes back");
        assert_eq!(&received, b"hello");
    }
    let signal = std::process::Command::new("kill").arg(server.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
    assert_eq!(server.next_line(PATIENCE).as_deref(), Some("4000 greetings, 10 bytes sent back"));
    assert_eq!(again(|| idle.read(&mut [0])).expect("a good end"), 0);
}

#[test]
fn a_split_request_head_is_answered_once() {
    let server = start_example("two_protocols");
    let mut socket = connect(server.address());
    socket.set_nodelay(true).expect("a TCP socket");
    for byte in b"GET / HTTP/1.1\r\nHost: \r\r\n\r\n" {
        socket.write_all(&[*byte]).expect("the server takes it");
    }
    socket.shutdown(std::net::Shutdown::Write).expect("it is connected");
    let mut answer = String::new();
    socket.read_to_string(&mut answer).expect("an answer and the end");
    assert_eq!(answer.matches("HTTP/1.1 200 OK").count(), 1, "{answer}");
}
