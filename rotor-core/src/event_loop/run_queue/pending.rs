//! The work that is due for one machine: its pending calls, and the queues that it is in.

use std::ops::BitOr;

use crate::event_set::EventSet;

/// The calls that a machine will get as soon as it can be called. They are merged: each is made at
/// most once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct Pending {
    /// The hints for `ready`.
    events: EventSet,
    calls: Calls,
}

/// A set of calls of a machine.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct Calls(u8);

impl Calls {
    pub(in crate::event_loop) const READY: Calls = Calls(1);
    /// `wakeup`, for a part or for the machine itself.
    pub(in crate::event_loop) const WAKEUP: Calls = Calls(2);
    /// `wakeup`, for the machine itself as well.
    pub(in crate::event_loop) const WAKEUP_WHOLE: Calls = Calls(2 | 4);
    pub(in crate::event_loop) const DRAINING: Calls = Calls(8);
    /// No call: the machine must be dropped.
    pub(in crate::event_loop) const END: Calls = Calls(16);
}

impl BitOr for Calls {
    type Output = Calls;

    #[inline(always)]
    fn bitor(self, other: Calls) -> Calls {
        Calls(self.0 | other.0)
    }
}

impl Pending {
    #[inline(always)]
    pub(in crate::event_loop) fn is_empty(self) -> bool {
        self.calls == Calls::default()
    }

    /// Returns whether all of these calls are pending.
    #[inline(always)]
    pub(in crate::event_loop) fn has(self, calls: Calls) -> bool {
        self.calls.0 & calls.0 == calls.0
    }

    pub(in crate::event_loop) fn events(self) -> EventSet {
        self.events
    }

    pub(in crate::event_loop) fn add(&mut self, calls: Calls) {
        self.calls = self.calls | calls;
    }

    pub(in crate::event_loop) fn add_ready(&mut self, events: EventSet) {
        self.events |= events;
        self.calls = self.calls | Calls::READY;
    }

    pub(in crate::event_loop) fn merge(&mut self, other: Pending) {
        self.events |= other.events;
        self.calls = self.calls | other.calls;
    }

    /// Removes these calls. Returns whether they were pending.
    pub(in crate::event_loop) fn remove(&mut self, calls: Calls) -> bool {
        let had = self.has(calls);
        self.calls.0 &= !calls.0;
        had
    }

    /// Takes all calls, so that none is pending afterwards.
    pub(in crate::event_loop) fn take(&mut self) -> Pending {
        std::mem::take(self)
    }
}

/// The state of a machine's calls in its slot: the pending ones, and the queues of the loop that
/// contain the machine, each at most once. It exists whether or not the machine's handler is
/// running.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct CallState {
    pub(in crate::event_loop) pending: Pending,
    /// In the queue of pending calls (`runnable`), or of machines that woke themselves in `create`
    /// (`woken_in_create`).
    pub(in crate::event_loop) in_runnable: bool,
    /// In the queue of machines whose deadline had passed when it was set.
    pub(in crate::event_loop) in_overdue: bool,
    /// In the queue of deferred spawns. The machine cannot be called before it was told the result.
    pub(in crate::event_loop) in_deferred: bool,
    /// The number of the turn (1 to 255, then 1 again; 0 for none) in which the machine was last
    /// woken during its call. A false match, after 255 turns, only delays a wake-up by one turn.
    pub(super) woken_in_call_of: u8,
    /// Fills the word of a slot that the state shares with the enum's tag. With a gap between them,
    /// a machine would not be written directly into its slot, but first to a copy of both that
    /// begins in the gap: two writes, and store forwarding fails for the second.
    pub(super) _padding: u8,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_merge_and_are_taken_together() {
        let mut pending = Pending::default();
        assert!(pending.is_empty() && !pending.has(Calls::READY));
        pending.add_ready(EventSet::READABLE);
        pending.add_ready(EventSet::WRITABLE);
        pending.add(Calls::WAKEUP_WHOLE);
        let taken = pending.take();
        assert_eq!(taken.events(), EventSet::READABLE | EventSet::WRITABLE);
        assert!(taken.has(Calls::READY) && !taken.has(Calls::DRAINING) && !taken.has(Calls::END));
        assert!(taken.has(Calls::WAKEUP) && taken.has(Calls::WAKEUP_WHOLE));
        assert_eq!((pending, pending.is_empty()), (Pending::default(), true));
    }

    #[test]
    fn a_call_state_and_the_tag_of_a_slot_fill_one_word() {
        assert_eq!(size_of::<CallState>(), 7);
    }
}
