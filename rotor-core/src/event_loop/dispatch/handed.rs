//! Calls of a loop that may be handed over: what is to be called is given out, and its answer comes
//! back, perhaps from another thread. Nothing of the loop is borrowed in between.

use std::cell::Cell;

use super::failures::{Callee, report};
use super::{Dispatch, Refs, trace, wakeup_calls};
use crate::backend::Backend;
use crate::event::Event;
use crate::event_loop::run_queue::{Calls, Pending};
use crate::event_loop::slots::Lifted;
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::machine_failure::FailureCause;
use crate::response::{Answer, Deadline, Response};
use crate::scope::Woken;
use crate::time::Time;
use crate::token::Token;

/// A call that is to be made of a machine which was lifted out of its slot. Where that was put says
/// whoever asks for calls, so that it is copied nowhere else.
pub(in crate::event_loop) struct Call<M: Machine> {
    pub(in crate::event_loop) terms: Terms,
    pub(in crate::event_loop) event: Event<M::Seed>,
}

/// What is to be known of a call when its answer comes.
pub(in crate::event_loop) struct Terms {
    pub(in crate::event_loop) callee: Callee,
    /// When it began, if it is timed; later by what its sections took that were handed over.
    started: Cell<Option<Time>>,
    /// `Again` repeats them.
    events: EventSet,
    /// For a wake-up: whether the machine itself was woken, and which parts.
    woken: Option<(bool, Vec<u32>)>,
    /// Spawns so far at this event.
    spawns: u32,
}

/// An answer that came back.
pub(in crate::event_loop) enum Answered<M: Machine> {
    /// The machine goes on, where it was called.
    InPlace(Deadline),
    Whole(Response<M, M::Seed>),
}

impl Terms {
    fn new(
        callee: Callee,
        started: Option<Time>,
        events: EventSet,
        woken: Option<(bool, Vec<u32>)>,
    ) -> Terms {
        Terms { callee, started: Cell::new(started), events, woken, spawns: 0 }
    }

    /// Others had the loop from then on. `now` is asked where handlers are timed.
    pub(in crate::event_loop) fn was_away_since(&self, then: Time, now: impl FnOnce() -> Time) {
        if let Some(started) = self.started.get() {
            self.started.set(Some(started + (now() - then)));
        }
    }

    pub(in crate::event_loop) fn woken(&self) -> Woken<'_> {
        self.woken
            .as_ref()
            .map_or(Woken::default(), |(whole, parts)| Woken { whole: *whole, parts })
    }

    pub(in crate::event_loop) fn is_wakeup(&self) -> bool {
        self.woken.is_some()
    }
}

/// Calls that are to be made. Each is what the function of the same name in the parent module makes
/// itself.
impl<M: Machine> Dispatch<M> {
    pub(in crate::event_loop) fn ready_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
        events: EventSet,
    ) -> Option<Call<M>> {
        *lifted = self.scheduler.slots_mut().lift_unless(token, Calls::READY);
        if lifted.is_none() {
            self.ready_later(token, events);
            return None;
        }
        self.counters.stats.events += 1;
        self.clock.before_call(refs.backend, refs.environment);
        self.begin(refs, lifted, token, Event::Ready(events), None)
    }

    /// The call for a slot that came from the wake queue.
    pub(in crate::event_loop) fn wake_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        index: u32,
    ) -> Option<Call<M>> {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(refs.environment);
            self.counters.stats.stale += 1;
            return None;
        }
        let token = self.scheduler.wake_now(index, wakeup_calls(whole))?;
        self.wakeup_call(refs, lifted, token, whole)
    }

    fn wakeup_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
        whole: bool,
    ) -> Option<Call<M>> {
        if !whole && !self.scheduler.queue().parts().has(token) {
            return None;
        }
        *lifted = self.scheduler.slots_mut().lift(token);
        if lifted.is_none() {
            self.pend_event(token, wakeup_calls(whole));
            return None;
        }
        self.counters.stats.wakeups += 1;
        let parts = self.scheduler.queue().parts().take(token);
        refs.environment.waiters.begin_wakeup(token);
        self.clock.before_cheap_call(refs.backend, refs.environment);
        self.begin(refs, lifted, token, Event::Wakeup, Some((whole, parts)))
    }

    /// What is pending for a machine of the run queue, if it is there to be called.
    pub(in crate::event_loop) fn pending<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
    ) -> Option<Pending> {
        self.next_pending(refs, token)
    }

    /// The first of the calls that are pending for a machine, and takes that from `pending`.
    pub(in crate::event_loop) fn pending_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
        pending: &mut Pending,
    ) -> Option<Call<M>> {
        if pending.take_one(Calls::READY) {
            let call = self.ready_call(refs, lifted, token, pending.events());
            if call.is_some() {
                return call;
            }
        }
        if pending.take_one(Calls::DRAINING) {
            let call = self.draining_call(refs, lifted, token);
            if call.is_some() {
                return call;
            }
        }
        let whole = pending.has(Calls::WAKEUP_WHOLE);
        if pending.take_one(Calls::WAKEUP) {
            self.wakeup_call(refs, lifted, token, whole)
        } else {
            None
        }
    }

    pub(in crate::event_loop) fn draining_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
    ) -> Option<Call<M>> {
        let until = refs.environment.draining().unwrap_or_else(|| refs.environment.now());
        *lifted = self.scheduler.slots_mut().lift(token);
        if lifted.is_none() {
            self.pend_event(token, Calls::DRAINING);
            return None;
        }
        self.clock.before_cheap_call(refs.backend, refs.environment);
        self.begin(refs, lifted, token, Event::Draining(until), None)
    }

    pub(in crate::event_loop) fn timeout_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
    ) -> Option<Call<M>> {
        *lifted = self.lift_for_timeout(refs, token);
        if lifted.is_none() {
            return None;
        }
        self.begin(refs, lifted, token, Event::Timeout, None)
    }

    /// Goes on with a spawn of an earlier turn.
    pub(in crate::event_loop) fn spawn_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
        seed: M::Seed,
    ) -> Option<Call<M>> {
        let pending = self.scheduler.leave_deferred(token)?;
        if pending.has(Calls::END) {
            self.drop_machine(refs.environment, refs.config, token);
            return None;
        }
        let machine = self.scheduler.slots_mut().lift(token).into_machine()?;
        let (callee, started) = self.begin_call(refs, token, &machine);
        let events = EventSet::EMPTY;
        let terms = Terms::new(callee, started, events, None);
        self.answered(refs, lifted, terms, Answered::Whole(Response::spawn(machine, seed)))
    }

    fn begin<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        token: Token,
        event: Event<M::Seed>,
        woken: Option<(bool, Vec<u32>)>,
    ) -> Option<Call<M>> {
        let events = if let Event::Ready(events) = event { events } else { EventSet::EMPTY };
        let mut in_hand = lifted.in_hand();
        let begun = in_hand.machine().map(|machine| self.begin_call(refs, token, machine));
        in_hand.let_go();
        let (callee, started) = begun?;
        trace(callee, || &event);
        let terms = Terms::new(callee, started, events, woken);
        Some(Call { terms, event })
    }
}

