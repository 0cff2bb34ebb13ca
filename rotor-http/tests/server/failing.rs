//! Handlers that fail with a status that no error page can have, error pages that are refused at
//! first, and those for heads that cannot be read.

use std::time::Duration;

use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor_http::{Method, Status};
use rotor_stream::testing::Driver;

use crate::http2::client as http2;
use crate::probe::{get, request};
use crate::wire;

/// Fails with the status that its path says.
struct FailingHandler;

impl Server for FailingHandler {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn supports(_: Method<'_>) -> bool {
        true
    }

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.query() == Some("upgrade") {
            response.add_always("Upgrade", "x").expect("a field");
        }
        let code = head.path().get(1..).and_then(|code| code.parse().ok()).unwrap_or(200);
        Next::fail(Status::new(code).expect("a status"))
    }
}

#[test]
fn a_failure_with_a_status_that_allows_no_page_is_a_500() {
    let connect = request("CONNECT a:1", "", "");
    for (input, expected) in [
        (get("/100"), "500 close"),
        (get("/101"), "500 close"),
        (get("/103"), "500 close"),
        (get("/204"), "500 close"),
        (get("/205"), "500 close"),
        (get("/304"), "500 close"),
        (get("/426"), "500 close"),
        (connect, "500 close"),
        (get("/426?upgrade"), "426 close"),
        (get("/200"), "200 close"),
        (get("/404"), "404 close"),
    ] {
        let shown = input.escape_ascii().to_string();
        let mut driver =
            Driver::<Connection<FailingHandler>>::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(&input);
        let received = driver.take_received();
        let mut rest = &received[..];
        let answer = wire::take(&mut rest).unwrap_or_else(|error| panic!("{shown}: {error}"));
        let got = format!("{}{}", answer.status, if answer.closes() { " close" } else { "" });
        assert_eq!((&*got, rest), (expected, &b""[..]), "{shown}");
    }
}

#[test]
fn a_failure_without_a_possible_page_is_a_500_on_its_http2_stream() {
    for (path, expected) in [("/204", "500"), ("/426", "500"), ("/404", "404")] {
        let seed = HttpSeed::new((), http2::config());
        let mut driver = Driver::<Connection<FailingHandler>>::new(seed, ());
        let asked = http2::headers(1, "GET", path, &[], true);
        driver.send(&[http2::preface_and_settings(&[]), asked].concat());
        let received = driver.take_received();
        let text = String::from_utf8_lossy(&received);
        assert!(text.contains(&format!("{expected} ")), "{path}: {text:?}");
    }
}

/// Its first error page is refused for a field after `Retry-After`; the second one is valid.
struct RefusedThenValidPage;

impl Server for RefusedThenValidPage {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::fail(Status::SERVICE_UNAVAILABLE)
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        let fields: &[(&str, &[u8])] = &[("Retry-After", b"9"), ("X A", b"b")];
        assert!(response.send_with(status, fields, "text/plain", b"").is_err());
        response.send(status, "text/plain", b"second").expect("as if nothing had been");
    }
}

#[test]
fn a_refused_error_page_leaves_the_default_retry_after() {
    let seed = HttpSeed::new((), ServerConfig::new());
    let mut driver = Driver::<Connection<RefusedThenValidPage>>::new(seed, ());
    driver.send(&get("/"));
    let answer = &wire::answers(&driver.take_received())[0];
    assert_eq!((answer.text(), answer.field("Retry-After")), ("second", Some("5")));
}

#[test]
fn an_unreadable_head_request_gets_a_page_without_content() {
    let long = format!("HEAD / HTTP/1.1\r\nHost: {}\r\n\r\n", "a".repeat(20_000));
    for (input, status, has_content) in [
        ("HEAD /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
        ("\r\nHEAD / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n", 400, false),
        ("HEAD * HTTP/1.1\r\nHost: a\r\n\r\n", 400, false),
        ("HEAD / HTTP/9.9\r\n", 505, false),
        (&long, 431, false),
        // Not whole in time.
        ("HEAD / HT", 408, false),
        ("HEAD / HTTP/1.1\r\nHost: a\r\n", 408, false),
        // Another method, or none at all.
        ("GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, true),
        ("HEADS /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, true),
        ("head /a#b HTTP/1.1\r\nHost: a\r\n\r\n", 400, true),
        ("HEAD\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, true),
        ("HEA", 408, true),
    ] {
        let mut driver = crate::probe::probe(ServerConfig::new());
        driver.send(input.as_bytes());
        driver.advance(Duration::from_secs(11));
        let answer = String::from_utf8(driver.take_received()).expect("text");
        let (head, content) = answer.split_once("\r\n\r\n").expect("an end of the head");
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{input}: {answer}");
        let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
        let length: usize = length.and_then(|length| length.parse().ok()).expect("a length");
        assert!(length > 0, "that of the page for GET: {answer}");
        assert_eq!(content.len(), if has_content { length } else { 0 }, "{input}: {answer}");
    }
}
