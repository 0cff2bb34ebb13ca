//! The key-value store.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use rotor_bench::server::Server;

use crate::support::{PATIENCE, connect, start_example};

/// The server, and the address of its statistics.
fn start() -> (Server, SocketAddr) {
    let server = start_example("key_value");
    let statistics = server.next_line(PATIENCE).unwrap_or_default();
    let address =
        statistics.strip_prefix("statistics on ").and_then(|address| address.parse().ok());
    let statistics = address.unwrap_or_else(|| panic!("{statistics:?} has no address"));
    for address in [server.address(), statistics] {
        let line = server.next_line(PATIENCE).unwrap_or_default();
        assert!(
            line.starts_with("try: ")
                && line.ends_with(&format!(" | nc 127.0.0.1 {}", address.port())),
            "{line}"
        );
    }
    (server, statistics)
}

/// Everything that a client receives for these lines. The last line must end the connection.
fn answers(address: SocketAddr, lines: &str) -> String {
    let (mut client, mut received) = (connect(address), String::new());
    client.write_all(lines.as_bytes()).expect("the server takes it");
    client.read_to_string(&mut received).expect("lines and a good end");
    received
}

#[test]
fn clients_share_the_store_and_sigterm_drains_pending_lines() {
    let (server, statistics) = start();
    assert_eq!(
        answers(server.address(), "SET a one two\nINCR n\nTTL a 0\nQUIT\n"),
        "OK\n1\n1\nBYE\n"
    );
    assert_eq!(
        answers(server.address(), "INCR n\nGET a\nKEYS\nQUIT\n"),
        "2\nNONE\nKEY n\nEND 1\nBYE\n"
    );
    assert_eq!(answers(server.address(), "what\nQUIT\n"), "ERR an unknown command\nBYE\n");
    let stats = answers(statistics, "STATS\nQUIT\n");
    for line in [
        "keys 1",
        "expired 1",
        "clients 0",
        "refused 0",
        "commands 10",
        "errors 1",
        "failed 0",
        "panicked 0",
    ] {
        assert!(stats.lines().any(|said| said == line), "{line:?} is not in {stats:?}");
    }
    assert!(stats.ends_with("\nEND\n"), "{stats}");

    // A client that has sent a part of a line when the drain begins is still answered.
    let mut client = BufReader::new(connect(server.address()));
    let mut line = String::new();
    client.get_mut().write_all(b"SET b 1\nGET").expect("the server takes it");
    client.read_line(&mut line).expect("an answer");
    let signal = std::process::Command::new("kill").arg(server.pid().to_string()).status();
    assert!(signal.expect("a Unix system").success());
    // The listener is closed before connections are asked to end.
    while std::net::TcpStream::connect_timeout(&server.address(), Duration::from_secs(1)).is_ok() {}
    client.get_mut().write_all(b" b\n").expect("the server takes it");
    client.read_to_string(&mut line).expect("an answer and a good end");
    assert_eq!(line, "OK\nVALUE 1\n");
    drop(client);
    let last = server.next_line(PATIENCE).unwrap_or_default();
    assert_eq!(last, "12 commands, 1 errors, 2 keys are left");
}
