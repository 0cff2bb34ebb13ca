//! Weights in content negotiation (RFC 9110 §12.4.2), parsed in one place.

/// Parses a weight, the value after `q=` in `Accept` and similar fields. Returns it in thousandths:
/// `0.5` is 500.
///
/// Returns `None` for anything but a number from 0 to 1 with at most three digits after the point
/// (RFC 9110 §12.4.2). Signs, exponents and whitespace are not allowed.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::parse_weight;
///
/// assert_eq!((parse_weight(b"1"), parse_weight(b"0.25")), (Some(1_000), Some(250)));
/// assert_eq!((parse_weight(b"1.5"), parse_weight(b"-0.5")), (None, None));
/// ```
#[doc(alias = "qvalue")]
#[doc(alias = "quality")]
pub fn parse_weight(value: &[u8]) -> Option<u16> {
    let (whole, fraction) = match value {
        [whole] => (whole, &[][..]),
        [whole, b'.', fraction @ ..] => (whole, fraction),
        _ => return None,
    };
    if fraction.len() > 3 || !fraction.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = fraction.iter().chain(b"000").take(3);
    let thousandths = digits.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match whole {
        b'0' => Some(thousandths),
        b'1' if thousandths == 0 => Some(1_000),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_parsed_in_thousandths_and_anything_else_is_none() {
        for (text, expected) in [
            ("0", 0),
            ("0.", 0),
            ("0.000", 0),
            ("0.001", 1),
            ("0.01", 10),
            ("0.1", 100),
            ("0.5", 500),
            ("0.999", 999),
            ("1", 1_000),
            ("1.", 1_000),
            ("1.0", 1_000),
            ("1.000", 1_000),
        ] {
            assert_eq!(parse_weight(text.as_bytes()), Some(expected), "{text}");
        }
        for text in [
            "", ".", ".5", "00", "01", "2", "1.001", "1.1", "0.0000", "0.1234", "-1", "+1", "-0",
            "0,5", "0.5 ", " 0.5", "0. 5", "1e-1", "0x1", "NaN", "0.a", "0.5.", "0..5", "a",
        ] {
            assert_eq!(parse_weight(text.as_bytes()), None, "{text:?}");
        }
    }
}
