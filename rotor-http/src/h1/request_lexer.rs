//! The fast path for a request head: one pass over a head that has arrived whole. It accepts only
//! heads that the scanner would accept, and leaves all others to the scanner, which alone refuses.
//!
//! Why we have our own: `doc/decisions/0014-request-lexer.md`.

use std::str;

use super::field_storage::FastStorage;
use super::head_scanner::ScanLimits;
use crate::semantics::fields::Span;
use crate::semantics::grammar::{self, PATH, TARGET, TCHAR};
use crate::semantics::method::Method;
use crate::semantics::swar;
use crate::semantics::version::Version;

/// A request head that was read on the fast path.
pub(super) struct FastRequest<'a> {
    pub(super) method: Method<'a>,
    pub(super) target: &'a str,
    /// The position of the first question mark in the target, or the target's length if there is
    /// none.
    pub(super) query_at: usize,
    pub(super) version: Version,
    pub(super) len: usize,
}

/// Reads a request head that has arrived whole, without empty lines before it, if it is certain to
/// be valid. Fills `spans`, which is empty, with the positions of the fields in `input`.
#[inline]
pub(super) fn fast_request<'a>(
    input: &'a [u8],
    spans: &mut FastStorage,
    limits: &ScanLimits,
) -> Option<FastRequest<'a>> {
    // A head that does not end within its limit is left to the scanner, which refuses it.
    let window = &input[..input.len().min(limits.bytes_max)];
    let (method, target_at) = method(window)?;
    let (target, query_at) = target(window, target_at, limits.target_bytes_max)?;
    let (version, mut at) = version(window, target_at + target.len() + 1)?;
    loop {
        if window.get(at..at + 2)? == b"\r\n" {
            return Some(FastRequest { method, target, query_at, version, len: at + 2 });
        }
        let (span, end) = field_line(window, at)?;
        // A line counts without its line end, as in the scanner.
        if end - 2 - at > limits.field_bytes_max || spans.len() >= limits.fields_max {
            return None;
        }
        // More fields than there is room for here are not an error: the scanner has more room.
        spans.try_push(span).ok()?;
        at = end;
    }
}

/// Returns the method, and the position after its space.
#[inline]
fn method(window: &[u8]) -> Option<(Method<'_>, usize)> {
    // The method of nearly all requests takes one comparison of a word.
    if window.starts_with(b"GET ") {
        return Some((Method::Get, 4));
    }
    // One byte more than the longest method, for the space after it.
    let end =
        window.iter().take(Method::BYTES_MAX + 1).position(|&byte| !grammar::is(byte, TCHAR))?;
    let (method, rest) = window.split_at(end);
    let is_method = end > 0 && rest.first() == Some(&b' ');
    let method = if is_method { str::from_utf8(method).ok()? } else { return None };
    Some((Method::from_token(method), end + 1))
}

/// Returns the target, which must be followed by a space, and the position of its first question
/// mark, or its length if there is none.
#[inline]
fn target(window: &[u8], at: usize, bytes_max: usize) -> Option<(&str, usize)> {
    let rest = window.get(at..)?;
    // In two steps, since handlers need the start of the query.
    let query_at = rest.iter().position(|&byte| !grammar::is(byte, PATH))?;
    let len = match rest[query_at] {
        b'?' => query_at + rest[query_at..].iter().position(|&byte| !grammar::is(byte, TARGET))?,
        _ => query_at,
    };
    // The scanner knows what else may end a target, and which error that is.
    let is_target = rest[len] == b' ' && 0 < len && len <= bytes_max;
    let target = if is_target { str::from_utf8(&rest[..len]).ok()? } else { return None };
    Some((target, query_at))
}

/// Returns the version, and the position of the first field line. Other versions are rare.
#[inline]
fn version(window: &[u8], at: usize) -> Option<(Version, usize)> {
    let line: &[u8; Version::BYTES + 2] = window.get(at..)?.first_chunk()?;
    let (&name, end) = line.split_first_chunk()?;
    // As a word: the compiler compares arrays byte by byte.
    let version = match u64::from_ne_bytes(name) {
        name if name == const { u64::from_ne_bytes(*b"HTTP/1.1") } => Version::Http11,
        name if name == const { u64::from_ne_bytes(*b"HTTP/1.0") } => Version::Http10,
        _ => return None,
    };
    if end != b"\r\n" {
        return None;
    }
    Some((version, at + Version::BYTES + 2))
}

