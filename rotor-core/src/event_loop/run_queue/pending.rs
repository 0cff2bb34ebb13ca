//! The work that is due for one machine: its pending calls, and the queues that it is in.

use crate::event_set::EventSet;

/// The calls that a machine will get as soon as it can be called. They are merged: each is made at
/// most once.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct Pending {
    /// The hints for `ready`.
    events: EventSet,
    /// The bits of the calls.
    calls: u8,
}

impl Pending {
    pub(in crate::event_loop) const READY: Pending = Pending::of(1);
    /// `wakeup`, for a part or for the machine itself.
    pub(in crate::event_loop) const WAKEUP: Pending = Pending::of(2);
    /// `wakeup`, for the machine itself as well.
    pub(in crate::event_loop) const WAKEUP_WHOLE: Pending = Pending::of(2 | 4);
    pub(in crate::event_loop) const DRAINING: Pending = Pending::of(8);
    /// No call: the machine must be dropped.
    pub(in crate::event_loop) const END: Pending = Pending::of(16);

    const fn of(calls: u8) -> Pending {
        Pending { events: EventSet::EMPTY, calls }
    }

    /// Returns a call of `ready` with these events.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn ready(events: EventSet) -> Pending {
        Pending { events, ..Pending::READY }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn is_empty(self) -> bool {
        self.calls == 0
    }

    /// Returns whether all of these calls are pending.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn has(self, calls: Pending) -> bool {
        self.calls & calls.calls == calls.calls
    }

    pub(in crate::event_loop) fn events(self) -> EventSet {
        self.events
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn add(&mut self, other: Pending) {
        self.events |= other.events;
        self.calls |= other.calls;
    }

    /// Removes these calls. Returns whether they were pending.
    pub(in crate::event_loop) fn remove(&mut self, calls: Pending) -> bool {
        let had = self.has(calls);
        self.calls &= !calls.calls;
        had
    }
}

/// The state of a machine's calls in its slot: the pending ones, and the queues of the loop that
/// contain the machine, each at most once. It exists whether or not the machine's handler is
/// running.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(in crate::event_loop) struct CallState {
    pub(in crate::event_loop) pending: Pending,
    /// The machine is in the queue of pending calls (`runnable`), or in that of machines that woke
    /// themselves in `create` (`woken_in_create`).
    pub(in crate::event_loop) is_queued: bool,
    /// The machine is in the queue of those whose deadline had passed when it was set.
    pub(in crate::event_loop) is_overdue: bool,
    /// The machine is in the queue of deferred spawns. It cannot be called before it was told the
    /// result.
    pub(in crate::event_loop) awaits_spawn: bool,
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
        assert!(pending.is_empty() && !pending.has(Pending::READY));
        pending.add(Pending::ready(EventSet::READABLE));
        pending.add(Pending::ready(EventSet::WRITABLE));
        pending.add(Pending::WAKEUP_WHOLE);
        let taken = std::mem::take(&mut pending);
        assert_eq!(taken.events(), EventSet::READABLE | EventSet::WRITABLE);
        assert!(
            taken.has(Pending::READY) && !taken.has(Pending::DRAINING) && !taken.has(Pending::END)
        );
        assert!(taken.has(Pending::WAKEUP) && taken.has(Pending::WAKEUP_WHOLE));
        assert_eq!((pending, pending.is_empty()), (Pending::default(), true));
    }

    #[test]
    fn a_call_state_and_the_tag_of_a_slot_fill_one_word() {
        assert_eq!(size_of::<CallState>(), 7);
    }
}
