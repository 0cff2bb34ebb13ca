//! Bodies of every kind: any cut decodes to the same data and the same end, and these are the
//! results of the naive decoder.

use rotor_http::h1::{Body, BodyDecoder, BodyError, Limits};

use super::input::{Cuts, Input};
use super::naive::{self, ChunkLimits, Line, Verdict};

/// The result of decoding a body.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    data: Vec<u8>,
    consumed: usize,
    /// Whether it ended, or why it did not; `Ok(false)` means that more is needed.
    end: Result<bool, BodyError>,
    trailers: Vec<Line>,
}

/// The kind of body, limits, cuts, then the body and the bytes after it.
pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let body = match choices.byte() % 8 {
        0 => Body::Empty,
        1 => Body::Length(choices.short() as u64 % 300 + 1),
        2 => Body::Length(choices.long().max(1)),
        3 => Body::UntilClose,
        _ => Body::Chunked,
    };
    let chunk_limits = choose_limits(&mut choices);
    let cuts = Cuts::choose(&mut choices);
    let input = choices.rest();
    let limits = Limits::new()
        .chunk_line_bytes_max(chunk_limits.line)
        .extension_bytes_max(chunk_limits.extensions)
        .trailer_bytes_max(chunk_limits.trailer)
        .trailers_max(chunk_limits.trailers);

    let new = || BodyDecoder::new(body, chunk_limits.body, &limits);
    if let Body::Length(length) = body
        && length > chunk_limits.body
    {
        assert_eq!(new().err(), Some(BodyError::TooLarge));
        return;
    }
    let decoder = new().expect("no length over the limit");
    let whole = cuts.read_each_way(input, |prefixes| decode(decoder.clone(), input, prefixes));
    match body {
        Body::Empty => check_length(input, 0, &whole),
        Body::Length(length) => check_length(input, length, &whole),
        Body::UntilClose => check_until_close(input, chunk_limits.body, &whole),
        Body::Chunked => check_chunked(input, &chunk_limits, &whole),
    }
}

fn choose_limits(choices: &mut Input<'_>) -> ChunkLimits {
    let body = choices.pick(&[u64::MAX, 1 << 20, 100, 5, 0]);
    let (line, extensions, trailer, trailers) = choices.pick(&[
        (256, 4 << 10, 4 << 10, 32),
        (20, 30, 50, 3),
        (1, 0, 2, 0),
        (1 << 20, 1 << 20, 1 << 20, usize::MAX),
    ]);
    ChunkLimits { body, line, extensions, trailer, trailers }
}

/// Decodes the input in growing prefixes.
fn decode(mut decoder: BodyDecoder, input: &[u8], prefixes: Vec<usize>) -> Outcome {
    let mut out = Outcome { data: Vec::new(), consumed: 0, end: Ok(false), trailers: Vec::new() };
    for len in prefixes {
        while out.end == Ok(false) {
            let before = decoder.left();
            let rest = &input[out.consumed..len];
            match decoder.decode(rest) {
                Err(error) => {
                    assert_eq!(decoder.decode(rest), Err(error), "an error is final");
                    assert_eq!(decoder.decode(b"0\r\n\r\n"), Err(error), "an error is final");
                    assert_eq!(decoder.finish(), Err(error), "an error is final");
                    // The number of bytes consumed before the bad byte was seen is no part of the
                    // result.
                    (out.end, out.consumed) = (Err(error), 0);
                }
                Ok(decoded) => {
                    assert!(decoded.consumed() <= rest.len());
                    assert!(
                        before == 0 || decoded.data as u64 <= before,
                        "never more than was left"
                    );
                    out.data.extend_from_slice(&rest[decoded.skip..decoded.consumed()]);
                    out.consumed += decoded.consumed();
                    out.end = Ok(decoded.is_end);
                    assert_eq!(decoder.is_end(), decoded.is_end);
                    if decoded.needs_input() {
                        assert_eq!(out.consumed, len, "it waits when it has seen everything");
                        break;
                    }
                }
            }
        }
    }
    assert_eq!(decoder.received(), out.data.len() as u64);
    if out.end == Ok(true) {
        assert_eq!(decoder.finish(), Ok(()));
        let again = decoder.decode(b"GET / HTTP/1.1\r\n").expect("the end is no error");
        assert!(again.is_end && again.consumed() == 0, "nothing after the end is touched");
    }
    let trailers = decoder.into_trailers();
    out.trailers =
        trailers.iter().map(|field| (field.name.to_owned(), field.value.to_vec())).collect();
    assert_eq!(trailers.is_empty(), out.trailers.is_empty());
    for (name, _) in &out.trailers {
        let first = out.trailers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        assert_eq!(
            trailers.get(&name.to_ascii_uppercase()),
            first.map(|(_, value)| value.as_slice())
        );
    }
    out
}

/// Decodes the available part of a valid body. Returns its data and the number of bytes consumed.
pub(super) fn decode_data(decoder: &mut BodyDecoder, input: &[u8]) -> (Vec<u8>, usize) {
    let (mut data, mut consumed) = (Vec::new(), 0);
    loop {
        let rest = &input[consumed..];
        let decoded = decoder.decode(rest).expect("a good body");
        data.extend_from_slice(&rest[decoded.skip..decoded.consumed()]);
        consumed += decoded.consumed();
        if decoded.is_end || decoded.needs_input() {
            return (data, consumed);
        }
    }
}

fn check_length(input: &[u8], length: u64, whole: &Outcome) {
    let len = usize::try_from(length).unwrap_or(usize::MAX).min(input.len());
    assert_eq!(whole.data, input[..len]);
    assert_eq!((whole.consumed, whole.end), (len, Ok(len as u64 == length)));
}

fn check_until_close(input: &[u8], body_max: u64, whole: &Outcome) {
    let len = usize::try_from(body_max).unwrap_or(usize::MAX).min(input.len());
    assert_eq!(whole.data, input[..len]);
    let end = if len < input.len() { Err(BodyError::TooLarge) } else { Ok(false) };
    assert_eq!(whole.end, end);
}

fn check_chunked(input: &[u8], limits: &ChunkLimits, whole: &Outcome) {
    let (verdict, expected) = naive::chunked(input, limits);
    assert_eq!(whole.data, expected.data, "{}", input.escape_ascii());
    match verdict {
        Verdict::Incomplete => assert_ne!(whole.end, Ok(true), "no end: {}", input.escape_ascii()),
        Verdict::Bad => assert!(whole.end.is_err(), "bad: {}", input.escape_ascii()),
        Verdict::Good(()) => {
            assert_eq!(whole.end, Ok(true), "good: {}", input.escape_ascii());
            assert_eq!(whole.consumed, expected.consumed);
            check_trailers(&whole.trailers, &expected.trailers);
        }
    }
}

/// All trailers are present, in order, except those that have no meaning after the body.
fn check_trailers(found: &[Line], all: &[Line]) {
    let mut found = found.iter().peekable();
    for line in all {
        let name = line.0.to_ascii_lowercase();
        let is_kept = found.next_if_eq(&line).is_some();
        let must_go =
            ["content-length", "transfer-encoding", "host", "authorization", "set-cookie", "te"];
        assert!(
            !(is_kept && must_go.contains(&name.as_str())),
            "{name} has no effect in a trailer"
        );
        let must_stay = name.starts_with("x-") && !name.starts_with("x-forwarded-");
        assert!(is_kept || !must_stay, "{name} is kept");
    }
    assert_eq!(found.next(), None, "no trailer but those that came");
}
