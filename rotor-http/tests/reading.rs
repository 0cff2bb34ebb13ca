//! The reading half of `h1`: every limit at n − 1, n and n + 1, errors that stay errors, response
//! heads, and heads changed at random; whole, byte by byte and cut. The rules for requests are in
//! `server/rules`.

use std::error::Error;
use std::fmt::Write;

use rotor_http::h1::{
    Body, BodyDecoder, BodyError, FieldStorage, FramingError, HeadReader, Limits, Method,
    RequestSemantics, ResponseHeadError, ResponseSemantics,
};

/// A server's view of one connection: what it has not consumed, and what it has made of the rest.
struct Connection {
    input: Vec<u8>,
    reader: HeadReader,
    body: Option<BodyDecoder>,
    answers: String,
    is_over: bool,
    limits: Limits,
}

impl Connection {
    fn new(limits: Limits) -> Connection {
        let (input, answers) = Default::default();
        Connection { input, reader: HeadReader::new(), body: None, answers, is_over: false, limits }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while !self.is_over && self.step() {}
    }

    /// One head or one piece of body; returns whether there may be more.
    fn step(&mut self) -> bool {
        if self.body.is_some() {
            return self.body_step();
        }
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_request(&self.input, &mut storage, &self.limits) {
            Ok(None) => return false,
            Ok(Some(head)) => head,
            Err(error) => return self.refuse(error.status().code()),
        };
        let len = head.input_len();
        let terms = match RequestSemantics::from_head(&head) {
            Ok(terms) => terms,
            Err(error) => return self.refuse(error.status().code()),
        };
        if let Method::Extension(_) = head.method() {
            return self.refuse(501);
        }
        let flags = [
            (!terms.keep_alive, "close "),
            (terms.expects_continue, "continue "),
            (terms.wants_upgrade, "upgrade "),
        ];
        write!(self.answers, "{} {} ", head.method(), head.path()).expect("to a string");
        flags
            .iter()
            .filter(|(is_set, _)| *is_set)
            .for_each(|(_, flag)| self.answers.push_str(flag));
        self.is_over = terms.wants_upgrade || head.method() == Method::Connect;
        let (body, keep_alive) = (terms.body, terms.keep_alive);
        self.input.drain(..len);
        self.body = (body != Body::Empty)
            .then(|| BodyDecoder::new(body, u64::MAX, &self.limits).expect("no limit on the body"));
        if self.body.is_none() {
            self.is_over |= !keep_alive;
            self.answers.push_str("| ");
        }
        true
    }

    fn body_step(&mut self) -> bool {
        let Some(body) = &mut self.body else { return false };
        let decoded = match body.decode(&self.input) {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse(error.status().code()),
        };
        let data = String::from_utf8_lossy(&self.input[decoded.skip..decoded.consumed()]);
        self.answers.push_str(&data);
        self.input.drain(..decoded.consumed());
        if decoded.is_end {
            let trailers = self.body.take().map(BodyDecoder::into_trailers).unwrap_or_default();
            trailers
                .iter()
                .for_each(|trailer| write!(self.answers, " {trailer:?}").expect("to a string"));
            self.answers.push_str(" | ");
        }
        decoded.data > 0 || decoded.is_end
    }

    fn refuse(&mut self, status: u16) -> bool {
        write!(self.answers, "{status}").expect("to a string");
        self.is_over = true;
        false
    }

    fn finish(mut self) -> String {
        let is_partial = self.body.is_some() || !self.reader.is_idle();
        if !self.is_over && is_partial {
            self.answers.push_str("...");
        }
        self.answers.trim_end_matches(['|', ' ']).to_owned()
    }
}

/// What a server makes of the pieces: each request with its body, then the status with which it
/// refuses the rest, or `...` where it waits.
fn answers<'a>(limits: &Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut connection = Connection::new(limits.clone());
    pieces.into_iter().for_each(|piece| connection.feed(piece));
    connection.finish()
}

