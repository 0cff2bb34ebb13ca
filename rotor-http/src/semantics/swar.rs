//! Counts how many bytes at the beginning belong to one class of the table in `grammar`, several
//! bytes at a time (SWAR: SIMD within a register).

use std::ops::RangeInclusive;

use super::grammar::{HOST, TCHAR, VALUE, all, is};

/// Returns whether every byte is allowed in a field value (`VALUE`). This is the same as `all`, but
/// takes eight bytes at a time unless there is a control byte among them.
#[inline]
pub(crate) fn is_value(bytes: &[u8]) -> bool {
    let (Some(last), false) = (bytes.last_chunk(), bytes.len() < 8) else {
        return all(bytes, VALUE);
    };
    let (words, _) = bytes.as_chunks();
    // The last word may overlap the one before it.
    let is_plain =
        words.iter().chain([last]).all(|&word| controls_among(u64::from_le_bytes(word)) == 0);
    is_plain || all(bytes, VALUE)
}

/// Returns how many bytes at the beginning are allowed in a field value (`VALUE`). Searches for
/// control bytes in blocks, then in words.
#[inline]
pub(crate) fn value_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(block) = bytes[len..].first_chunk() {
        let plain = first_in_block(block, |byte| (byte < b' ') | (byte == 0x7f));
        len += plain;
        if plain == BLOCK {
            continue;
        }
        if bytes[len] != b'\t' {
            return len;
        }
        len += 1;
    }
    while let Some(&word) = bytes[len..].first_chunk() {
        let controls = controls_among(u64::from_le_bytes(word));
        if controls == 0 {
            len += 8;
            continue;
        }
        // The lowest marked byte is certainly a control byte. It may be HTAB, which is allowed in a
        // value.
        len += controls.trailing_zeros() as usize / 8;
        if bytes[len] != b'\t' {
            return len;
        }
        len += 1;
    }
    len + bytes[len..].iter().position(|&byte| !is(byte, VALUE)).unwrap_or(bytes.len() - len)
}

/// Returns how many bytes at the beginning are `tchar`s. Names usually consist of letters and
/// hyphens, so these are skipped in blocks, then in words.
#[inline]
pub(crate) fn token_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(block) = bytes[len..].first_chunk() {
        let plain =
            first_in_block(block, |byte| !(byte | 0x20).is_ascii_lowercase() & (byte != b'-'));
        len += plain;
        if plain == BLOCK {
            continue;
        }
        if !is(bytes[len], TCHAR) {
            return len;
        }
        len += 1;
    }
    while let Some(&word) = bytes[len..].first_chunk() {
        let others = !letters_among(u64::from_le_bytes(word), b'-'..=b'-') & HIGH;
        if others == 0 {
            len += 8;
            continue;
        }
        len += others.trailing_zeros() as usize / 8;
        if !is(bytes[len], TCHAR) {
            return len;
        }
        len += 1;
    }
    len + bytes[len..].iter().position(|&byte| !is(byte, TCHAR)).unwrap_or(bytes.len() - len)
}

/// Returns how many bytes at the beginning are allowed in a host without encoding (`HOST`). Most
/// are letters, digits, dots and hyphens, which are skipped in words.
#[inline]
pub(crate) fn host_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&word) = bytes[len..].first_chunk() {
        let word = u64::from_le_bytes(word);
        let others = !(letters_among(word, b'-'..=b'.') | range_among(word, b'0'..=b'9')) & HIGH;
        if others == 0 {
            len += 8;
            continue;
        }
        len += others.trailing_zeros() as usize / 8;
        if !is(bytes[len], HOST) {
            return len;
        }
        len += 1;
    }
    len + bytes[len..].iter().position(|&byte| !is(byte, HOST)).unwrap_or(bytes.len() - len)
}

/// Returns whether the last `digits` of eight bytes are all digits, and their number is within
/// these bounds, which have eight digits each.
#[inline]
pub(crate) fn are_last_digits_within(
    bytes: [u8; 8],
    digits: usize,
    bounds: RangeInclusive<[u8; 8]>,
) -> bool {
    // The last byte is the highest one. The bytes before the digits become zeros.
    let before = (!0u64).checked_shr(8 * digits as u32).unwrap_or(0);
    let word = (u64::from_le_bytes(bytes) & !before) | ((ONES * u64::from(b'0')) & before);
    // Texts with the same number of digits are ordered like their numbers.
    let text = word.swap_bytes();
    let (least, most) = bounds.into_inner();
    range_among(word, b'0'..=b'9') & HIGH == HIGH
        && (u64::from_be_bytes(least)..=u64::from_be_bytes(most)).contains(&text)
}

