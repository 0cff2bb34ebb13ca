//! Looking for what a protocol waits for among its input; `Matched` says where it is.

use memchr::{memchr, memmem};

use crate::Buf;
use crate::intent::Input;

/// What was waited for has come: how long it is. It is at the beginning of the input.
///
/// After [`Expectation::Bytes`](crate::Expectation::Bytes), the matched part is as many bytes as were asked for; there may
/// be more in the input. After [`Delimiter`](crate::Expectation::Delimiter), it is all up to and with the delimiter.
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
    pub(crate) fn new(content: usize, delimiter: usize) -> Matched {
        Matched { content, delimiter }
    }

    /// The length of the matched part in bytes, with its delimiter.
    #[expect(clippy::len_without_is_empty, reason = "it is a measure, not a collection")]
    pub fn len(self) -> usize {
        self.content + self.delimiter
    }

    /// The length of the matched part in bytes, without its delimiter.
    pub fn content_len(self) -> usize {
        self.content
    }

    /// The matched bytes, without the delimiter, in the input that they were matched in.
    pub fn content(self, input: &Buf) -> &[u8] {
        &input[..self.content.min(input.len())]
    }

    /// Removes the matched part, with its delimiter, from the input.
    pub fn consume(self, input: &mut Buf) {
        input.consume(self.len());
    }
}

/// What a look at the input has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Found {
    Match(Matched),
    /// More bytes may complete it.
    NotYet,
    /// It is not among so many bytes, which is all that may be waited for.
    Never(usize),
}

impl Input {
    /// Looks for it in `input`, of which the first `scanned` bytes are known not to begin it; notes how far it came.
    #[inline]
    pub(crate) fn find(&self, input: &[u8], scanned: &mut usize, input_max: usize) -> Found {
        match *self {
            Input::Nothing => Found::NotYet,
            Input::Bytes(count) if input.len() >= count => Found::Match(Matched::new(count, 0)),
            Input::Bytes(count) if count > input_max => Found::Never(input_max),
            Input::Bytes(_) => Found::NotYet,
            Input::Delimiter { offset, bytes, max } => {
                let max = max.min(input_max);
                let within = &input[..input.len().min(max)];
                let from = offset.max(*scanned);
                if let Some(at) = search(within, from, bytes) {
                    return Found::Match(Matched::new(at, bytes.len()));
                }
                // The delimiter may have begun in the last bytes.
                *scanned = from.max((within.len() + 1).saturating_sub(bytes.len()));
                if input.len() >= max { Found::Never(max) } else { Found::NotYet }
            }
        }
    }
}

/// Where `bytes` begins in `input`, at `from` or later.
fn search(input: &[u8], from: usize, bytes: &[u8]) -> Option<usize> {
    let rest = input.get(from..)?;
    let at = match bytes {
        [byte] => memchr(*byte, rest),
        _ => memmem::find(rest, bytes),
    };
    at.map(|at| from + at)
}
