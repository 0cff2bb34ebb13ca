//! The codings that a client accepts: picks one by `Accept-Encoding`.

use rotor_http::parse_weight;

/// A content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// RFC 1952.
    Gzip,
    /// RFC 8878, within the window of RFC 9659; only with the feature `zstd`.
    Zstd,
}

/// The codings that are here, the best first: of two that a client likes equally, the first is sent.
const OFFERED: &[Coding] = &[
    #[cfg(feature = "zstd")]
    Coding::Zstd,
    Coding::Gzip,
];

impl Coding {
    /// Returns its name, as in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        }
    }

    /// RFC 9110 §8.4.1: in any case, and `x-gzip` is gzip.
    fn is_called(self, name: &[u8]) -> bool {
        name.eq_ignore_ascii_case(self.name().as_bytes())
            || (self == Coding::Gzip && name.eq_ignore_ascii_case(b"x-gzip"))
    }
}

/// Returns the coding that a client with these lines of `Accept-Encoding` likes best; none where
/// that is no coding, or it has said nothing.
pub(super) fn best<'r>(lines: impl Iterator<Item = &'r [u8]>) -> Option<Coding> {
    let elements: Vec<(&[u8], u16)> =
        lines.flat_map(|line| line.split(|&byte| byte == b',')).filter_map(element).collect();
    let weight = |is_it: &dyn Fn(&[u8]) -> bool| {
        let named = elements.iter().find(|(name, _)| is_it(name));
        named.map(|(_, weight)| *weight)
    };
    let others = weight(&|name| name == b"*");
    // Unsaid it is acceptable, and liked less than whatever is named.
    let identity = weight(&|name| name.eq_ignore_ascii_case(b"identity")).unwrap_or(0);
    let offered = OFFERED
        .iter()
        .map(|&coding| (coding, weight(&|name| coding.is_called(name)).or(others).unwrap_or(0)));
    let liked = offered.filter(|(_, weight)| *weight > 0 && *weight >= identity);
    // `max_by_key` takes the last of equals.
    liked.rev().max_by_key(|(_, weight)| *weight).map(|(coding, _)| coding)
}

/// A coding and its weight in thousandths (RFC 9110 §12.4.2). One that is malformed counts as not
/// named: what is sent as it is can be read by all.
fn element(element: &[u8]) -> Option<(&[u8], u16)> {
    let mut parts = element.split(|&byte| byte == b';').map(<[u8]>::trim_ascii);
    let name = parts.next().filter(|name| !name.is_empty())?;
    let weight = match parts.next() {
        None => 1000,
        Some(parameter) => weight(parameter)?,
    };
    parts.next().is_none().then_some((name, weight))
}

fn weight(parameter: &[u8]) -> Option<u16> {
    let value = parameter.strip_prefix(b"q=").or_else(|| parameter.strip_prefix(b"Q="))?;
    parse_weight(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: &[&str]) -> Option<Coding> {
        best(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn the_coding_that_is_liked_best_is_taken_and_none_that_is_refused() {
        let best = Some(OFFERED[0]);
        let cases: &[(&[&str], Option<Coding>)] = &[
            (&[], None),
            (&[""], None),
            (&["identity"], None),
            (&["br, deflate"], None),
            (&["gzip"], Some(Coding::Gzip)),
            (&["GZip"], Some(Coding::Gzip)),
            (&["x-gzip"], Some(Coding::Gzip)),
            (&["gzip, deflate, br, zstd"], best),
            (&["gzip;q=1, zstd;q=1"], best),
            (&["gzip;q=0"], None),
            (&["gzip;q=0.0, identity"], None),
            (&["gzip;q=0.000, zstd;q=0"], None),
            (&["gzip;q=0.001"], Some(Coding::Gzip)),
            (&["gzip ; q=0.5"], Some(Coding::Gzip)),
            (&["gzip;Q=0.5"], Some(Coding::Gzip)),
            (&["zstd;q=0.5, gzip;q=0.9"], Some(Coding::Gzip)),
            (&["zstd;q=0.5,gzip;q=0.499, br"], best),
            (&["*"], best),
            (&["*;q=0"], None),
            (&["*;q=0, gzip"], Some(Coding::Gzip)),
            (&["zstd;q=0, *"], Some(Coding::Gzip)),
            (&["gzip;q=0, zstd;q=0, *"], None),
            // What is sent as it is may be liked better.
            (&["identity, gzip;q=0.5"], None),
            (&["identity;q=0.5, gzip"], Some(Coding::Gzip)),
            (&["identity;q=0.5, gzip;q=0.5"], Some(Coding::Gzip)),
            (&["identity;q=0, gzip;q=0.1"], Some(Coding::Gzip)),
            (&["br", "gzip;q=0.1"], Some(Coding::Gzip)),
            // The first of two counts.
            (&["gzip;q=0, gzip"], None),
            // Malformed: as if it were not there.
            (&["gzip;q=2"], None),
            (&["gzip;q=1.001"], None),
            (&["gzip;q=0.1234"], None),
            (&["gzip;q=-1"], None),
            (&["gzip;q="], None),
            (&["gzip;q=.5"], None),
            (&["gzip;level=9"], None),
            (&["gzip;q=1;x=y"], None),
            (&["gzip;q=1."], Some(Coding::Gzip)),
            (&[",, ,gzip,"], Some(Coding::Gzip)),
            (&["gzip\u{a0}"], None),
        ];
        for (lines, expected) in cases {
            assert_eq!(of(lines), *expected, "{lines:?}");
        }
    }
}
