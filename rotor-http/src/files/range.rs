//! Byte ranges (RFC 9110 §14): which parts of a file are requested.

use crate::semantics::token_list::list_elements;

/// The maximum number of ranges in one request: as many as a reader of an indexed document requests
/// at once. If there are more, the field is ignored, and the whole file is sent.
pub(super) const RANGES_MAX: usize = 16;

/// A part of a file; both ends are included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ByteRange {
    pub(super) first: u64,
    pub(super) last: u64,
}

/// What a `Range` field selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Selection {
    /// Ignore the field and send the whole file.
    Whole,
    /// Send these ranges. There is at least one, none touches another, and they are in the order of
    /// the request.
    Ranges(Vec<ByteRange>),
    /// No range is within the file: 416.
    Nothing,
}

impl ByteRange {
    pub(super) fn len(self) -> u64 {
        self.last - self.first + 1
    }

    /// Returns whether the two ranges overlap or are adjacent.
    fn touches(self, other: ByteRange) -> bool {
        self.first <= other.last.saturating_add(1) && other.first <= self.last.saturating_add(1)
    }

    fn join(self, other: ByteRange) -> ByteRange {
        ByteRange { first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

/// Parses the value of a `Range` field for a file of `size` bytes.
///
/// A value that is malformed, has another unit, or has too many ranges is ignored, as RFC 9110
/// §14.2 allows.
pub(super) fn select(value: &[u8], size: u64) -> Selection {
    let Some(specs) = range_specs(value) else { return Selection::Whole };
    let mut ranges = Vec::new();
    let mut is_satisfiable = false;
    for (count, spec) in list_elements(specs).filter(|spec| !spec.is_empty()).enumerate() {
        // One malformed range makes the whole field malformed (RFC 9110 §14.2 allows ignoring it).
        let Some(spec) = RangeSpec::parse(spec) else { return Selection::Whole };
        // RFC 9110 §17.15: many small ranges cost more than they carry.
        if count >= RANGES_MAX {
            return Selection::Whole;
        }
        is_satisfiable |= spec.is_satisfiable(size);
        // A range beyond the end is left out, if there is another range.
        ranges.extend(spec.range(size));
    }
    match (merge(ranges), is_satisfiable) {
        // The end of an empty file: the range is satisfiable, but no Content-Range can express it.
        (ranges, true) if ranges.is_empty() => Selection::Whole,
        (ranges, true) => Selection::Ranges(ranges),
        // An empty list is malformed, not a case for 416.
        (_, false) if list_elements(specs).all(<[u8]>::is_empty) => Selection::Whole,
        (_, false) => Selection::Nothing,
    }
}

/// Returns the text after `bytes=`. The unit is compared case-insensitively (RFC 9110 §14.1).
fn range_specs(value: &[u8]) -> Option<&[u8]> {
    let (unit, specs) = value.split_at_checked(6)?;
    unit.eq_ignore_ascii_case(b"bytes=").then_some(specs)
}

#[derive(Debug, Clone, Copy)]
enum RangeSpec {
    From(u64),
    Between(u64, u64),
    Suffix(u64),
}

impl RangeSpec {
    /// Parses `first-last`, `first-` or `-length`.
    fn parse(spec: &[u8]) -> Option<RangeSpec> {
        let dash = spec.iter().position(|&byte| byte == b'-')?;
        match (&spec[..dash], &spec[dash + 1..]) {
            (b"", length) => Some(RangeSpec::Suffix(parse_number(length)?)),
            (first, b"") => Some(RangeSpec::From(parse_number(first)?)),
            (first, last) => {
                let (first, last) = (parse_number(first)?, parse_number(last)?);
                (first <= last).then_some(RangeSpec::Between(first, last))
            }
        }
    }

    fn is_satisfiable(self, size: u64) -> bool {
        match self {
            RangeSpec::From(first) | RangeSpec::Between(first, _) => first < size,
            // RFC 9110 §14.1.2: a suffix is satisfiable if its length is not zero, even for an
            // empty file.
            RangeSpec::Suffix(length) => length > 0,
        }
    }

    fn range(self, size: u64) -> Option<ByteRange> {
        // An empty file has no byte that a range could include.
        let end = size.checked_sub(1)?;
        let (first, last) = match self {
            RangeSpec::From(first) => (first, end),
            RangeSpec::Between(first, last) => (first, last.min(end)),
            RangeSpec::Suffix(length) => (size.saturating_sub(length), end),
        };
        (first <= last).then_some(ByteRange { first, last })
    }
}

/// Parses `1*DIGIT`. A number that is too large becomes the largest number.
fn parse_number(digits: &[u8]) -> Option<u64> {
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let add =
        |number: u64, digit: &u8| number.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    Some(digits.iter().fold(0, add))
}

/// Joins ranges that touch. A joined range takes the place of the first of its parts.
fn merge(ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    let mut merged: Vec<ByteRange> = Vec::with_capacity(ranges.len());
    for mut range in ranges {
        // RFC 9110 §15.3.7.2 recommends the order of the request: a reader may need the last part
        // first.
        let mut place = merged.len();
        // A joined range may touch another one.
        while let Some(touched) = merged.iter().position(|other| range.touches(*other)) {
            range = range.join(merged.remove(touched));
            place = place.min(touched);
        }
        merged.insert(place.min(merged.len()), range);
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ranges(list: &[(u64, u64)]) -> Selection {
        Selection::Ranges(list.iter().map(|&(first, last)| ByteRange { first, last }).collect())
    }

    #[test]
    fn one_range_is_clamped_to_the_file() {
        for (value, expected) in [
            ("bytes=0-0", (0, 0)),
            ("bytes=0-99", (0, 99)),
            ("bytes=0-100", (0, 99)),
            ("bytes=10-19", (10, 19)),
            ("bytes=99-", (99, 99)),
            ("bytes=0-", (0, 99)),
            ("bytes=-1", (99, 99)),
            ("bytes=-100", (0, 99)),
            ("bytes=-101", (0, 99)),
            ("bytes=-99999999999999999999999999", (0, 99)),
            ("bytes=5-99999999999999999999999999", (5, 99)),
            ("bytes=007-008", (7, 8)),
            ("BYTES=1-2", (1, 2)),
            ("bytes= 1-2 ", (1, 2)),
            ("bytes=,1-2,", (1, 2)),
        ] {
            assert_eq!(select(value.as_bytes(), 100), ranges(&[expected]), "{value}");
        }
    }

    #[test]
    fn a_malformed_range_is_ignored() {
        for value in [
            "",
            "bytes",
            "bytes=",
            "bytes=,",
            "bytes= , ",
            "bytes 0-1",
            "bytes =0-1",
            "octets=0-1",
            "bytes=-",
            "bytes=--1",
            "bytes=5",
            "bytes=2-1",
            "bytes=a-b",
            "bytes=0x1-2",
            "bytes=+1-2",
            "bytes=1-+2",
            "bytes=1 -2",
            "bytes=1- 2",
            "bytes=1-2-3",
            "bytes=1.0-2",
            "bytes=0-1;2-3",
            "bytes=0-1,x",
            "bytes=0-1, bytes=2-3",
            "bytes=200-300,2-1",
            "bytes=5-6,2-1",
            "bytes=\u{661}-2",
        ] {
            assert_eq!(select(value.as_bytes(), 100), Selection::Whole, "{value}");
        }
    }

    #[test]
    fn ranges_beyond_the_file_are_not_satisfiable() {
        for value in [
            "bytes=100-",
            "bytes=100-200",
            "bytes=-0",
            "bytes=100-,-0",
            "bytes=99999999999999999999-",
        ] {
            assert_eq!(select(value.as_bytes(), 100), Selection::Nothing, "{value}");
        }
        assert_eq!(select(b"bytes=100-,5-6", 100), ranges(&[(5, 6)]));
        assert_eq!(select(b"bytes=-0,5-6", 100), ranges(&[(5, 6)]));
    }

    #[test]
    fn only_a_suffix_range_is_satisfiable_for_an_empty_file() {
        assert_eq!(select(b"bytes=0-", 0), Selection::Nothing);
        assert_eq!(select(b"bytes=0-0", 0), Selection::Nothing);
        assert_eq!(select(b"bytes=-0", 0), Selection::Nothing);
        assert_eq!(select(b"bytes=-1", 0), Selection::Whole);
        assert_eq!(select(b"bytes=0-,-5", 0), Selection::Whole);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        assert_eq!(select(b"bytes=-1", u64::MAX), ranges(&[(u64::MAX - 1, u64::MAX - 1)]));
        assert_eq!(select(b"bytes=0-,-1", u64::MAX), ranges(&[(0, u64::MAX - 1)]));
        assert_eq!(
            select(b"bytes=18446744073709551615-18446744073709551616", 9),
            Selection::Nothing
        );
    }

    #[test]
    fn touching_ranges_are_merged_at_the_place_of_the_first() {
        for (value, expected) in [
            ("bytes=0-1,4-5", &[(0, 1), (4, 5)][..]),
            ("bytes=4-5,0-1", &[(4, 5), (0, 1)]),
            ("bytes=0-1,1-2", &[(0, 2)]),
            ("bytes=0-1,2-3", &[(0, 3)]),
            ("bytes=2-3,0-1", &[(0, 3)]),
            ("bytes=0-1,3-4", &[(0, 1), (3, 4)]),
            ("bytes=0-,0-", &[(0, 99)]),
            ("bytes=50-60,0-9,55-70", &[(50, 70), (0, 9)]),
            ("bytes=0-9,20-29,40-49,5-45", &[(0, 49)]),
            ("bytes=60-69,0-9,20-29,5-25,90-99", &[(60, 69), (0, 29), (90, 99)]),
            ("bytes=20-29,0-9,10-19", &[(0, 29)]),
            ("bytes=-10,0-4", &[(90, 99), (0, 4)]),
        ] {
            assert_eq!(select(value.as_bytes(), 100), ranges(expected), "{value}");
        }
    }

    #[test]
    fn merging_keeps_every_byte_exactly_once() {
        // Every set of three ranges in a file of six bytes.
        let all: Vec<ByteRange> = (0..6)
            .flat_map(|first| (first..6).map(move |last| ByteRange { first, last }))
            .collect();
        for (a, b, c) in all.iter().flat_map(|a| {
            let all = &all;
            all.iter().flat_map(move |b| all.iter().map(move |c| (*a, *b, *c)))
        }) {
            let merged = merge(vec![a, b, c]);
            for byte in 0..6 {
                let holds = |range: &ByteRange| (range.first..=range.last).contains(&byte);
                let before = [a, b, c].iter().any(holds);
                assert_eq!(
                    merged.iter().filter(|range| holds(range)).count(),
                    usize::from(before),
                    "{merged:?}"
                );
            }
            for (index, range) in merged.iter().enumerate() {
                assert!(
                    !merged[index + 1..].iter().any(|other| range.touches(*other)),
                    "{merged:?}"
                );
            }
        }
    }

    #[test]
    fn more_ranges_than_the_limit_are_ignored() {
        let select_ranges = |count: u64| {
            let list: Vec<String> = (0..count).map(|at| format!("{}-{}", 2 * at, 2 * at)).collect();
            select(format!("bytes={}", list.join(",")).as_bytes(), 100)
        };
        let count =
            |selection| if let Selection::Ranges(ranges) = selection { ranges.len() } else { 0 };
        assert_eq!(count(select_ranges(RANGES_MAX as u64 - 1)), RANGES_MAX - 1);
        assert_eq!(count(select_ranges(RANGES_MAX as u64)), RANGES_MAX);
        assert_eq!(select_ranges(RANGES_MAX as u64 + 1), Selection::Whole);
        // Overlapping ranges count, and so do ranges outside the file.
        assert_eq!(
            select(format!("bytes={}", "0-1,".repeat(17)).as_bytes(), 100),
            Selection::Whole
        );
        assert_eq!(
            select(format!("bytes={}", "200-,".repeat(17)).as_bytes(), 100),
            Selection::Whole
        );
    }
}
