//! Heads: errors that are final and named, and what the head of a response implies.

use std::error::Error;

use rotor_http::h1::{
    Body, FieldStorage, FramingError, HeadReader, Limits, Method, RequestSemantics,
    ResponseHeadError, ResponseSemantics,
};

use crate::get;

#[test]
fn an_error_in_a_head_is_final() {
    let limits = Limits::new().head_bytes_max(64);
    let request = get(&format!("B: {}\r\n", "c".repeat(33)));
    let response = format!("HTTP/1.1 200 OK\r\nB: {}\r\n\r\n", "c".repeat(45)).into_bytes();
    assert!(request.len() == 65 && response.len() == 69);
    let refused = |reader: &mut HeadReader, input: &[u8]| {
        let mut storage = FieldStorage::new();
        reader
            .read_request(input, &mut storage, &limits)
            .expect_err("refused before and refused again")
    };
    let mut reader = HeadReader::new();
    let error = refused(&mut reader, &request[..64]);
    for len in [64, 65, 64] {
        assert_eq!(
            refused(&mut reader, &request[..len]),
            error,
            "the head is not taken at {len} after all"
        );
    }
    let mut reader = HeadReader::new();
    for len in [64, 64, 69] {
        let mut storage = FieldStorage::new();
        assert!(reader.read_response(&response[..len], &mut storage, &limits).is_err(), "at {len}");
    }
}

/// Why a request (with `of_response`, a response) is refused, down to the cause.
fn reason(head: &[u8], of_response: bool) -> String {
    let (limits, mut storage) = (Limits::default(), FieldStorage::new());
    let mut reader = HeadReader::new();
    let error: Box<dyn Error> = match of_response {
        true => reader.read_response(head, &mut storage, &limits).expect_err("no head").into(),
        false => match reader.read_request(head, &mut storage, &limits) {
            Err(error) => error.into(),
            Ok(head) => {
                let terms = RequestSemantics::from_head(&head.expect("a whole head"));
                terms.expect_err("no request").into()
            }
        },
    };
    error.source().map_or(error.to_string(), ToString::to_string)
}

#[test]
fn head_errors_name_their_reason() {
    let (line_end, version) = ("does not end with CR LF", "the protocol version is malformed");
    for (head, of_response, expected) in [
        // Lines that end in LF alone, at each place where that may come first.
        (&b"GET / HTTP/1.1\nHost: a\n\n"[..], false, line_end),
        (b"GET\n", false, line_end),
        (b"GET /\n", false, line_end),
        (b"GET /a HTTP/1\n", false, line_end),
        (b"GET / HTTP/1.1\r\nHost\n", false, line_end),
        (b"GET / HTTP/1.1\r\nHost: a\nB: c\r\n\r\n", false, line_end),
        (b"GET / HTTP/1.1\r\nHost: a\r\n\n", false, line_end),
        (b"GET / HTTP/1.1\rHost: a\r\n\r\n", false, line_end),
        (b"HTTP/1.1 200 OK\nA: b\n\n", true, line_end),
        (b"HTTP/1.1 200\n\n", true, line_end),
        (b"HTTP/1.1\n", true, line_end),
        // The parts of a request line.
        (b"GET /\r\n", false, version),
        (b"GET / \r\n", false, version),
        (b"GET /a b HTTP/1.1\r\n", false, version),
        (b"GET / HTTP/0.9\r\n", false, version),
        (b"GET  / HTTP/1.1\r\n", false, "target is empty or contains a byte"),
        (b"GET \xc3\xa4 HTTP/1.1\r\n", false, "target is empty or contains a byte"),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", false, "does not fit the method"),
        (b"G\0T / HTTP/1.1\r\n", false, "the method is not a token"),
        (b"\x16\x03\x01\x02\0\x01\0", false, "this is TLS"),
        (b"\x15\x03\x03\0\x02\x02\x46", true, "this is TLS"),
        (b"\x16\x03\x03\0\x7a", true, "this is TLS"),
        (b"H\x16TP/1.1 200 OK\r\n", true, version),
        // The different errors of `Host` and of lengths.
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", false, "Host is not a host"),
        (b"GET / HTTP/1.1\r\n\r\n", false, "Host is missing"),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", false, "a field name is not a token"),
    ] {
        let reason = reason(head, of_response);
        assert!(reason.contains(expected), "{}: {reason}", head.escape_ascii());
    }
}

