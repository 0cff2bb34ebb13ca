//! The Huffman code of strings (RFC 7541 §5.2), with tables that are computed at compile time.
//!
//! The code is canonical: within one length, codes grow with their place in the order of length and
//! code. So one subtraction finds the byte for a code of known length; a table of the first eight
//! bits gives the length of nearly all codes.

use super::HpackError;
use super::huffman_table::CODES;

const BITS_MAX: usize = 30;

/// The bytes in the order of their codes, and for each length the first code and its place.
struct CodeOrder {
    bytes: [u8; 256],
    first_code: [u32; BITS_MAX + 2],
    first_place: [u16; BITS_MAX + 2],
}

const fn code_order() -> CodeOrder {
    let mut code_order = CodeOrder {
        bytes: [0; 256],
        first_code: [0; BITS_MAX + 2],
        first_place: [0; BITS_MAX + 2],
    };
    let (mut place, mut code, mut bits) = (0, 0, 1);
    while bits <= BITS_MAX {
        code <<= 1;
        code_order.first_code[bits] = code;
        code_order.first_place[bits] = place as u16;
        // Within a length, in the order of codes, each of which is one more than the previous one.
        let mut count = 0;
        let mut byte = 0;
        while byte < 256 {
            if CODES[byte].1 as usize == bits {
                code_order.bytes[place + (CODES[byte].0 - code) as usize] = byte as u8;
                count += 1;
            }
            byte += 1;
        }
        place += count;
        code += count as u32;
        bits += 1;
    }
    code_order
}

static CODE_ORDER: CodeOrder = code_order();

/// For the next eight bits: the byte and the length of its code, or 0 if the code is longer.
static SHORT_CODES: [(u8, u8); 256] = {
    let mut short = [(0, 0); 256];
    let mut byte = 0;
    while byte < 256 {
        let (code, bits) = CODES[byte];
        if bits <= 8 {
            let first = (code as usize) << (8 - bits);
            let mut next = first;
            while next < first + (1 << (8 - bits)) {
                short[next] = (byte as u8, bits);
                next += 1;
            }
        }
        byte += 1;
    }
    short
};

/// Decodes a string, and appends at most `bytes_max` bytes.
///
/// # Errors
///
/// `Huffman`: EOS, or padding that is too long or does not consist of ones; `TooLarge`.
pub fn decode(input: &[u8], out: &mut Vec<u8>, bytes_max: usize) -> Result<(), HpackError> {
    let end = out.len().saturating_add(bytes_max);
    // The bits that are not used yet are the highest ones.
    let (mut word, mut bits_held, mut rest) = (0u64, 0u32, input.iter());
    loop {
        while bits_held <= 56 {
            let Some(&byte) = rest.next() else { break };
            word |= u64::from(byte) << (56 - bits_held);
            bits_held += 8;
        }
        let (byte, bits) = match SHORT_CODES[(word >> 56) as usize] {
            (_, 0) => match decode_long_code(word) {
                Some(found) if found.1 <= bits_held => found,
                // Only padding is that short; or it is EOS, which has more bits.
                _ if bits_held < 8 => return check_padding(word, bits_held),
                _ => return Err(HpackError::Huffman),
            },
            (byte, bits) if u32::from(bits) <= bits_held => (byte, u32::from(bits)),
            _ => return check_padding(word, bits_held),
        };
        if out.len() == end {
            return Err(HpackError::TooLarge);
        }
        out.push(byte);
        word <<= bits;
        bits_held -= bits;
    }
}

/// Returns the byte for a code of more than eight bits, and the length of the code.
fn decode_long_code(word: u64) -> Option<(u8, u32)> {
    for bits in 9..=BITS_MAX {
        let code = (word >> (64 - bits)) as u32;
        let nth = code.wrapping_sub(CODE_ORDER.first_code[bits]);
        let count = match bits {
            BITS_MAX => 256 - u32::from(CODE_ORDER.first_place[bits]),
            _ => u32::from(CODE_ORDER.first_place[bits + 1] - CODE_ORDER.first_place[bits]),
        };
        if nth < count {
            let place = usize::from(CODE_ORDER.first_place[bits]) + nth as usize;
            return Some((CODE_ORDER.bytes[place], bits as u32));
        }
    }
    None
}

