//! The line echo server.

use std::io::{Read, Write};
use std::net::Shutdown;

use crate::support::{PATIENCE, connect, start_example};

#[test]
fn lines_are_echoed_and_the_number_of_connections_is_printed() {
    let server = start_example("line_echo");
    let try_this = format!("try: nc 127.0.0.1 {}", server.address().port());
    assert_eq!(server.next_line(PATIENCE), Some(try_this));
    for _ in 0..3 {
        let (mut client, mut received) = (connect(server.address()), String::new());
        client.write_all(b"one\ntwo\nhalf").expect("the server takes it");
        client.shutdown(Shutdown::Write).expect("it is connected");
        client.read_to_string(&mut received).expect("lines and a good end");
        assert_eq!(received, "one\ntwo\n");
    }
    let signal = std::process::Command::new("kill").arg(server.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
    let last = server.next_line(PATIENCE).unwrap_or_default();
    assert_eq!(last, "3 connections, 0 failed, 0 machines are left");
}
