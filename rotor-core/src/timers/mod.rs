//! The deadlines of a loop's machines: one for each slot of the slab, kept in a hierarchical timer
//! wheel.
//!
//! **The wheel holds at most one entry for each slot, and never yields one before its deadline.**
//! Deadlines are rounded up to a tick of 1 ms; what is due comes out in the order of ticks.
//!
//! # What the request path costs
//!
//! A busy connection moves its deadline at every event, and almost none of these deadlines is ever
//! reached. So besides its deadline, an entry has the tick at which it is *queued*, and a later
//! deadline is only stored. When the entry comes up at its queued tick, it is found to be early and
//! moves to its new place (*late correction*). Removing a deadline is the same, because
//! [`Time::NEVER`] is a later one. Only an earlier deadline touches the lists.
//!
//! # Parts
//!
//! [`wheel`] knows which bucket a tick belongs to and which bucket comes up first. This module has
//! the entries of the slots. The lists of the buckets run through the entries, with up to four
//! lists for each bucket: with a million entries each step along a list waits for memory, and steps
//! along four lists wait at the same time. An entry is unlinked in constant time without storing
//! its bucket, which follows from the tick that the wheel has reached and the queued tick, because
//! both change only together.

mod tick;
mod wheel;

#[cfg(test)]
mod model;
#[cfg(test)]
mod tests;

use std::collections::{TryReserveError, VecDeque};

use self::tick::{LAST_TICK_TIME, tick_after, tick_before, time_of};
use self::wheel::{NONE, Wheel};
use crate::time::Time;

/// The deadlines of all machines of a loop.
///
/// Slots are identified by their index in the slab. [`set`](Timers::set) and
/// [`clear`](Timers::clear) are called when machines return, [`next_wake`](Timers::next_wake)
/// before the loop waits, [`expire`](Timers::expire) after it, and
/// [`take_expired`](Timers::take_expired) for each slot that `expire` has put into the queue.
pub(crate) struct Timers {
    /// When the first bucket comes up; `Time::NEVER` if there is none.
    wake: Time,
    /// Indexed by slot; as long as the highest index used so far requires.
    entries: Vec<Entry>,
    wheel: Wheel,
    /// The number of entries that are in a list.
    queued: usize,
}

impl Timers {
    /// Creates timers without deadlines. Time begins at `start`: earlier deadlines are due at once.
    pub(crate) fn new(start: Time) -> Timers {
        let wheel = Wheel::new(tick_before(start));
        Timers { wake: Time::NEVER, entries: Vec::new(), wheel, queued: 0 }
    }

    /// Reserves address space for that many slots, so that their entries never move. Fails if there
    /// is none.
    pub(crate) fn reserve(&mut self, slots: usize) -> Result<(), TryReserveError> {
        self.entries.try_reserve_exact(slots)
    }

