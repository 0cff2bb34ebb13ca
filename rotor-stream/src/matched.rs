//! `Matched`: where the expected input is; and the search for it.

use memchr::{memchr, memchr_iter, memmem};

use crate::buf::Buf;
use crate::frame::{FrameHead, FrameLength};
use crate::intent::Input;

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
pub(crate) enum Found {
    Match(Matched),
    /// More bytes may complete it.
    NotYet,
    /// The socket must be polled first.
    Unpolled,
    /// The expected input is not within this many bytes, the most that may be waited for.
    Never(usize),
    /// The existing bytes cannot be the beginning of a frame.
    Malformed,
}

impl Input {
    /// Looks for the expected input in `input`. `scanned` says how many of the first bytes are
    /// known not to begin it, and is updated.
    #[inline]
    pub(crate) fn find(&self, input: &[u8], scanned: &mut usize, input_max: usize) -> Found {
        // First, because most protocols wait for a number of bytes.
        if let Input::Bytes(count) = *self {
            return match count {
                // Before the limit, which concerns bytes yet to come: handing out existing bytes
                // costs nothing.
                count if input.len() >= count => Found::Match(Matched::new(count, 0)),
                count if count > input_max => Found::Never(input_max),
                _ => Found::NotYet,
            };
        }
        self.find_framed(input, scanned, input_max)
    }

