//! Calls of a loop that may be handed over: what is to be called is given out, and its answer comes
//! back, perhaps from another thread. Nothing of the loop is borrowed in between.

use super::call::trace;
use super::terms::{Terms, What};
use super::{Callee, Dispatch, Refs, wakeup_calls};
use crate::backend::Backend;
use crate::config::Config;
use crate::event_loop::run_queue::{Calls, Pending};
use crate::event_loop::slots::Lifted;
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// Calls that are to be made: whether there is one. Each is what the function of the same name in
/// the parent module makes itself.
///
/// Their arguments are passed one by one: a struct of them would be written to memory for each
/// call.
impl<M: Machine> Dispatch<M> {
    #[inline(always)]
    pub(in crate::event_loop) fn ready_call<B: Backend>(
        &mut self,
        (environment, backend): (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        token: Token,
        events: EventSet,
    ) -> bool {
        if !self.scheduler.slots().can_be_called_unless(token, Calls::READY) {
            self.ready_later(token, events);
            return false;
        }
        self.counters.stats.events += 1;
        self.clock.before_call(backend, environment);
        terms.begin(token, What::Ready(events));
        true
    }

    /// The call for a slot that came from the wake queue.
    #[inline(always)]
    pub(in crate::event_loop) fn wake_call<B: Backend>(
        &mut self,
        at: (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        index: u32,
    ) -> bool {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(at.0);
            self.counters.stats.stale += 1;
            return false;
        }
        let Some(token) = self.scheduler.wake_now(index, wakeup_calls(whole)) else {
            return false;
        };
        self.wakeup_call(at, terms, token, whole)
    }

    #[inline(always)]
    fn wakeup_call<B: Backend>(
        &mut self,
        (environment, backend): (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        token: Token,
        whole: bool,
    ) -> bool {
        if !whole && !self.scheduler.queue().parts().has(token) {
            return false;
        }
        if !self.scheduler.slots().can_be_called(token) {
            self.pend_event(token, wakeup_calls(whole));
            return false;
        }
        self.counters.stats.wakeups += 1;
        terms.begin(token, What::Wakeup);
        terms.woken = Some(whole);
        self.scheduler.queue().parts().take_into(token, &mut terms.parts);
        environment.waiters.begin_wakeup(token);
        self.clock.before_cheap_call(backend, environment);
        true
    }

    /// The first of the calls that are pending for a machine, and takes that from `pending`.
    #[inline(always)]
    pub(in crate::event_loop) fn pending_call<B: Backend>(
        &mut self,
        at: (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        token: Token,
        pending: &mut Pending,
    ) -> bool {
        if pending.take_one(Calls::READY) && self.ready_call(at, terms, token, pending.events()) {
            return true;
        }
        if pending.take_one(Calls::DRAINING) && self.draining_call(at, terms, token) {
            return true;
        }
        let (whole, is_woken) = (pending.has(Calls::WAKEUP_WHOLE), pending.has(Calls::WAKEUP));
        pending.take_one(Calls::WAKEUP_WHOLE);
        is_woken && self.wakeup_call(at, terms, token, whole)
    }

    pub(in crate::event_loop) fn draining_call<B: Backend>(
        &mut self,
        (environment, backend): (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        token: Token,
    ) -> bool {
        let until = environment.draining().unwrap_or_else(|| environment.now());
        if !self.scheduler.slots().can_be_called(token) {
            self.pend_event(token, Calls::DRAINING);
            return false;
        }
        self.clock.before_cheap_call(backend, environment);
        terms.begin(token, What::Draining(until));
        true
    }

    pub(in crate::event_loop) fn timeout_call<B: Backend>(
        &mut self,
        (environment, backend): (&AnyEnvironment, &B),
        terms: &mut Terms<M>,
        token: Token,
    ) -> bool {
        if !self.scheduler.slots().can_be_called(token) {
            self.time_out_later(environment.now(), token);
            return false;
        }
        self.begin_timeout((environment, backend), token);
        terms.begin(token, What::Timeout);
        true
    }

    /// Goes on with a spawn of an earlier turn. The machine, which is to hear of it, is in its slot.
    pub(in crate::event_loop) fn spawn_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        token: Token,
        seed: M::Seed,
    ) -> bool {
        let Some((machine, seed)) = self.take_spawner(refs, token, seed) else { return false };
        let (callee, started) = self.begin_call(refs.environment, refs.config, token, &machine);
        terms.begin(token, What::SpawnAnswer);
        terms.callee = callee;
        terms.started.set(started);
        let told = self.answered(refs, terms, Response::spawn(machine, seed));
        let Some(machine) = told else { return false };
        self.scheduler.slots_mut().put(token, machine);
        true
    }

    /// Takes the machine that is to be called out of its slot, and notes that its handler runs.
    #[inline(always)]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        terms: &mut Terms<M>,
    ) -> Lifted<M> {
        let token = terms.callee.token;
        // What it hears of its spawn is of the same call.
        if !matches!(terms.what, What::SpawnAnswer)
            && let Some(machine) = self.scheduler.slots().machine_at(token.index())
        {
            // It is asked for its name, and may panic.
            self.callee = Some(Callee::unnamed::<M>(token));
            let callee = Callee::of(token, machine);
            self.callee = Some(callee);
            terms.callee = callee;
            let started = config.notes_calls.then(|| self.note_call(environment, config, callee));
            terms.started.set(started.flatten());
            trace(callee, || terms.take_event());
        }
        self.scheduler.slots_mut().lift(token.index())
    }
}

/// Answers. Each returns the machine where there is a next call, in which it is to hear of its
/// spawn.
impl<M: Machine> Dispatch<M> {
    /// The machine goes on, which is what nearly all say: inlined, so that it is copied as few times
    /// as may be.
    #[inline(always)]
    pub(in crate::event_loop) fn goes_on<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        machine: M,
        deadline: Deadline,
    ) -> Lifted<M> {
        if !self.away.is_empty() {
            let response = Response { answer: Answer::Continue(machine), deadline };
            return self.answered_with_some_away(refs, terms, response);
        }
        self.note_time(refs.environment, refs.config, terms.callee, terms.started.get());
        self.scheduler.keep(refs.environment, terms.callee.token, machine, deadline);
        self.end_answer(refs.environment, terms);
        None
    }

    /// Applies any answer.
    #[inline(never)]
    pub(in crate::event_loop) fn answered<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        response: Response<M, M::Seed>,
    ) -> Lifted<M> {
        if !self.away.is_empty() {
            return self.answered_with_some_away(refs, terms, response);
        }
        self.note_time(refs.environment, refs.config, terms.callee, terms.started.get());
        self.apply_answer(refs, terms, response)
    }

