//! `Pass`: the budget of a pass, which is how much a stream may still do in one event.

use crate::limits::StreamConfig;
use crate::status::{Flags, Status};

/// How much may still be done in this event.
pub(super) struct Pass {
    /// Bytes that were read.
    pub(super) read: usize,
    /// The same, or more where a wrapping socket has made them of more.
    read_cost: usize,
    /// Bytes that could be written when the event began.
    write_max: usize,
    pub(super) write_left: usize,
    /// Calls of the protocol, which may say that one was worth several.
    pub(super) calls_left: u32,
}

impl Pass {
    pub(super) fn new(config: &StreamConfig) -> Pass {
        let write_max = config.write_budget;
        Pass {
            read: 0,
            read_cost: 0,
            write_max,
            write_left: write_max,
            calls_left: config.calls_budget,
        }
    }

    #[inline]
    pub(super) fn is_spent(&self, status: &Status) -> bool {
        self.write_left == 0 || self.calls_left == 0 || self.has_read_its_share(status)
    }

    #[inline]
    pub(super) fn has_read_its_share(&self, status: &Status) -> bool {
        self.read_cost >= status.config.read_budget && self.has_read_all(status)
    }

    /// Looked at only when the usual share is used up: few streams collect anything.
    #[cold]
    fn has_read_all(&self, status: &Status) -> bool {
        !status.flags.has(Flags::IS_COLLECTING) || self.read_cost >= status.config.collect_budget
    }

    /// So many bytes were read, which a wrapping socket has made of so many.
    #[inline]
    pub(super) fn count_read(&mut self, count: usize, made_of: usize) {
        self.read += count;
        self.read_cost += count.max(made_of);
    }

    /// Adds what was read and written to the counts of the stream.
    #[inline]
    pub(super) fn count_octets(&self, config: &StreamConfig) {
        if let Some(octets) = &config.octets {
            octets.add(self.read, self.write_max.saturating_sub(self.write_left));
        }
    }

    /// The same, for passes that end in a rarer way.
    #[cold]
    pub(super) fn count_octets_seldom(&self, config: &StreamConfig) {
        self.count_octets(config);
    }

    pub(super) fn count_call(&mut self) {
        self.calls_left = self.calls_left.saturating_sub(1);
    }
}