/// Runs the input whole, byte by byte, and in two pieces (in all ways if it is short), and demands
/// one answer.
fn check(name: &str, limits: &Limits, input: &[u8], expected: &str) {
    assert_eq!(answers(limits, [input]), expected, "{name}, whole: {}", input.escape_ascii());
    let bytes = answers(limits, input.chunks(1));
    assert_eq!(bytes, expected, "{name}, byte by byte: {}", input.escape_ascii());
    let step = input.len() / 300 + 1;
    for cut in (0..input.len()).step_by(step) {
        let (first, second) = input.split_at(cut);
        let cut_answers = answers(limits, [first, second]);
        assert_eq!(cut_answers, expected, "{name}, cut at {cut}: {}", input.escape_ascii());
    }
}

/// A GET with these field lines beside `Host`.
fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

/// A POST with these field lines beside `Host`, and what follows the head.
fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{body}").into_bytes()
}

/// Limits hold at n − 1 and n, and not at n + 1. `input(n)` has a part of that size.
fn check_limit(
    name: &str,
    limits: &Limits,
    n: usize,
    input: impl Fn(usize) -> Vec<u8>,
    status: &str,
) {
    for size in [n - 1, n] {
        let made = answers(limits, [input(size).as_slice()]);
        assert!(!made.contains(status), "{name} at {size} of {n}: {made}");
        check(&format!("{name} at {size} of {n}"), limits, &input(size), &made);
    }
    let input = input(n + 1);
    let made = answers(limits, [input.as_slice()]);
    assert!(made.ends_with(status), "{name} at {}: {made}", n + 1);
    check(&format!("{name} at {} of {n}", n + 1), limits, &input, &made);
}

#[test]
fn limits_hold_exactly() {
    let limits =
        Limits::new().head_bytes_max(200).field_bytes_max(60).fields_max(5).target_bytes_max(40);
    let limits = limits
        .chunk_line_bytes_max(20)
        .extension_bytes_max(30)
        .trailer_bytes_max(50)
        .trailers_max(3);
    let frame = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".len() + 3 * "B: \r\n".len();
    let head = |size: usize| {
        let rest = size - frame;
        let value = |len| "c".repeat(len);
        let lines = format!("B: {}\r\nB: {}\r\nB: {}\r\n", value(55), value(55), value(rest - 110));
        get(&lines)
    };
    assert_eq!(head(200).len(), 200);
    check_limit("head", &limits, 200, head, "431");
    let framed_head = |size| [b"\r\n\r\n".to_vec(), head(size)].concat();
    check_limit("head after empty lines", &limits, 200, framed_head, "431");
    check_limit(
        "field",
        &limits,
        60,
        |size| get(&format!("B: {}\r\n", "c".repeat(size - 3))),
        "431",
    );
    check_limit(
        "field with padding",
        &limits,
        60,
        |size| get(&format!("B:{}c\r\n", " ".repeat(size - 3))),
        "431",
    );
    check_limit(
        "field name",
        &limits,
        60,
        |size| get(&format!("{}:\r\n", "c".repeat(size - 1))),
        "431",
    );
    check_limit("fields", &limits, 5, |count| get(&"B: c\r\n".repeat(count - 1)), "431");
    let target = |size: usize| {
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(size - 1)).into_bytes()
    };
    check_limit("target", &limits, 40, target, "414");
    let method =
        |size: usize| format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(size)).into_bytes();
    check("method", &limits, &method(Method::OCTETS_MAX), "501");
    check("method", &limits, &method(Method::OCTETS_MAX + 1), "501");

    let chunked = |body: String| post("Transfer-Encoding: chunked", &body);
    let line = |size: usize| chunked(format!("0;{}\r\n\r\n", "a".repeat(size - 2)));
    check_limit("chunk line", &limits, 20, line, "400");
    let size = |size: usize| chunked(format!("{}2\r\nhi\r\n0\r\n\r\n", "0".repeat(size - 1)));
    check_limit("chunk size", &limits, 20, size, "400");
    let extensions = |size: usize| {
        chunked(format!("1;{}\r\na\r\n0;{}\r\n\r\n", "b".repeat(14), "c".repeat(size - 16)))
    };
    check_limit("extensions of a body", &limits, 30, extensions, "400");
    let space = |size: usize| chunked(format!("0{};a\r\n\r\n", " ".repeat(size - 3)));
    check_limit("space in a chunk line", &limits, 20, space, "400");
    let spaces = |size: usize| {
        let (before, after) = (" ".repeat(13), "\t".repeat(size - 17));
        chunked(format!("1{before};b\r\na\r\n0;{after}c\r\n\r\n"))
    };
    check_limit("space of the extensions of a body", &limits, 30, spaces, "400");
    let trailer = |size: usize| chunked(format!("0\r\nB: {}\r\n\r\n", "c".repeat(size - 7)));
    check_limit("trailer bytes", &limits, 50, trailer, "431");
    check_limit(
        "trailer fields",
        &limits,
        3,
        |count| chunked(format!("0\r\n{}\r\n", "B: c\r\n".repeat(count))),
        "431",
    );

    let limits = Limits::new();
    let many = |count: usize| get(&"B: c\r\n".repeat(count - 1));
    check_limit("default fields", &limits, 100, many, "431");
    check_limit("fast fields", &limits.clone().fields_max(64), 64, many, "431");
    let target = |size: usize| {
        format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(size - 1)).into_bytes()
    };
    check_limit("default target", &limits, 8190, target, "414");
}

