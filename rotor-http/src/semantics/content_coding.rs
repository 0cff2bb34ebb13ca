//! Reads which content codings a client accepts (RFC 9110 §12.5.3).

use super::weight::parse_weight;

/// How many elements are read. With HPACK, a byte may stand for a field with thousands of them.
const ELEMENTS_MAX: usize = 32;

/// Returns the weight that a client gives to a content coding, in thousandths (RFC 9110 §12.5.3).
/// `lines` are the lines of the client's `Accept-Encoding`.
///
/// If the weight is 0, do not send the coding: the client refuses it, does not list it, or prefers
/// content without a coding. If several codings are possible, send the one with the greatest
/// weight.
///
/// Only the first 32 elements are read, several times as many as there are codings in use. Names are
/// compared case-insensitively, and `x-gzip` is the same as `gzip` (RFC 9110 §8.4.1.3). A
/// malformed element is ignored, because every client can read content without a coding.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::coding_weight;
///
/// let accepted = [&b"gzip;q=0.5, br"[..]];
/// let weight = |coding| coding_weight(accepted.into_iter(), coding);
/// assert_eq!((weight("br"), weight("gzip"), weight("zstd")), (1_000, 500, 0));
/// ```
#[doc(alias = "Accept-Encoding")]
#[doc(alias = "content negotiation")]
pub fn coding_weight<'a>(lines: impl Iterator<Item = &'a [u8]>, coding: &str) -> u16 {
    let (mut this, mut others, mut identity) = (None, None, None);
    let elements = lines.flat_map(|line| line.split(|&b| b == b','));
    for (name, weight) in elements.take(ELEMENTS_MAX).filter_map(parse_element) {
        let place = match name {
            _ if is_named(name, coding) => &mut this,
            b"*" => &mut others,
            _ if is_named(name, "identity") => &mut identity,
            _ => continue,
        };
        // If a name appears twice, the first one counts.
        place.get_or_insert(weight);
    }
    let weight = this.or(others).unwrap_or(0);
    // If `identity` is not listed, content without a coding is acceptable, with less weight than
    // anything listed.
    if weight >= identity.unwrap_or(0) { weight } else { 0 }
}

fn is_named(name: &[u8], coding: &str) -> bool {
    name.eq_ignore_ascii_case(coding.as_bytes())
        || (coding.eq_ignore_ascii_case("gzip") && name.eq_ignore_ascii_case(b"x-gzip"))
}

/// Returns a coding and its weight.
fn parse_element(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => {
            let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="));
            parse_weight(value?)?
        }
    };
    parts.next().is_none().then_some((name, weight))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coding_has_the_weight_that_the_client_gives_it() {
        let cases: &[(&[&str], u16)] = &[
            (&[], 0),
            (&[""], 0),
            (&["identity"], 0),
            (&["br, deflate"], 0),
            (&["gzip"], 1_000),
            (&["GZip"], 1_000),
            (&["x-gzip"], 1_000),
            (&["gzip, deflate, br, zstd"], 1_000),
            (&["gzip;q=0"], 0),
            (&["gzip;q=0.0, identity"], 0),
            (&["gzip;q=0.000, zstd"], 0),
            (&["gzip;q=0.001"], 1),
            (&["gzip ; q=0.5"], 500),
            (&["gzip;Q=0.5"], 500),
            (&["zstd;q=0.5, gzip;q=0.9"], 900),
            (&["*"], 1_000),
            (&["*;q=0.3"], 300),
            (&["*;q=0"], 0),
            (&["*;q=0, gzip"], 1_000),
            (&["gzip;q=0, *"], 0),
            (&["*, gzip;q=0.2"], 200),
            // Content without a coding may be preferred.
            (&["identity, gzip;q=0.5"], 0),
            (&["identity;q=0.5, gzip"], 1_000),
            (&["identity;q=0.5, gzip;q=0.5"], 500),
            (&["identity;q=0.6, *;q=0.5"], 0),
            (&["identity;q=0, gzip;q=0.1"], 100),
            (&["br", "gzip;q=0.1"], 100),
            // If a coding appears twice, the first one counts.
            (&["gzip;q=0, gzip"], 0),
            (&["gzip;q=0.4", "x-gzip"], 400),
            // A malformed element is ignored.
            (&["gzip;q=2"], 0),
            (&["gzip;q=1.001"], 0),
            (&["gzip;q=0.1234"], 0),
            (&["gzip;q=-1"], 0),
            (&["gzip;q="], 0),
            (&["gzip;q=.5"], 0),
            (&["gzip;level=9"], 0),
            (&["gzip;q=1;x=y"], 0),
            (&["gzip;q=2, gzip;q=0.7"], 700),
            (&["gzip;q=1."], 1_000),
            (&[",, ,gzip,"], 1_000),
            (&["gzip\u{a0}"], 0),
        ];
        for (lines, expected) in cases {
            let lines = lines.iter().map(|line| line.as_bytes());
            assert_eq!(
                coding_weight(lines.clone(), "gzip"),
                *expected,
                "{:?}",
                lines.collect::<Vec<_>>()
            );
        }
        assert_eq!(coding_weight([&b"x-br"[..]].into_iter(), "br"), 0);
        for (count, weight) in [(31, 1_000), (32, 0)] {
            let lines = ["x,".repeat(count - 1) + "y", "br".to_owned()];
            let lines = lines.iter().map(|line| line.as_bytes());
            assert_eq!(coding_weight(lines, "br"), weight, "behind {count} others");
        }
    }
}
