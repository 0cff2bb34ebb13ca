//! Every limit at n − 1, n and n + 1, in heads and bodies.

use rotor_http::h1::{Body, BodyDecoder, BodyError, Limits, Method};

use crate::{answers, check, get, post};

/// The limit accepts n − 1 and n, and refuses n + 1. `input(n)` has a part of that size.
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
fn reader_limits_are_exact() {
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
    check("method", &limits, &method(Method::BYTES_MAX), "501");
    check("method", &limits, &method(Method::BYTES_MAX + 1), "501");

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
