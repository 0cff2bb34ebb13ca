//! The run queue: what waits to be done, in a queue for each step of a turn, and how much of it one
//! turn may do.
//!
//! What is due waits in here, never in variables of a turn, but for the rest of one machine's
//! pending calls, which ends with that machine. So a turn that a panic cut short is simply gone on
//! with. Each `next_…` gives a step of the turn its next piece of work, and `None`
//! once the step is done or its budget is spent; what is left is the next turn's.

mod batches;
mod check;
mod pace;
mod parts;
mod pending;

use std::collections::VecDeque;
use std::sync::Arc;

use self::batches::{Backlog, Batch};
use self::pace::Pace;
pub(super) use self::pace::{Wait, polls_for};
use self::parts::WokenParts;
pub(super) use self::pending::{CallState, Calls, Pending};
use crate::config::Config;
use crate::event_set::EventSet;
use crate::queue_memory::give_back;
use crate::sync::mpsc;
use crate::time::Time;
use crate::timers::Due;
use crate::token::Token;
use crate::wake_queue::{PartWake, WakeQueue};

/// What waits to be done by a loop whose machines spawn others from an `S`.
pub(super) struct RunQueue<S> {
    /// What the backend reported.
    events: Batch<(Token, EventSet)>,
    /// Machines with pending calls.
    runnable: Backlog<Token>,
    /// Spawns beyond the budget of their event.
    deferred: Backlog<(Token, S)>,
    /// Slots taken from the wake queue, and how many of them may still be called in this turn.
    woken: Batch<u32>,
    wakeups_left: u32,
    /// Machines that woke themselves as they were made, before anybody could call them: without a
    /// step that other threads see. They are called in line with those that were woken.
    fresh: Backlog<Token>,
    wakes: Arc<WakeQueue>,
    parts: WokenParts,
    /// Slots whose deadlines have been reached, and how many of them may still fire in this turn.
    expired: VecDeque<Due>,
    timeouts_left: u32,
    /// Machines that answered with a deadline that had passed; the first `overdue_left` are to be
    /// called in this turn, once it is known how many they are.
    overdue: VecDeque<Token>,
    overdue_left: Option<usize>,
    /// This turn, as a number from 1 to 255, round and round.
    turn: u8,
    pace: Pace,
}

