//! The run queue: the work that is due, in a queue for each step of a turn, and how much of it one
//! turn may do.
//!
//! Due work is always in here, never in local variables of a turn, except for the rest of one
//! machine's pending calls, which ends with that machine. So a turn that a panic cut short can
//! simply be continued. Each `next_…` method returns the next piece of work of one step, and `None`
//! when the step is done or its budget is used up; the rest is left for the next turn.

mod check;
mod pace;
mod parts;
mod pending;
mod queues;

use std::collections::VecDeque;
use std::sync::Arc;

use self::pace::Pace;
pub(super) use self::pace::{WaitMode, polls_for};
use self::parts::WokenParts;
pub(super) use self::pending::{CallState, Pending};
use self::queues::{Arrivals, Backlog};
use crate::config::Config;
use crate::event_set::EventSet;
use crate::queue_memory::shrink_empty;
use crate::sync::mpsc;
use crate::time::Time;
use crate::timers::Due;
use crate::token::Token;
use crate::wake_queue::{PartWake, WakeQueue};

/// The due work of a loop whose machines are spawned from an `S`.
pub(super) struct RunQueue<S> {
    /// The events that the backend reported.
    events: Arrivals<(Token, EventSet)>,
    /// Machines with pending calls.
    runnable: Backlog<Token>,
    /// Spawns beyond the budget of their event.
    deferred: Backlog<(Token, S)>,
    /// Slots taken from the wake queue.
    woken: Arrivals<u32>,
    /// How many more wake-ups this turn may deliver.
    wakeups_left: u32,
    /// Machines that woke themselves in `create`. Kept apart from `wakes`, so that this needs no
    /// atomic operations. They are called after those that were taken from there.
    woken_in_create: Backlog<Token>,
    wakes: Arc<WakeQueue>,
    parts: WokenParts,
    /// Slots whose deadlines have passed.
    expired: VecDeque<Due>,
    /// How many more deadlines may fire in this turn.
    timeouts_left: u32,
    /// Machines that returned a deadline that had passed.
    overdue: VecDeque<Token>,
    /// How many of these this turn still calls, once that is known.
    overdue_left: Option<usize>,
    /// The number of this turn: 1 to 255, then 1 again.
    turn: u8,
    pace: Pace,
}

impl<S> RunQueue<S> {
    /// Creates the queue of a new loop.
    pub(super) fn new(
        wakes: Arc<WakeQueue>,
        parts: mpsc::Receiver<PartWake>,
        now: Time,
    ) -> RunQueue<S> {
        RunQueue {
            events: Arrivals::new(),
            runnable: Backlog::new(),
            deferred: Backlog::new(),
            woken: Arrivals::new(),
            wakeups_left: 0,
            woken_in_create: Backlog::new(),
            wakes,
            parts: WokenParts::new(parts),
            expired: VecDeque::new(),
            timeouts_left: 0,
            overdue: VecDeque::new(),
            overdue_left: None,
            turn: 0,
            pace: Pace::new(now),
        }
    }

    /// Sets the limits of a turn. Work that is queued from now on belongs to the next turn.
    pub(super) fn begin_turn(&mut self, config: &Config) {
        // Never 0, which means no turn.
        self.turn = self.turn % u8::MAX + 1;
        self.runnable.begin_turn();
        self.deferred.begin_turn();
        self.wakeups_left = config.wakeups_per_turn;
        self.timeouts_left = config.timeouts_per_turn;
        self.overdue_left = None;
        self.wakes.mark_awake();
    }

    /// Returns whether any work is due.
    pub(super) fn is_due(&self) -> bool {
        self.has_events()
            || !self.woken.is_done()
            || !self.woken_in_create.is_empty()
            || !self.runnable.is_empty()
            || !self.deferred.is_empty()
            || !self.expired.is_empty()
            || !self.overdue.is_empty()
            || !self.wakes.is_empty()
    }