    #[inline(always)]
    fn end_answer(&mut self, environment: &AnyEnvironment, terms: &Terms<M>) {
        self.callee = None;
        if let Some(whole) = terms.woken {
            environment.waiters.end_wakeup(terms.callee.token, whole, &terms.parts);
        }
    }

    /// The same while handlers are away, of which this may have been one.
    #[cold]
    #[inline(never)]
    fn answered_with_some_away<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        mut response: Response<M, M::Seed>,
    ) -> Lifted<M> {
        let token = terms.callee.token;
        self.note_time(refs.environment, refs.config, terms.callee, terms.started.get());
        let is_late = self.take_away(token);
        if !self.scheduler.slots().is_there(token) {
            // Dropped by a drain while its handler was away.
            refs.environment.take_woke_itself();
            self.callee = None;
            drop_guarded(response, "a machine that its loop had given up");
            return None;
        }
        response.deadline = deadline_after(is_late, refs.environment.now(), response.deadline);
        self.apply_answer(refs, terms, response)
    }

    fn apply_answer<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        response: Response<M, M::Seed>,
    ) -> Lifted<M> {
        let Terms { callee, events, spawns, .. } = *terms;
        let Some((machine, event)) = self.apply(refs, callee, events, spawns, response) else {
            self.end_answer(refs.environment, terms);
            return None;
        };
        terms.what = What::SpawnAnswer;
        terms.spawn_answer = Some(event);
        terms.started.set(None);
        terms.spawns += 1;
        Some(machine)
    }
}

/// The deadline of an answer. One that was reached while the handler was away, and is kept, is due
/// now.
fn deadline_after(is_late: bool, now: Time, deadline: Deadline) -> Deadline {
    if is_late && matches!(deadline, Deadline::Keep) { Deadline::At(now) } else { deadline }
}
