//! `everything`: five protocols in one loop, each tested in its own way.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use std::time::Instant;

use rotor_bench::server::Server;

use crate::client::{PATIENCE, again, ask, command, connect, exchange, start, start_command};

/// The application, which reports every second, and the address of its statsd socket.
fn everything() -> (Server, SocketAddr) {
    let mut application = command("everything");
    application.arg("1");
    let server = start_command(application);
    let line = server.next_line(PATIENCE).expect("it says where it counts");
    let address = line.split_whitespace().find_map(|word| word.parse().ok());
    let statsd = address.unwrap_or_else(|| panic!("an address in {line:?}"));
    for _ in 0..2 {
        let line = server.next_line(PATIENCE).unwrap_or_default();
        assert!(line.starts_with("try: "), "{line:?}");
    }
    (server, statsd)
}

fn report(statsd: SocketAddr, datagram: &[u8]) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
    socket.send_to(datagram, statsd).expect("loopback takes it");
}

/// The statistics page, once it has this line. Datagrams may arrive late.
fn stats_with(server: &Server, line: &str) -> String {
    let begun = Instant::now();
    loop {
        let (head, page) = ask(server, "GET /stats", "", "");
        assert!(
            head.starts_with("HTTP/1.1 200 ")
                && head.contains("\r\nContent-Type: application/json")
        );
        if page.lines().any(|found| found.trim().trim_end_matches(',') == line) {
            return page;
        }
        assert!(begun.elapsed() < PATIENCE, "no {line} in {page}");
        thread::yield_now();
    }
}

/// A server that records when it is asked. It sends these bytes on each connection when `may`
/// allows it, and closes.
fn says(
    bytes: Vec<u8>,
    may: std::sync::mpsc::Receiver<()>,
) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    let (heads, asked) = channel();
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut request = [0; 4096];
            let count = again(|| client.read(&mut request)).unwrap_or(0);
            let _test_is_over = heads.send(String::from_utf8_lossy(&request[..count]).into_owned());
            let _test_is_over = may.recv();
            let _ended_early = client.write_all(&bytes);
        }
    });
    (address, asked)
}

/// A server that never has to wait.
fn says_at_once(bytes: &[u8]) -> SocketAddr {
    let (allow, may) = channel();
    drop(allow);
    says(bytes.to_vec(), may).0
}

#[test]
fn a_page_is_fetched_by_the_name_of_its_host() {
    let pages = start("hello_world_server");
    let (server, _) = everything();
    let port = pages.address().port();
    for url in [
        format!("http://LocalHost:{port}/"),
        format!("http://127.0.0.1:{port}/?a=b&c=d"),
        format!("http%3A%2F%2flocalhost%3a{port}"),
    ] {
        let (head, body) = ask(&server, &format!("GET /fetch?url={url}"), "", "");
        assert!(head.starts_with("HTTP/1.1 200 "), "{url}: {head}\n{body}");
        assert_eq!(body, "Hello, World!", "{url}");
    }
    let (head, body) = ask(&server, &format!("HEAD /fetch?url=http://localhost:{port}/"), "", "");
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains("Content-Length: 13") && body.is_empty()
    );
    stats_with(&server, "\"fetched\": 4");
}

#[test]
fn status_content_type_and_body_are_forwarded() {
    let (server, _) = everything();
    let answer = b"HTTP/1.1 404 Not Here\r\nContent-Type: text/x-none\r\nContent-Length: 4\r\nSet-Cookie: a=b\r\n\r\nnone";
    let (allow, may) = channel();
    drop(allow);
    let (pages, asked) = says(answer.to_vec(), may);
    let (head, body) =
        ask(&server, &format!("GET /fetch?url=http://{pages}/x?y"), "Cookie: secret\r\n", "");
    let sent = asked.recv_timeout(PATIENCE).expect("it was asked");
    assert!(sent.starts_with(&format!("GET /x?y HTTP/1.1\r\nHost: {pages}\r\n")), "{sent}");
    assert!(!sent.contains("secret"), "{sent}");
    assert!(
        head.starts_with("HTTP/1.1 404 ") && head.contains("Content-Type: text/x-none"),
        "{head}"
    );
    assert!(!head.contains("Set-Cookie") && body == "none", "{head}\n{body}");
    for status in ["204 No Content", "304 Not Modified"] {
        let pages = says_at_once(format!("HTTP/1.1 {status}\r\n\r\n").as_bytes());
        let (head, body) = ask(&server, &format!("GET /fetch?url=http://{pages}/"), "", "");
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")) && body.is_empty(), "{head}");
    }
}

