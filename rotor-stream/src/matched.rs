//! `Matched`: where the expected input is; and the search for it.

use memchr::{memchr, memchr_iter, memmem};

use crate::buf::Buf;
use crate::frame::{FrameHead, FrameLength};
use crate::wait_condition::InputCondition;

/// How long the expected input is, which is now at the beginning of the input buffer.
///
/// After [`Expectation::Bytes`](crate::Expectation::Bytes), the matched part has the requested
/// number of bytes; the input may hold more. After [`Poll`](crate::Expectation::Poll) it is empty.
/// After [`Delimiter`](crate::Expectation::Delimiter), it is everything up to and including the
/// delimiter; after [`Frame`](crate::Expectation::Frame), the whole frame including its beginning.
///
/// ```
/// # use rotor_stream::{Buf, Matched};
/// fn take_line(matched: Matched, input: &mut Buf) -> Vec<u8> {
///     let line = matched.content(input).to_vec();
///     matched.consume(input);
///     line
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Matched {
    content: usize,
    delimiter: usize,
}

impl Matched {
    /// The result of a poll of the socket, whatever it has found.
    pub(crate) const NOTHING: Matched = Matched { content: 0, delimiter: 0 };

    pub(crate) fn new(content: usize, delimiter: usize) -> Matched {
        Matched { content, delimiter }
    }

    /// Returns the length of the matched part in bytes, including its delimiter.
    #[expect(clippy::len_without_is_empty, reason = "it is a measure, not a collection")]
    pub fn len(self) -> usize {
        self.content + self.delimiter
    }

    /// Returns the length of the matched part in bytes, without its delimiter.
    pub fn content_len(self) -> usize {
        self.content
    }

    /// Returns the matched bytes without the delimiter; `input` is the buffer in which they were
    /// matched.
    pub fn content(self, input: &Buf) -> &[u8] {
        &input[..self.content.min(input.len())]
    }

    /// Removes the matched part, including its delimiter, from the input.
    pub fn consume(self, input: &mut Buf) {
        input.consume(self.len());
    }
}

/// The result of looking for the expected input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FindResult {
    Match(Matched),
    /// More bytes may complete it.
    Incomplete,
    /// The socket must be polled first.
    NeedsPoll,
    /// The expected input is not within this many bytes, the most that may be waited for.
    LimitExceeded(usize),
    /// The existing bytes cannot be the beginning of a frame.
    Malformed,
}

impl InputCondition {
    /// Looks for the expected input in `input`. `scanned` says how many of the first bytes are
    /// known not to begin it, and is updated.
    #[inline]
    pub(crate) fn find(&self, input: &[u8], scanned: &mut usize, input_max: usize) -> FindResult {
        // First, because most protocols wait for a number of bytes.
        if let InputCondition::Bytes(count) = *self {
            return match count {
                // Before the limit, which concerns bytes yet to come: handing out existing bytes
                // costs nothing.
                count if input.len() >= count => FindResult::Match(Matched::new(count, 0)),
                count if count > input_max => FindResult::LimitExceeded(input_max),
                _ => FindResult::Incomplete,
            };
        }
        self.find_other(input, scanned, input_max)
    }

    /// Looks for anything but a number of bytes.
    fn find_other(&self, input: &[u8], scanned: &mut usize, input_max: usize) -> FindResult {
        match *self {
            InputCondition::Kept
            | InputCondition::Nothing
            | InputCondition::Held
            | InputCondition::Bytes(_) => FindResult::Incomplete,
            InputCondition::Poll if input.is_empty() => FindResult::NeedsPoll,
            InputCondition::Poll => FindResult::Match(Matched::NOTHING),
            // The usual case between two messages. An empty delimiter, and a maximum of 0, are left
            // to the search.
            InputCondition::Delimiter { bytes: [_, ..], max: 1.., .. } if input.is_empty() => {
                FindResult::Incomplete
            }
            InputCondition::Delimiter { offset, bytes, max } => {
                find_delimiter(input, offset.max(*scanned), bytes, max.min(input_max), scanned)
            }
            InputCondition::Frame { .. } if input.is_empty() => FindResult::Incomplete,
            InputCondition::Frame { head, max } => {
                find_frame(input, head, max.min(input_max), scanned)
            }
        }
    }
}

