//! Encodes the head of a request, which waits as text, as a field block.

use memchr::memchr;

use crate::h2::field_text::{field_of, next_line, put_field};
use crate::h2::hpack::HpackEncoder;
use crate::semantics::grammar::trim;

/// Returns whether the head in the text names exactly one protocol in `Upgrade`. A stream can ask
/// for one protocol, but not offer several.
pub(super) fn names_one_protocol(text: &[u8]) -> bool {
    find_field(text, b"upgrade:").is_some_and(|value| !value.is_empty() && !value.contains(&b','))
}

/// Encodes the head at the beginning of the text, and returns its length in the text. Returns
/// `None` if the head is not complete. With `is_extended_connect`, its `Upgrade` becomes an
/// extended CONNECT (RFC 8441 §4).
///
/// Our own writer has written the text, so it is well-formed: its target is a path or an asterisk,
/// there is one Host, only the last line is empty, and no value contains CR or LF.
pub(super) fn encode(
    text: &[u8],
    is_secure: bool,
    is_extended_connect: bool,
    encoder: &mut HpackEncoder,
    block: &mut Vec<u8>,
) -> Option<usize> {
    block.clear();
    let first = next_line(text, 0)?;
    let method_end = memchr(b' ', first)?;
    let target_end = method_end + 1 + memchr(b' ', first.get(method_end + 1..)?)?;
    let fields_at = first.len() + 2;
    let authority = find_field(text, b"host:")?;
    encoder.start_block(block);
    let (method, target) = (&first[..method_end], &first[method_end + 1..target_end]);
    let protocol = find_field(text, b"upgrade:").filter(|_| is_extended_connect);
    let method = if protocol.is_some() { b"CONNECT" } else { method };
    encoder.request(method, is_secure, authority, target, block);
    if let Some(protocol) = protocol {
        encoder.field(b":protocol", protocol, block);
    }
    let mut at = fields_at;
    while let Some(line) = next_line(text, at) {
        at += line.len() + 2;
        if line.is_empty() {
            return Some(at);
        }
        if is_sent(line) {
            put_field(line, encoder, block);
        }
    }
    // The head is not complete. The table size update that was encoded before it is still to be
    // sent.
    encoder.discard_block();
    None
}

/// Returns whether the fields that [`encode`] makes of a head are no larger than this: the bytes of
/// their names and values, with 32 more for each (RFC 9113 §6.5.2).
pub(super) fn fits(
    text: &[u8],
    is_secure: bool,
    is_extended_connect: bool,
    list_bytes_max: u32,
) -> bool {
    /// No line of a field is shorter: a name of one letter, and no value. It counts 33 bytes.
    const LINE_MIN: usize = b"a: \r\n".len();
    /// More than the pseudo-fields count, besides what is in the text.
    const PSEUDO_FIELDS: usize = 5 * (32 + b":authority".len()) + b"https".len();
    let max = list_bytes_max as usize;
    // Nearly all heads are so small that it does not matter which of the bytes count.
    text.len().div_ceil(LINE_MIN) * 33 + PSEUDO_FIELDS <= max
        || list_bytes(text, is_secure, is_extended_connect).is_none_or(|bytes| bytes <= max)
}

/// Returns how large the fields of a head are, if it is complete.
fn list_bytes(text: &[u8], is_secure: bool, is_extended_connect: bool) -> Option<usize> {
    let first = next_line(text, 0)?;
    let mut parts = first.split(|&byte| byte == b' ');
    let (method, target) = (parts.next()?, parts.next()?);
    let protocol = find_field(text, b"upgrade:").filter(|_| is_extended_connect);
    let method = if protocol.is_some() { b"CONNECT" } else { method };
    let scheme: &[u8] = if is_secure { b"https" } else { b"http" };
    let size = |(name, value): (&[u8], &[u8])| name.len() + value.len() + 32;
    let mut bytes = size((b":method", method))
        + size((b":scheme", scheme))
        + size((b":authority", find_field(text, b"host:")?))
        + size((b":path", target))
        + protocol.map_or(0, |protocol| size((b":protocol", protocol)));
    let mut at = first.len() + 2;
    loop {
        let line = next_line(text, at)?;
        at += line.len() + 2;
        if line.is_empty() {
            return Some(bytes);
        }
        bytes += field_of(line).filter(|_| is_sent(line)).map_or(0, size);
    }
}

