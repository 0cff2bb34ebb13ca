//! The slots: the places of the machines of a loop, each with its generation and its deadline.
//!
//! ```text
//!            reserve()                put()
//!  Vacant ──────────────▶ Running ───────────▶ Waiting ──┐ lend_for_call()
//!    ▲                     │   ▲                  │ ▲    │
//!    │        end()        │   │  lift(), take()  │ └────┘
//!    └─────────────────────┘   └──────────────────┘
//!  end() while a wake-up is in the list: Ended, and Vacant once the list has given it up (reclaim())
//! ```
//!
//! A machine is called in its slot if possible. It is called out of it if its handler takes it by
//! value, or may give the loop away meanwhile. Slots never move: memory for all of them is reserved
//! at the start, and touched only when it is used.

mod call_guards;
mod check;
mod slot;

use std::collections::{TryReserveError, VecDeque};
use std::mem;
use std::sync::Arc;

pub(super) use self::call_guards::LiftedCallGuard;
use self::call_guards::SlotCallGuard;
use self::slot::{NONE, Slot};
use super::run_queue::CallState;
use crate::guard::{drop_guarded, log_guarded};
use crate::response::Deadline;
use crate::time::Time;
use crate::timers::{Due, Timers};
use crate::token::{GENERATION_LAST, Token};
use crate::wake_queue::WakeQueue;

/// The machines of a loop.
pub(super) struct Slots<M> {
    slots: Vec<Slot<M>>,
    /// The first free slot, or `NONE`.
    free: u32,
    /// Slots that contain a machine, or are reserved for one.
    used: usize,
    capacity: usize,
    /// Slots that cannot be used: those that are `Ended`, and those whose generations are used up.
    unusable: usize,
    /// Contains the generations, because other threads compare them.
    wakes: Arc<WakeQueue>,
    deadlines: Timers,
    /// When each machine was made, in whole seconds; `None` if this is not recorded.
    creation_times: Option<Vec<u32>>,
}

