//! Comma-separated lists (RFC 9110 §5.6.1), split in one place.

use super::grammar;

/// Returns the elements of a comma-separated list, without SP and HTAB at both ends. Empty elements
/// are included: callers may refuse or ignore them. Quotes have no meaning here, so the parts of a
/// quoted string are simply not tokens.
#[doc(alias = "elements")]
#[doc(alias = "comma-separated")]
pub fn list_elements(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(grammar::trim)
}

/// Returns whether the list has the token. The case is ignored.
#[inline]
#[doc(alias = "has_token")]
pub fn list_has_token(value: &[u8], token: &str) -> bool {
    list_elements(value).any(|element| element.eq_ignore_ascii_case(token.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_split_and_trimmed() {
        let split = |value: &'static str| list_elements(value.as_bytes()).collect::<Vec<_>>();
        assert_eq!(split("a"), [b"a"]);
        assert_eq!(split(" a\t,b ,, c"), [&b"a"[..], b"b", b"", b"c"]);
        assert_eq!(split(""), [b""]);
    }

    #[test]
    fn tokens_are_found_whole_and_in_any_case() {
        assert!(list_has_token(b"keep-alive, CLOSE", "close"));
        assert!(!list_has_token(b"closed, xclose, clo se", "close"));
    }
}
