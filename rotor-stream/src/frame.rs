//! Frames that say at their beginning how long they are.

use std::fmt;

/// How long a frame is, as far as its beginning says: the answer of a function that is given to
/// [`frame`](crate::Undecided::frame).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameLength {
    /// The bytes that say so have not all come.
    Unknown,
    /// So many bytes, with those that say so. A length of 0 is no progress, and
    /// ends the protocol as such.
    Bytes(usize),
    /// No frame begins like this: [`Exception::Malformed`](crate::Exception::Malformed).
    Malformed,
}

/// Reads from the beginning of a frame how long it is.
///
/// It is given what has come and was not consumed, a byte at least, and is asked again when more
/// has come until it knows. It must say the same of the same bytes, and must not say less of more.
#[derive(Clone, Copy)]
pub struct FrameHead(pub fn(&[u8]) -> FrameLength);

impl FrameHead {
    pub(crate) fn read(self, input: &[u8]) -> FrameLength {
        (self.0)(input)
    }
}

/// Two are taken for the same where they are the same code. That may be so of two functions which
/// do the same, and not of one that was compiled twice.
impl PartialEq for FrameHead {
    fn eq(&self, other: &FrameHead) -> bool {
        std::ptr::fn_addr_eq(self.0, other.0)
    }
}

impl Eq for FrameHead {}

/// Without its address, which differs from run to run.
impl fmt::Debug for FrameHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FrameHead(..)")
    }
}
