//! `metrics`: the access log and the counters.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use rotor_bench::server::find_address;
use rotor_test_kit::Process;

use crate::client::{PATIENCE, ask, command, exchange, start};

#[test]
fn each_request_is_one_log_line_and_cannot_forge_another() {
    let server = start("metrics");
    ask(&server, "GET /", "", "");
    ask(&server, "GET /a?b'c\\d|", "", "");
    exchange(&server, "GET / HTTP/1.1\r\nHost: a\r\nX: \x1b[2J\r\n\r\n");
    exchange(&server, "POST /x HTTP/1.0\r\nExpect: tea\r\n\r\n");
    let expected = [
        ("127.0.0.1 - - [", "\"GET / HTTP/1.1\" 200 "),
        ("127.0.0.1 - - [", "\"GET /a?b'c\\\\d| HTTP/1.1\" 404 "),
        ("127.0.0.1 - - [", "\"-\" 400 "),
        ("127.0.0.1 - - [", "\"POST /x HTTP/1.0\" 417 "),
    ];
    let _try = server.next_line(PATIENCE);
    for (start, request) in expected {
        let line = server.next_line(PATIENCE).expect("a line for each request");
        assert!(line.starts_with(start) && line.contains(request), "{line:?}");
        let octets = line.rsplit(' ').next().and_then(|octets| octets.parse::<u64>().ok());
        assert!(
            octets.is_some_and(|octets| octets > 50) && line.contains(" +0000] \""),
            "{line:?}"
        );
    }
}

#[test]
fn the_counters_are_exported() {
    let server = start("metrics");
    ask(&server, "GET /", "", "");
    exchange(&server, "nonsense\r\n\r\n");
    let (head, page) = ask(&server, "GET /metrics", "", "");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4\r\n"), "{head}");
    for line in [
        "rotor_http_requests_total 2",
        "rotor_http_refused_total 1",
        "rotor_http_connections_total 3",
    ] {
        assert!(page.lines().any(|found| found == line), "{line}:\n{page}");
    }
    assert!(
        page.lines()
            .all(|line| line.starts_with("# TYPE rotor_http_") || line.starts_with("rotor_http_"))
    );
}

#[test]
fn an_unread_log_does_not_keep_the_program_from_ending() {
    /// Their log lines exceed what the pipe and the writer's buffer hold, but not the maximum that
    /// may be queued for the writer.
    const REQUESTS: usize = 5_000;
    let mut server = command("metrics");
    server.arg("127.0.0.1:0").stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = Process::from(server.spawn().expect("it starts"));
    let mut log = BufReader::new(server.stdout.take().expect("a pipe"));
    let mut line = String::new();
    log.read_line(&mut line).expect("text");
    let address = find_address(&line).expect("it says where it listens");

    let mut client = TcpStream::connect(address).expect("it listens");
    client.set_read_timeout(Some(PATIENCE)).expect("not zero");
    let mut asking = client.try_clone().expect("a descriptor is left");
    let asks = std::thread::spawn(move || {
        let requests = "GET /nothing HTTP/1.1\r\nHost: a\r\n\r\n".repeat(REQUESTS - 1);
        asking.write_all(requests.as_bytes()).expect("it reads");
        asking
            .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("it reads");
    });
    client.read_to_end(&mut Vec::new()).expect("all is answered");
    asks.join().expect("all was asked");

    let kill = Command::new("kill").arg(server.id().to_string()).status().expect("it starts");
    assert!(kill.success());
    let status = server.wait().expect("it is ours");
    let mut said = String::new();
    server.stderr.take().expect("a pipe").read_to_string(&mut said).expect("text");
    assert!(status.success() && said.contains("nobody reads the access log"), "{status}: {said}");
    drop(log);
}
