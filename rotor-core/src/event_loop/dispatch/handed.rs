//! Calls of a loop that may be handed over: what is to be called is given out, and its answer comes
//! back, perhaps from another thread. Nothing of the loop is borrowed in between.

use std::cell::Cell;

use super::call::trace;
use super::terms::{Answered, Terms, What};
use super::{Dispatch, Refs, wakeup_calls};
use crate::backend::Backend;
use crate::event_loop::run_queue::{Calls, Pending};
use crate::event_loop::slots::Lifted;
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::time::Time;
use crate::token::Token;

/// Calls that are to be made: whether there is one. Each is what the function of the same name in
/// the parent module makes itself.
impl<M: Machine> Dispatch<M> {
    pub(in crate::event_loop) fn ready_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
        events: EventSet,
    ) -> bool {
        let slots = self.scheduler.slots_mut();
        if !slots.lift(token, lifted, |state| !state.pending.has(Calls::READY)) {
            self.ready_later(token, events);
            return false;
        }
        self.counters.stats.events += 1;
        self.clock.before_call(refs.backend, refs.environment);
        self.begin(refs, lifted, terms, token, What::Ready(events))
    }

    /// The call for a slot that came from the wake queue.
    pub(in crate::event_loop) fn wake_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        index: u32,
    ) -> bool {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(refs.environment);
            self.counters.stats.stale += 1;
            return false;
        }
        let Some(token) = self.scheduler.wake_now(index, wakeup_calls(whole)) else {
            return false;
        };
        self.wakeup_call(refs, lifted, terms, token, whole)
    }

    fn wakeup_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
        whole: bool,
    ) -> bool {
        if !whole && !self.scheduler.queue().parts().has(token) {
            return false;
        }
        if !self.scheduler.slots_mut().lift(token, lifted, |_| true) {
            self.pend_event(token, wakeup_calls(whole));
            return false;
        }
        self.counters.stats.wakeups += 1;
        terms.parts = self.scheduler.queue().parts().take(token);
        refs.environment.waiters.begin_wakeup(token);
        self.clock.before_cheap_call(refs.backend, refs.environment);
        let is_begun = self.begin(refs, lifted, terms, token, What::Wakeup);
        terms.woken = Some(whole);
        is_begun
    }

    /// The first of the calls that are pending for a machine, and takes that from `pending`.
    pub(in crate::event_loop) fn pending_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
        pending: &mut Pending,
    ) -> bool {
        if pending.take_one(Calls::READY)
            && self.ready_call(refs, lifted, terms, token, pending.events())
        {
            return true;
        }
        if pending.take_one(Calls::DRAINING) && self.draining_call(refs, lifted, terms, token) {
            return true;
        }
        let (whole, is_woken) = (pending.has(Calls::WAKEUP_WHOLE), pending.has(Calls::WAKEUP));
        pending.take_one(Calls::WAKEUP_WHOLE);
        is_woken && self.wakeup_call(refs, lifted, terms, token, whole)
    }

    pub(in crate::event_loop) fn draining_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
    ) -> bool {
        let until = refs.environment.draining().unwrap_or_else(|| refs.environment.now());
        if !self.scheduler.slots_mut().lift(token, lifted, |_| true) {
            self.pend_event(token, Calls::DRAINING);
            return false;
        }
        self.clock.before_cheap_call(refs.backend, refs.environment);
        self.begin(refs, lifted, terms, token, What::Draining(until))
    }

    pub(in crate::event_loop) fn timeout_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
    ) -> bool {
        if !self.scheduler.slots_mut().lift(token, lifted, |_| true) {
            self.time_out_later(refs.environment.now(), token);
            return false;
        }
        self.begin_timeout(refs, token);
        self.begin(refs, lifted, terms, token, What::Timeout)
    }

    /// Goes on with a spawn of an earlier turn.
    pub(in crate::event_loop) fn spawn_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
        seed: M::Seed,
    ) -> bool {
        let Some(pending) = self.scheduler.leave_deferred(token) else { return false };
        if pending.has(Calls::END) {
            self.drop_machine(refs.environment, refs.config, token);
            return false;
        }
        let Some(machine) = self.scheduler.slots_mut().take(token) else { return false };
        let (callee, started) = self.begin_call(refs, token, &machine);
        *terms = Terms { callee, started: Cell::new(started), ..Terms::nothing() };
        self.answered(refs, lifted, terms, Answered::Whole(Response::spawn(machine, seed)))
    }

    #[inline(always)]
    fn begin<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        token: Token,
        what: What,
    ) -> bool {
        let mut in_hand = lifted.in_hand();
        let begun = in_hand.machine().map(|machine| self.begin_call(refs, token, machine));
        in_hand.let_go();
        let Some((callee, started)) = begun else { return false };
        terms.callee = callee;
        terms.what = what;
        terms.started.set(started);
        terms.events = if let What::Ready(events) = what { events } else { EventSet::EMPTY };
        terms.woken = None;
        if !matches!(what, What::Wakeup) {
            terms.parts.clear();
        }
        terms.spawns = 0;
        trace(callee, || terms.take_event());
        true
    }
}

