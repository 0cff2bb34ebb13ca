//! Servers that break the protocol: an error on a stream fails its request, any other ends the
//! connection.

use rotor_http::Limits;

use super::server::{Server, data, frame, go_away, headers, page, reset, settings};
use crate::probe::Probe;

/// Sends these bytes instead of a response. Returns the outcome of the request, the code of its
/// reset, and the code with which the connection ended.
fn outcome(bytes: &[u8]) -> (String, Option<u32>, Option<u32>) {
    let run = |piece: usize| {
        let mut server = Server::new([Probe::get("/")]);
        for piece in bytes.chunks(piece) {
            server.send(piece);
        }
        assert_eq!(server.driver.failures(), [""; 0]);
        let reset = server.requests[&1].reset;
        (server.outcome(0), reset, server.end())
    };
    let whole = run(bytes.len());
    assert_eq!(run(1), whole, "byte by byte: {}", bytes.escape_ascii());
    whole
}

#[test]
fn stream_errors_fail_only_their_request() {
    const BAD_FRAME: &str = "Peer: Protocol(\"a frame that its stream cannot have\")";
    let ok = |fields: &[(&str, &str)]| headers(1, &[&[(":status", "200")], fields].concat(), false);
    for (bytes, expected, code) in [
        (headers(1, &[("a", "b")], false), "Peer: Head(Head(StatusLine))", 1),
        (headers(1, &[(":status", "99")], true), "Peer: Head(Head(StatusLine))", 0),
        (ok(&[("connection", "close")]), "Peer: Head(Head(FieldName))", 1),
        (ok(&[("transfer-encoding", "chunked")]), "Peer: Head(Head(FieldName))", 1),
        (ok(&[("a", "b\r\nc: d")]), "Peer: Head(Head(FieldValue))", 1),
        (ok(&[(":path", "/")]), "Peer: Head(Head(FieldName))", 1),
        (ok(&[("content-length", "x")]), "Peer: Head(Framing(Length))", 1),
        (data(1, b"x", false), BAD_FRAME, 1),
        (
            [ok(&[("content-length", "3")]), data(1, b"ab", true)].concat(),
            "Peer: Body(Truncated)",
            0,
        ),
        (
            [ok(&[("content-length", "1")]), data(1, b"ab", false)].concat(),
            "Peer: Body(Truncated)",
            1,
        ),
        (
            [ok(&[("content-length", "3")]), headers(1, &[("a", "b")], true)].concat(),
            "Peer: Body(Truncated)",
            0,
        ),
        ([ok(&[]), headers(1, &[("a", "b")], false)].concat(), "Peer: Body(Truncated)", 1),
        ([ok(&[]), headers(1, &[(":status", "200")], true)].concat(), "Peer: Body(Truncated)", 0),
        (frame(8, 0, 1, &[0; 4]), BAD_FRAME, 1),
        (
            frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff]),
            "Peer: Protocol(\"a stream beyond its window\")",
            3,
        ),
    ] {
        // A stream that both sides have ended needs no reset.
        let expected = (expected.to_owned(), (code > 0).then_some(code), None);
        assert_eq!(outcome(&bytes), expected, "{}", bytes.escape_ascii());
    }
}