#[test]
fn a_failed_fetch_is_answered_with_its_reason() {
    let (server, _) = everything();
    // The local port of a connected socket: it is in use, but nobody listens there.
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = elsewhere.local_addr().and_then(TcpStream::connect).expect("it listens");
    let closed = taken.local_addr().expect("it is bound");
    let large =
        [&b"HTTP/1.1 200 OK\r\nContent-Length: 1048577\r\n\r\n"[..], &vec![b'x'; 1 << 20]].concat();
    let long = format!("http://a/{}", "x".repeat(2_000));
    let cases = [
        (format!("http://{closed}/"), "502", "Connection refused"),
        (
            "http://no.such.host.invalid/".into(),
            "502",
            "the name no.such.host.invalid does not exist",
        ),
        (format!("http://{}/", says_at_once(b"nonsense\r\n\r\n")), "502", "the head is malformed"),
        (
            format!(
                "http://{}/",
                says_at_once(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")
            ),
            "502",
            "the stream ended before the body did",
        ),
        (format!("http://{}/", says_at_once(&large)), "502", "bad body: "),
        ("https://example.com/".into(), "400", "expected /fetch?url=http://"),
        ("http://".into(), "400", "expected /fetch?url=http://"),
        ("http:///x".into(), "400", "expected /fetch?url=http://"),
        ("http://a:99999/".into(), "400", "expected /fetch?url=http://"),
        ("http://user@a/".into(), "400", "expected /fetch?url=http://"),
        ("http%3A//a%".into(), "400", "expected /fetch?url=http://"),
        ("http%3A//a%zz".into(), "400", "expected /fetch?url=http://"),
        ("%ff".into(), "400", "expected /fetch?url=http://"),
        ("".into(), "400", "expected /fetch?url=http://"),
        ("http%3A//a/b%20c".into(), "400", "holds what has to be encoded"),
        ("http%3A//a/%0d%0aHost:b".into(), "400", "holds what has to be encoded"),
        (long, "400", "too long"),
    ];
    for (url, code, reason) in cases {
        let (head, body) = ask(&server, &format!("GET /fetch?url={url}"), "", "");
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{url}: {head}\n{body}");
        assert!(body.contains(reason), "{url}: {body}");
    }
    for (start, code) in [
        ("GET /fetch", "400"),
        ("GET /fetch?ul=http://a/", "400"),
        ("POST /fetch?url=http://a/", "405"),
        ("DELETE /stats", "405"),
        ("GET /other", "404"),
        ("BREW /", "501"),
    ] {
        let (head, _) = ask(&server, start, "", "");
        assert!(head.starts_with(&format!("HTTP/1.1 {code} ")), "{start}: {head}");
    }
    assert!(exchange(&server, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
    stats_with(&server, "\"failed\": 5");
}

#[test]
fn datagrams_are_counted_and_reported_and_bad_ones_are_harmless() {
    let (server, statsd) = everything();
    report(statsd, b"page.hits:2|c\npage.hits:1|c|@0.5\nroom/temperature:20.5|g\n");
    report(statsd, &[0xff; 65_000]);
    report(statsd, b"");
    report(statsd, b"a:1|c|@0\nb:inf|g\nroom/temperature:+1|g");
    let page = stats_with(&server, "\"datagrams\": 4");
    for line in ["\"samples\": 4", "\"refused\": 3", "\"total\": 4.0", "\"room/temperature\": 21.5"]
    {
        assert!(
            page.lines().any(|found| found.trim().trim_end_matches(',') == line),
            "no {line} in {page}"
        );
    }
    let line = server.next_line(PATIENCE).expect("it reports");
    assert!(
        line.contains(" requests, 0 fetched, 0 failed; ") && line.contains("page.hits "),
        "{line}"
    );
}

fn signal(server: &Server, name: &str) {
    let told = Command::new("kill").args([name, &server.pid().to_string()]).status();
    assert!(told.expect("there is a kill").success());
}

/// More datagrams than one event may receive, and no further edge for the rest.
#[test]
fn datagrams_of_one_burst_are_all_counted() {
    const DATAGRAMS: usize = 100;
    let (server, statsd) = everything();
    signal(&server, "-STOP");
    for _ in 0..DATAGRAMS {
        report(statsd, b"hits:1|c");
    }
    signal(&server, "-CONT");
    stats_with(&server, &format!("\"datagrams\": {DATAGRAMS}"));
}

#[test]
fn a_thousand_names_are_stored_and_no_more() {
    let (server, statsd) = everything();
    // The lines are sent in datagrams that surely fit into the socket's buffer.
    for block in 0..11 {
        let lines: String = (0..100).map(|number| format!("n{block}-{number}:1|c\n")).collect();
        report(statsd, lines.as_bytes());
        stats_with(&server, &format!("\"datagrams\": {}", block + 1));
    }
    let page = stats_with(&server, "\"samples\": 1000");
    assert!(
        page.contains("\"refused\": 100,")
            && page.contains("\"n9-99\"")
            && !page.contains("\"n10-")
    );
}

#[test]
fn a_page_in_flight_is_still_forwarded_in_a_drain() {
    let (server, _) = everything();
    let (allow, may) = channel();
    let (pages, asked) = says(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlate".to_vec(), may);
    let mut client = connect(&server);
    write!(client, "GET /fetch?url=http://{pages}/ HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    asked.recv_timeout(PATIENCE).expect("it was asked");
    signal(&server, "-TERM");
    // The listener is closed once connections are refused. The page has not arrived yet.
    let begun = Instant::now();
    while TcpStream::connect(server.address()).is_ok() {
        assert!(begun.elapsed() < PATIENCE, "it still listens");
        thread::yield_now();
    }
    allow.send(()).expect("it waits");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("the server closes");
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.ends_with("\r\n\r\nlate"), "{answer}");
    let last = std::iter::from_fn(|| server.next_line(PATIENCE)).last();
    let last = last.expect("it says what it has done");
    assert_eq!(last, "1 requests, 1 fetched, 0 failed; 0 samples, 0 refused");
    assert!(server.terminate(PATIENCE).expect("it has ended").success());
}
