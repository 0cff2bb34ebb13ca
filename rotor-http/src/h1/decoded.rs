//! What the decoders find at the beginning of a body's input.

/// What one call has found at the beginning of the input: first framing, then data. The caller
/// consumes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Decoded {
    /// Octets of framing, to be dropped.
    pub skip: usize,
    /// Octets of body that follow them.
    pub data: usize,
    /// Whether the body ends here. What follows belongs to the next message.
    pub is_end: bool,
}

impl Decoded {
    /// Returns how many octets of the input are dealt with.
    pub fn consumed(&self) -> usize {
        self.skip + self.data
    }

    /// Returns whether more input is needed before anything else can be said.
    pub fn needs_input(&self) -> bool {
        self.data == 0 && !self.is_end
    }
}
