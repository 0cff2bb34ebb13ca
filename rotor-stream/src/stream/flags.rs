//! `Flags`: what is known of a stream's socket and buffers, a bit for each.

/// What else is known, a bit for each: so that all of it and the count of what is held take the
/// eight bytes that they have.
#[derive(Clone, Copy)]
pub(crate) struct Flags(u8);

impl Flags {
    /// The last read got as much as it had room for.
    pub(crate) const WAS_FILLED: Flags = Flags(1);
    /// A wrapping socket holds bytes that it could not write yet.
    pub(crate) const HOLDS_OUTPUT: Flags = Flags(2);
    /// The output has passed its high-water mark and is not yet down to half of it.
    pub(crate) const IS_GATED: Flags = Flags(4);
    /// An event told of an error that nobody has asked for yet.
    pub(crate) const ERROR_TOLD: Flags = Flags(8);
    /// The loop drains, which there was no protocol to tell of.
    pub(crate) const DRAIN_PENDING: Flags = Flags(16);
    /// The last byte has been added to the output. Noted here and not there alone, since a protocol
    /// may exchange its output for another one.
    pub(crate) const IS_ENDED: Flags = Flags(32);
    /// The socket was told so, once all was written.
    pub(crate) const END_TOLD: Flags = Flags(64);

    pub(crate) const NONE: Flags = Flags(0);

    /// Whether any of these is set.
    #[inline(always)]
    pub(crate) fn has(self, flags: Flags) -> bool {
        self.0 & flags.0 != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, flag: Flags, yes: bool) {
        // Few change in an event: a look is cheaper than working the bit out.
        if self.has(flag) != yes {
            self.0 ^= flag.0;
        }
    }
}
