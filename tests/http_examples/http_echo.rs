//! `http_echo`, which is also the target of outside test suites.

use std::io::Write;
use std::time::Instant;

use crate::client::{PATIENCE, ask, connect, exchange, field, read_until, start};

fn status(head: &str) -> &str {
    head.get(9..12).unwrap_or(head)
}

#[test]
fn the_page_has_validators_and_honours_conditions() {
    let server = start("http_echo");
    let (head, body) = ask(&server, "GET /", "", "");
    assert_eq!(status(&head), "200");
    let tag = field(&head, "ETag").expect("a tag").to_owned();
    let date = field(&head, "Last-Modified").expect("a date").to_owned();
    assert!(
        field(&head, "Content-Type").is_some()
            && field(&head, "Date").is_some()
            && !body.is_empty()
    );
    let past = "Thu, 01 Jan 1970 00:00:00 GMT";
    for (fields, expected) in [
        (format!("If-None-Match: {tag}\r\n"), "304"),
        (format!("If-None-Match: \"other\", W/{tag}\r\n"), "304"),
        ("If-None-Match: *\r\n".to_owned(), "304"),
        ("If-None-Match: \"other\"\r\n".to_owned(), "200"),
        (format!("If-Modified-Since: {date}\r\n"), "304"),
        (format!("If-Modified-Since: {past}\r\n"), "200"),
        ("If-Modified-Since: yesterday\r\n".to_owned(), "200"),
        (format!("If-None-Match: \"other\"\r\nIf-Modified-Since: {date}\r\n"), "200"),
        (format!("If-None-Match: {tag}\r\nIf-Modified-Since: {past}\r\n"), "304"),
        (format!("If-Match: {tag}\r\n"), "200"),
        ("If-Match: \"other\"\r\n".to_owned(), "412"),
        (format!("If-Match: W/{tag}\r\n"), "412"),
        (format!("If-Unmodified-Since: {past}\r\n"), "412"),
        (format!("If-Unmodified-Since: {date}\r\n"), "200"),
        ("Range: bytes=0-1\r\n".to_owned(), "200"),
    ] {
        let (head, _) = ask(&server, "GET /", &fields, "");
        assert_eq!(status(&head), expected, "{fields}");
        if expected == "304" {
            assert_eq!(field(&head, "ETag"), Some(tag.as_str()), "{fields}");
        }
        // Conditions apply only to methods that read a resource.
        assert_eq!(status(&ask(&server, "POST /", &fields, "x").0), "200");
    }
    let (head, none) = ask(&server, "HEAD /", "", "");
    assert_eq!(
        (field(&head, "Content-Length"), none.as_str()),
        (Some(body.len().to_string().as_str()), "")
    );
}

#[test]
fn sent_bytes_are_echoed() {
    let server = start("http_echo");
    let long = "0123456789".repeat(50_000);
    assert_eq!(ask(&server, "POST /", "", "hello").1, "hello");
    assert_eq!(ask(&server, "POST /", "", &long).1, long);
    let chunked = "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    assert!(exchange(&server, chunked).ends_with("\r\n\r\nab"));
    let (head, fields) = ask(&server, "PUT /echo", "X-A: b\r\nX-Empty:\r\n", "body");
    assert_eq!(fields, "Host: a\nConnection: close\nX-A: b\nX-Empty: \nContent-Length: 4\n");
    assert_eq!(field(&head, "Content-Type"), Some("text/plain"));
}

#[test]
fn an_unsupported_method_is_answered_with_the_allowed_ones() {
    let server = start("http_echo");
    let (head, _) = ask(&server, "DELETE /", "", "");
    assert_eq!((status(&head), field(&head, "Allow")), ("405", Some("GET, HEAD, POST, OPTIONS")));
    for target in ["*", "/", "/echo"] {
        let (head, _) = ask(&server, &format!("OPTIONS {target}"), "", "");
        assert_eq!(status(&head), "204");
        assert!(field(&head, "Allow").is_some_and(|allow| allow.contains("OPTIONS")), "{target}");
    }
    for (line, expected) in
        [("BREW /", "501"), ("TRACE /", "501"), ("CONNECT a:1", "501"), ("GET /none", "404")]
    {
        assert_eq!(status(&ask(&server, line, "", "").0), expected, "{line}");
    }
}

#[test]
fn a_framing_error_is_answered_before_any_200() {
    let server = start("http_echo");
    for target in ["/", "/echo", "/none"] {
        for method in ["GET", "POST"] {
            let request = format!(
                "{method} {target} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabX\r\n0\r\n\r\n"
            );
            let answer = exchange(&server, &request);
            assert!(
                answer.starts_with("HTTP/1.1 400 ") && answer.matches("HTTP/1.1").count() == 1,
                "{answer}"
            );
        }
    }
}

#[test]
fn missing_heads_and_bodies_time_out_after_three_seconds() {
    let server = start("http_echo");
    let halves = [
        ("GET / HTTP/1.1\r\nHost", "Request Timeout: the head arrives too slowly\n"),
        (
            "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n",
            "Request Timeout: the body arrives too slowly\n",
        ),
    ];
    let begun = Instant::now();
    let mut clients = halves.map(|(half, page)| {
        let mut client = connect(&server);
        client.write_all(half.as_bytes()).expect("the server reads");
        (client, page)
    });
    for (client, page) in &mut clients {
        let answer = read_until(client, |got| got.ends_with(page.as_bytes()));
        assert!(answer.starts_with(b"HTTP/1.1 408 "), "{}", answer.escape_ascii());
        assert!(begun.elapsed().as_millis() >= 2_900);
    }
}

#[test]
fn sigterm_drains_the_server() {
    let server = start("http_echo");
    let mut idle = connect(&server);
    idle.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").expect("the server reads");
    read_until(&mut idle, |got| got.ends_with(b"fields.\n"));
    let status = server.terminate(PATIENCE).expect("it ends");
    assert!(status.success(), "{status}");
}