    /// Returns the pace at which the backend is polled.
    pub(super) fn pace(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// Returns the queue of machines that were woken, by any thread.
    pub(super) fn wakes(&self) -> &Arc<WakeQueue> {
        &self.wakes
    }

    /// Frees memory that a burst has left in the queues, if that is much. Called once a turn.
    #[inline]
    pub(super) fn shrink_if_large(&mut self) {
        // Not `events`, because the backend limits their number.
        let queued = self.runnable.capacity() + self.deferred.capacity() + self.woken.capacity();
        let others =
            self.woken_in_create.capacity() + self.expired.capacity() + self.overdue.capacity();
        if queued + others > CAPACITY_USUAL {
            self.shrink_all();
        }
    }

    #[cold]
    fn shrink_all(&mut self) {
        self.runnable.shrink();
        self.deferred.shrink();
        self.woken.shrink();
        self.woken_in_create.shrink();
        shrink_empty(&mut self.expired);
        shrink_empty(&mut self.overdue);
    }
}

/// A number of entries in all queues that is not worth freeing: an entry has 4 to 16 bytes, plus
/// the seed for a deferred spawn.
const CAPACITY_USUAL: usize = 8_192;

/// Events of the backend.
impl<S> RunQueue<S> {
    /// Returns the list to which the backend appends events.
    pub(super) fn events(&mut self) -> &mut Vec<(Token, EventSet)> {
        self.events.items()
    }

    /// Returns whether events of the backend are still to be delivered.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_done()
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn next_event(&mut self) -> Option<(Token, EventSet)> {
        self.events.next()
    }
}

/// Pending calls and deferred spawns.
impl<S> RunQueue<S> {
    /// Queues a machine that has a pending call, unless it is queued already. A machine that waits
    /// for the result of its spawn is queued after that.
    pub(super) fn push(&mut self, token: Token, state: &mut CallState) {
        if !state.is_queued && !state.awaits_spawn {
            state.is_queued = true;
            self.runnable.push(token);
        }
    }

    /// Schedules `ready` for the next turn, with these events and those that come until then.
    pub(super) fn push_again(&mut self, token: Token, state: &mut CallState, events: EventSet) {
        // The machine has more input, perhaps much: other machines' events come first.
        self.pace.request_poll();
        state.pending.add(Pending::ready(events));
        self.push(token, state);
    }

    /// Returns the next machine with pending calls. The caller must update its state.
    pub(super) fn next_runnable(&mut self) -> Option<Token> {
        self.runnable.next()
    }

    /// Leaves a spawn for the next turn. Until then the machine that requested it gets no calls.
    pub(super) fn defer_spawn(&mut self, token: Token, state: &mut CallState, seed: S) {
        state.awaits_spawn = true;
        self.deferred.push((token, seed));
    }

    pub(super) fn next_deferred_spawn(&mut self) -> Option<(Token, S)> {
        self.deferred.next()
    }

    /// Takes the seeds of all deferred spawns, for a loop that ends.
    pub(super) fn drain_deferred_spawns(&mut self) -> impl Iterator<Item = S> {
        self.deferred.drain().map(|(_, seed)| seed)
    }
}

/// The next machine that was woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextWoken {
    /// The slot came from the wake queue.
    Slot(u32),
    /// The machine woke itself in `create`: a call of it is pending.
    WokenInCreate(Token),
}

