//! The header of a frame (RFC 6455 §5.2):
//!
//! ```text
//!   0 1 2 3 4 5 6 7   0 1 2 3 4 5 6 7
//!  +-+-+-+-+-------+ +-+-------------+ +------------------+ +---------------+
//!  |F|R|R|R| opcode| |M|   length    | | 2 or 8 bytes more | | mask, 4 bytes |
//!  |I|1|2|3|       | |A|             | | if that is 126,127| | if M          |
//!  +-+-+-+-+-------+ +-+-------------+ +------------------+ +---------------+
//! ```

use super::close::CONTROL_BYTES_MAX;
use super::fault::Fault;
use super::mask::Mask;

/// The length of the longest header.
pub(crate) const HEADER_BYTES_MAX: usize = 14;

const FINAL: u8 = 0x80;
const COMPRESSED: u8 = 0x40;
const OTHER_RESERVED: u8 = 0x30;
const MASKED: u8 = 0x80;

/// The kind of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Opcode {
    Continuation = 0,
    Text = 1,
    Binary = 2,
    Close = 8,
    Ping = 9,
    Pong = 10,
}

impl Opcode {
    fn from_bits(bits: u8) -> Result<Opcode, Fault> {
        Ok(match bits {
            0 => Opcode::Continuation,
            1 => Opcode::Text,
            2 => Opcode::Binary,
            8 => Opcode::Close,
            9 => Opcode::Ping,
            10 => Opcode::Pong,
            _ => return Err(Fault::Opcode(bits)),
        })
    }

    pub(crate) fn is_control(self) -> bool {
        self as u8 >= 8
    }
}

/// The header of a frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    pub(crate) opcode: Opcode,
    pub(crate) is_final: bool,
    /// The first reserved bit: the message is compressed (RFC 7692 §6).
    pub(crate) is_compressed: bool,
    pub(crate) mask: Option<Mask>,
    /// The length of the payload, in bytes.
    pub(crate) len: u64,
}

/// The result of reading a header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum HeaderRead {
    /// The header, and its length in bytes.
    Header(Header, usize),
    /// More input is needed: at least this many bytes in total.
    Needs(usize),
}

/// Reads as much of a header as has arrived. An error is returned at the first wrong byte.
pub(crate) fn read(input: &[u8]) -> Result<HeaderRead, Fault> {
    // One byte, not two, so that the first byte is checked alone however the input is cut.
    let Some(&first) = input.first() else { return Ok(HeaderRead::Needs(1)) };
    let (is_final, is_compressed) = (first & FINAL != 0, first & COMPRESSED != 0);
    if first & OTHER_RESERVED != 0 {
        return Err(Fault::ReservedBits);
    }
    let opcode = Opcode::from_bits(first & 0x0f)?;
    if opcode.is_control() && !is_final {
        return Err(Fault::Control);
    }
    // Only the first frame of a message has the bit for compression (RFC 7692 §6.1).
    if is_compressed && !matches!(opcode, Opcode::Text | Opcode::Binary) {
        return Err(Fault::ReservedBits);
    }
    let Some(&second) = input.get(1) else { return Ok(HeaderRead::Needs(2)) };
    let short = second & !MASKED;
    if opcode.is_control() && usize::from(short) > CONTROL_BYTES_MAX {
        return Err(Fault::Control);
    }
    let more = match short {
        126 => 2,
        127 => 8,
        _ => 0,
    };
    let is_masked = second & MASKED != 0;
    let size = 2 + more + if is_masked { 4 } else { 0 };
    if input.len() < size {
        return Ok(HeaderRead::Needs(size));
    }
    let len = input[2..2 + more].iter().fold(0, |len, byte| len << 8 | u64::from(*byte));
    let len = match more {
        0 => u64::from(short),
        2 if len < 126 => return Err(Fault::Length),
        8 if len <= u64::from(u16::MAX) || len >> 63 == 1 => return Err(Fault::Length),
        _ => len,
    };
    let mask = if is_masked { input[2 + more..size].first_chunk().copied() } else { None };
    Ok(HeaderRead::Header(Header { opcode, is_final, is_compressed, mask, len }, size))
}

