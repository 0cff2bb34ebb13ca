//! Compressed siblings of files: their codings, and which of these a client accepts.

use crate::semantics::content_coding::coding_weight;
use crate::semantics::fields::Fields;

/// The content coding of compressed siblings: files that were compressed in advance and are stored
/// beside the original files ([`FilesConfig::precompressed`](super::FilesConfig::precompressed)).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Precompressed {
    /// Brotli (RFC 7932), coding `br`: `a.css.br` for `a.css`.
    Brotli,
    /// Zstandard (RFC 8878), coding `zstd`: `a.css.zst` for `a.css`. Compress with a window of at
    /// most 8 MiB, because browsers refuse larger ones (RFC 9659); `zstd` does so up to level 19.
    Zstd,
    /// Gzip (RFC 1952), coding `gzip`: `a.css.gz` for `a.css`.
    Gzip,
}

/// The codings that a client accepts, in order of preference.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct AcceptedCodings([Option<Precompressed>; 3]);

impl Precompressed {
    /// Returns the name of the coding, as in `Content-Encoding`.
    pub(super) fn name(self) -> &'static str {
        match self {
            Precompressed::Brotli => "br",
            Precompressed::Zstd => "zstd",
            Precompressed::Gzip => "gzip",
        }
    }

    /// Returns the suffix of the file name.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Precompressed::Brotli => ".br",
            Precompressed::Zstd => ".zst",
            Precompressed::Gzip => ".gz",
        }
    }
}

impl AcceptedCodings {
    /// Reads which of the codings a client accepts. Codings with equal weight stay in the order in
    /// which they are offered.
    pub(super) fn from_fields(offered: &[Precompressed], fields: Fields<'_>) -> AcceptedCodings {
        AcceptedCodings::by_weight(offered, |coding| {
            coding_weight(fields.get_all("Accept-Encoding"), coding.name())
        })
    }

    fn by_weight(
        offered: &[Precompressed],
        weight: impl Fn(Precompressed) -> u16,
    ) -> AcceptedCodings {
        let weighted = offered.iter().map(|&coding| (weight(coding), coding));
        let mut preferred: [Option<(u16, Precompressed)>; 3] = [None; 3];
        for (len, (weight, coding)) in weighted.filter(|(weight, _)| *weight > 0).enumerate() {
            // After all codings with at least the same weight.
            let place =
                preferred.iter().flatten().take_while(|(other, _)| *other >= weight).count();
            preferred[place..=len].rotate_right(1);
            preferred[place] = Some((weight, coding));
        }
        AcceptedCodings(preferred.map(|it| it.map(|(_, coding)| coding)))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Precompressed> {
        self.0.into_iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::Precompressed::{Brotli, Gzip, Zstd};
    use super::*;

    #[test]
    fn codings_are_ordered_by_client_weight_then_by_offer() {
        const ALL: &[Precompressed] = &[Brotli, Zstd, Gzip];
        let cases: &[(&[Precompressed], &str, &[Precompressed])] = &[
            (ALL, "", &[]),
            (ALL, "gzip, deflate, br, zstd", &[Brotli, Zstd, Gzip]),
            (&[Gzip, Zstd, Brotli], "gzip, deflate, br, zstd", &[Gzip, Zstd, Brotli]),
            (ALL, "br;q=0.5, gzip", &[Gzip, Brotli]),
            (ALL, "br;q=0.1, zstd;q=0.3, gzip;q=0.2", &[Zstd, Gzip, Brotli]),
            (ALL, "br;q=0.1, zstd;q=0.1, gzip;q=0.2", &[Gzip, Brotli, Zstd]),
            (ALL, "*;q=0.5, zstd;q=0", &[Brotli, Gzip]),
            (ALL, "identity, gzip;q=0.9, br", &[Brotli]),
            (&[Gzip], "br", &[]),
            (&[], "*", &[]),
        ];
        for (offered, value, expected) in cases {
            let accepted = AcceptedCodings::by_weight(offered, |coding| {
                coding_weight([value.as_bytes()].into_iter(), coding.name())
            });
            assert_eq!(accepted.iter().collect::<Vec<_>>(), *expected, "{value:?}");
        }
    }
}