    /// Sets the deadline of the slot, in place of the one that it had; `Time::NEVER` removes it.
    ///
    /// A deadline that has passed is due at the next call of `expire`. If the slot has expired and
    /// waits in the queue, a deadline no later than the expired one leaves it there, so that a
    /// machine that repeats its deadline at each event does not lose its place. A deadline in the
    /// future takes it out.
    ///
    /// `u32::MAX` is not a slot, and is ignored.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn set(&mut self, index: u32, deadline: Time) {
        // The range of `Time` ends within a tick, so rounding up would leave the range.
        let deadline = if deadline > LAST_TICK_TIME { Time::NEVER } else { deadline };
        // The lists need no change before the wheel looks at the entry, which then sees the new
        // deadline. An entry that is in no list is `UNQUEUED`, which only `Time::NEVER` reaches.
        match self.entries.get_mut(index as usize) {
            Some(entry) if entry.queued <= deadline => entry.deadline = deadline,
            // Beyond the entries so far, as all slots are in a loop without deadlines: there is
            // nothing to remove.
            None if deadline == Time::NEVER => {}
            _ => self.set_earlier(index, deadline),
        }
    }

    /// Removes the slot's deadline and unlinks its entry: for a machine that has ended.
    ///
    /// For a machine that goes on without a deadline, `set` with `Time::NEVER` is cheaper.
    pub(crate) fn clear(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        entry.deadline = Time::NEVER;
        if entry.queued != UNQUEUED {
            self.unlink(index);
        }
    }

    /// Returns the slot's deadline, even if it has expired and was not taken.
    pub(crate) fn deadline(&self, index: u32) -> Option<Time> {
        let entry = self.entries.get(index as usize)?;
        (entry.deadline != Time::NEVER).then_some(entry.deadline)
    }

    /// Returns how many slots are queued: all with a deadline that has not expired, and some whose
    /// deadline was removed.
    pub(crate) fn queued(&self) -> usize {
        self.queued
    }

    /// Returns when the loop must wake to call `expire`; `None` if nothing is queued.
    ///
    /// This is never later than the tick of the earliest deadline. It may be earlier, once for each
    /// deadline that was postponed, brought forward or removed; `expire` then yields nothing, and
    /// the next result is later.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        (self.wake != Time::NEVER).then_some(self.wake)
    }

    /// Appends all slots that are due at `now` to `due`, in the order of ticks.
    ///
    /// A slot that expires is no longer queued, but keeps its deadline until `take_expired`, `set`
    /// or `clear`.
    #[inline]
    pub(crate) fn expire(&mut self, now: Time, due: &mut VecDeque<Due>) {
        if self.wake <= now {
            self.expire_buckets(tick_before(now), due);
        }
    }

    /// Returns whether the slot has expired and waits for its turn. If so, removes its deadline.
    ///
    /// Between `expire` and its turn a machine may have ended, or have returned a new deadline for
    /// another event; then its timeout must not be delivered. Returns `true` once for each expiry.
    pub(crate) fn take_expired(&mut self, index: u32) -> bool {
        let Some(entry) = self.entries.get_mut(index as usize) else { return false };
        let expired = entry.is_expired();
        if expired {
            entry.deadline = Time::NEVER;
        }
        expired
    }

    /// The part of `set` that must touch the lists: the entry is not queued, or queued too late.
    ///
    /// Not inlined, so that `set` itself need not save registers.
    #[inline(never)]
    fn set_earlier(&mut self, index: u32, deadline: Time) {
        debug_assert!(deadline != Time::NEVER, "no entry is queued later than that");
        let tick = tick_after(deadline);
        let Some(entry) = self.entry_mut(index) else { return };
        let (was_expired, was_queued) = (entry.is_expired(), entry.queued);
        entry.deadline = deadline;
        // The slot waits in the queue of due slots already; if it were linked again, it would
        // expire twice.
        if was_expired && tick <= self.wheel.elapsed() {
            return;
        }
        // The wheel has no place for ticks that it has passed.
        let tick = tick.max(self.wheel.elapsed());
        // The deadline is earlier, but within the queued tick; or it has passed, and the entry was
        // queued as such before.
        if time_of(tick) == was_queued {
            return;
        }
        if was_queued != UNQUEUED {
            self.unlink(index);
        }
        self.link(index, tick);
        self.queued += 1;
        self.wake = self.wake.min(time_of(tick));
    }

    /// Returns the entry with this index; creates it if the index is the highest one so far.
    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        if index == NONE {
            debug_assert!(false, "slot {index} cannot have a deadline");
            return None;
        }
        let index = index as usize;
        if index >= self.entries.len() {
            // Within what `reserve` took, so no entry moves.
            self.entries.resize(index + 1, Entry::IDLE);
        }
        self.entries.get_mut(index)
    }

    /// Opens the buckets that have come up by this tick.
    #[inline(never)]
    fn expire_buckets(&mut self, now: u64, due: &mut VecDeque<Due>) {
        self.wake = loop {
            match self.wheel.first() {
                Some((bucket_index, tick)) if tick <= now => {
                    self.open_bucket(bucket_index, tick, due)
                }
                Some((_, tick)) => break time_of(tick),
                None => break Time::NEVER,
            }
        };
    }

    /// Returns when the first bucket comes up.
    fn first_wake(&self) -> Time {
        self.wheel.first().map_or(Time::NEVER, |(_, tick)| time_of(tick))
    }

    /// Empties the first bucket at `tick`, its lower bound: each entry expires, moves to its place,
    /// or is removed because it has no deadline any more.
    fn open_bucket(&mut self, bucket_index: usize, tick: u64, due: &mut VecDeque<Due>) {
        let first_due = due.len();
        let mut has_overdue = false;
        // The lists take turns as long as none has ended, so that their memory accesses overlap.
        let [mut a, mut b, mut c, mut d] = self.wheel.take_bucket(bucket_index, tick);
        while a != NONE {
            let next = self.process_entry(a, tick, &mut has_overdue, due);
            (a, b, c, d) = (b, c, d, next);
        }
        for mut index in [b, c, d] {
            while index != NONE {
                index = self.process_entry(index, tick, &mut has_overdue, due);
            }
        }
        // Deadlines that had passed when they were set are queued together, at the tick of that
        // time.
        if has_overdue {
            due.make_contiguous()[first_due..].sort_unstable_by_key(|due| due.tick);
        }
    }

    /// Handles an entry whose queued tick has been reached. Returns the next entry of its list.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn process_entry(
        &mut self,
        index: u32,
        tick: u64,
        has_overdue: &mut bool,
        due: &mut VecDeque<Due>,
    ) -> u32 {
        let entry = &mut self.entries[index as usize];
        let next = entry.next;
        if entry.deadline <= time_of(tick) {
            entry.queued = UNQUEUED;
            self.queued -= 1;
            let deadline = tick_after(entry.deadline);
            *has_overdue |= deadline < tick;
            due.push_back(Due { tick: time_of(deadline), index });
        } else if entry.deadline == Time::NEVER {
            // Removed by `set`, which leaves the entry in its list.
            entry.queued = UNQUEUED;
            self.queued -= 1;
        } else {
            // Never the bucket that is being emptied, which is the one that contains `elapsed`.
            let deadline = tick_after(entry.deadline);
            self.link(index, deadline);
        }
        next
    }

    /// Adds an entry to the list of a tick. The caller counts it as queued.
    fn link(&mut self, index: u32, tick: u64) {
        let next = std::mem::replace(self.wheel.head_for_insert(tick, index), index);
        if next != NONE {
            self.entries[next as usize].previous = index;
        }
        let entry = &mut self.entries[index as usize];
        entry.queued = time_of(tick);
        entry.next = next;
        entry.previous = NONE;
    }

    /// Takes a queued entry out of its list.
    fn unlink(&mut self, index: u32) {
        self.queued -= 1;
        let entry = &mut self.entries[index as usize];
        let queued = std::mem::replace(&mut entry.queued, UNQUEUED);
        let (next, previous) = (entry.next, entry.previous);
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous != NONE {
            self.entries[previous as usize].next = next;
        } else if self.wheel.unlink_head(tick_before(queued), index, next) {
            // The bucket is vacant now, and may have been the first: it must not cause a wake-up.
            self.wake = self.first_wake();
        }
    }
}

/// A slot whose deadline has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The slot's deadline, rounded up to a tick. Slots of the same tick are adjacent.
    pub(crate) tick: Time,
    /// The slot.
    pub(crate) index: u32,
}

/// The data for each slot.
#[derive(Clone, Debug)]
struct Entry {
    /// `Time::NEVER` if there is none.
    deadline: Time,
    /// The tick at which the wheel looks at this entry, or `UNQUEUED`. It is not after the
    /// deadline's tick, unless the deadline had passed when it was set. It is a `Time`, so that
    /// `set` need not divide to compare it.
    queued: Time,
    /// The neighbours in the bucket's list, or `NONE`. Meaningless while the entry is not queued.
    next: u32,
    previous: u32,
}

impl Entry {
    const IDLE: Entry =
        Entry { deadline: Time::NEVER, queued: UNQUEUED, next: NONE, previous: NONE };

    /// A deadline that is not queued has expired: any other is queued when it is set.
    fn is_expired(&self) -> bool {
        self.queued == UNQUEUED && self.deadline != Time::NEVER
    }
}

/// The tick of an entry that is in no list. It is later than all others, so that `set` links the
/// entry for every deadline except `Time::NEVER`, which needs no link.
const UNQUEUED: Time = Time::NEVER;
