//! The content codings, and the choice among them by `Accept-Encoding`.

use rotor_http::coding_weight;

/// A content coding (RFC 9110 §8.4.1).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Coding {
    /// gzip (RFC 1952).
    Gzip,
    /// Zstandard (RFC 8878), within the window of RFC 9659. Only with the feature `zstd`.
    Zstd,
}

/// The available codings, best first: if the client gives two of them the same weight, the first is
/// used.
const AVAILABLE: &[Coding] = &[
    #[cfg(feature = "zstd")]
    Coding::Zstd,
    Coding::Gzip,
];

impl Coding {
    /// Returns the coding's name, as in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Gzip => "gzip",
            Coding::Zstd => "zstd",
        }
    }
}

/// Returns the coding to which these lines of `Accept-Encoding` give the highest weight; `None` if
/// that is no coding, or if there are no lines.
pub(super) fn best<'r>(lines: impl Iterator<Item = &'r [u8]> + Clone) -> Option<Coding> {
    let weights =
        AVAILABLE.iter().map(|&coding| (coding, coding_weight(lines.clone(), coding.name())));
    // `max_by_key` takes the last of several equal ones.
    let best = weights.filter(|(_, weight)| *weight > 0).rev().max_by_key(|(_, weight)| *weight);
    best.map(|(coding, _)| coding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn best_of(lines: &[&str]) -> Option<Coding> {
        best(lines.iter().map(|line| line.as_bytes()))
    }

    #[test]
    fn the_preferred_coding_is_chosen_and_refused_ones_are_not() {
        let best = Some(AVAILABLE[0]);
        let cases: &[(&[&str], Option<Coding>)] = &[
            (&[], None),
            (&[""], None),
            (&["identity"], None),
            (&["br, deflate"], None),
            (&["gzip"], Some(Coding::Gzip)),
            (&["gzip, deflate, br, zstd"], best),
            (&["gzip;q=1, zstd;q=1"], best),
            (&["gzip;q=0"], None),
            (&["gzip;q=0.000, zstd;q=0"], None),
            (&["gzip;q=0.001"], Some(Coding::Gzip)),
            (&["zstd;q=0.5, gzip;q=0.9"], Some(Coding::Gzip)),
            (&["zstd;q=0.5,gzip;q=0.499, br"], best),
            (&["*"], best),
            (&["*;q=0"], None),
            (&["*;q=0, gzip"], Some(Coding::Gzip)),
            (&["zstd;q=0, *"], Some(Coding::Gzip)),
            (&["gzip;q=0, zstd;q=0, *"], None),
            // The client may prefer an uncompressed body.
            (&["identity, gzip;q=0.5"], None),
            (&["identity;q=0.5, gzip"], Some(Coding::Gzip)),
            (&["identity;q=0.5, gzip;q=0.5"], Some(Coding::Gzip)),
            (&["identity;q=0, gzip;q=0.1"], Some(Coding::Gzip)),
        ];
        for (lines, expected) in cases {
            assert_eq!(best_of(lines), *expected, "{lines:?}");
        }
    }
}
