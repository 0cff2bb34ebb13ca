//! What is due to one machine: the calls that are pending for it, and the queues that it stands in.

use std::ops::BitOr;

use crate::event_set::EventSet;

/// The calls that a machine is to get as soon as it can be called. Merged: each at most once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct Pending {
    /// The hints for `ready`.
    events: EventSet,
    calls: Calls,
}

/// Calls to be made of a machine: a set.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct Calls(u8);

impl Calls {
    pub(in crate::event_loop) const READY: Calls = Calls(1);
    /// `wakeup`, for a part or for the machine.
    pub(in crate::event_loop) const WAKEUP: Calls = Calls(2);
    /// `wakeup`, for the machine itself as well.
    pub(in crate::event_loop) const WAKEUP_WHOLE: Calls = Calls(2 | 4);
    pub(in crate::event_loop) const DRAINING: Calls = Calls(8);
    /// No call: the machine is to be dropped.
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

    /// Whether all of these calls are pending.
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

    pub(in crate::event_loop) fn add_all(&mut self, other: Pending) {
        self.events |= other.events;
        self.calls = self.calls | other.calls;
    }

    /// Takes one kind of them. Returns whether it was pending.
    pub(in crate::event_loop) fn take_one(&mut self, calls: Calls) -> bool {
        let had = self.has(calls);
        self.calls.0 &= !calls.0;
        had
    }

    /// Takes all of them: none is pending afterwards.
    pub(in crate::event_loop) fn take(&mut self) -> Pending {
        std::mem::take(self)
    }
}

/// What a slot knows of its machine's calls: those that are pending, and which queues of the loop
/// the machine stands in, in each at most once. Kept beside the machine, whether or not it is with
/// a handler.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct CallState {
    pub(in crate::event_loop) pending: Pending,
    /// Among those with pending calls (`runnable`), or among those that woke themselves as they were
    /// made (`fresh`).
    pub(in crate::event_loop) in_runnable: bool,
    /// Among those whose deadline had passed when it was set.
    pub(in crate::event_loop) in_overdue: bool,
    /// Among the deferred spawns. It cannot be called before it has heard of its spawn.
    pub(in crate::event_loop) in_deferred: bool,
    /// The turn (1 to 255, round and round; 0 for none) in which the machine was last woken while
    /// it was with its handler. Wraps after 255 turns: a false match only delays a wake-up by a
    /// turn.
    pub(super) woken_in_call_of: u8,
    /// Fills the word of a slot that the state shares with the slot's tag. With a gap between them,
    /// a machine is not written straight into its slot, but to a copy of both that begins in the
    /// gap: twice, and the second time from where it cannot be forwarded.
    pub(super) _fills: u8,
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
    fn a_state_leaves_room_for_a_slots_tag_in_a_word_and_no_gap() {
        assert_eq!(size_of::<CallState>(), 7);
    }
}