/// Returns one field line, and the position of the next one.
#[inline]
fn field_line(window: &[u8], at: usize) -> Option<(Span, usize)> {
    let line = window.get(at..)?;
    let colon = swar::token_len(line);
    // RFC 9112 §5.1: no whitespace between name and colon, and §5.2: none before the name (an
    // obsolete line folding). Recipients that skip it read different fields from those that do not.
    if colon == 0 || line.get(colon) != Some(&b':') {
        return None;
    }
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let mut start = colon + 1;
    while line.get(start).is_some_and(is_space) {
        start += 1;
    }
    let line_end = start + swar::value_len(&line[start..]);
    // A bare CR or LF, or another control byte: the scanner knows which error that is.
    if line.get(line_end..line_end + 2)? != b"\r\n" {
        return None;
    }
    // RFC 9110 §5.5: whitespace after a value is not part of it.
    let mut value_end = line_end;
    while value_end > start && is_space(&line[value_end - 1]) {
        value_end -= 1;
    }
    let span = Span::new(at..at + colon, at + start..at + value_end);
    Some((span, at + line_end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h1::head_scanner::HeadScanner;
    use crate::semantics::fields::Fields;

    const LIMITS: ScanLimits = ScanLimits {
        bytes_max: 400,
        field_bytes_max: 60,
        fields_max: 8,
        target_bytes_max: 40,
        empty_lines_max: 1,
    };

    const HEADS: [&[u8]; 6] = [
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1:34567\r\n\r\n",
        b"POST /a?b=c HTTP/1.1\r\nHost: a\r\nContent-Length:  5\t \r\nX-Empty:\r\n\r\nhello",
        b"OPTIONS * HTTP/1.0\r\nA-b_c.d: \xc3\xa9\t\xff and a long value, longer than words\r\n\r\nGET / HTTP/1.1\r\n\r\n",
        b"GETTY /x HTTP/1.1\r\n\r\n",
        b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\nq: \t\r\nr:\t1\t\r\n\r\n",
        b"DELETE http://a/b HTTP/1.1\r\na: 1\r\nb: 2\r\nc: 3\r\nd: 4\r\ne: 5\r\nf: 6\r\ng: 7\r\nh: 8\r\n\r\n",
    ];

    /// Compares the lexer with the scanner (is it a head, and where does it end) and with httparse
    /// (its parts). Returns whether the lexer accepts the input.
    fn compare(input: &[u8], limits: &ScanLimits) -> bool {
        let mut spans = FastStorage::new();
        let Some(head) = fast_request(input, &mut spans, limits) else { return false };
        let mut scanner = HeadScanner::for_request();
        let shown = input.escape_ascii();
        assert_eq!(scanner.scan(input, limits), Ok(true), "{shown}");
        assert_eq!((scanner.at(), scanner.fields()), (head.len, spans.len()), "{shown}");
        assert_eq!(scanner.version(), head.version, "{shown}");

        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        assert_eq!(request.parse(input), Ok(httparse::Status::Complete(head.len)), "{shown}");
        assert_eq!(request.method, Some(head.method.as_str()), "{shown}");
        assert_eq!(request.path, Some(head.target), "{shown}");
        assert_eq!(head.query_at, head.target.find('?').unwrap_or(head.target.len()), "{shown}");
        assert_eq!(request.version, Some(u8::from(head.version == Version::Http11)), "{shown}");
        let own: Vec<_> = Fields::new(input, &spans).iter_bytes().collect();
        let theirs: Vec<_> =
            request.headers.iter().map(|field| (field.name.as_bytes(), field.value)).collect();
        assert_eq!(own, theirs, "{shown}");
        true
    }

    #[test]
    fn only_complete_heads_are_read() {
        for head in HEADS {
            let len = head.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
            for end in 0..=head.len() {
                assert_eq!(
                    compare(&head[..end], &LIMITS),
                    end >= len,
                    "{}",
                    head[..end].escape_ascii()
                );
            }
        }
    }

    #[test]
    fn the_lexer_agrees_with_scanner_and_httparse_on_any_altered_head() {
        let mut read = 0;
        for head in HEADS {
            for at in 0..head.len() {
                for byte in 0..=255 {
                    let mut other = head.to_vec();
                    other[at] = byte;
                    read += u32::from(compare(&other, &LIMITS));
                    other.insert(at, byte);
                    read += u32::from(compare(&other, &LIMITS));
                }
                let mut shorter = head.to_vec();
                shorter.remove(at);
                read += u32::from(compare(&shorter, &LIMITS));
            }
        }
        assert!(read > 50_000, "{read}");
    }

    #[test]
    fn the_lexer_keeps_the_limits_of_the_scanner() {
        for head in HEADS {
            for n in 0..=80 {
                for limits in [
                    ScanLimits { bytes_max: n, ..LIMITS },
                    ScanLimits { field_bytes_max: n, ..LIMITS },
                    ScanLimits { fields_max: n, ..LIMITS },
                    ScanLimits { target_bytes_max: n, ..LIMITS },
                ] {
                    let is_head = HeadScanner::for_request().scan(head, &limits) == Ok(true);
                    assert_eq!(compare(head, &limits), is_head, "{n} {limits:?}");
                }
            }
        }
        let longest = [b'M'; Method::BYTES_MAX];
        for (method, is_read) in [(&longest[..], true), (&[b'M'; Method::BYTES_MAX + 1][..], false)]
        {
            assert_eq!(compare(&[method, b" / HTTP/1.1\r\n\r\n"].concat(), &LIMITS), is_read);
        }
    }
}
