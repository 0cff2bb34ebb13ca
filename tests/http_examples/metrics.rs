//! `metrics`: the access log and the counters.

use crate::client::{PATIENCE, ask, exchange, start};

#[test]
fn each_request_is_one_line_and_cannot_forge_another() {
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
        assert!(octets.is_some_and(|octets| octets > 50) && line.contains(" +0000] \""), "{line:?}");
    }
}

#[test]
fn the_counters_can_be_had() {
    let server = start("metrics");
    ask(&server, "GET /", "", "");
    exchange(&server, "nonsense\r\n\r\n");
    let (head, page) = ask(&server, "GET /metrics", "", "");
    assert!(head.contains("\r\nContent-Type: text/plain; version=0.0.4\r\n"), "{head}");
    for line in
        ["rotor_http_requests_total 2", "rotor_http_refused_total 1", "rotor_http_connections_total 3"]
    {
        assert!(page.lines().any(|found| found == line), "{line}:\n{page}");
    }
    assert!(
        page.lines().all(|line| line.starts_with("# TYPE rotor_http_") || line.starts_with("rotor_http_"))
    );
}