impl<M> Slots<M> {
    /// Creates slots without machines. Fails if there is not enough memory for so many.
    pub(super) fn new(
        capacity: usize,
        wakes: Arc<WakeQueue>,
        now: Time,
    ) -> Result<Slots<M>, TryReserveError> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(capacity)?;
        let mut deadlines = Timers::new(now);
        deadlines.reserve(capacity)?;
        Ok(Slots {
            slots,
            free: NONE,
            used: 0,
            capacity,
            unusable: 0,
            wakes,
            deadlines,
            creation_times: None,
        })
    }

    /// Starts recording when machines are made.
    pub(super) fn keep_ages(&mut self) {
        self.creation_times = Some(Vec::new());
    }

    /// Records when a machine was made.
    #[inline]
    pub(super) fn record_creation_time(&mut self, token: Token, now: Time) {
        let Some(times) = &mut self.creation_times else { return };
        let (index, seconds) = (token.index() as usize, now.as_nanos() / 1_000_000_000);
        if index >= times.len() {
            times.resize(index + 1, 0);
        }
        times[index] = u32::try_from(seconds).unwrap_or(u32::MAX);
    }

    /// Returns when the machine of a slot was made, to the second.
    pub(super) fn creation_time(&self, index: u32) -> Option<Time> {
        let seconds = self.creation_times.as_ref()?.get(index as usize)?;
        Some(Time::from_nanos(u64::from(*seconds) * 1_000_000_000))
    }

    /// Returns whether calls are pending for the machine of a slot.
    pub(super) fn has_pending_calls(&self, index: u32) -> bool {
        let state = self.slots.get(index as usize).and_then(Slot::state);
        state.is_some_and(|state| !state.pending.is_empty())
    }

    /// Returns the number of machines, including those in a handler.
    pub(super) fn len(&self) -> usize {
        self.used
    }

    /// Returns how many more machines there are slots for.
    pub(super) fn vacant(&self) -> usize {
        self.capacity - self.unusable - self.used
    }

    /// Returns whether no slot is free, although some contain no machine.
    pub(super) fn has_only_unusable_slots(&self) -> bool {
        self.vacant() == 0 && self.unusable > 0
    }

    /// Returns one more than the highest slot that was ever used.
    pub(super) fn high_water(&self) -> u32 {
        self.slots.len() as u32
    }

    /// Takes a free slot for a machine that is being made.
    pub(super) fn reserve(&mut self) -> Option<Token> {
        let running = Slot::Running { state: CallState::default() };
        let index = if self.free != NONE {
            let index = self.free;
            let slot = &mut self.slots[index as usize];
            let Slot::Vacant { next } = *slot else {
                debug_assert!(false, "slot {index} is in the free list, and not vacant");
                return None;
            };
            *slot = running;
            self.free = next;
            index
        } else if self.slots.len() < self.capacity {
            // Within the memory that `new` has reserved, so no slot moves.
            self.slots.push(running);
            self.slots.len() as u32 - 1
        } else {
            return None;
        };
        self.used += 1;
        Some(self.token(index))
    }

    /// Returns whether a machine is in its slot and can be called; it cannot while it waits for its
    /// spawn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn can_be_called(&self, token: Token) -> bool {
        self.callable(token).is_some()
    }

    /// Returns the state of a machine's calls if the machine can be called.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn callable(&self, token: Token) -> Option<&CallState> {
        if !self.is_current(token) {
            return None;
        }
        match &self.slots[token.index() as usize] {
            Slot::Waiting { state, .. } if !state.awaits_spawn => Some(state),
            _ => None,
        }
    }

    /// Lends a machine that can be called, for a call in its slot.
    ///
    /// The loop does nothing else meanwhile. If the machine panics, `on_panic` is called with it, it
    /// is dropped, and its slot becomes `Running`, as if the handler had taken it by value.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn lend_for_call<F: FnMut(&M)>(
        &mut self,
        token: Token,
        on_panic: F,
    ) -> Option<SlotCallGuard<'_, M, F>> {
        match self.slots.get_mut(token.index() as usize)? {
            slot @ Slot::Waiting { .. } => Some(SlotCallGuard { slot, on_panic }),
            _ => None,
        }
    }

    /// Takes a machine out of its slot, whatever is pending. Returned by value: writing it through
    /// a reference would be one more copy.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn take(&mut self, token: Token) -> Option<M> {
        if self.is_current(token) { self.lift(token.index()) } else { None }
    }

    /// Takes a machine out of its slot, without a check of its generation.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn lift(&mut self, index: u32) -> Option<M> {
        let slot = self.slots.get_mut(index as usize)?;
        let Slot::Waiting { state, .. } = *slot else { return None };
        mem::replace(slot, Slot::Running { state }).into_machine()
    }

    /// Puts a machine into its running slot. Returns the current state of its calls.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn put(&mut self, token: Token, machine: M) -> CallState {
        let slot = &mut self.slots[token.index() as usize];
        // Matched first, so that the compiler knows that nothing is dropped here, and writes the
        // machine directly into the slot.
        if let Slot::Running { state } = slot {
            let state = *state;
            *slot = Slot::Waiting { state, machine };
            return state;
        }
        reject_misplaced(machine, token)
    }

    /// Ends a running slot whose machine is gone: its generation and its deadline.
    pub(super) fn end(&mut self, token: Token) {
        let index = token.index();
        let is_running =
            self.is_current(token) && matches!(self.slots[index as usize], Slot::Running { .. });
        debug_assert!(is_running, "machine {token} ended, which was not with a handler");
        if !is_running {
            return;
        }
        self.deadlines.clear(index);
        self.used -= 1;
        // If the slot were used again before its old wake-up has left the list, that would wake the
        // next machine.
        if self.wakes.end_generation(index) {
            self.slots[index as usize] = Slot::Ended;
            self.unusable += 1;
        } else {
            self.vacate(index);
        }
    }

    /// Frees a slot that waited until its last wake-up has left the list. Returns whether it was
    /// such a slot.
    pub(super) fn reclaim(&mut self, index: u32) -> bool {
        // A wake-up by a token that was made from a number may name a slot that was never used.
        let ended = matches!(self.slots.get(index as usize), Some(Slot::Ended));
        if ended {
            self.unusable -= 1;
            self.vacate(index);
        }
        ended
    }

    fn vacate(&mut self, index: u32) {
        // After the last generation, an old token would name the next machine.
        if self.wakes.generation(index) == GENERATION_LAST {
            self.slots[index as usize] = Slot::Vacant { next: NONE };
            self.unusable += 1;
            return;
        }
        self.slots[index as usize] = Slot::Vacant { next: self.free };
        self.free = index;
    }

    /// Returns the state of a machine's calls, whether or not its handler is running.
    #[inline]
    pub(super) fn state(&mut self, token: Token) -> Option<&mut CallState> {
        let (current, state) = self.state_at(token.index())?;
        (current == token).then_some(state)
    }

    /// Returns the token of the machine in a slot, and the state of its calls.
    #[inline]
    pub(super) fn state_at(&mut self, index: u32) -> Option<(Token, &mut CallState)> {
        let state = self.slots.get_mut(index as usize)?.state_mut()?;
        Some((Token::new(index, self.wakes.generation(index)), state))
    }

    /// Returns the state of each machine's calls.
    pub(super) fn states(&self) -> impl Iterator<Item = (Token, CallState)> {
        let slots = self.slots.iter().zip(0..);
        slots.filter_map(|(slot, index)| Some((self.token(index), *slot.state()?)))
    }

    /// Returns the token of the machine in a slot, and the machine unless a handler has taken it.
    pub(super) fn at(&self, index: u32) -> Option<(Token, Option<&M>)> {
        let slot = self.slots.get(index as usize)?;
        slot.state().map(|_| (self.token(index), slot.machine()))
    }

    /// Returns the machine in a slot, unless a handler has taken it.
    pub(super) fn machine_at(&self, index: u32) -> Option<&M> {
        self.slots.get(index as usize)?.machine()
    }

    /// Returns whether the machine with this token exists, in its slot or in a handler.
    pub(super) fn contains(&self, token: Token) -> bool {
        // A token that was made from a number may have the generation of a slot's next machine.
        self.at(token.index()).is_some_and(|(current, _)| current == token)
    }

    fn token(&self, index: u32) -> Token {
        Token::new(index, self.wakes.generation(index))
    }

    /// Returns whether a token has the current generation of its slot.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn is_current(&self, token: Token) -> bool {
        (token.index() as usize) < self.slots.len()
            && self.wakes.generation(token.index()) == token.generation()
    }
}