#[test]
fn a_reader_that_is_used_for_both_kinds_of_head_does_not_panic() {
    let limits = Limits::new();
    let (request, response) = (get(""), b"HTTP/1.1 200 OK\r\n\r\n");
    let mut reader = HeadReader::new();
    let mut storage = FieldStorage::new();
    assert!(matches!(reader.read_request(&request[..1], &mut storage, &limits), Ok(None)));
    let mut storage = FieldStorage::new();
    assert!(reader.read_response(&request, &mut storage, &limits).is_err());
    let mut reader = HeadReader::new();
    let mut storage = FieldStorage::new();
    assert!(matches!(reader.read_response(&response[..1], &mut storage, &limits), Ok(None)));
    let mut storage = FieldStorage::new();
    assert!(reader.read_request(response, &mut storage, &limits).is_err());
}

/// A client's view: the response head whole and byte by byte, then its terms.
fn response(
    input: &[u8],
    method: Method<'_>,
) -> Result<Option<(u16, String, ResponseSemantics, usize)>, ResponseHeadError> {
    let limits = Limits::new();
    let read = |reader: &mut HeadReader, input: &[u8]| {
        let mut storage = FieldStorage::new();
        let Some(head) = reader.read_response(input, &mut storage, &limits)? else {
            return Ok(None);
        };
        let terms = ResponseSemantics::from_head(&head, method, false)?;
        Ok(Some((head.status().code(), head.reason().to_owned(), terms, head.input_len())))
    };
    let whole = read(&mut HeadReader::new(), input);
    let mut reader = HeadReader::new();
    let found = (0..=input.len())
        .map(|len| read(&mut reader, &input[..len]))
        .find(|read| read != &Ok(None));
    assert_eq!(found.unwrap_or(Ok(None)), whole, "byte by byte: {}", input.escape_ascii());
    whole
}

#[test]
fn rules_54_to_60_response_heads() {
    let good =
        |input: &[u8], method| response(input, method).expect("a good head").expect("a whole head");
    let (code, reason, terms, len) =
        good(b"HTTP/1.1 200 Fine by me\r\nContent-Length: 2\r\n\r\nhi", Method::Get);
    assert_eq!(
        (code, reason.as_str(), terms.body, terms.keep_alive, len),
        (200, "Fine by me", Body::Length(2), true, 46)
    );
    assert_eq!(good(b"HTTP/1.1 204\r\n\r\n", Method::Get).0, 204);
    assert_eq!(good(b"HTTP/1.1 404 \r\n\r\n", Method::Get).1, "");
    assert_eq!(good(b"HTTP/1.1 200 \xe9\r\nA: b\r\n\r\n", Method::Get).1, "");
    let until_close = good(b"HTTP/1.1 200 OK\r\n\r\n", Method::Get).2;
    assert_eq!((until_close.body, until_close.keep_alive), (Body::UntilClose, false));
    for (input, method, keep_alive) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..], Method::Head, true),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Method::Get, true),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Method::Get, false),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Method::Get, false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::Connect, false),
        (b"HTTP/1.0 204 No Content\r\n\r\n", Method::Get, false),
    ] {
        let terms = good(input, method).2;
        assert_eq!(
            (terms.body, terms.keep_alive),
            (Body::Empty, keep_alive),
            "57 {}",
            input.escape_ascii()
        );
    }
    assert!(good(b"HTTP/1.1 100 Continue\r\n\r\n", Method::Get).2.is_interim);
    assert_eq!(
        response(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Method::Get),
        Err(ResponseHeadError::UnexpectedSwitch)
    );
    for (lines, error) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", FramingError::LengthAndCoding),
        ("Content-Length: 5\r\nContent-Length: 5", FramingError::SeveralLengths),
        ("Content-Length: x", FramingError::Length),
        ("Transfer-Encoding: gzip", FramingError::CodingUnknown),
        ("Transfer-Encoding: chunked, gzip", FramingError::Coding),
    ] {
        let input = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
        assert_eq!(response(input.as_bytes(), Method::Get), Err(error.into()), "55 {lines}");
    }
    for line in [
        "\r\nHTTP/1.1 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 2x0 OK",
        "SSH-2.0-OpenSSH",
        "HTTP/1.1",
        "\n",
        "<html>",
    ] {
        let input = format!("{line}\r\n\r\n");
        assert!(response(input.as_bytes(), Method::Get).is_err(), "60 {line:?}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(10_000));
    assert!(response(&endless.as_bytes()[..20_000], Method::Get).is_err());
}