const BLOCK: usize = 16;
const ONES: u64 = u64::MAX / 255;
const HIGH: u64 = ONES << 7;

/// Returns the position of the first of sixteen bytes for which `is` returns true; sixteen if there
/// is none. If `is` has no branches, this compiles to a few vector instructions.
#[inline(always)]
fn first_in_block(block: &[u8; BLOCK], is: impl Fn(u8) -> bool) -> usize {
    // This calls `is` for all bytes, because a loop that ends early is not vectorized.
    let marks: [u8; BLOCK] = std::array::from_fn(|at| if is(block[at]) { 0xff } else { 0 });
    u128::from_le_bytes(marks).trailing_zeros() as usize / 8
}

/// Marks each of eight bytes that is a letter or in a range of ASCII, by the byte's highest bit.
#[inline(always)]
fn letters_among(word: u64, others: RangeInclusive<u8>) -> u64 {
    // Upper and lower case differ in this bit. Setting it does not turn any other byte into a
    // letter.
    range_among(word | (ONES * 0x20), b'a'..=b'z') | range_among(word, others)
}

/// Marks each of eight bytes that is in a range of ASCII, by the byte's highest bit. Ignore the
/// other bits.
#[inline(always)]
fn range_among(word: u64, range: RangeInclusive<u8>) -> u64 {
    // Without the highest bit, no sum carries into the next byte.
    let low = word & !HIGH;
    let from_first = low + ONES * (0x80 - u64::from(*range.start()));
    let beyond_last = low + ONES * (0x7f - u64::from(*range.end()));
    from_first & !beyond_last & !word
}

/// Returns the highest bit of each of eight bytes that is below SP, or DEL. Bytes above such a byte
/// may be marked wrongly (by a borrow); the lowest marked byte is always right.
#[inline(always)]
fn controls_among(word: u64) -> u64 {
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let del = word ^ (ONES * 0x7f);
    let is_del = del.wrapping_sub(ONES) & !del;
    (below_space | is_del) & HIGH
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::grammar::parse_decimal;

    #[test]
    fn a_range_check_of_digits_agrees_with_parsing_them() {
        let bounds = [(0, 99_999_999), (1, 65_535), (80, 8_080), (7, 7), (99_999_999, 99_999_999)];
        let is_within = |bytes: [u8; 8], digits| {
            bounds.map(|(least, most): (u64, u64)| {
                let text = |number| format!("{number:08}").into_bytes().try_into().expect("eight");
                are_last_digits_within(bytes, digits, text(least)..=text(most))
            })
        };
        let expected = |bytes: [u8; 8], digits| {
            let number = parse_decimal(&bytes[8 - digits..]);
            bounds.map(|(least, most)| number.is_some_and(|it| least <= it && it <= most))
        };
        for text in
            ["12345678", "a.b:8080", "99999999", "00000000", "::::::::", "0.0.1:80", "/9:;/0/9"]
        {
            let bytes: [u8; 8] = text.as_bytes().try_into().expect("eight");
            for digits in 1..=8 {
                for byte in 0..=255 {
                    let mut bytes = bytes;
                    bytes[8 - digits] = byte;
                    assert_eq!(is_within(bytes, digits), expected(bytes, digits), "{bytes:?}");
                }
                assert_eq!(is_within(bytes, digits), expected(bytes, digits), "{text} {digits}");
            }
        }
        for port in 0..100_000u32 {
            let bytes: [u8; 8] = format!("h:{port:06}").as_bytes().try_into().expect("eight");
            assert_eq!(is_within(bytes, 6), expected(bytes, 6), "{port}");
        }
    }

    #[test]
    fn scans_by_words_agree_with_scans_byte_by_byte() {
        for len in 0..=35 {
            for at in 0..len {
                for byte in 0..=255 {
                    for filler in [b' ', b'a', b'Z', b'-', b'0', b'\t', 0x80] {
                        let mut bytes = vec![filler; len];
                        bytes[at] = byte;
                        assert_eq!(is_value(&bytes), all(&bytes, VALUE), "{bytes:?}");
                        let run =
                            |class| bytes.iter().position(|&byte| !is(byte, class)).unwrap_or(len);
                        assert_eq!(value_len(&bytes), run(VALUE), "{bytes:?}");
                        assert_eq!(token_len(&bytes), run(TCHAR), "{bytes:?}");
                        assert_eq!(host_len(&bytes), run(HOST), "{bytes:?}");
                    }
                }
            }
        }
        assert!(
            is_value(b"")
                && is_value(b"text/html;\tcharset=utf-8")
                && !is_value(b"text/html\r\nX: y")
        );
    }
}
