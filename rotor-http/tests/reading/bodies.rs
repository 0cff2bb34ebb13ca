//! Bodies: where they end, and which bytes are their data.

use rotor_http::h1::{Body, BodyDecoder, BodyError, Limits};

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
fn body_data_is_separated_from_framing_and_following_bytes() {
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
