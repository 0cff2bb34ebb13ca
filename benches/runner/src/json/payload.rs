//! The requests and the expected responses.

use std::fmt;

/// The length of the large body, in bytes.
const LARGE_BYTES: usize = 515_176;

/// The body of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Body {
    /// The numbers from 1 to 20.
    Small,
    /// Some 73,600 numbers of six digits.
    Large,
}

/// The body of a request and of its response.
#[derive(Debug, Clone)]
pub(super) struct Payload {
    pub(super) bytes: Vec<u8>,
    pub(super) answer: Vec<u8>,
}

impl Body {
    pub(super) fn payload(self) -> Payload {
        let numbers = match self {
            Body::Small => (1..=20).collect(),
            Body::Large => large_numbers(),
        };
        let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
        let sum: u64 = numbers.iter().sum();
        Payload {
            bytes: format!("[{}]", texts.join(",")).into_bytes(),
            answer: format!(r#"{{"sum":{sum}}}"#).into_bytes(),
        }
    }
}

impl fmt::Display for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Body::Small => "small body",
            Body::Large => "large body",
        })
    }
}

/// Returns numbers of six digits, except for the last one, which has as many as necessary. Each
/// number takes a comma too, and with the brackets there is one byte more than with the commas
/// alone.
fn large_numbers() -> Vec<u64> {
    let count = (LARGE_BYTES - 1) / 7;
    let digits = (LARGE_BYTES - 1) % 7;
    let mut numbers: Vec<u64> =
        (0..count as u64).map(|index| 100_000 + index * 7_919 % 900_000).collect();
    if let Some(last) = numbers.last_mut() {
        *last *= 10_u64.pow(digits as u32);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::{Body, LARGE_BYTES};

    #[test]
    fn bodies_have_the_expected_length_and_checksum() {
        let small = Body::Small.payload();
        assert!(small.bytes.starts_with(b"[1,2,3,") && small.bytes.ends_with(b",20]"));
        assert_eq!(small.answer, br#"{"sum":210}"#);
        let large = Body::Large.payload();
        assert_eq!(large.bytes.len(), LARGE_BYTES);
        assert!(large.bytes.starts_with(b"[100000,107919,"));
    }
}