/// Answers.
impl<M: Machine> Dispatch<M> {
    /// Applies the answer to a call. Returns the next one, where the machine is to hear of its
    /// spawn.
    pub(in crate::event_loop) fn answered<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        mut terms: Terms,
        answered: Answered<M>,
    ) -> Option<Call<M>> {
        let token = terms.callee.token;
        self.note_time(refs, terms.callee, terms.started.get());
        let is_late = !self.away.is_empty() && self.take_away(token);
        if !self.scheduler.slots().is_there(token) {
            // Dropped by a drain while its handler was away.
            refs.environment.take_woke_itself();
            self.callee = None;
            drop_guarded((lifted.take(), answered), "a machine that its loop had given up");
            return None;
        }
        match answered {
            Answered::InPlace(deadline) => {
                let deadline = deadline_after(is_late, refs.environment.now(), deadline);
                self.scheduler.put_back(refs.environment, token, lifted.take(), deadline);
            }
            Answered::Whole(response) => {
                let (answer, deadline) = response.into_parts();
                let deadline = deadline_after(is_late, refs.environment.now(), deadline);
                if let Some(call) = self.apply_answer(refs, lifted, &mut terms, answer, deadline) {
                    return Some(call);
                }
            }
        }
        self.callee = None;
        if let Some((whole, parts)) = &terms.woken {
            refs.environment.waiters.end_wakeup(token, *whole, parts);
        }
        None
    }

    fn apply_answer<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        lifted: &mut Lifted<M>,
        terms: &mut Terms,
        answer: Answer<M, M::Seed>,
        deadline: Deadline,
    ) -> Option<Call<M>> {
        let (callee, token) = (terms.callee, terms.callee.token);
        self.scheduler.pend_if_it_woke_itself(refs.environment, token);
        match answer {
            Answer::Continue(machine) => {
                self.scheduler.keep(refs.environment, token, machine, deadline);
            }
            Answer::Again(machine) => {
                self.scheduler.keep(refs.environment, token, machine, deadline);
                self.scheduler.call_again(token, terms.events);
            }
            Answer::Spawn(machine, seed) => {
                self.scheduler.set_deadline(refs.environment.now(), token, deadline);
                if terms.spawns == refs.config.spawns_per_event {
                    self.scheduler.defer_spawn(refs.environment, token, machine, seed);
                    return None;
                }
                let Refs { context, environment, backend, config } = refs;
                self.clock.before_cheap_call(*backend, environment);
                let made = self.create(context, environment, config, Some(token), seed);
                let event = made.map_or_else(Event::SpawnError, |_| Event::Spawned);
                trace(callee, || &event);
                let woken = terms.woken.take();
                let (events, spawns) = (terms.events, terms.spawns + 1);
                let terms = Terms { spawns, ..Terms::new(callee, None, events, woken) };
                *lifted = Lifted::of(machine);
                return Some(Call { terms, event });
            }
            Answer::Done => {
                self.counters.stats.ended += 1;
                self.scheduler.end(refs.environment, token);
            }
            Answer::Error(error) => {
                self.counters.stats.failed += 1;
                self.scheduler.end(refs.environment, token);
                report(refs.config, callee, FailureCause::Error(&error));
                drop_guarded(error, "an error");
            }
        }
        None
    }
}

/// The deadline of an answer. One that was reached while the handler was away, and is kept, is due
/// now.
#[inline(always)]
fn deadline_after(is_late: bool, now: Time, deadline: Deadline) -> Deadline {
    if is_late && matches!(deadline, Deadline::Keep) { Deadline::At(now) } else { deadline }
}
