//! `Decoded`: what the decoders find at the beginning of a body's input.

/// What one call has found at the beginning of the input: first framing, then data. The caller
/// consumes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// The number of bytes of framing, to be dropped.
    pub skip: usize,
    /// The number of bytes of data after the framing.
    pub data: usize,
    /// Whether the body ends here. The bytes after it belong to the next message.
    pub is_end: bool,
}

impl Decoded {
    /// Returns how many bytes of the input to consume.
    pub fn consumed(&self) -> usize {
        self.skip + self.data
    }

    /// Returns whether more input is needed to continue.
    pub fn needs_input(&self) -> bool {
        self.data == 0 && !self.is_end
    }
}
