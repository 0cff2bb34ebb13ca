//! `Nominated`: the fields that `Connection` nominates, found in one pass over its options.

use std::cmp::Ordering;
use std::fmt;

use super::fields::Fields;

/// The fields of a message that concern only one connection because `Connection` names them (RFC
/// 9110 §7.6.1). A proxy does not pass them on, nor `Connection` itself.
///
/// ```
/// # use rotor_http::h1::{FieldStorage, HeadReader, Limits, Nominated};
/// # let input = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, close\r\nX-Hop: 1\r\nX-Kept: 2\r\n\r\n";
/// # let mut storage = FieldStorage::new();
/// # let head = HeadReader::new().read_request(input, &mut storage, &Limits::new()).unwrap().unwrap();
/// // For `Connection: X-Hop, close`, `X-Hop: 1` and `X-Kept: 2`:
/// let nominated = Nominated::from_fields(head.fields());
/// assert!(nominated.contains("x-hop") && !nominated.contains("X-Kept"));
/// ```
///
/// Making this value takes time proportional to the length of the head, times the logarithm of the
/// number of fields. `Connection` may name thousands of options in a head; searching all of them
/// for each field would take a hundred times as long.
#[doc(alias = "hop-by-hop")]
pub struct Nominated<'a> {
    /// Sorted by `compare`.
    names: Vec<&'a [u8]>,
}

impl<'a> Nominated<'a> {
    /// Finds the fields that `Connection` nominates.
    #[doc(alias = "of")]
    pub fn from_fields(fields: Fields<'a>) -> Nominated<'a> {
        let mut options = fields.list("Connection").peekable();
        // Most messages have none, and need neither memory nor sorting.
        if options.peek().is_none() {
            return Nominated { names: Vec::new() };
        }
        let names = fields.iter_bytes().map(|(name, _)| name).collect();
        Nominated { names: select_named(names, options, compare) }
    }

    /// Returns whether the message has a nominated field with this name. The case is ignored.
    pub fn contains(&self, name: &str) -> bool {
        self.names.binary_search_by(|own| compare(own, name.as_bytes())).is_ok()
    }
}

/// Returns the names that are among the options, sorted.
fn select_named<'a>(
    mut names: Vec<&'a [u8]>,
    options: impl Iterator<Item = &'a [u8]>,
    mut compare: impl FnMut(&[u8], &[u8]) -> Ordering,
) -> Vec<&'a [u8]> {
    // The names of the fields are sorted, not the options: there are at most 256 names, but there
    // may be thousands of options.
    names.sort_unstable_by(|one, other| compare(one, other));
    names.dedup_by(|one, other| compare(one, other).is_eq());
    let mut is_named = vec![false; names.len()];
    for option in options {
        if let Ok(at) = names.binary_search_by(|name| compare(name, option)) {
            is_named[at] = true;
        }
    }
    let mut is_named = is_named.into_iter();
    names.retain(|_| is_named.next() == Some(true));
    names
}

/// Compares by length, then case-insensitively by bytes, so most comparisons compare only two
/// numbers.
fn compare(one: &[u8], other: &[u8]) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| {
        let letters = one.iter().map(u8::to_ascii_lowercase);
        letters.cmp(other.iter().map(u8::to_ascii_lowercase))
    })
}

impl fmt::Debug for Nominated<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names.iter().map(|name| String::from_utf8_lossy(name))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn bytes(text: &str) -> &[u8] {
        text.as_bytes()
    }

    #[test]
    fn a_field_is_nominated_by_its_whole_name_in_any_case() {
        let names = ["Host", "X-Hop", "x-hop", "Cookie", "X-Ho", "X-Hop2"].map(bytes);
        for (options, expected) in [
            (&["close"][..], &[][..]),
            (&["x-HOP"], &["x-hop"]),
            (&["cookie", "host", "COOKIE", "x"], &["host", "cookie"]),
            (&["x-hop2", "x-ho"], &["x-ho", "x-hop2"]),
            (&[], &[]),
        ] {
            let found =
                select_named(names.to_vec(), options.iter().map(|option| bytes(option)), compare);
            let found: Vec<String> =
                found.iter().map(|name| String::from_utf8_lossy(name).to_lowercase()).collect();
            assert_eq!(found, expected, "{options:?}");
        }
    }

    #[test]
    fn the_work_grows_with_the_options_not_with_options_times_fields() {
        // As many options as fit into a head of 16 KiB, with 99 other fields.
        let fields: Vec<String> = (0..99).map(|number| format!("X-{number}")).collect();
        let options: Vec<String> = (0..5_000).map(|number| format!("{number:x}")).collect();
        let mut comparisons = 0;
        let found = select_named(
            fields.iter().map(|field| bytes(field)).collect(),
            options.iter().map(|option| bytes(option)),
            |one, other| {
                comparisons += 1;
                compare(one, other)
            },
        );
        assert!(found.is_empty());
        // Seven comparisons for each option, plus the sorting; one for each pair would be 495,000.
        assert!(comparisons < 8 * options.len() + 20 * fields.len(), "{comparisons}");
    }
}