/// Looks for a delimiter that begins at `from` or later, and ends within the first `max` bytes.
fn find_delimiter(
    input: &[u8],
    from: usize,
    bytes: &[u8],
    max: usize,
    scanned: &mut usize,
) -> FindResult {
    let within = &input[..input.len().min(max)];
    if let Some(at) = find_bytes(within, from, bytes) {
        return FindResult::Match(Matched::new(at, bytes.len()));
    }
    // The delimiter may have begun in the last bytes, so these are searched again.
    *scanned = from.max((within.len() + 1).saturating_sub(bytes.len()));
    if input.len() >= max { FindResult::LimitExceeded(max) } else { FindResult::Incomplete }
}

/// Checks whether a frame is complete. Once its length is known, `scanned` stores it, so that the
/// head is not read again.
fn find_frame(input: &[u8], head: FrameHead, max: usize, scanned: &mut usize) -> FindResult {
    if *scanned == 0 {
        *scanned = match head.read_length(input) {
            FrameLength::Bytes(0) => return FindResult::Match(Matched::NOTHING),
            FrameLength::Bytes(length) => length,
            FrameLength::Unknown if input.len() < max => return FindResult::Incomplete,
            FrameLength::Unknown => return FindResult::LimitExceeded(max),
            FrameLength::Malformed => return FindResult::Malformed,
        };
    }
    match *scanned {
        length if length > max => FindResult::LimitExceeded(max),
        length if length > input.len() => FindResult::Incomplete,
        length => FindResult::Match(Matched::new(length, 0)),
    }
}

/// Delimiters of up to this many bytes are found by their first byte: this needs no preparation,
/// and each false start costs at most this many comparisons.
const SHORT_DELIMITER_MAX: usize = 8;

