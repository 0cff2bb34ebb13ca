//! A handler behaves on HTTP/2 as on HTTP/1.1: the same answers, and the same calls.

use rotor_http::server::ServerConfig;

use super::client::{Client, config, data, headers, preface_and_settings};
use crate::probe::{probe, request};
use crate::wire::take;

/// Status, fields that do not belong to the connection, body, and the calls of the handler.
type Outcome = (u16, Vec<(String, String)>, Vec<u8>, Vec<String>);

fn comparable_field(name: &str, value: &str) -> Option<(String, String)> {
    let name = name.to_ascii_lowercase();
    // Fields that describe the framing of a message, or whether its connection goes on.
    let is_of_version = matches!(name.as_str(), "connection" | "transfer-encoding");
    (!is_of_version).then(|| (name, value.to_owned()))
}

fn on_http1(method: &str, path: &str, body: &str, wake: bool) -> Outcome {
    let mut driver = probe(ServerConfig::new());
    let length =
        if body.is_empty() { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
    driver.send(&request(&format!("{method} {path}"), &length, body));
    for _ in 0..usize::from(wake) * 8 {
        driver.context_mut().words = "woken".to_owned();
        driver.wakeup();
    }
    let received = driver.take_received();
    let mut rest = &received[..];
    let mut answer = take(&mut rest).unwrap_or_else(|error| panic!("{method} {path}: {error}"));
    while answer.status < 200 {
        answer = take(&mut rest).expect("another follows");
    }
    let fields = answer.fields.iter().filter_map(|(name, value)| comparable_field(name, value));
    (answer.status, fields.collect(), answer.body, driver.context().events.clone())
}

fn on_http2(pieces: usize, method: &str, path: &str, body: &str, wake: bool) -> Outcome {
    let mut client = Client::silent(config());
    let length = body.len().to_string();
    let fields = [("content-length", &*length)];
    let fields = if body.is_empty() { &[][..] } else { &fields[..] };
    let mut bytes = preface_and_settings(&[(4, 4 << 20)]);
    bytes.extend(super::client::frame(8, 0, 0, &(4u32 << 20).to_be_bytes()));
    bytes.extend(headers(1, method, path, fields, body.is_empty()));
    if !body.is_empty() {
        bytes.extend(data(1, body.as_bytes(), true));
    }
    for piece in bytes.chunks(pieces) {
        client.send(piece);
    }
    for _ in 0..usize::from(wake) * 8 {
        client.driver.context_mut().words = "woken".to_owned();
        if let Some(notifier) = client.driver.context().notifier.clone() {
            notifier.wakeup();
        }
        client.driver.settle();
        client.read();
    }
    let answer = client.answer(1);
    assert!(answer.is_whole && answer.reset.is_none(), "{method} {path}: {}", client.outcome(1));
    assert!(client.driver.is_alive() && client.goaways.is_empty(), "{method} {path}");
    assert_eq!(client.driver.failures(), [""; 0]);
    let fields = answer.fields.iter().filter_map(|(name, value)| comparable_field(name, value));
    (answer.status, fields.collect(), answer.body, client.driver.context().events.clone())
}

#[test]
fn responses_and_handler_events_equal_those_of_http1() {
    for (method, path, body, wake) in [
        ("GET", "/", "", false),
        ("POST", "/", "hello", false),
        ("POST", "/", "x", false),
        ("PUT", "/a?b", "hello", false),
        ("HEAD", "/", "", false),
        ("GET", "/ignore", "", false),
        ("POST", "/progressive", "", false),
        ("GET", "/big", "", false),
        ("HEAD", "/big", "", false),
        ("GET", "/stream", "", false),
        ("GET", "/panic", "", false),
        ("GET", "/panic-late", "", false),
        ("POST", "/panic-in-body", "hello", false),
        ("GET", "/chunked", "", false),
        ("HEAD", "/chunked", "", false),
        ("GET", "/status/204", "", false),
        ("GET", "/status/304", "", false),
        ("GET", "/status/205", "", false),
        ("GET", "/authority", "", false),
        ("GET", "/length-304", "", false),
        ("GET", "/hints", "", false),
        ("GET", "/short", "", false),
        ("GET", "/split", "", false),
        ("GET", "/fail", "", false),
        ("GET", "/busy", "", false),
        ("GET", "/wait", "", true),
        ("GET", "/wait?always", "", true),
        ("GET", "/hints?always", "", false),
        ("GET", "/chunked?always", "", false),
        ("GET", "/fail?always", "", false),
        ("GET", "/panic-late?always", "", false),
        ("POST", "/panic-in-body?always", "hello", false),
        ("POST", "/early", "hello", false),
        ("TRACE", "/", "", false),
        ("PURGE", "/", "", false),
        ("OPTIONS", "*", "", false),
    ] {
        let expected = on_http1(method, path, body, wake);
        let is_there = expected.1.contains(&("x-always".to_owned(), "1".to_owned()));
        assert_eq!(is_there, path.ends_with("?always"), "{method} {path}");
        assert_eq!(on_http2(usize::MAX, method, path, body, wake), expected, "{method} {path}");
        assert_eq!(
            on_http2(1, method, path, body, wake),
            expected,
            "{method} {path}, byte by byte"
        );
    }
}

#[test]
fn a_request_reads_the_same_however_its_bytes_are_split() {
    let whole = on_http2(usize::MAX, "POST", "/progressive", "hello, world", false);
    for pieces in 1..120 {
        assert_eq!(
            on_http2(pieces, "POST", "/progressive", "hello, world", false),
            whole,
            "{pieces}"
        );
    }
}
