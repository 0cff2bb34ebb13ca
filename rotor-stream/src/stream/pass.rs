//! `Pass`: the budget of a pass: how much more a stream may do in one event.

use crate::limits::StreamConfig;
use crate::status::{Flags, Status};

/// How much more may be done in this event.
pub(super) struct Pass {
    /// How many bytes were read; more if a wrapping socket made them from more.
    pub(super) read_cost: usize,
    /// By how much that exceeds the bytes that were read.
    read_overhead: usize,
    /// How many bytes could be written when the event began. The configuration may change meanwhile.
    write_max: usize,
    pub(super) write_left: usize,
    /// How many more calls of the protocol are allowed; it may count one call as several.
    pub(super) calls_left: u32,
}

impl Pass {
    pub(super) fn new(config: &StreamConfig) -> Pass {
        let write_max = config.write_budget;
        Pass {
            read_cost: 0,
            read_overhead: 0,
            write_max,
            write_left: write_max,
            calls_left: config.calls_budget,
        }
    }

    #[inline]
    pub(super) fn is_spent(&self, status: &Status) -> bool {
        self.write_left == 0 || self.calls_left == 0 || self.is_read_budget_spent(status)
    }

    #[inline]
    pub(super) fn is_read_budget_spent(&self, status: &Status) -> bool {
        self.read_cost >= status.config.read_budget && self.is_collect_budget_spent(status)
    }

    /// Called only when the usual budget is used up, because few streams collect a message.
    #[cold]
    fn is_collect_budget_spent(&self, status: &Status) -> bool {
        !status.flags.has(Flags::IS_COLLECTING) || self.read_cost >= status.config.collect_budget
    }

    /// Counts bytes that were read, and the bytes from which a wrapping socket made them.
    #[inline]
    pub(super) fn count_read(&mut self, count: usize, made_of: usize) {
        self.read_cost += count.max(made_of);
        self.read_overhead += made_of.saturating_sub(count);
    }

    /// Adds the bytes read and written to the counters of the configuration.
    #[inline]
    pub(super) fn count_bytes(&self, config: &StreamConfig) {
        if let Some(counts) = &config.counts {
            let read = self.read_cost - self.read_overhead;
            counts.add(read, self.write_max.saturating_sub(self.write_left));
        }
    }

    /// The same, for passes that end in an unusual way.
    #[cold]
    pub(super) fn count_bytes_cold(&self, config: &StreamConfig) {
        self.count_bytes(config);
    }

    pub(super) fn count_call(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
    }
}