#[test]
fn a_limit_on_trailers_may_be_any_number() {
    let limits = Limits::new().trailer_bytes_max(16 << 20).trailers_max(usize::MAX);
    let count = usize::from(u16::MAX) + 2;
    let input = format!("0\r\n{}\r\n", "B:\r\n".repeat(count));
    let mut body = BodyDecoder::new(Body::Chunked, 0, &limits).expect("no length is announced");
    assert_eq!(body.decode(input.as_bytes()).map(|decoded| decoded.is_end), Ok(true));
    assert_eq!(body.into_trailers().iter().count(), count);
}

#[test]
fn a_body_over_its_limit_is_refused_before_its_data() {
    let limits = Limits::new();
    for size in [9, 10] {
        assert!(BodyDecoder::new(Body::Length(size), 10, &limits).is_ok());
    }
    assert_eq!(BodyDecoder::new(Body::Length(11), 10, &limits).err(), Some(BodyError::TooLarge));
    let mut chunked = BodyDecoder::new(Body::Chunked, 10, &limits).expect("no length is announced");
    assert_eq!(chunked.decode(b"a\r\n0123456789").map(|decoded| decoded.data), Ok(10));
    assert_eq!(chunked.decode(b"\r\n1\r\n"), Err(BodyError::TooLarge));
    assert_eq!(chunked.decode(b""), Err(BodyError::TooLarge), "the decoder keeps saying so");
    let mut until_close =
        BodyDecoder::new(Body::UntilClose, 10, &limits).expect("no length is announced");
    assert_eq!(until_close.decode(b"0123456789").map(|decoded| decoded.data), Ok(10));
    assert_eq!(until_close.decode(b"0"), Err(BodyError::TooLarge));
    let mut whole =
        BodyDecoder::new(Body::UntilClose, 10, &limits).expect("no length is announced");
    assert_eq!(
        whole.decode(b"0123456789a").map(|decoded| decoded.data),
        Ok(10),
        "wherever it is cut"
    );
    assert_eq!(whole.decode(b"a"), Err(BodyError::TooLarge));
}

