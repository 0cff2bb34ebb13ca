//! `Settling`: how long a step of a script takes.

/// How long a step takes, so that nothing moves any more afterwards.
#[derive(Clone, Copy)]
pub(super) struct Settling {
    pub(super) turns: usize,
    /// The loop is kept awake, so that turns only poll. Virtual time would stand still.
    pub(super) only_polls: bool,
}

impl Settling {
    pub(super) const ON_KERNEL: Settling = Settling { turns: 25, only_polls: true };
    /// A turn takes a tenth of a millisecond. In all, longer than a peer delays its
    /// acknowledgement.
    pub(super) const IN_VIRTUAL_TIME: Settling = Settling { turns: 300, only_polls: false };

    pub(super) fn times(self, factor: usize) -> Settling {
        Settling { turns: factor * self.turns, ..self }
    }
}
