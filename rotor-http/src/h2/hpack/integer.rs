//! The integers of HPACK (RFC 7541 §5.1): a prefix of some bits, then groups of seven.

use super::HpackError;

/// How many groups may follow a prefix: enough for 28 bits, and more than any length or index
/// needs.
const GROUPS_MAX: u32 = 4;

/// Decodes the integer at `*at`, whose first byte has `bits` bits of it, and advances `*at` beyond
/// it.
///
/// # Errors
///
/// `Truncated`, `Integer`: the peer's fault.
#[inline]
pub fn decode(input: &[u8], at: &mut usize, bits: u32) -> Result<usize, HpackError> {
    let &first = input.get(*at).ok_or(HpackError::Truncated)?;
    *at += 1;
    let max = (1usize << bits) - 1;
    let value = usize::from(first) & max;
    if value < max { Ok(value) } else { decode_groups(input, at, max) }
}

fn decode_groups(input: &[u8], at: &mut usize, mut value: usize) -> Result<usize, HpackError> {
    for group in 0..GROUPS_MAX {
        let &byte = input.get(*at).ok_or(HpackError::Truncated)?;
        *at += 1;
        value += usize::from(byte & 0x7f) << (7 * group);
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    // No length or index is larger, and an endless number of zeros would be wasted bytes.
    Err(HpackError::Integer)
}

/// Encodes an integer after the flags of its first byte, which leave `bits` bits for it.
#[inline]
pub fn encode(out: &mut Vec<u8>, flags: u8, bits: u32, mut value: usize) {
    let max = (1usize << bits) - 1;
    if value < max {
        return out.push(flags | value as u8);
    }
    out.push(flags | max as u8);
    value -= max;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_rfc_are_read_and_written() {
        // RFC 7541 §C.1.
        for (value, bits, bytes) in [
            (10, 5, &[10][..]),
            (1337, 5, &[31, 154, 10]),
            (42, 8, &[42]),
            (30, 5, &[30]),
            (31, 5, &[31, 0]),
        ] {
            let mut out = Vec::new();
            encode(&mut out, 0, bits, value);
            assert_eq!(out, bytes, "{value}");
            let mut at = 0;
            assert_eq!(decode(bytes, &mut at, bits), Ok(value));
            assert_eq!(at, bytes.len());
        }
    }

    #[test]
    fn every_integer_is_read_back_with_any_flags() {
        for bits in 1..=8 {
            let flags = 0xff_u16.checked_shl(bits).map_or(0, |flags| flags as u8);
            for value in (0..1000).chain([1 << 14, (1 << 21) - 1, 1 << 27]) {
                let mut out = Vec::new();
                encode(&mut out, flags, bits, value);
                let mut at = 0;
                assert_eq!(decode(&out, &mut at, bits), Ok(value), "{value} in {bits} bits");
                assert_eq!(at, out.len());
                for len in 0..out.len() {
                    assert_eq!(decode(&out[..len], &mut 0, bits), Err(HpackError::Truncated));
                }
            }
        }
    }

    #[test]
    fn an_integer_that_is_too_long_or_too_large_is_rejected() {
        for bytes in
            [[0x1f, 0x80, 0x80, 0x80, 0x80, 0], [0x1f, 0xff, 0xff, 0xff, 0xff, 0x7f], [0xff; 6]]
        {
            assert_eq!(decode(&bytes, &mut 0, 5), Err(HpackError::Integer), "{bytes:?}");
        }
    }
}