/// Returns the position of `bytes` in `input`, at `from` or later.
#[inline]
fn find_bytes(input: &[u8], from: usize, bytes: &[u8]) -> Option<usize> {
    let rest = input.get(from..)?;
    let at = match bytes {
        [byte] => memchr(*byte, rest),
        [first, ..] if bytes.len() <= SHORT_DELIMITER_MAX => {
            let begins = rest.len().checked_sub(bytes.len() - 1)?;
            memchr_iter(*first, &rest[..begins]).find(|at| rest[*at..].starts_with(bytes))
        }
        _ => memmem::find(rest, bytes),
    };
    at.map(|at| from + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: InputCondition = InputCondition::Delimiter { offset: 0, bytes: b"\r\n", max: 8 };

    fn find(input: InputCondition, bytes: &[u8]) -> FindResult {
        input.find(bytes, &mut 0, 100)
    }

    #[test]
    fn expected_input_is_found_incomplete_or_beyond_its_limit() {
        let at = |content, delimiter| FindResult::Match(Matched::new(content, delimiter));
        let from = |offset| InputCondition::Delimiter { offset, bytes: b"--", max: 6 };
        let long = InputCondition::Delimiter { offset: 0, bytes: b"y--long boundary", max: 80 };
        let cases = [
            (InputCondition::Nothing, "abc", FindResult::Incomplete),
            (InputCondition::Poll, "", FindResult::NeedsPoll),
            (InputCondition::Poll, "a", at(0, 0)),
            (InputCondition::Bytes(0), "", at(0, 0)),
            (InputCondition::Bytes(2), "a", FindResult::Incomplete),
            (InputCondition::Bytes(2), "ab", at(2, 0)),
            (InputCondition::Bytes(2), "abc", at(2, 0)),
            (InputCondition::Bytes(100), "", FindResult::Incomplete),
            (InputCondition::Bytes(101), "", FindResult::LimitExceeded(100)),
            (LINE, "", FindResult::Incomplete),
            (LINE, "\r", FindResult::Incomplete),
            (LINE, "\r\n", at(0, 2)),
            (LINE, "123456\r\n", at(6, 2)),
            (LINE, "123456\r\n\r\n", at(6, 2)),
            (LINE, "1234567\r", FindResult::LimitExceeded(8)),
            (LINE, "1234567\r\n", FindResult::LimitExceeded(8)),
            (LINE, "12345678", FindResult::LimitExceeded(8)),
            (LINE, "1234567", FindResult::Incomplete),
            (from(2), "--", FindResult::Incomplete),
            (from(2), "----", at(2, 2)),
            (from(1), "---", at(1, 2)),
            (from(9), "abcdefghijk--", FindResult::LimitExceeded(6)),
            (from(9), "abc", FindResult::Incomplete),
            (long, "--long boundary-long boundar", FindResult::Incomplete),
            (long, "--long boundary--long boundary", at(14, 16)),
            (InputCondition::Delimiter { offset: 0, bytes: b"", max: 8 }, "", at(0, 0)),
            (
                InputCondition::Delimiter { offset: 0, bytes: b"\n", max: 0 },
                "",
                FindResult::LimitExceeded(0),
            ),
        ];
        for (input, bytes, expected) in cases {
            assert_eq!(find(input, bytes.as_bytes()), expected, "{input:?} in {bytes:?}");
        }
    }

    /// One byte gives the number of bytes that follow. 255 starts no frame, and 254 is followed by
    /// a second length byte.
    fn length(input: &[u8]) -> FrameLength {
        match input {
            [255, ..] => FrameLength::Malformed,
            [254] => FrameLength::Unknown,
            [254, more, ..] => FrameLength::Bytes(2 + 254 + usize::from(*more)),
            [0, ..] => FrameLength::Bytes(0),
            [count, ..] => FrameLength::Bytes(1 + usize::from(*count)),
            [] => panic!("it is asked of a byte at least"),
        }
    }

    #[test]
    fn a_frame_is_complete_incomplete_too_long_or_malformed() {
        let frame = |max| InputCondition::Frame { head: FrameHead(length), max };
        let whole = |len| FindResult::Match(Matched::new(len, 0));
        let cases: [(usize, &[u8], FindResult); 12] = [
            (9, b"", FindResult::Incomplete),
            (9, b"\x02a", FindResult::Incomplete),
            (9, b"\x02ab", whole(3)),
            (9, b"\x02abc", whole(3)),
            (9, b"\x08", FindResult::Incomplete),
            (9, b"\x0812345678", whole(9)),
            (9, b"\x09", FindResult::LimitExceeded(9)),
            (9, b"\xfe", FindResult::Incomplete),
            (1, b"\xfe", FindResult::LimitExceeded(1)),
            (500, b"\x64", FindResult::LimitExceeded(100)),
            (9, b"\xff", FindResult::Malformed),
            (9, b"\0", whole(0)),
        ];
        for (max, bytes, expected) in cases {
            assert_eq!(find(frame(max), bytes), expected, "{bytes:?} within {max}");
        }
    }

    #[test]
    fn the_length_of_a_frame_is_read_once() {
        use std::cell::Cell;
        thread_local!(static READ: Cell<u32> = const { Cell::new(0) });
        let count = |input: &[u8]| {
            READ.set(READ.get() + 1);
            length(input)
        };
        let frame = InputCondition::Frame { head: FrameHead(count), max: 1_000 };
        let bytes = [&[50][..], &[b'x'; 50]].concat();
        let mut scanned = 0;
        for len in 1..bytes.len() {
            assert_eq!(frame.find(&bytes[..len], &mut scanned, 1_000), FindResult::Incomplete);
        }
        assert_eq!(
            frame.find(&bytes, &mut scanned, 1_000),
            FindResult::Match(Matched::new(bytes.len(), 0))
        );
        assert_eq!(READ.get(), 1);
    }

    #[test]
    fn a_delimiter_search_resumes_where_it_stopped() {
        let input = InputCondition::Delimiter { offset: 0, bytes: b"\r\n\r\n", max: 1_000 };
        let text = b"a head: of\r\nsome: lines\r\n\r\n";
        let mut scanned = 0;
        for len in 0..text.len() {
            assert_eq!(input.find(&text[..len], &mut scanned, 1_000), FindResult::Incomplete);
            assert!(
                scanned + 3 >= len,
                "at most the last three bytes are looked at again: {scanned} of {len}"
            );
        }
        assert_eq!(
            input.find(text, &mut scanned, 1_000),
            FindResult::Match(Matched::new(text.len() - 4, 4))
        );
    }

    #[test]
    fn a_matched_part_is_returned_and_consumed() {
        let mut buf = Buf::new();
        buf.extend(b"line\r\nrest");
        let matched = Matched::new(4, 2);
        assert_eq!(
            (matched.len(), matched.content_len(), matched.content(&buf)),
            (6, 4, &b"line"[..])
        );
        matched.consume(&mut buf);
        assert_eq!(&buf[..], b"rest");
    }
}
