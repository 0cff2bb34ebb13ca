//! Requests and responses, several at the same time.

use std::sync::{Arc, Mutex};

use rotor_http::Version;
use rotor_http::server::Http2Config;

use super::client::{Client, config, data, frame, headers};
use crate::probe::{probe, seconds};

#[test]
fn a_plain_connection_refuses_http2_unless_allowed() {
    let mut driver = probe(rotor_http::server::ServerConfig::new().http2(Http2Config::new()));
    driver.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert!(driver.take_received().starts_with(b"HTTP/1.1 505 "));
}

#[test]
fn the_first_bytes_select_http1_or_http2() {
    for (input, answer) in [
        (&b"GET /authority HTTP/1.1\r\nHost: a\r\n\r\n"[..], &b"HTTP/1.1 200 "[..]),
        (b"PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 200 "),
        (b"PRO / HTTP/1.1\r\n", b"HTTP/1.1 "),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &[0, 0, 30, 4, 0]),
        // A preface that is wrong only near its end.
        (b"PRI * HTTP/2.0\r\n\r\nSN\r\n\r\n", &[0, 0, 30, 4, 0]),
    ] {
        for pieces in [1, 1000] {
            let mut driver = probe(config());
            input.chunks(pieces).for_each(|piece| driver.send(piece));
            driver.end();
            let received = driver.take_received();
            assert!(received.starts_with(answer) || answer == b"HTTP/1.1 ", "{received:?}");
        }
    }
}

#[test]
fn a_connection_stalled_within_the_preface_is_closed() {
    for len in [1, 3, 4, 10, 23] {
        let mut client = Client::silent(config());
        client.send(&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..len]);
        client.driver.advance(seconds(11));
        assert!(client.driver.is_ended(), "{len}");
    }
}

#[test]
fn responses_are_sent_in_the_order_in_which_handlers_finish() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/", &[], false));
    client.get(3, "/authority");
    client.send(&headers(5, "POST", "/", &[], false));
    assert_eq!(client.outcome(3), "200 a");
    client.send(&data(5, b"five", true));
    assert_eq!((client.outcome(5), client.outcome(1)), ("200 POST / five".into(), "0 cut".into()));
    client.send(&data(1, b"o", false));
    client.send(&data(1, b"ne", true));
    assert_eq!(client.outcome(1), "200 POST / one");
}

#[test]
fn a_handler_panic_fails_only_its_stream() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/", &[], false));
    client.get(3, "/panic");
    client.get(5, "/stream-panic");
    client.send(&data(1, b"one", true));
    assert_eq!(client.answer(3).status, 500);
    assert_eq!(client.answer(5).reset, Some(2), "a part of it was sent");
    assert_eq!(client.outcome(1), "200 POST / one");
    assert!(client.driver.is_alive());
}

#[test]
fn trailers_of_both_sides_arrive() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/progressive", &[], false));
    client.send(&data(1, b"hello", false));
    let trailers = super::client::block(&[("x-sum", "5")]);
    client.send(&frame(1, 5, 1, &trailers));
    assert_eq!(client.outcome(1), "200 POST /progressive hello x-sum: 5");
    client.get(3, "/chunked");
    assert_eq!((client.answer(3).text(), client.answer(3).field("x-sum")), ("onetwo", Some("6")));
    assert_eq!(client.answer(3).field("transfer-encoding"), None);
}

#[test]
fn interim_responses_are_sent_before_the_final_one() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/", &[("expect", "100-continue")], false));
    assert_eq!(client.answer(1).interim, [100]);
    client.send(&data(1, b"hello", true));
    assert_eq!(client.outcome(1), "200 POST / hello");
    client.get(3, "/hints");
    assert_eq!((client.answer(3).interim, client.answer(3).status), (vec![103], 200));
}

#[test]
fn wakeups_reach_the_handler_of_their_notifier() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    let first = client.driver.context().notifier.clone().expect("it waits");
    client.get(3, "/wait");
    let second = client.driver.context().notifier.clone().expect("it waits");
    assert_eq!((first.part(), second.part()), (1, 3));
    client.driver.context_mut().words = "for the second".to_owned();
    second.wakeup();
    client.driver.settle();
    client.read();
    assert_eq!(client.outcome(3), "200 GET /wait for the second");
    assert_eq!(client.outcome(1), "0 cut");
    // A wakeup of a stream that has ended reaches no handler.
    second.wakeup();
    client.driver.context_mut().words = "for the first".to_owned();
    first.wakeup();
    client.driver.settle();
    client.read();
    assert_eq!(client.outcome(1), "200 GET /wait for the first");
}