#[test]
fn rule_54_a_body_cut_short_is_an_error() {
    let limits = Limits::new();
    let body = |body| BodyDecoder::new(body, u64::MAX, &limits).expect("no limit on the body");
    let mut length = body(Body::Length(3));
    assert_eq!(length.decode(b"ab").map(|decoded| decoded.data), Ok(2));
    assert_eq!((length.received(), length.left()), (2, 1));
    assert_eq!(length.finish(), Err(BodyError::Truncated));
    let mut chunked = body(Body::Chunked);
    assert_eq!(chunked.decode(b"2\r\nab\r\n").map(|decoded| decoded.data), Ok(2));
    assert_eq!(chunked.finish(), Err(BodyError::Truncated));
    let mut until_close = body(Body::UntilClose);
    assert_eq!(until_close.decode(b"ab").map(|decoded| decoded.data), Ok(2));
    assert_eq!(until_close.finish(), Ok(()));
    assert_eq!(body(Body::Empty).finish(), Ok(()));
}

#[test]
fn data_is_told_from_framing_and_from_what_follows() {
    let limits = Limits::new();
    let input = b"1;a=b\r\na\r\n2\r\nbc\r\n003\r\ndef\r\n0\r\nX: y\r\n\r\nGET";
    let mut body = BodyDecoder::new(Body::Chunked, 6, &limits).expect("no length is announced");
    let (mut data, mut rest) = (Vec::new(), &input[..]);
    while !body.is_end() {
        let decoded = body.decode(rest).expect("a good body");
        data.extend_from_slice(&rest[decoded.skip..decoded.consumed()]);
        rest = &rest[decoded.consumed()..];
    }
    assert_eq!((&data[..], rest), (&b"abcdef"[..], &b"GET"[..]));
    assert_eq!(body.into_trailers().get("x"), Some(&b"y"[..]));
}

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

/// Why a request, or with `of_response` a response, is refused, down to the cause.
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
fn what_is_wrong_with_a_head_is_called_by_its_name() {
    let (line_end, version) = ("does not end with CR LF", "no version of HTTP stands where");
    for (head, of_response, expected) in [
        // Lines that end in LF alone, wherever the first of them is.
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
        (b"GET  / HTTP/1.1\r\n", false, "target is empty, or holds a byte"),
        (b"GET \xc3\xa4 HTTP/1.1\r\n", false, "target is empty, or holds a byte"),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", false, "does not go with the method"),
        (b"G\0T / HTTP/1.1\r\n", false, "the method is not a token"),
        (b"\x16\x03\x01\x02\0\x01\0", false, "it is TLS"),
        (b"\x15\x03\x03\0\x02\x02\x46", true, "it is TLS"),
        (b"\x16\x03\x03\0\x7a", true, "it is TLS"),
        (b"H\x16TP/1.1 200 OK\r\n", true, version),
        // The cases that `Host` and lengths have.
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

/// The fast way and the scanner must never differ: good heads with one to three bytes changed,
/// whole and in bytes.
#[test]
fn changed_heads_get_one_answer_however_they_come() {
    let seeds: [&[u8]; 5] = [
        b"GET /a?b=c HTTP/1.1\r\nHost: a:80\r\nX-Y: z \t\r\nEmpty:\r\n\r\n",
        b"\r\nPOST http://a/b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabcGET",
        b"POST / HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: b\r\nConnection: close, upgrade\r\n\r\n",
    ];
    let bytes = b"\0\t\n\r \"#%,/09:;=@AZ[\\]az\x7f\x80\xc3\xa9\xff";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let limits = Limits::new();
    for round in 0..30_000 {
        let mut input = seeds[round % seeds.len()].to_vec();
        for _ in 0..=random(3) {
            let at = random(input.len());
            match random(3) {
                0 => input[at] = bytes[random(bytes.len())],
                1 => input.insert(at, bytes[random(bytes.len())]),
                _ => drop(input.remove(at)),
            }
        }
        let whole = answers(&limits, [input.as_slice()]);
        let bytewise = answers(&limits, input.chunks(1));
        assert_eq!(whole, bytewise, "{}", input.escape_ascii());
        let (first, second) = input.split_at(random(input.len()));
        assert_eq!(whole, answers(&limits, [first, second]), "{}", input.escape_ascii());
    }
}