/// An encoded header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EncodedHeader {
    bytes: [u8; HEADER_BYTES_MAX],
    len: usize,
}

impl EncodedHeader {
    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Writes a header, with the length in its shortest form.
pub(crate) fn write(header: &Header) -> EncodedHeader {
    let mut bytes = [0; HEADER_BYTES_MAX];
    bytes[0] = header.opcode as u8
        | if header.is_final { FINAL } else { 0 }
        | if header.is_compressed { COMPRESSED } else { 0 };
    let mut len = match header.len {
        short @ 0..126 => {
            bytes[1] = short as u8;
            2
        }
        middle @ 126..=0xffff => {
            bytes[1] = 126;
            bytes[2..4].copy_from_slice(&(middle as u16).to_be_bytes());
            4
        }
        long => {
            bytes[1] = 127;
            bytes[2..10].copy_from_slice(&long.to_be_bytes());
            10
        }
    };
    if let Some(mask) = header.mask {
        bytes[1] |= MASKED;
        bytes[len..len + 4].copy_from_slice(&mask);
        len += 4;
    }
    EncodedHeader { bytes, len }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MASK: Option<Mask> = Some([1, 2, 3, 4]);

    #[test]
    fn a_written_header_is_read_back_only_when_complete() {
        for opcode in [Opcode::Continuation, Opcode::Text, Opcode::Binary, Opcode::Close] {
            for len in [0, 1, 125, 126, 127, 65_535, 65_536, u64::MAX >> 1] {
                for (is_final, is_compressed, mask) in [
                    (true, false, None),
                    (false, true, MASK),
                    (true, true, None),
                    (false, false, MASK),
                ] {
                    let header = Header { opcode, is_final, is_compressed, mask, len };
                    let is_odd = opcode.is_control() && (len > 125 || !is_final || is_compressed)
                        || opcode == Opcode::Continuation && is_compressed;
                    if is_odd {
                        continue;
                    }
                    let written = write(&header);
                    let bytes = written.as_bytes();
                    assert_eq!(read(bytes), Ok(HeaderRead::Header(header, bytes.len())));
                    for cut in 0..bytes.len() {
                        let Ok(HeaderRead::Needs(needs)) = read(&bytes[..cut]) else {
                            panic!("{header:?} cut at {cut}")
                        };
                        assert!(cut < needs && needs <= bytes.len(), "{header:?} cut at {cut}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_first_byte_of_a_header_is_checked_alone() {
        assert_eq!(
            read(b""),
            Ok(HeaderRead::Needs(1)),
            "so the first is judged alone, however they come"
        );
        assert_eq!(read(b"\x81"), Ok(HeaderRead::Needs(2)));
    }

    #[test]
    fn an_invalid_header_is_refused_at_its_first_invalid_byte() {
        let cases: [(&[u8], Fault); 13] = [
            (b"\x90", Fault::ReservedBits),
            (b"\xa1", Fault::ReservedBits),
            (b"\xc0", Fault::ReservedBits),
            (b"\xc9", Fault::ReservedBits),
            (b"\x83", Fault::Opcode(3)),
            (b"\x87", Fault::Opcode(7)),
            (b"\x8b", Fault::Opcode(11)),
            (b"\x8f", Fault::Opcode(15)),
            (b"\x08", Fault::Control),
            (b"\x89\xfe", Fault::Control),
            (b"\x82\x7e\x00\x7d", Fault::Length),
            (b"\x82\x7f\x00\x00\x00\x00\x00\x00\xff\xff", Fault::Length),
            (b"\x82\x7f\x80\x00\x00\x00\x00\x00\x00\x00", Fault::Length),
        ];
        for (bytes, fault) in cases {
            assert_eq!(read(bytes), Err(fault), "{bytes:?}");
            for cut in 0..bytes.len() {
                assert!(read(&bytes[..cut]).is_ok(), "{bytes:?} cut at {cut}");
            }
        }
    }
}