/// Wake-ups.
impl<S> RunQueue<S> {
    /// Returns the next woken machine, including those that were woken by machines in this turn.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<NextWoken> {
        if self.woken.is_done() && self.woken_in_create.is_turn_over() {
            // Both at once, so that neither kind can starve the other.
            self.wakes.take_all(self.woken.items());
            self.woken_in_create.begin_turn();
        }
        if self.wakeups_left == 0 {
            return None;
        }
        let next = match self.woken.next() {
            Some(index) => NextWoken::Slot(index),
            None => NextWoken::WokenInCreate(self.woken_in_create.next()?),
        };
        self.wakeups_left -= 1;
        Some(next)
    }

    /// Schedules a machine that woke itself in `create` for this turn.
    pub(super) fn push_woken_in_create(&mut self, token: Token, state: &mut CallState) {
        if state.is_queued || self.wakes.is_woken(token.index()) {
            // The machine is queued for something else already, or other code knows it and has
            // woken it: one call serves for both.
            self.wakes.wake(token);
            return;
        }
        state.pending.add(Pending::WAKEUP_WHOLE);
        state.is_queued = true;
        self.woken_in_create.push(token);
    }

    /// Takes the slots out of the list of those that were woken for which `is_ended` returns `true`.
    /// The others stay, in their order.
    pub(super) fn remove_woken(&mut self, mut is_ended: impl FnMut(u32) -> bool) {
        let mut taken = Vec::new();
        self.wakes.take_all(&mut taken);
        self.woken.items().append(&mut taken);
        let wakes = &self.wakes;
        self.woken.retain(|index| {
            let is_ended = is_ended(index);
            if is_ended {
                wakes.take_flags(index);
            }
            !is_ended
        });
        // As before this call, which may come between two turns of an embedded loop: wake-ups from
        // now on wake the backend.
        wakes.try_sleep();
    }

    /// Takes a slot's flags from the wake queue. Returns whether the machine itself was woken, not
    /// only parts of it.
    pub(super) fn take_wakeup(&mut self, index: u32) -> bool {
        let whole = self.wakes.take_flags(index);
        // After the flags, so that no part is missed.
        self.parts.receive(&self.wakes);
        whole
    }

    /// Returns the parts of machines that were woken and have not been called.
    pub(super) fn parts(&mut self) -> &mut WokenParts {
        &mut self.parts
    }

    /// Notes that a machine was marked as woken when its handler returned in this turn. It may have
    /// been woken by itself or by other code, before the call or during it, which cannot be told
    /// apart. So the wake-up is left for the next turn, where a delay does no harm. There it is a
    /// pending call, and is not postponed again.
    pub(super) fn mark_woken_in_call(&self, state: &mut CallState) {
        state.woken_in_call_of = self.turn;
    }

    /// Schedules a machine that woke itself for the next turn. If it is in the list of woken
    /// machines already, one call serves for both.
    pub(super) fn push_self_wakeup(&mut self, token: Token, state: &mut CallState, is_woken: bool) {
        if is_woken {
            self.wakes.wake(token);
        } else {
            state.pending.add(Pending::WAKEUP_WHOLE);
            self.push(token, state);
        }
    }

    /// Returns whether a wake-up must wait for the next turn, because the machine was woken during
    /// its call in this turn, or has a wake-up pending.
    pub(super) fn must_wait_for_next_turn(&self, state: &CallState) -> bool {
        state.woken_in_call_of == self.turn || state.pending.has(Pending::WAKEUP)
    }
}

/// Deadlines that have passed.
///
/// A future deadline is in the timers, and comes by `expired`. A deadline that had passed when it
/// was set is in the timers as well, and also in `overdue`. It fires from there, after all others,
/// and its entry in `expired` is skipped.
impl<S> RunQueue<S> {
    /// Returns the queue to which slots are appended whose deadlines have passed.
    pub(super) fn expired_mut(&mut self) -> &mut VecDeque<Due> {
        &mut self.expired
    }

    /// Returns the next slot whose deadline has passed, as long as the turn may fire more.
    pub(super) fn next_expired(&mut self) -> Option<u32> {
        if self.timeouts_left == 0 {
            return None;
        }
        self.expired.pop_front().map(|due| due.index)
    }

    /// Prevents this turn from firing any more deadlines.
    pub(super) fn suspend_deadlines(&mut self) {
        self.timeouts_left = 0;
    }

    /// Requests a poll if deadlines are left that this turn may not fire, so that they come after
    /// input.
    pub(super) fn request_poll_for_expired(&mut self) {
        if !self.expired.is_empty() {
            self.pace.request_poll();
        }
    }

    /// Notes that a deadline has fired.
    pub(super) fn count_fired(&mut self) {
        self.timeouts_left = self.timeouts_left.saturating_sub(1);
    }

    /// Queues a machine whose deadline had passed when it was set, unless it is queued already. It
    /// is called after the others.
    pub(super) fn push_overdue(&mut self, token: Token, state: &mut CallState) {
        if !state.is_overdue {
            state.is_overdue = true;
            self.overdue.push_back(token);
        }
    }

    /// Returns the next machine whose deadline had passed when it was set: of those queued so far,
    /// and at most `most` in a turn. Deadlines that these machines return are left for the next
    /// turn.
    pub(super) fn next_overdue(&mut self, most: u32) -> Option<Token> {
        let most = self.overdue.len().min(most as usize);
        let left = self.overdue_left.get_or_insert(most);
        *left = left.checked_sub(1)?;
        self.overdue.pop_front()
    }
}

#[cfg(test)]
mod tests;
