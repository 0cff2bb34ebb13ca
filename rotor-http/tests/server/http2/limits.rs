//! The limits of heads and of trailers apply on HTTP/2 at the same byte and at the same field as on
//! HTTP/1.1.

use rotor_http::Limits;
use rotor_http::h2::frame::{flag, kind};

use super::client::{Client, block, config, data, frame, headers};
use crate::probe::{probe, request, seconds};
use crate::wire::transcript;

/// The outcome of a GET with these fields, on both versions.
fn statuses(limits: &Limits, fields: &[(&str, &str)]) -> (String, u16) {
    let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let mut driver = probe(config().limits(limits.clone()));
    driver.send(&request("GET /ignore", &lines, ""));
    let http1 = transcript(&driver.take_received());
    let mut client = Client::new(config().limits(limits.clone()));
    client.send(&headers(1, "GET", "/ignore", fields, true));
    (http1, client.answer(1).status)
}

#[test]
fn a_field_counts_as_long_as_its_http1_line() {
    let limits = Limits::new().field_bytes_max(20);
    for (len, is_within) in [(14, true), (15, true), (16, false)] {
        let (http1, http2) = statuses(&limits, &[("x-a", &"v".repeat(len))]);
        let expected = if is_within { "200 GET /ignore" } else { "431 close" };
        assert_eq!((&*http1, http2 == 200), (expected, is_within), "{len}");
        assert!(is_within || http2 == 431, "{len}");
    }
}

#[test]
fn pseudo_fields_do_not_count_against_the_limit_of_fields() {
    let limits = Limits::new().fields_max(7);
    // On HTTP/1.1, `Host` counts as one of them.
    let (http1, http2) = statuses(&limits, &[("x-a", "b"); 6]);
    assert_eq!((&*http1, http2), ("200 GET /ignore", 200));
    let (http1, http2) = statuses(&limits, &[("x-a", "b"); 7]);
    assert_eq!((&*http1, http2), ("431 close", 200));
    assert_eq!(statuses(&limits, &[("x-a", "b"); 8]).1, 431);
    let three = [(":method", "GET"), (":scheme", "http"), (":path", "/ignore"), ("host", "a")];
    let websocket = [
        (":method", "CONNECT"),
        (":protocol", "relay"),
        (":scheme", "http"),
        (":path", "/up"),
        (":authority", "a"),
    ];
    for (begun, others, status) in [
        (&three[..], 6, 200),
        (&three[..], 7, 431),
        (&websocket[..], 7, 200),
        (&websocket[..], 8, 431),
    ] {
        let fields = [begun, &[("x-a", "b")].repeat(others)].concat();
        let mut client = Client::new(config().limits(limits.clone()));
        let flags = flag::END_HEADERS | flag::END_STREAM;
        client.send(&frame(kind::HEADERS, flags, 1, &block(&fields)));
        assert_eq!(client.answer(1).status, status, "{begun:?} and {others} more");
    }
}

/// Browsers send each cookie as a field of its own (RFC 9113 §8.2.3), and have more of them than a
/// request may have fields.
#[test]
fn cookies_in_parts_count_as_one_field() {
    let limits = Limits::new().fields_max(3);
    for (cookies, others, status) in [(150, 2, 200), (0, 3, 200), (150, 3, 431), (0, 4, 431)] {
        let cookies = [("cookie", "c=d")].repeat(cookies);
        let fields = [&cookies[..], &[("x-a", "b")].repeat(others)].concat();
        let mut client = Client::new(config().limits(limits.clone()));
        client.send(&headers(1, "GET", "/ignore", &fields, true));
        assert_eq!(client.answer(1).status, status, "{} cookies, {others}", cookies.len());
    }
}

#[test]
fn a_head_beyond_the_limit_in_several_frames_costs_its_stream_alone() {
    let large = "x".repeat(40_000);
    let head = [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")];
    let block = block(&[&head[..], &[("x-a", &large)]].concat());
    let config = config();
    let counters = config.counters();
    let mut client = Client::new(config);
    client.send(&headers(1, "POST", "/progressive", &[], false));
    for (at, part) in block.chunks(16_000).enumerate() {
        let (kind, end) =
            if at == 0 { (kind::HEADERS, flag::END_STREAM) } else { (kind::CONTINUATION, 0) };
        let flags = if at == 2 { flag::END_HEADERS } else { end };
        client.send(&frame(kind, flags, 3, part));
    }
    assert_eq!((client.answer(3).status, counters.heads_too_large()), (431, 1));
    client.send(&data(1, b"still there", true));
    assert_eq!(client.outcome(1), "200 POST /progressive still there");
}

/// The response has begun, so there is no error page; the reset must not blame this side.
#[test]
fn a_body_failure_after_the_head_resets_with_a_code_that_names_whose_fault_it_is() {
    const INTERNAL_ERROR: u32 = 2;
    const CANCEL: u32 = 8;
    let limits = Limits::new().trailers_max(1).body_grace(seconds(5));
    let trailers = block(&[("x", "y"), ("z", "w")]);
    let flags = flag::END_HEADERS | flag::END_STREAM;
    for (path, cause, code) in [
        ("/mirror", "trailers", CANCEL),
        ("/mirror", "slow", CANCEL),
        ("/mirror", "end", CANCEL),
        ("/stream-fail", "handler", INTERNAL_ERROR),
        ("/stream-panic", "handler", INTERNAL_ERROR),
    ] {
        let mut client = Client::new(config().limits(limits.clone()));
        client.send(&headers(1, "POST", path, &[], false));
        client.send(&data(1, b"hello", false));
        match cause {
            "trailers" => client.send(&frame(kind::HEADERS, flags, 1, &trailers)),
            "slow" => client.driver.advance(seconds(6)),
            "end" => client.driver.end(),
            _ => {}
        }
        client.read();
        let answer = client.answer(1);
        assert_eq!((answer.status, answer.reset), (200, Some(code)), "{path}: {cause}");
    }
}

#[test]
fn trailers_beyond_their_limits_are_refused_and_reported() {
    let octets = Limits::new().trailer_bytes_max(50);
    let count = Limits::new().trailers_max(3);
    let long = "y".repeat(44);
    for (limits, fields, outcome) in [
        // `x: ` and two line ends take seven bytes.
        (&octets, vec![("x", &long[..43])], "200 POST /progressive hello"),
        (&octets, vec![("x", &long)], "431 431 Request Header Fields Too Large"),
        (&count, vec![("x", "y"); 3], "200 POST /progressive hello"),
        (&count, vec![("x", "y"); 4], "431 431 Request Header Fields Too Large"),
    ] {
        let shown = format!("{fields:?}");
        let config = config().limits(limits.clone());
        let counters = config.counters();
        let mut client = Client::new(config);
        client.send(&headers(1, "POST", "/progressive", &[], false));
        client.send(&data(1, b"hello", false));
        let flags = flag::END_HEADERS | flag::END_STREAM;
        client.send(&frame(kind::HEADERS, flags, 1, &block(&fields)));
        assert!(client.outcome(1).starts_with(outcome), "{shown}: {}", client.outcome(1));
        let is_refused = outcome.starts_with("431 ");
        let told = client.driver.context().events.iter().any(|event| event.contains("Trailer("));
        assert_eq!((told, counters.bodies_too_large()), (is_refused, is_refused.into()), "{shown}");
        client.get(3, "/authority");
        assert_eq!(client.outcome(3), "200 a", "it costs its stream alone");
    }
}