impl<S> RunQueue<S> {
    /// Of a loop that is made now.
    pub(super) fn new(
        wakes: Arc<WakeQueue>,
        parts: mpsc::Receiver<PartWake>,
        now: Time,
    ) -> RunQueue<S> {
        RunQueue {
            events: Batch::new(),
            runnable: Backlog::new(),
            deferred: Backlog::new(),
            woken: Batch::new(),
            wakeups_left: 0,
            fresh: Backlog::new(),
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

    /// Marks off what belongs to this turn; what is queued from now on belongs to the next.
    pub(super) fn begin_turn(&mut self, config: &Config) {
        // Never 0, which stands for no turn.
        self.turn = self.turn % u8::MAX + 1;
        self.runnable.begin_turn();
        self.deferred.begin_turn();
        self.wakeups_left = config.wakeups_per_turn;
        self.timeouts_left = config.timeouts_per_turn;
        self.overdue_left = None;
        self.wakes.note_awake();
    }

    /// Whether anything waits to be done.
    pub(super) fn is_due(&self) -> bool {
        self.has_events()
            || !self.woken.is_done()
            || !self.fresh.is_empty()
            || !self.runnable.is_empty()
            || !self.deferred.is_empty()
            || !self.expired.is_empty()
            || !self.overdue.is_empty()
            || !self.wakes.is_empty()
    }

    /// How often the backend is polled.
    pub(super) fn pace(&mut self) -> &mut Pace {
        &mut self.pace
    }

    /// Who was woken, by any thread.
    pub(super) fn wakes(&self) -> &Arc<WakeQueue> {
        &self.wakes
    }

    /// Gives back what a burst has left in the queues, if that is much. Called once a turn.
    #[inline]
    pub(super) fn give_back(&mut self) {
        // Not `events`: the backend bounds how many it hands out.
        let queued = self.runnable.capacity() + self.deferred.capacity() + self.woken.capacity();
        let others = self.fresh.capacity() + self.expired.capacity() + self.overdue.capacity();
        if queued + others > CAPACITY_USUAL {
            self.give_back_all();
        }
    }

    #[cold]
    fn give_back_all(&mut self) {
        self.runnable.give_back();
        self.deferred.give_back();
        self.woken.give_back();
        self.fresh.give_back();
        give_back(&mut self.expired);
        give_back(&mut self.overdue);
    }
}

/// Entries of all queues that are nothing to speak of: they have 4 to 16 bytes each, and a deferred
/// spawn its seed beside that.
const CAPACITY_USUAL: usize = 8_192;

/// Events of the backend.
impl<S> RunQueue<S> {
    /// Where the backend appends what is ready.
    pub(super) fn events(&mut self) -> &mut Vec<(Token, EventSet)> {
        self.events.items()
    }

    /// Whether something that the backend reported is to be handed out.
    pub(super) fn has_events(&self) -> bool {
        !self.events.is_done()
    }

    #[inline(always)]
    pub(super) fn next_event(&mut self) -> Option<(Token, EventSet)> {
        self.events.next()
    }
}

/// Pending calls, and spawns that were deferred.
impl<S> RunQueue<S> {
    /// Queues a machine that a call is pending for, unless it is queued already. One that waits to
    /// hear of its spawn is queued when it has heard.
    pub(super) fn push(&mut self, token: Token, state: &mut CallState) {
        if !state.in_runnable && !state.in_deferred {
            state.in_runnable = true;
            self.runnable.push(token);
        }
    }

    /// Has `ready` called in the next turn, with these events and those that come until then.
    pub(super) fn push_again(&mut self, token: Token, state: &mut CallState, events: EventSet) {
        // It has more to do with its socket, which may be much: the others' come first.
        self.pace.poll_next();
        state.pending.add_ready(events);
        self.push(token, state);
    }

    /// The next machine with pending calls. Its state is to say so.
    pub(super) fn next_runnable(&mut self) -> Option<Token> {
        self.runnable.next()
    }

    /// Leaves a spawn for the next turn; until then nothing reaches the machine that wants it.
    pub(super) fn defer_spawn(&mut self, token: Token, state: &mut CallState, seed: S) {
        state.in_deferred = true;
        self.deferred.push((token, seed));
    }

    pub(super) fn next_deferred_spawn(&mut self) -> Option<(Token, S)> {
        self.deferred.next()
    }

    /// All seeds of spawns that were deferred, for a loop that ends.
    pub(super) fn drain_deferred_spawns(&mut self) -> impl Iterator<Item = S> {
        self.deferred.drain().map(|(_, seed)| seed)
    }
}

/// Who is next of those that were woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum NextWoken {
    /// The slot came from the wake queue.
    Slot(u32),
    /// The machine woke itself as it was made: a call of it is pending.
    Fresh(Token),
}

/// Wake-ups.
impl<S> RunQueue<S> {
    /// The next machine that was woken, those included that machines woken in this turn have woken.
    #[inline]
    pub(super) fn next_woken(&mut self) -> Option<NextWoken> {
        if self.woken.is_done() && self.fresh.is_over() {
            // Both at once: neither kind overtakes the other for ever.
            self.wakes.take_all(self.woken.items());
            self.fresh.begin_turn();
        }
        if self.wakeups_left == 0 {
            return None;
        }
        let next = match self.woken.next() {
            Some(index) => NextWoken::Slot(index),
            None => NextWoken::Fresh(self.fresh.next()?),
        };
        self.wakeups_left -= 1;
        Some(next)
    }

