//! The encoder of field blocks (RFC 7541 §6). It refers to the static table where possible, writes
//! other fields as literals, and adds nothing to a table.
//!
//! So the peer need not store anything, no block depends on another, and a block that is taken back
//! leaves nothing behind. The cost is a date of 31 bytes in each response.

use super::integer;
use super::static_table;

/// The table size with which both sides start (RFC 9113 §6.5.2).
const TABLE_DEFAULT: usize = 4096;

/// Encodes the blocks of one direction of a connection.
#[derive(Debug)]
pub struct HpackEncoder {
    /// The smallest table size that the peer has allowed.
    table_max: usize,
    /// The peer must be told that the table has become smaller.
    needs_size_update: bool,
    /// The block that was started last tells it so.
    block_has_size_update: bool,
}

impl HpackEncoder {
    /// Creates an encoder, before the peer's settings have arrived.
    pub fn new() -> HpackEncoder {
        HpackEncoder {
            table_max: TABLE_DEFAULT,
            needs_size_update: false,
            block_has_size_update: false,
        }
    }

    /// Sets the peer's SETTINGS_HEADER_TABLE_SIZE. A smaller table must be acknowledged in the next
    /// block (RFC 7541 §4.2); a larger one is not used.
    pub fn set_table_max(&mut self, bytes: usize) {
        if bytes < self.table_max {
            self.table_max = bytes;
            self.needs_size_update = true;
        }
    }

    /// Starts a block.
    #[inline]
    pub fn start_block(&mut self, out: &mut Vec<u8>) {
        self.block_has_size_update = self.needs_size_update;
        if self.needs_size_update {
            self.needs_size_update = false;
            // The table is empty, so its size can be 0.
            self.table_max = 0;
            integer::encode(out, 0x20, 5, 0);
        }
    }

    /// Records that the block that was started last will not be sent.
    pub(crate) fn discard_block(&mut self) {
        self.needs_size_update |= self.block_has_size_update;
    }

    /// Adds `:status`.
    #[inline]
    pub fn status(&self, code: u16, out: &mut Vec<u8>) {
        let index = match code {
            200 => 8,
            204 => 9,
            206 => 10,
            304 => 11,
            400 => 12,
            404 => 13,
            500 => 14,
            _ => {
                let digits = [code / 100, code / 10 % 10, code % 10].map(|n| b'0' + n as u8);
                out.extend_from_slice(&[0x08, 3]);
                return out.extend_from_slice(&digits);
            }
        };
        out.push(0x80 | index);
    }

    /// Adds the four fields with which a request starts (RFC 9113 §8.3.1).
    pub fn request(
        &self,
        method: &[u8],
        is_secure: bool,
        authority: &[u8],
        path: &[u8],
        out: &mut Vec<u8>,
    ) {
        match method {
            b"GET" => out.push(0x82),
            b"POST" => out.push(0x83),
            other => encode_named(2, other, out),
        }
        out.push(if is_secure { 0x87 } else { 0x86 });
        encode_named(1, authority, out);
        match path {
            b"/" => out.push(0x84),
            other => encode_named(4, other, out),
        }
    }

    /// Adds a field, and converts its name to lower case.
    #[inline]
    pub fn field(&self, name: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        // If the name is not in the static table, it stays where it is written now.
        out.push(0);
        integer::encode(out, 0, 7, name.len());
        let name_at = out.len();
        out.extend_from_slice(name);
        out[name_at..].make_ascii_lowercase();
        if let Some(index) = static_table::name_index(&out[name_at..]) {
            out.truncate(start);
            integer::encode(out, 0, 4, index);
        }
        integer::encode(out, 0, 7, value.len());
        out.extend_from_slice(value);
    }
}

/// Encodes a field whose name is in the static table.
fn encode_named(index: usize, value: &[u8], out: &mut Vec<u8>) {
    integer::encode(out, 0, 4, index);
    integer::encode(out, 0, 7, value.len());
    out.extend_from_slice(value);
}

impl Default for HpackEncoder {
    fn default() -> HpackEncoder {
        HpackEncoder::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h2::hpack::{Bounds, FieldList, HpackDecoder};

    const BOUNDS: Bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };

    #[test]
    fn encoded_fields_are_decoded_and_leave_the_table_empty() {
        let mut encoder = HpackEncoder::new();
        let mut decoder = HpackDecoder::new(4096);
        let long = "x".repeat(20_000);
        for (status, name, value) in [
            (200, "Content-Type", "text/plain"),
            (404, "X-Own", ""),
            (299, "x-own-of-more-than-fifteen-octets", "\u{e9}"),
            (100, "Set-Cookie", &long),
        ] {
            let mut block = Vec::new();
            encoder.start_block(&mut block);
            encoder.status(status, &mut block);
            encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
            let mut list = FieldList::new();
            decoder.decode(&block, &mut list, &BOUNDS).expect("it is well-formed");
            let code = status.to_string();
            let lower = name.to_ascii_lowercase();
            let fields: Vec<_> = list.fields().iter().map(|f| (f.name, f.value)).collect();
            assert_eq!(fields, [(":status", code.as_bytes()), (&*lower, value.as_bytes())]);
            assert!(decoder.table().is_empty());
        }
    }

    #[test]
    fn a_request_starts_with_its_four_pseudo_fields() {
        for (method, is_secure, path, bytes) in [
            ("GET", false, "/", 3 + 3),
            ("POST", true, "/", 3 + 3),
            ("PATCH", true, "/a", 1 + 7 + 3 + 4),
        ] {
            let mut block = Vec::new();
            let own = (method.as_bytes(), b"h", path.as_bytes());
            HpackEncoder::new().request(own.0, is_secure, own.1, own.2, &mut block);
            assert_eq!(block.len(), bytes, "{method}");
            let mut list = FieldList::new();
            HpackDecoder::new(0).decode(&block, &mut list, &BOUNDS).expect("it is well-formed");
            let scheme = if is_secure { "https" } else { "http" };
            for (name, value) in
                [(":method", method), (":scheme", scheme), (":authority", "h"), (":path", path)]
            {
                assert_eq!(list.fields().get_str(name), Some(value));
            }
        }
    }

    #[test]
    fn a_smaller_table_is_acknowledged_once_and_a_larger_one_never() {
        let mut encoder = HpackEncoder::new();
        let mut started = |size: &[usize]| {
            size.iter().for_each(|size| encoder.set_table_max(*size));
            let mut out = Vec::new();
            encoder.start_block(&mut out);
            out
        };
        assert_eq!(started(&[]), []);
        assert_eq!(started(&[4096, 65_536]), []);
        assert_eq!(started(&[4095, 8192]), [0x20]);
        assert_eq!(started(&[]), []);
        assert_eq!(started(&[0]), [], "it is that small already");
    }
}
