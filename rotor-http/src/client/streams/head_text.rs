//! The head of a request, out of the text in which it waits, into a block of fields.

use memchr::memchr;

use crate::h2::field_text::{next_line, put_field};
use crate::h2::hpack::HpackEncoder;

/// Encodes the head that the text begins with, and returns how long that is; `None` where it is not
/// there whole.
///
/// The text is what our own writer wrote, and so well-formed: its target is a path or an asterisk,
/// there is one Host, no line is empty but the last, and no value holds CR or LF.
pub(super) fn encode(
    text: &[u8],
    is_secure: bool,
    encoder: &mut HpackEncoder,
    block: &mut Vec<u8>,
) -> Option<usize> {
    block.clear();
    let first = next_line(text, 0)?;
    let method_end = memchr(b' ', first)?;
    let target_end = method_end + 1 + memchr(b' ', first.get(method_end + 1..)?)?;
    let fields_at = first.len() + 2;
    let authority = find_host(text, fields_at)?;
    encoder.begin(block);
    let (method, target) = (&first[..method_end], &first[method_end + 1..target_end]);
    encoder.request(method, is_secure, authority, target, block);
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
    // The head is not finished: the acknowledgement that stood before it is still owed.
    encoder.take_back();
    None
}

/// The host stands in `:authority`. RFC 9113 §8.2.2: `te` says nothing but "trailers".
fn is_sent(line: &[u8]) -> bool {
    let name_len = memchr(b':', line).unwrap_or(line.len());
    let (name, value) = (&line[..name_len], line.get(name_len + 2..).unwrap_or_default());
    match name.len() {
        4 => !name.eq_ignore_ascii_case(b"host"),
        2 if name.eq_ignore_ascii_case(b"te") => value.eq_ignore_ascii_case(b"trailers"),
        _ => true,
    }
}

fn find_host(text: &[u8], mut at: usize) -> Option<&[u8]> {
    while let Some(line) = next_line(text, at) {
        at += line.len() + 2;
        if let Some((name, value)) = line.split_at_checked(5)
            && name.eq_ignore_ascii_case(b"host:")
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
        let bounds = Bounds { list_bytes_max: 4096, fields_max: 20, decoded_bytes_max: 4096 };
        let mut list = FieldList::new();
        HpackDecoder::new(4096).decode(block, &mut list, &bounds).expect("it is well-formed");
        list.fields().iter().map(|f| format!("{}={}\n", f.name, f.value.escape_ascii())).collect()
    }

    #[test]
    fn a_head_is_encoded_once_it_is_whole_without_what_governs_a_connection() {
        let text =
            b"GET /a?b HTTP/1.1\r\nX-A: b: c\r\nHost: h:1\r\nUpgrade: x\r\nE: \r\nTE: gzip\r\n\
            TE: trailers\r\nConnection: upgrade\r\n\r\nbody";
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        encoder.set_table_max(0);
        for len in 0..text.len() - 4 {
            assert_eq!(encode(&text[..len], true, &mut encoder, &mut block), None, "{len}");
        }
        let encoded = encode(text, true, &mut encoder, &mut block);
        assert_eq!(encoded, Some(text.len() - 4));
        assert_eq!(block[0], 0x20, "the acknowledgement is not lost to heads that were not whole");
        let head = ":method=GET\n:scheme=https\n:authority=h:1\n:path=/a?b\n";
        assert_eq!(fields(&block), format!("{head}x-a=b: c\ne=\nte=trailers\n"));
    }
}