/// Answers.
impl<M: Machine> Dispatch<M> {
    /// Applies the answer to a call. Returns whether there is a next one, where the machine is to
    /// hear of its spawn.
    #[inline(always)]
    pub(in crate::event_loop) fn answered<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        answered: Answered<M>,
    ) -> bool {
        // What nearly all say is inlined, so that the machine is copied as few times as may be.
        let token = terms.callee.token;
        if !self.away.is_empty() {
            return self.answered_with_some_away(refs, lifted, terms, answered);
        }
        self.note_time(refs, terms.callee, terms.started.get());
        match answered {
            Answered::InPlace(deadline) => {
                self.scheduler.put_back(refs.environment, token, lifted.take(), deadline);
            }
            Answered::Whole(Response { answer: Answer::Continue(machine), deadline }) => {
                self.scheduler.keep(refs.environment, token, machine, deadline);
            }
            Answered::Whole(response) => {
                if self.apply_rarer_answer(refs, lifted, terms, response) {
                    return true;
                }
            }
        }
        self.end_answer(refs, terms);
        false
    }

    #[inline(always)]
    fn end_answer<B>(&mut self, refs: &Refs<'_, M, B>, terms: &Terms<M>) {
        self.callee = None;
        if let Some(whole) = terms.woken {
            refs.environment.waiters.end_wakeup(terms.callee.token, whole, &terms.parts);
        }
    }

    /// The same while handlers are away, of which this may have been one.
    #[cold]
    #[inline(never)]
    fn answered_with_some_away<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        answered: Answered<M>,
    ) -> bool {
        let token = terms.callee.token;
        self.note_time(refs, terms.callee, terms.started.get());
        let is_late = self.take_away(token);
        if !self.scheduler.slots().is_there(token) {
            // Dropped by a drain while its handler was away.
            refs.environment.take_woke_itself();
            self.callee = None;
            drop_guarded((lifted.take(), answered), "a machine that its loop had given up");
            return false;
        }
        match answered {
            Answered::InPlace(deadline) => {
                let deadline = deadline_after(is_late, refs.environment.now(), deadline);
                self.scheduler.put_back(refs.environment, token, lifted.take(), deadline);
            }
            Answered::Whole(mut response) => {
                let now = refs.environment.now();
                response.deadline = deadline_after(is_late, now, response.deadline);
                if self.apply_rarer_answer(refs, lifted, terms, response) {
                    return true;
                }
            }
        }
        self.end_answer(refs, terms);
        false
    }

    /// Applies any answer.
    #[inline(never)]
    fn apply_rarer_answer<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms<M>,
        response: Response<M, M::Seed>,
    ) -> bool {
        let Terms { callee, events, spawns, .. } = *terms;
        let told = self.apply(refs, callee, events, spawns, response);
        let Some((machine, event)) = told else { return false };
        terms.what = What::SpawnAnswer;
        terms.spawn_answer = Some(event);
        terms.started.set(None);
        terms.spawns += 1;
        *lifted = Lifted::of(machine);
        true
    }
}

/// The deadline of an answer. One that was reached while the handler was away, and is kept, is due
/// now.
fn deadline_after(is_late: bool, now: Time, deadline: Deadline) -> Deadline {
    if is_late && matches!(deadline, Deadline::Keep) { Deadline::At(now) } else { deadline }
}
