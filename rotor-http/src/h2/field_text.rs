//! Encodes fields that our own writers wrote as lines of HTTP/1.1.
//!
//! The lines are well-formed: no line is empty except for the last of a head, and no value contains
//! CR or LF.

use memchr::memchr;

use super::hpack::HpackEncoder;
use crate::semantics::grammar::trim;

/// Encodes text that consists of trailer fields.
pub(crate) fn encode_trailers(text: &[u8], encoder: &mut HpackEncoder, block: &mut Vec<u8>) {
    block.clear();
    encoder.start_block(block);
    let mut at = 0;
    while let Some(line) = next_line(text, at) {
        at += line.len() + 2;
        put_field(line, encoder, block);
    }
}

/// Returns the line that starts at this position, without its end, or `None` if it is incomplete.
pub(crate) fn next_line(text: &[u8], at: usize) -> Option<&[u8]> {
    let rest = text.get(at..)?;
    rest.get(..memchr(b'\n', rest)?.checked_sub(1)?)
}

/// Encodes a field line, unless the field does not exist in HTTP/2.
pub(crate) fn put_field(line: &[u8], encoder: &HpackEncoder, block: &mut Vec<u8>) {
    if let Some((name, value)) = field_of(line) {
        encoder.field(name, value, block);
    }
}

/// Returns the name and the value of a field line. RFC 9113 §8.2.2: fields that govern a connection
/// of HTTP/1.1 are omitted in HTTP/2.
pub(crate) fn field_of(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = memchr(b':', line)?;
    let (name, mut value) = (&line[..colon], line.get(colon + 2..).unwrap_or_default());
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    // RFC 9113 §8.2.1: "A field value MUST NOT start or end with an ASCII whitespace character". In
    // HTTP/1.1 it may, without a meaning.
    if is_space(value.first()) || is_space(value.last()) {
        value = trim(value);
    }
    let is_connection_field = match name.len() {
        7 => name.eq_ignore_ascii_case(b"Upgrade"),
        10 => name.eq_ignore_ascii_case(b"Connection"),
        _ => false,
    };
    (!is_connection_field).then_some((name, value))
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
    fn trailers_are_fields_without_a_status() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        encode_trailers(b"Grpc-Status: 0\r\nX: y\r\n", &mut encoder, &mut block);
        assert_eq!(fields(&block), "grpc-status=0\nx=y\n");
    }

    #[test]
    fn whitespace_around_a_value_is_not_sent() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        let text = b"A:   b\r\nC: d \t\r\nE: \t f g \r\nH:  \r\n";
        encode_trailers(text, &mut encoder, &mut block);
        assert_eq!(fields(&block), "a=b\nc=d\ne=f g\nh=\n");
    }
}
