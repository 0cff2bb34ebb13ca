//! Byte classes of RFC 9110 and 9112 in one table, so that every check is one look-up a byte.

/// `tchar` (RFC 9110 §5.6.2): methods, field names, codings.
pub(super) const TCHAR: u8 = 1;
/// What a field value or a reason phrase may hold: HTAB, SP, VCHAR, obs-text (RFC 9110 §5.5).
pub(super) const VALUE: u8 = 1 << 1;
/// What a request target may hold: visible ASCII without `"`, `#`, `<` and `>`. The other bytes that RFC 3986 leaves
/// out (`\ ^ { | }` and the backquote) are accepted because browsers send them in queries as they are.
pub(super) const TARGET: u8 = 1 << 2;
/// What a registered name may hold without percent-encoding (RFC 3986 §3.2.2), less the comma, which would let a list
/// of hosts pass for one.
pub(super) const HOST: u8 = 1 << 3;
/// What a quoted string may hold as it is (`qdtext`, RFC 9110 §5.6.4).
pub(super) const QDTEXT: u8 = 1 << 4;
/// What may follow a backslash in a quoted string (RFC 9110 §5.6.4).
pub(super) const QUOTABLE: u8 = VALUE;

static CLASSES: [u8; 256] = make_classes();

const fn make_classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut at = 0;
    while at < 256 {
        classes[at] = classes_of(at as u8);
        at += 1;
    }
    classes
}

const fn classes_of(byte: u8) -> u8 {
    let mut class = 0;
    let is_alphanumeric = byte.is_ascii_alphanumeric();
    if is_alphanumeric
        || matches!(
            byte,
            b'!' | b'#'
                | b'$'
                | b'%'
                | b'&'
                | b'\''
                | b'*'
                | b'+'
                | b'-'
                | b'.'
                | b'^'
                | b'_'
                | b'`'
                | b'|'
                | b'~'
        )
    {
        class |= TCHAR;
    }
    if matches!(byte, b'\t' | b' '..=b'~' | 0x80..) {
        class |= VALUE;
    }
    if matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'#' | b'<' | b'>') {
        class |= TARGET;
    }
    if is_alphanumeric
        || matches!(
            byte,
            b'-' | b'.' | b'_' | b'~' | b'!' | b'$' | b'&' | b'\'' | b'(' | b')' | b'*' | b'+' | b';' | b'='
        )
    {
        class |= HOST;
    }
    if matches!(byte, b'\t' | b' ' | b'!' | b'#'..=b'[' | b']'..=b'~' | 0x80..) {
        class |= QDTEXT;
    }
    class
}

/// Whether the byte is of (one of) the class(es).
#[inline(always)]
pub(super) fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Whether every byte is of the class; true for no bytes.
#[inline]
pub(super) fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|&byte| is(byte, class))
}

/// Whether every byte may stand in a field value (`VALUE`): as `all`, eight bytes at a step as long as there is no
/// control byte among them.
#[inline]
pub(super) fn is_value(bytes: &[u8]) -> bool {
    let (Some(last), false) = (bytes.last_chunk(), bytes.len() < 8) else { return all(bytes, VALUE) };
    let (words, _) = bytes.as_chunks();
    // The last word may overlap the one before it.
    let is_plain = words.iter().chain([last]).all(|&word| controls_among(u64::from_le_bytes(word)) == 0);
    is_plain || all(bytes, VALUE)
}

/// How many bytes at the beginning may stand in a field value (`VALUE`).
#[inline]
pub(super) fn value_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&block) = bytes[len..].first_chunk()
        && !holds_control(block)
    {
        len += 16;
    }
    while let Some(&word) = bytes[len..].first_chunk() {
        let controls = controls_among(u64::from_le_bytes(word));
        if controls == 0 {
            len += 8;
            continue;
        }
        len += controls.trailing_zeros() as usize / 8;
        if bytes[len] != b'\t' {
            return len;
        }
        len += 1;
    }
    len + bytes[len..].iter().position(|&byte| !is(byte, VALUE)).unwrap_or(bytes.len() - len)
}