/// Deadlines: one for each machine.
impl<M> Slots<M> {
    /// Sets the deadline of a machine. Returns whether it has passed already.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn set_deadline(&mut self, token: Token, deadline: Deadline, now: Time) -> bool {
        let time = match deadline {
            Deadline::Keep => return false,
            Deadline::Never => Time::NEVER,
            Deadline::At(time) => time,
        };
        self.deadlines.set(token.index(), time);
        time <= now
    }

    /// Removes the deadline of a machine.
    pub(super) fn clear_deadline(&mut self, token: Token) {
        self.deadlines.clear(token.index());
    }

    pub(super) fn deadline(&self, index: u32) -> Option<Time> {
        self.deadlines.deadline(index)
    }

    /// Returns how many deadlines are in the wheel, including some that were removed since.
    pub(super) fn armed_deadlines(&self) -> usize {
        self.deadlines.queued()
    }

    /// Returns a lower bound of the next deadline: it may be too early, but is never too late.
    pub(super) fn next_deadline(&self) -> Option<Time> {
        self.deadlines.next_wake()
    }

    /// Appends the slots whose deadlines have passed, in the order of ticks.
    #[inline]
    pub(super) fn collect_expired(&mut self, now: Time, expired: &mut VecDeque<Due>) {
        self.deadlines.expire(now, expired);
    }

    /// Returns whether a slot that has expired still has that deadline, and removes it.
    pub(super) fn take_expired(&mut self, index: u32) -> bool {
        self.deadlines.take_expired(index)
    }
}

/// Handles a machine that was put into a slot not waiting for it, which is a bug of the loop. The
/// machine in the slot stays.
#[cold]
#[inline(never)]
fn reject_misplaced<T>(machine: T, token: Token) -> CallState {
    // Before the assertion: a panic of the drop during unwinding would abort the process.
    drop_guarded(machine, "a machine without a slot");
    log_guarded!(error, "machine {token} was put into a slot that is not its own, and is dropped");
    debug_assert!(false, "machine {token} was put into a slot that is not its own");
    CallState::default()
}

#[cfg(test)]
mod tests;
