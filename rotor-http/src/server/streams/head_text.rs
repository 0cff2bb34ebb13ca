//! Encodes the head of a response, which waits as text, as a field block.

use memchr::memchr;

use crate::h2::field_text::{next_line, put_field};
use crate::h2::hpack::HpackEncoder;

/// The result of encoding a head.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct EncodedHead {
    /// How many bytes of the text were encoded, and are to be dropped.
    pub(super) len: usize,
    /// Whether the status is 1xx, so that another head follows.
    pub(super) is_interim: bool,
}

/// 101, which does not exist in HTTP/2.
const SWITCHING: u16 = 101;

/// The position of the code in `HTTP/1.1 200 OK`.
const CODE_RANGE: std::ops::Range<usize> = 9..12;

/// Encodes the head at the beginning of the text, if it is complete.
///
/// The text was written by our own writer, so it is well-formed: no line is empty but the last, and
/// no value contains CR or LF.
pub(super) fn encode(
    text: &[u8],
    encoder: &mut HpackEncoder,
    block: &mut Vec<u8>,
) -> Option<EncodedHead> {
    block.clear();
    let code =
        text.get(CODE_RANGE)?.iter().fold(0, |code, digit| code * 10 + u16::from(digit & 0xf));
    // RFC 8441 §5: HTTP/1.1 accepts with 101, HTTP/2 with 200.
    let code = if code == SWITCHING { 200 } else { code };
    let mut at = memchr(b'\n', text)? + 1;
    encoder.start_block(block);
    encoder.status(code, block);
    while let Some(line) = next_line(text, at) {
        at += line.len() + 2;
        if line.is_empty() {
            return Some(EncodedHead { len: at, is_interim: (100..200).contains(&code) });
        }
        put_field(line, encoder, block);
    }
    // The head is not complete. The table size update before it has still to be sent.
    encoder.discard_block();
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
        let text = b"HTTP/1.1 426 Upgrade Required\r\nX-A: b: c\r\nUpgrade: x\r\nE: \r\nConnection: upgrade\r\n\r\nbody";
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        encoder.set_table_max(0);
        for len in 0..text.len() - 4 {
            assert_eq!(encode(&text[..len], &mut encoder, &mut block), None, "{len}");
        }
        let encoded = encode(text, &mut encoder, &mut block);
        assert_eq!(encoded, Some(EncodedHead { len: text.len() - 4, is_interim: false }));
        assert_eq!(block[0], 0x20, "the acknowledgement is not lost to heads that were not whole");
        assert_eq!(fields(&block), ":status=426\nx-a=b: c\ne=\n");
    }

    #[test]
    fn a_head_that_switches_protocols_is_final() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        let text = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nA: b\r\n\r\n";
        let encoded = encode(text, &mut encoder, &mut block);
        assert_eq!(encoded, Some(EncodedHead { len: text.len(), is_interim: false }));
        assert_eq!(fields(&block), ":status=200\na=b\n");
    }

    #[test]
    fn an_interim_head_is_reported_as_interim() {
        let (mut encoder, mut block) = (HpackEncoder::new(), Vec::new());
        let text = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\n";
        let encoded = encode(text, &mut encoder, &mut block);
        assert_eq!(encoded, Some(EncodedHead { len: 40, is_interim: true }));
        assert_eq!(fields(&block), ":status=103\nlink=</a>\n");
    }
}