/// Returns whether a field is sent. The host is in `:authority`. RFC 9113 §8.2.2: `te` must have
/// the value "trailers"; surrounding whitespace is not part of the value (RFC 9110 §5.5).
fn is_sent(line: &[u8]) -> bool {
    let name_len = memchr(b':', line).unwrap_or(line.len());
    let (name, value) = (&line[..name_len], line.get(name_len + 1..).unwrap_or_default());
    match name.len() {
        4 => !name.eq_ignore_ascii_case(b"host"),
        2 if name.eq_ignore_ascii_case(b"te") => trim(value).eq_ignore_ascii_case(b"trailers"),
        _ => true,
    }
}

/// Returns the value of the first field with this name, which includes its colon.
fn find_field<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let mut at = next_line(text, 0)?.len() + 2;
    while let Some(line) = next_line(text, at).filter(|line| !line.is_empty()) {
        at += line.len() + 2;
        if let Some((own, value)) = line.split_at_checked(name.len())
            && own.eq_ignore_ascii_case(name)
        {
            return Some(value.trim_ascii());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::{Bounds, FieldList, HpackDecoder};

    fn fields(block: &[u8]) -> String {
        let bounds = Bounds { list_bytes_max: 4096, decoded_bytes_max: 4096 };
        let mut list = FieldList::new();
        HpackDecoder::new(4096).decode(block, &mut list, &bounds).expect("it is well-formed");
        list.fields().iter().map(|f| format!("{}={}\n", f.name, f.value.escape_ascii())).collect()
    }

    #[test]
    fn a_complete_head_is_encoded_without_connection_fields() {
        let text =
            b"GET /a?b HTTP/1.1\r\nX-A: b: c\r\nHost: h:1\r\nUpgrade: x\r\nE: \r\nTE: gzip\r\n\
            TE:  Trailers\t \r\nConnection: upgrade\r\n\r\nbody";
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        encoder.set_table_max(0);
        for len in 0..text.len() - 4 {
            assert_eq!(encode(&text[..len], true, false, &mut encoder, &mut block), None, "{len}");
        }
        let encoded = encode(text, true, false, &mut encoder, &mut block);
        assert_eq!(encoded, Some(text.len() - 4));
        assert_eq!(block[0], 0x20, "the acknowledgement is not lost to heads that were not whole");
        let head = ":method=GET\n:scheme=https\n:authority=h:1\n:path=/a?b\n";
        assert_eq!(fields(&block), format!("{head}x-a=b: c\ne=\nte=Trailers\n"));
    }

    #[test]
    fn the_size_of_the_fields_is_that_of_what_is_sent() {
        let lines = "Host: h:1\r\nUpgrade: x\r\nE: \r\nTE: gzip\r\nTE:  Trailers\t \r\nConnection: upgrade\r\n";
        let many = "a: \r\n".repeat(9);
        for text in [
            format!("GET / HTTP/1.1\r\n{lines}\r\nbody"),
            format!("OPTIONS * HTTP/1.1\r\nHost: a\r\n{many}\r\nB: c\r\n\r\n"),
            "POST /a?b HTTP/1.1\r\nHost: h\r\n\r\n".to_owned(),
        ] {
            for (is_secure, is_extended_connect) in [(false, false), (true, false), (true, true)] {
                let text = text.as_bytes();
                let mut block = Vec::new();
                encode(text, is_secure, is_extended_connect, &mut HpackEncoder::new(), &mut block);
                // A separator and a line end for each field.
                let sent = fields(&block);
                let bytes = sent.len() + sent.lines().count() * (32 - 2);
                let fits = |max: usize| fits(text, is_secure, is_extended_connect, max as u32);
                let case = format!("{} {is_extended_connect}", text.escape_ascii());
                assert_eq!(list_bytes(text, is_secure, is_extended_connect), Some(bytes), "{case}");
                for max in 0..2_000 {
                    assert_eq!(fits(max), max >= bytes, "{max} {case}");
                }
            }
        }
    }

    #[test]
    fn a_request_for_a_protocol_becomes_an_extended_connect() {
        let text = b"GET /a HTTP/1.1\r\nHost: h\r\nUpgrade: x/1\r\nConnection: upgrade\r\n\r\n";
        assert!(names_one_protocol(text));
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        assert_eq!(encode(text, false, true, &mut encoder, &mut block), Some(text.len()));
        let head = ":method=CONNECT\n:scheme=http\n:authority=h\n:path=/a\n:protocol=x/1\n";
        assert_eq!(fields(&block), head);
        for text in [
            &b"GET / HTTP/1.1\r\nHost: h\r\n\r\nUpgrade: x\r\n\r\n"[..],
            b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade: x, y\r\n\r\n",
            b"GET / HTTP/1.1\r\nHost: h\r\nUpgrade:\r\n\r\n",
        ] {
            assert!(!names_one_protocol(text));
        }
    }
}