/// Checks the padding. RFC 7541 §5.2: it is the beginning of EOS, and "strictly longer than 7 bits"
/// is an error.
fn check_padding(word: u64, bits_held: u32) -> Result<(), HpackError> {
    let is_padding = bits_held < 8 && word == !(u64::MAX.checked_shr(bits_held).unwrap_or(0));
    if is_padding { Ok(()) } else { Err(HpackError::Huffman) }
}

/// Returns the encoded length of a string, in bytes.
#[cfg(test)]
fn encoded_len(text: &[u8]) -> usize {
    let bits: usize = text.iter().map(|byte| usize::from(CODES[usize::from(*byte)].1)).sum();
    bits.div_ceil(8)
}

/// Encodes a string, and appends it.
pub fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut word, mut bits_held) = (0u64, 0u32);
    for byte in text {
        let (code, bits) = CODES[usize::from(*byte)];
        word = word << bits | u64::from(code);
        bits_held += u32::from(bits);
        while bits_held >= 8 {
            bits_held -= 8;
            out.push((word >> bits_held) as u8);
        }
    }
    if bits_held > 0 {
        let padding = 8 - bits_held;
        out.push((word << padding) as u8 | ((1u16 << padding) - 1) as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(input: &[u8]) -> Result<Vec<u8>, HpackError> {
        let mut out = Vec::new();
        decode(input, &mut out, 10_000).map(|()| out)
    }

    #[test]
    fn the_strings_of_the_rfc_are_read_and_written() {
        // RFC 7541 §C.4, §C.6.
        for (text, bytes) in [
            (
                "www.example.com",
                &[0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff][..],
            ),
            ("no-cache", &[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]),
            ("custom-key", &[0x25, 0xa8, 0x49, 0xe9, 0x5b, 0xa9, 0x7d, 0x7f]),
            ("302", &[0x64, 0x02]),
            ("private", &[0xae, 0xc3, 0x77, 0x1a, 0x4b]),
            ("", &[]),
        ] {
            assert_eq!(decoded(bytes).as_deref(), Ok(text.as_bytes()));
            let mut out = Vec::new();
            encode(text.as_bytes(), &mut out);
            assert_eq!((out.as_slice(), encoded_len(text.as_bytes())), (bytes, bytes.len()));
        }
    }

    #[test]
    fn every_string_is_decoded_as_it_was_encoded() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = [first, second, first];
                let mut out = Vec::new();
                encode(&text, &mut out);
                assert_eq!(decoded(&out).as_deref(), Ok(&text[..]));
            }
        }
    }

    #[test]
    fn padding_must_be_short_and_of_ones_and_eos_is_refused() {
        for (bytes, is_valid) in [
            (&[0x1f][..], true),                // `a`, then 3 bits of ones
            (&[0x1e], false),                   // a zero in the padding
            (&[0x1f, 0xff], false),             // 11 bits of padding
            (&[0xff], false),                   // 8 bits of padding alone
            (&[0x00, 0x00, 0x1f], true),        // `0001`, then 4 bits of ones
            (&[0xff, 0xff, 0xff, 0xff], false), // EOS
            (&[0xff, 0xff, 0xff, 0xfc], false), // EOS, then zeros
            (&[0x1f, 0xff, 0xff, 0xff, 0xff], false),
        ] {
            let read = decoded(bytes);
            assert_eq!(read.is_ok(), is_valid, "{bytes:?}: {read:?}");
            assert!(read.is_ok() || read == Err(HpackError::Huffman));
        }
    }

    #[test]
    fn decoding_stops_at_the_output_limit() {
        let mut coded = Vec::new();
        encode(&[b'0'; 100], &mut coded);
        for (bytes_max, is_enough) in [(99, false), (100, true), (101, true), (0, false)] {
            let mut out = Vec::new();
            let read = decode(&coded, &mut out, bytes_max);
            assert_eq!(read.is_ok(), is_enough, "{bytes_max}");
            assert!(out.len() <= bytes_max);
        }
    }
}