/// How many bytes at the beginning are `tchar`s. Names are made of letters and hyphens as a rule, so eight are looked at
/// in a step.
#[inline]
pub(super) fn token_len(bytes: &[u8]) -> usize {
    let mut len = 0;
    while let Some(&word) = bytes[len..].first_chunk() {
        let others = others_than_letters(u64::from_le_bytes(word));
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

/// Whether one of sixteen bytes is below SP, or DEL. In this form it becomes a few vector instructions.
#[inline(always)]
fn holds_control(block: [u8; 16]) -> bool {
    block.iter().fold(false, |holds, &byte| holds | (byte < b' ') | (byte == 0x7f))
}

/// The highest bit of each of eight bytes that is neither a letter nor a hyphen.
#[inline(always)]
fn others_than_letters(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES << 7;
    // With the highest bit away, no sum below reaches the next byte.
    let low = word & !HIGH;
    let lower_case = low | (ONES * 0x20);
    let from_a = lower_case + ONES * (0x80 - b'a' as u64);
    let beyond_z = lower_case + ONES * (0x7f - b'z' as u64);
    let no_hyphen = (low ^ (ONES * b'-' as u64)) + ONES * 0x7f;
    (!(from_a & !beyond_z) & no_hyphen | word) & HIGH
}

/// The highest bit of each of eight bytes that is below SP, or DEL. Bytes above such a byte may be marked without being
/// one (a borrow); the lowest byte that is marked always is one.
#[inline(always)]
fn controls_among(word: u64) -> u64 {
    const ONES: u64 = u64::MAX / 255;
    let below_space = word.wrapping_sub(ONES * 0x20) & !word;
    let del = word ^ (ONES * 0x7f);
    let is_del = del.wrapping_sub(ONES) & !del;
    (below_space | is_del) & (ONES << 7)
}

/// Whether the bytes are a `token`: one `tchar` at least.
#[inline]
pub(super) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TCHAR)
}

/// Cuts SP and HTAB, exactly these, from both ends (`OWS`, RFC 9110 §5.6.3).
#[inline]
pub(super) fn trim(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = bytes.iter().position(|byte| !is_space(byte)) else { return &[] };
    let end = bytes.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// `1*DIGIT` as a number; `None` for anything else and for what does not fit.
#[inline]
pub(super) fn parse_decimal(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() {
        return None;
    }
    digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number.checked_mul(10)?.checked_add(u64::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_hold_exactly_the_bytes_of_the_grammar() {
        let members = |class| (0..=255u8).filter(move |&byte| is(byte, class)).count();
        assert_eq!(members(TCHAR), 26 * 2 + 10 + 15);
        assert_eq!(members(VALUE), 1 + 95 + 128);
        assert_eq!(members(TARGET), 94 - 4);
        assert_eq!(members(HOST), 62 + 14);
        assert_eq!(members(QDTEXT), 1 + 95 - 2 + 128);
    }

    #[test]
    fn values_and_names_are_looked_at_in_words_with_the_same_answer() {
        for len in 0..=35 {
            for at in 0..len {
                for byte in 0..=255 {
                    for filler in [b' ', b'a', b'Z', b'-', b'0', b'\t', 0x80] {
                        let mut bytes = vec![filler; len];
                        bytes[at] = byte;
                        assert_eq!(is_value(&bytes), all(&bytes, VALUE), "{bytes:?}");
                        let len = bytes.iter().position(|&byte| !is(byte, VALUE)).unwrap_or(len);
                        assert_eq!(value_len(&bytes), len, "{bytes:?}");
                        let len = bytes.iter().position(|&byte| !is(byte, TCHAR)).unwrap_or(bytes.len());
                        assert_eq!(token_len(&bytes), len, "{bytes:?}");
                    }
                }
            }
        }
        assert!(is_value(b"") && is_value(b"text/html;\tcharset=utf-8") && !is_value(b"text/html\r\nX: y"));
    }

    #[test]
    fn only_space_and_tab_are_trimmed() {
        assert_eq!(trim(b" \t a b\t "), b"a b");
        assert_eq!(trim(b"\x0b a \x0c"), b"\x0b a \x0c");
        assert_eq!(trim(b" \t"), b"");
    }

    #[test]
    fn decimals_stop_at_the_largest_number() {
        assert_eq!(parse_decimal(b"18446744073709551614"), Some(u64::MAX - 1));
        assert_eq!(parse_decimal(b"18446744073709551615"), Some(u64::MAX));
        assert_eq!(parse_decimal(b"18446744073709551616"), None);
        assert_eq!(parse_decimal(b"0000000000000000000000000000005"), Some(5));
        for bad in ["", "+5", "-5", "0x5", "5_0", "5 0", "5.0", "5e1", "٥"] {
            assert_eq!(parse_decimal(bad.as_bytes()), None, "{bad}");
        }
    }
}
