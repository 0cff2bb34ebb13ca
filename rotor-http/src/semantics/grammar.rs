//! The byte classes of RFC 9110 and 9112 in one table, so that each check is one look-up per byte.

/// `tchar` (RFC 9110 §5.6.2): methods, field names, codings.
pub(crate) const TCHAR: u8 = 1;
/// The bytes of a field value or a reason phrase: HTAB, SP, VCHAR, obs-text (RFC 9110 §5.5).
pub(crate) const VALUE: u8 = 1 << 1;
/// The bytes of a request target: visible ASCII without `"`, `#`, `<` and `>`. The other bytes that
/// RFC 3986 excludes (`\ ^ { | }` and the backquote) are accepted because browsers send them in
/// queries unescaped.
pub(crate) const TARGET: u8 = 1 << 2;
/// Like `TARGET`, without the question mark that begins a query.
pub(crate) const PATH: u8 = 1 << 5;
/// The bytes of a registered name that need no percent-encoding (RFC 3986 §3.2.2), without the
/// comma, because with it a list of hosts would be accepted as a host.
pub(crate) const HOST: u8 = 1 << 3;
/// The bytes of a quoted string that need no backslash (`qdtext`, RFC 9110 §5.6.4).
pub(crate) const QDTEXT: u8 = 1 << 4;
/// The bytes that may follow a backslash in a quoted string (RFC 9110 §5.6.4).
pub(crate) const QUOTABLE: u8 = VALUE;

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
        if byte != b'?' {
            class |= PATH;
        }
    }
    if is_alphanumeric
        || matches!(
            byte,
            b'-' | b'.'
                | b'_'
                | b'~'
                | b'!'
                | b'$'
                | b'&'
                | b'\''
                | b'('
                | b')'
                | b'*'
                | b'+'
                | b';'
                | b'='
        )
    {
        class |= HOST;
    }
    if matches!(byte, b'\t' | b' ' | b'!' | b'#'..=b'[' | b']'..=b'~' | 0x80..) {
        class |= QDTEXT;
    }
    class
}

/// Returns whether the byte belongs to the class, or to one of the classes.
#[inline(always)]
pub(crate) fn is(byte: u8, class: u8) -> bool {
    CLASSES[byte as usize] & class != 0
}

/// Returns whether every byte belongs to the class; true if there are no bytes.
#[inline]
pub(crate) fn all(bytes: &[u8], class: u8) -> bool {
    bytes.iter().all(|&byte| is(byte, class))
}

/// Returns whether the bytes are a `token`: at least one `tchar`.
#[inline]
pub(crate) fn is_token(bytes: &[u8]) -> bool {
    !bytes.is_empty() && all(bytes, TCHAR)
}

/// Removes SP and HTAB, and nothing else, from both ends (`OWS`, RFC 9110 §5.6.3).
#[inline]
pub(crate) fn trim(bytes: &[u8]) -> &[u8] {
    let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
    let Some(start) = bytes.iter().position(|byte| !is_space(byte)) else { return &[] };
    let end = bytes.iter().rposition(|byte| !is_space(byte)).map_or(start, |last| last + 1);
    &bytes[start..end]
}

/// Parses `1*DIGIT` as a number. Returns `None` for anything else and for numbers that do not fit.
#[inline]
pub(crate) fn parse_decimal(digits: &[u8]) -> Option<u64> {
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
        assert_eq!(members(PATH), members(TARGET) - 1);
        assert_eq!(members(HOST), 62 + 14);
        assert_eq!(members(QDTEXT), 1 + 95 - 2 + 128);
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