#[test]
fn connection_errors_fail_all_requests() {
    let ends = page(1, "x");
    for (bytes, code, why) in [
        (frame(5, 4, 1, &[0, 0, 0, 2, 0x88]), 1, "a push that was not allowed"),
        (headers(2, &[(":status", "200")], true), 1, "HEADERS on a stream that was never begun"),
        (headers(3, &[(":status", "200")], true), 1, "HEADERS on a stream that was never begun"),
        (data(3, b"x", true), 1, "DATA on a stream that was never begun"),
        (data(0, b"x", true), 1, "DATA on stream 0"),
        (reset(3, 8), 1, "RST_STREAM of a stream that was never begun"),
        (frame(8, 0, 3, &[0, 0, 0, 1]), 1, "WINDOW_UPDATE of a stream that was never begun"),
        (frame(8, 0, 0, &[0; 4]), 1, "WINDOW_UPDATE of 0 octets"),
        (frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]), 3, "a window beyond 2^31 - 1"),
        (settings(&[(2, 1)]), 1, "a server that wants to be pushed to"),
        (settings(&[(4, 1 << 31)]), 3, "INITIAL_WINDOW_SIZE is beyond 2^31 - 1"),
        (settings(&[(5, 1)]), 1, "MAX_FRAME_SIZE is not within its bounds"),
        (frame(4, 0, 0, &[0; 5]), 6, "SETTINGS of a length that is no multiple of 6"),
        (frame(6, 0, 0, &[0; 7]), 6, "PING of other than 8 octets"),
        (frame(7, 0, 0, &[0; 7]), 6, "GOAWAY of less than 8 octets"),
        (frame(9, 4, 1, b""), 1, "CONTINUATION of nothing"),
        (frame(16, 0, 0, &[0, 0, 0, 1]), 1, "PRIORITY_UPDATE of a server"),
        ([frame(1, 0, 1, &[0x88]), settings(&[])].concat(), 1, "a block of fields is broken off"),
        (frame(1, 4, 1, &[0xff]), 9, "a block of fields ends within a field"),
        (frame(1, 4, 1, &[0x7f]), 9, "a block of fields ends within a field"),
        (frame(0, 0, 1, &[0; 16_385]), 6, "a frame that is longer than allowed"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec(), 6, "a frame that is longer than allowed"),
    ] {
        let expected = (format!("Peer: Protocol({why:?})"), None, Some(code));
        assert_eq!(outcome(&bytes), expected, "{}", bytes[..bytes.len().min(40)].escape_ascii());
    }
    for behind in [data(1, b"x", false), headers(1, &[(":status", "200")], true)] {
        let (outcome, _, end) = outcome(&[ends.clone(), behind].concat());
        assert_eq!((outcome.as_str(), end), ("200 x", Some(5)));
    }
}

#[test]
fn an_http1_response_or_early_goaway_is_a_protocol_error() {
    let acknowledgement = frame(4, 1, 0, &[]);
    let http1 = |version: &str| format!("HTTP/{version} 400 Bad Request\r\n\r\n").into_bytes();
    let no_settings = "the first frame is not SETTINGS";
    for (bytes, why) in [
        (http1("1.1"), "it speaks HTTP/1"),
        (http1("1.0"), "it speaks HTTP/1"),
        (go_away(0, 0), no_settings),
        (acknowledgement, no_settings),
    ] {
        let config = rotor_http::client::ClientConfig::new().http2(super::server::http2());
        let mut server = Server::silent(config, [Probe::get("/")]);
        server.send(&bytes);
        let expected = (format!("Peer: Protocol({why:?})"), Some(1));
        assert_eq!((server.outcome(0), server.end()), expected);
    }
}

#[test]
fn trailers_beyond_their_limits_fail_only_their_request() {
    let bytes = Limits::new().trailer_bytes_max(50);
    let count = Limits::new().trailers_max(3);
    let long = "y".repeat(44);
    for (limits, fields, outcome, code) in [
        // `x: ` and two line ends take seven bytes.
        (&bytes, vec![("x", &long[..43])], "200 hi", None),
        (&bytes, vec![("x", &long)], "Peer: Body(Trailer(TooLarge))", None),
        (&count, vec![("x", "y"); 3], "200 hi", None),
        (&count, vec![("x", "y"); 4], "Peer: Body(Trailer(TooManyFields))", None),
    ] {
        let shown = format!("{fields:?}");
        let mut server = Server::with_limits(limits.clone(), [Probe::get("/"), Probe::get("/")]);
        server.send(&headers(1, &[(":status", "200")], false));
        server.send(&data(1, b"hi", false));
        server.send(&headers(1, &fields, true));
        assert!(server.outcome(0).starts_with(outcome), "{shown}: {}", server.outcome(0));
        assert_eq!(server.requests[&1].reset, code, "{shown}: both sides have ended the stream");
        server.send(&page(3, "x"));
        assert_eq!((server.outcome(1).as_str(), server.end()), ("200 x", None), "{shown}");
    }
}
