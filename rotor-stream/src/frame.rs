//! Frames whose beginning contains their length.

use std::fmt;

/// The length of a frame, as far as its beginning shows: the result of a function that is passed to
/// [`frame`](crate::Undecided::frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameLength {
    /// The bytes that contain the length have not all arrived.
    Unknown,
    /// The length in bytes, including the beginning. A length of 0 makes no progress, so the stream
    /// ends the protocol with an error.
    ///
    /// A peer may send any number. If the length field has 64 bits, add the length of the beginning
    /// by [`saturating_add`](usize::saturating_add): the sum may be greater than any `usize`.
    Bytes(usize),
    /// The input is not the beginning of a frame:
    /// [`Exception::Malformed`](crate::Exception::Malformed).
    Malformed,
}

/// A function that reads the length of a frame from its beginning.
///
/// It gets the bytes that have arrived and were not consumed, at least one, and is called again
/// when more have arrived, until it knows the length. For the same bytes it must return the same
/// length, and for more bytes not a smaller one.
#[derive(Clone, Copy)]
pub struct FrameHead(pub fn(&[u8]) -> FrameLength);

impl FrameHead {
    pub(crate) fn read_length(self, input: &[u8]) -> FrameLength {
        (self.0)(input)
    }
}

/// Two are equal if they are the same code. Two functions with identical code may compare equal,
/// and one function that was compiled twice may not.
impl PartialEq for FrameHead {
    fn eq(&self, other: &FrameHead) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for FrameHead {}

/// Does not print the address, which differs from run to run.
impl fmt::Debug for FrameHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameHead(..)")
    }
}