#[test]
fn a_handler_is_notified_of_a_reset_by_the_peer() {
    let mut client = Client::new(config());
    client.get(1, "/wait");
    client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
    assert_eq!(client.driver.context().events, ["GET /wait", "bad request: Truncated"]);
    client.get(3, "/authority");
    assert_eq!(client.outcome(3), "200 a");
}

#[test]
fn a_response_before_the_body_ends_its_stream_without_an_error() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/ignore", &[], false));
    assert_eq!(client.outcome(1), "200 POST /ignore ");
    client.send(&data(1, &[b'x'; 16_000], false));
    assert_eq!(client.answer(1).reset, None, "a little is read and dropped");
    (0..4).for_each(|_| client.send(&data(1, &[b'x'; 16_000], false)));
    client.send(&data(1, &[b'x'; 16_000], false));
    assert_eq!(client.answer(1).reset, Some(0));
    // Frames that were in flight are no protocol error.
    client.send(&data(1, b"x", true));
    client.get(3, "/authority");
    assert_eq!(client.outcome(3), "200 a");
}

#[test]
fn malformed_requests_reset_their_stream_and_reach_no_handler() {
    for fields in [
        &[("connection", "close")][..],
        &[("transfer-encoding", "chunked")],
        &[("x", "a\r\nb: c")],
        &[("content-length", "1"), ("content-length", "1")],
        &[(":path", "/")],
        &[("host", "b")],
    ] {
        let mut client = Client::new(config());
        client.send(&headers(1, "GET", "/", fields, true));
        assert_eq!(client.outcome(1), "0 reset 1", "{fields:?}");
        client.get(3, "/authority");
        assert_eq!(client.outcome(3), "200 a");
        assert_eq!(client.driver.context().events, ["GET /authority"]);
    }
}

#[test]
fn data_must_match_the_content_length() {
    for (length, pieces) in
        [("5", &["hell"][..]), ("5", &["hello", "o"]), ("5", &["helloo"]), ("0", &["x"])]
    {
        let mut client = Client::new(config());
        client.send(&headers(1, "POST", "/", &[("content-length", length)], false));
        for (at, piece) in pieces.iter().enumerate() {
            client.send(&data(1, piece.as_bytes(), at + 1 == pieces.len()));
        }
        assert_eq!(client.outcome(1), "0 reset 1", "{length} {pieces:?}");
        assert!(!client.driver.context().events.iter().any(|event| event.starts_with("body")));
    }
}

#[test]
fn the_log_names_refused_requests_as_far_as_they_could_be_read() {
    let long = "x".repeat(9_000);
    let path = format!("/{long}");
    for (method, path, fields, expected) in [
        ("GET", "/x", &[("expect", "y")][..], "GET /x 417 agent"),
        ("HEAD", "/x", &[("x", &long)], "HEAD /x 431 agent"),
        ("GET", &path, &[], &format!("GET {path} 414 agent")),
        // Not all of it is kept.
        ("GET", "/x", &[("x", &"y".repeat(16_200))], "GET /x 431 -"),
        // Without a target, nothing is read.
        ("HEAD", &"/x".repeat(8_150), &[], "  431 -"),
        ("HEAD", "x", &[("expect", "y")], "  417 -"),
    ] {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let sink = lines.clone();
        let config = config().log_fields(&["User-Agent"]).log(move |finished| {
            let status = finished.status.map_or(0, |status| status.code());
            let agent = String::from_utf8_lossy(finished.field("User-Agent").unwrap_or(b"-"));
            let line = format!("{} {} {status} {agent}", finished.method, finished.target);
            let version = (!finished.method.is_empty()).then_some(Version::Http2);
            assert_eq!(finished.version, version, "{line}");
            sink.lock().expect("no test panics there").push(line);
        });
        let mut client = Client::new(config);
        let fields = [fields, &[("user-agent", "agent")]].concat();
        client.send(&headers(1, method, path, &fields, true));
        client.read();
        assert_eq!(client.answer(1).body.is_empty(), method == "HEAD");
        assert_eq!(*lines.lock().expect("no test panics there"), [expected]);
    }
}
