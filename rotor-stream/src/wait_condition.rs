//! `WaitCondition`: what a protocol waits for, and which of that an intent leaves as it was.

use std::num::NonZeroUsize;

use crate::frame::FrameHead;

/// What a protocol waits for: something to read, room to write, both, or neither.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct WaitCondition {
    pub(crate) input: InputCondition,
    pub(crate) flush: Option<FlushThreshold>,
}

/// The number of bytes that may be left to be written. It is stored plus one, so that `None` takes
/// no extra space.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct FlushThreshold(NonZeroUsize);

/// Which input a protocol waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum InputCondition {
    /// In an intent: the same as before.
    Kept,
    Nothing,
    /// Nothing for now; it will be wanted later.
    Held,
    Bytes(usize),
    Poll,
    Delimiter {
        offset: usize,
        bytes: &'static [u8],
        max: usize,
    },
    Frame {
        head: FrameHead,
        max: usize,
    },
}

impl FlushThreshold {
    /// In an intent: the same as before, which may be none.
    const KEPT: FlushThreshold = FlushThreshold(NonZeroUsize::MAX);

    /// Stores the number of bytes. The two largest `usize` are stored as the one below them.
    pub(crate) fn from_bytes(bytes: usize) -> FlushThreshold {
        FlushThreshold(NonZeroUsize::MIN.saturating_add(bytes.min(usize::MAX - 2)))
    }

    #[inline]
    pub(crate) fn bytes(self) -> usize {
        self.0.get() - 1
    }
}

impl InputCondition {
    /// Returns whether input is wanted now.
    #[inline(always)]
    pub(crate) fn is_wanted(&self) -> bool {
        !matches!(self, InputCondition::Kept | InputCondition::Nothing | InputCondition::Held)
    }
}

impl WaitCondition {
    pub(crate) const NOTHING: WaitCondition =
        WaitCondition { input: InputCondition::Nothing, flush: None };
    /// In an intent: the same as before.
    pub(crate) const KEPT: WaitCondition =
        WaitCondition { input: InputCondition::Kept, flush: Some(FlushThreshold::KEPT) };

    /// Returns what an intent waits for if the protocol waited for `before`.
    #[inline]
    pub(crate) fn after(mut self, before: WaitCondition) -> WaitCondition {
        if matches!(self.input, InputCondition::Kept) {
            self.input = before.input;
        }
        if self.flush == Some(FlushThreshold::KEPT) {
            self.flush = before.flush;
        }
        self
    }
}
