//! `Pass`: the budget of a pass, which is how much a stream may still do in one event.

use crate::limits::StreamConfig;

/// How much may still be done in this event.
pub(super) struct Pass {
    pub(super) read_left: usize,
    pub(super) write_left: usize,
    pub(super) calls_left: u32,
}

impl Pass {
    pub(super) fn new(config: &StreamConfig) -> Pass {
        Pass {
            read_left: config.read_budget,
            write_left: config.write_budget,
            calls_left: config.calls_budget,
        }
    }

    pub(super) fn is_spent(&self) -> bool {
        self.read_left == 0 || self.write_left == 0 || self.calls_left == 0
    }

    #[inline]
    pub(super) fn has_read_its_share(&self) -> bool {
        self.read_left == 0
    }

    pub(super) fn count_call(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
    }
}
