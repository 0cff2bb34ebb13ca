//! `Pairs`: the names and values of a query or a form.

use std::fmt;

use percent_encoding::percent_decode;
use rotor_http::Status;

use crate::refused::Rejection;

/// How many pairs of a query or a form are read at most. No form that people fill in has more.
pub const PAIRS_MAX: usize = 1_000;

/// The names and values of a query, or of a form's body (`application/x-www-form-urlencoded`),
/// decoded and in order.
///
/// ```
/// use rotor_service::Pairs;
///
/// let pairs = Pairs::read("q=two+words&page=3&tag=a&tag=b")?;
/// assert_eq!((pairs.get("q"), pairs.get("none")), (Some("two words"), None));
/// assert_eq!(pairs.parse("page")?, Some(3));
/// assert_eq!(pairs.all("tag").collect::<Vec<_>>(), ["a", "b"]);
/// # Ok::<(), rotor_service::Rejection>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Pairs(Vec<(String, String)>);

impl Pairs {
    /// Reads the pairs. Empty parts between two `&` are skipped. A part without `=` is a name with
    /// an empty value.
    ///
    /// # Errors
    ///
    /// 400: a name or a value is not UTF-8. 413: more than 1,000 pairs.
    pub fn read(text: impl AsRef<[u8]>) -> Result<Pairs, Rejection> {
        let mut pairs = Vec::new();
        for part in text.as_ref().split(|&byte| byte == b'&').filter(|part| !part.is_empty()) {
            if pairs.len() == PAIRS_MAX {
                return Err(Rejection::new(Status::CONTENT_TOO_LARGE, "more than 1,000 pairs"));
            }
            let mut sides = part.splitn(2, |&byte| byte == b'=');
            let (name, value) =
                (sides.next().unwrap_or_default(), sides.next().unwrap_or_default());
            pairs.push((decode(name)?, decode(value)?));
        }
        Ok(Pairs(pairs))
    }

    /// Returns the first value of this name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Returns all values of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.iter().filter(move |(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Returns the first value of this name as another type, for example a number.
    ///
    /// # Errors
    ///
    /// 400, naming the pair: the value is not of that type.
    pub fn parse<N: std::str::FromStr>(&self, name: &str) -> Result<Option<N>, Rejection> {
        let parsed = self.get(name).map(str::parse).transpose();
        parsed.map_err(|_| Rejection::new(Status::BAD_REQUEST, format!("{name:?} is malformed")))
    }

    /// Returns all pairs, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn decode(text: &[u8]) -> Result<String, Rejection> {
    // Before percent-decoding, since `%2B` is a plus sign.
    let spaced: Vec<u8> = text.iter().map(|&byte| if byte == b'+' { b' ' } else { byte }).collect();
    let decoded = percent_decode(&spaced).decode_utf8();
    let decoded = decoded
        .map_err(|_| Rejection::new(Status::BAD_REQUEST, "a name or a value is not UTF-8"))?;
    Ok(decoded.into_owned())
}

/// Shows only the names: values may be secret.
impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_decoded_and_in_order() {
        let cases: [(&str, &[(&str, &str)]); 8] = [
            ("", &[]),
            ("&&", &[]),
            ("a=b&c=d", &[("a", "b"), ("c", "d")]),
            ("a&b=&=c", &[("a", ""), ("b", ""), ("", "c")]),
            ("a=b=c", &[("a", "b=c")]),
            ("a+b=c%2Bd", &[("a b", "c+d")]),
            ("%C3%A4=%e2%82%ac", &[("ä", "€")]),
            ("a=%&b=%4", &[("a", "%"), ("b", "%4")]),
        ];
        for (text, expected) in cases {
            let pairs = Pairs::read(text).expect(text);
            assert_eq!(pairs.iter().collect::<Vec<_>>(), expected, "{text}");
        }
        for text in ["a=%ff", "%80=a", "a=%c3"] {
            assert_eq!(Pairs::read(text).expect_err(text).status(), Status::BAD_REQUEST);
        }
        assert_eq!(Pairs::read(b"a=\xff").expect_err("raw").status(), Status::BAD_REQUEST);
    }

    #[test]
    fn the_number_of_pairs_is_limited() {
        for (count, is_read) in [(999, true), (1_000, true), (1_001, false)] {
            let read = Pairs::read("a=b&".repeat(count));
            let status = read.err().map(|refused| refused.status());
            assert_eq!(status, (!is_read).then_some(Status::CONTENT_TOO_LARGE), "{count}");
        }
    }

    #[test]
    fn a_malformed_number_is_named_in_the_error() {
        let pairs = Pairs::read("page=x").expect("a pair");
        let refused = pairs.parse::<u32>("page").expect_err("no number");
        assert_eq!(
            (refused.status(), refused.reason()),
            (Status::BAD_REQUEST, "\"page\" is malformed")
        );
        assert_eq!(pairs.parse::<u32>("none"), Ok(None));
    }
}