    /// Looks for anything but a number of bytes.
    fn find_framed(&self, input: &[u8], scanned: &mut usize, input_max: usize) -> Found {
        match *self {
            Input::Nothing | Input::Bytes(_) => Found::NotYet,
            Input::Poll if input.is_empty() => Found::Unpolled,
            Input::Poll => Found::Match(Matched::NOTHING),
            // The usual case between two messages. An empty delimiter, and a maximum of 0, are left
            // to the search.
            Input::Delimiter { bytes: [_, ..], max: 1.., .. } if input.is_empty() => Found::NotYet,
            Input::Delimiter { offset, bytes, max } => {
                find_delimiter(input, offset.max(*scanned), bytes, max.min(input_max), scanned)
            }
            Input::Frame { .. } if input.is_empty() => Found::NotYet,
            Input::Frame { head, max } => find_frame(input, head, max.min(input_max), scanned),
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
) -> Found {
    let within = &input[..input.len().min(max)];
    if let Some(at) = search(within, from, bytes) {
        return Found::Match(Matched::new(at, bytes.len()));
    }
    // The delimiter may have begun in the last bytes, so these are searched again.
    *scanned = from.max((within.len() + 1).saturating_sub(bytes.len()));
    if input.len() >= max { Found::Never(max) } else { Found::NotYet }
}

/// Checks whether a frame is complete. Once its length is known, `scanned` stores it, so that the
/// head is not read again.
fn find_frame(input: &[u8], head: FrameHead, max: usize, scanned: &mut usize) -> Found {
    if *scanned == 0 {
        *scanned = match head.read(input) {
            FrameLength::Bytes(0) => return Found::Match(Matched::NOTHING),
            FrameLength::Bytes(length) => length,
            FrameLength::Unknown if input.len() < max => return Found::NotYet,
            FrameLength::Unknown => return Found::Never(max),
            FrameLength::Malformed => return Found::Malformed,
        };
    }
    match *scanned {
        length if length > max => Found::Never(max),
        length if length > input.len() => Found::NotYet,
        length => Found::Match(Matched::new(length, 0)),
    }
}

/// Delimiters of up to this many bytes are found by their first byte: this needs no preparation,
/// and each false start costs at most this many comparisons.
const SHORT_DELIMITER: usize = 8;

/// Returns the position of `bytes` in `input`, at `from` or later.
#[inline]
fn search(input: &[u8], from: usize, bytes: &[u8]) -> Option<usize> {
    let rest = input.get(from..)?;
    let at = match bytes {
        [byte] => memchr(*byte, rest),
        [first, ..] if bytes.len() <= SHORT_DELIMITER => {
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

    const LINE: Input = Input::Delimiter { offset: 0, bytes: b"\r\n", max: 8 };

    fn find(input: Input, bytes: &[u8]) -> Found {
        input.find(bytes, &mut 0, 100)
    }

    #[test]
    fn what_is_waited_for_is_found_not_yet_or_never() {
        let at = |content, delimiter| Found::Match(Matched::new(content, delimiter));
        let from = |offset| Input::Delimiter { offset, bytes: b"--", max: 6 };
        let long = Input::Delimiter { offset: 0, bytes: b"y--long boundary", max: 80 };
        let cases = [
            (Input::Nothing, "abc", Found::NotYet),
            (Input::Poll, "", Found::Unpolled),
            (Input::Poll, "a", at(0, 0)),
            (Input::Bytes(0), "", at(0, 0)),
            (Input::Bytes(2), "a", Found::NotYet),
            (Input::Bytes(2), "ab", at(2, 0)),
            (Input::Bytes(2), "abc", at(2, 0)),
            (Input::Bytes(100), "", Found::NotYet),
            (Input::Bytes(101), "", Found::Never(100)),
            (LINE, "", Found::NotYet),
            (LINE, "\r", Found::NotYet),
            (LINE, "\r\n", at(0, 2)),
            (LINE, "123456\r\n", at(6, 2)),
            (LINE, "123456\r\n\r\n", at(6, 2)),
            (LINE, "1234567\r", Found::Never(8)),
            (LINE, "1234567\r\n", Found::Never(8)),
            (LINE, "12345678", Found::Never(8)),
            (LINE, "1234567", Found::NotYet),
            (from(2), "--", Found::NotYet),
            (from(2), "----", at(2, 2)),
            (from(1), "---", at(1, 2)),
            (from(9), "abcdefghijk--", Found::Never(6)),
            (from(9), "abc", Found::NotYet),
            (long, "--long boundary-long boundar", Found::NotYet),
            (long, "--long boundary--long boundary", at(14, 16)),
            (Input::Delimiter { offset: 0, bytes: b"", max: 8 }, "", at(0, 0)),
            (Input::Delimiter { offset: 0, bytes: b"\n", max: 0 }, "", Found::Never(0)),
        ];
        for (input, bytes, expected) in cases {
            assert_eq!(find(input, bytes.as_bytes()), expected, "{input:?} in {bytes:?}");
        }
    }

    /// One byte says how many follow; none begins with 255, and 254 has a second one.
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
    fn a_frame_is_whole_incomplete_too_long_or_none() {
        let frame = |max| Input::Frame { head: FrameHead(length), max };
        let whole = |len| Found::Match(Matched::new(len, 0));
        let cases: [(usize, &[u8], Found); 12] = [
            (9, b"", Found::NotYet),
            (9, b"\x02a", Found::NotYet),
            (9, b"\x02ab", whole(3)),
            (9, b"\x02abc", whole(3)),
            (9, b"\x08", Found::NotYet),
            (9, b"\x0812345678", whole(9)),
            (9, b"\x09", Found::Never(9)),
            (9, b"\xfe", Found::NotYet),
            (1, b"\xfe", Found::Never(1)),
            (500, b"\x64", Found::Never(100)),
            (9, b"\xff", Found::Malformed),
            (9, b"\0", whole(0)),
        ];
        for (max, bytes, expected) in cases {
            assert_eq!(find(frame(max), bytes), expected, "{bytes:?} within {max}");
        }
    }

    #[test]
    fn how_long_a_frame_is_is_read_once() {
        use std::cell::Cell;
        thread_local!(static READ: Cell<u32> = const { Cell::new(0) });
        let count = |input: &[u8]| {
            READ.set(READ.get() + 1);
            length(input)
        };
        let frame = Input::Frame { head: FrameHead(count), max: 1_000 };
        let bytes = [&[50][..], &[b'x'; 50]].concat();
        let mut scanned = 0;
        for len in 1..bytes.len() {
            assert_eq!(frame.find(&bytes[..len], &mut scanned, 1_000), Found::NotYet);
        }
        assert_eq!(
            frame.find(&bytes, &mut scanned, 1_000),
            Found::Match(Matched::new(bytes.len(), 0))
        );
        assert_eq!(READ.get(), 1);
    }

    #[test]
    fn a_search_goes_on_where_it_stopped() {
        let input = Input::Delimiter { offset: 0, bytes: b"\r\n\r\n", max: 1_000 };
        let text = b"a head: of\r\nsome: lines\r\n\r\n";
        let mut scanned = 0;
        for len in 0..text.len() {
            assert_eq!(input.find(&text[..len], &mut scanned, 1_000), Found::NotYet);
            assert!(
                scanned + 3 >= len,
                "at most the last three bytes are looked at again: {scanned} of {len}"
            );
        }
        assert_eq!(
            input.find(text, &mut scanned, 1_000),
            Found::Match(Matched::new(text.len() - 4, 4))
        );
    }

    #[test]
    fn matched_parts_are_shown_and_consumed() {
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