    /// Has a machine that woke itself as it was made called in this turn.
    pub(super) fn push_fresh(&mut self, token: Token, state: &mut CallState) {
        if state.in_runnable || self.wakes.is_woken(token.index()) {
            // It is queued for something else already, or somebody knows of it and has woken it:
            // one call for both.
            self.wakes.wake(token);
            return;
        }
        state.pending.add(Calls::WAKEUP_WHOLE);
        state.in_runnable = true;
        self.fresh.push(token);
    }

    /// Takes a slot's flags from the wake queue. Returns whether the machine itself was woken, not
    /// only a part of it.
    pub(super) fn take_wakeup(&mut self, index: u32) -> bool {
        let whole = self.wakes.take_flags(index);
        // After the flags, so that no part is missed.
        self.parts.receive(&self.wakes);
        whole
    }

    /// The parts of a machine that were woken and have not heard of it.
    pub(super) fn parts(&mut self) -> &mut WokenParts {
        &mut self.parts
    }

    /// Notes for a machine that its mark of the wake queue was set when its handler returned, in
    /// this turn. Whether it was woken by itself or by others, before the call or in it, cannot be
    /// told apart, so that the wake-up is the next turn's: to be late by one does no harm. There it
    /// is in the queue of pending calls, and not put off again.
    pub(super) fn note_woken_in_call(&self, state: &mut CallState) {
        state.woken_in_call_of = self.turn;
    }

    /// Has a machine that woke itself called in the next turn. One that is in the list of the woken
    /// already hears of both by that.
    pub(super) fn pend_woke_itself(&mut self, token: Token, state: &mut CallState, is_woken: bool) {
        if is_woken {
            self.wakes.wake(token);
        } else {
            state.pending.add(Calls::WAKEUP_WHOLE);
            self.push(token, state);
        }
    }

    /// Whether a wake-up has to wait for the next turn: the machine was woken while it was with its
    /// handler in this one, or has one pending.
    pub(super) fn is_next_turns(&self, state: &CallState) -> bool {
        state.woken_in_call_of == self.turn || state.pending.has(Calls::WAKEUP)
    }
}

/// Deadlines that have been reached.
///
/// One in the future waits in the timers and comes by `expired`. One that had passed when it was
/// set is in the timers as well, and in `overdue`: that fires it, behind all others, and its entry
/// of `expired` is skipped.
impl<S> RunQueue<S> {
    /// Where the slots whose deadlines have been reached are appended.
    pub(super) fn expired_mut(&mut self) -> &mut VecDeque<Due> {
        &mut self.expired
    }

    /// The next slot whose deadline was reached, while the turn may fire more.
    pub(super) fn next_expired(&mut self) -> Option<u32> {
        if self.timeouts_left == 0 {
            return None;
        }
        self.expired.pop_front().map(|due| due.index)
    }

    /// This turn fires none of them.
    pub(super) fn hold_expired(&mut self) {
        self.timeouts_left = 0;
    }

    /// Deadlines that this turn may not fire any more wait for a turn that has polled.
    pub(super) fn poll_before_expired(&mut self) {
        if !self.expired.is_empty() {
            self.pace.poll_next();
        }
    }

    /// A deadline has fired.
    pub(super) fn note_fired(&mut self) {
        self.timeouts_left = self.timeouts_left.saturating_sub(1);
    }

    /// Queues a machine whose deadline had passed when it was set, once: it is called behind the
    /// others.
    #[cold]
    pub(super) fn push_overdue(&mut self, token: Token, state: &mut CallState) {
        if !state.in_overdue {
            state.in_overdue = true;
            self.overdue.push_back(token);
        }
    }

    /// The next machine whose deadline had passed when it was set: of those queued so far in this
    /// turn, and of no more than `most` in one. What these answer then is for the next turn.
    pub(super) fn next_overdue(&mut self, most: u32) -> Option<Token> {
        let most = self.overdue.len().min(most as usize);
        let left = self.overdue_left.get_or_insert(most);
        *left = left.checked_sub(1)?;
        self.overdue.pop_front()
    }
}

#[cfg(test)]
mod tests;
