//! Dispatch: hands events to machines. Each call lends the machine to its handler, or takes it out
//! of its slot for one that takes it by value, and applies the answer.
//!
//! ```text
//!   event ──▶ handle_in_place() ──▶ take(), handle() ──▶ apply: Continue ──▶ back into its slot
//!     │                        └── handled ───────────▶        Again ─────▶ and into the run queue
//!     ▼ it cannot be called now                                Spawn ─────▶ create(), then the next event
//!   pending: the run queue has it called later                 Done, Error ▶ its slot ends
//! ```
//!
//! A handler that panics unwinds to the turn, which tells `handler_panicked` and goes on.

mod asking_to_end;
mod away;
mod coming_back;
mod deadlines;
mod ending;
mod failures;
mod handed;
mod making;
mod terms;
mod turn_clock;

use std::fmt;

use log::Level;

use self::away::Away;
pub(super) use self::failures::Callee;
use self::failures::report;
pub(super) use self::terms::{Answered, Terms};
use self::turn_clock::TurnClock;
use super::handle::Exit;
use super::run_queue::{Calls, Pending, RunQueue};
use super::scheduler::Scheduler;
use super::slots::Slots;
use crate::backend::Backend;
use crate::blocking::Pulse;
use crate::config::Config;
use crate::event::{Event, InPlace};
use crate::event_set::EventSet;
use crate::guard::{drop_guarded, log_guarded};
use crate::machine::Machine;
use crate::machine_failure::FailureCause;
use crate::response::{Answer, Response};
use crate::scope::{AnyEnvironment, Scope, Woken};
use crate::stats::{Counters, StatsHandle};
use crate::time::Time;
use crate::token::Token;

/// References to what a turn needs beside the machines, while it calls them.
pub(super) struct Refs<'a, M: Machine, B> {
    pub(super) context: &'a mut M::Context,
    pub(super) environment: &'a AnyEnvironment,
    pub(super) backend: &'a mut B,
    pub(super) config: &'a Config,
}

/// The machines of a loop, and the call that is under way.
pub(super) struct Dispatch<M: Machine> {
    scheduler: Scheduler<M>,
    clock: TurnClock,
    counters: Counters,
    /// The machine whose handler runs.
    callee: Option<Callee>,
    /// What the watchdog sees.
    pulse: Option<Pulse>,
    /// A handler has panicked, under `OnPanic::StopLoop`.
    stop_reason: Option<Exit>,
    /// Slots below this have been told of the drain that is under way.
    told_of_drain: u32,
    /// Machines whose handlers have given the loop away and have not answered.
    away: Vec<Away>,
}

impl<M: Machine> Dispatch<M> {
    pub(super) fn new(scheduler: Scheduler<M>, counters: Counters) -> Dispatch<M> {
        Dispatch {
            scheduler,
            clock: TurnClock::default(),
            counters,
            callee: None,
            pulse: None,
            stop_reason: None,
            told_of_drain: 0,
            away: Vec::new(),
        }
    }

    /// From now on the loop shows what it does.
    pub(super) fn set_pulse(&mut self, pulse: Pulse) {
        self.pulse = Some(pulse);
    }

    #[inline]
    pub(super) fn pulse(&mut self) -> Option<&mut Pulse> {
        self.pulse.as_mut()
    }

    pub(super) fn slots(&self) -> &Slots<M> {
        self.scheduler.slots()
    }

    pub(super) fn scheduler(&mut self) -> &mut Scheduler<M> {
        &mut self.scheduler
    }

    pub(super) fn queue(&mut self) -> &mut RunQueue<M::Seed> {
        self.scheduler.queue()
    }

    pub(super) fn is_due(&self) -> bool {
        self.scheduler.is_due()
    }

    /// Checks that the run queue and what the slots say of it agree.
    pub(super) fn check_queue(&self) -> Result<(), String> {
        self.scheduler.check(|token| self.is_away(token))
    }

    pub(super) fn clock(&mut self) -> &mut TurnClock {
        &mut self.clock
    }

    pub(super) fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// How many machines have been made so far.
    pub(super) fn machines_made(&self) -> u64 {
        self.counters.stats.spawned
    }

    /// Makes the statistics seen by other threads.
    pub(super) fn publish(&self) {
        let slots = self.scheduler.slots();
        self.counters.publish(slots.len(), slots.armed());
    }

    /// The statistics, with what has happened so far.
    pub(super) fn stats(&self) -> StatsHandle {
        self.publish();
        self.counters.handle()
    }

    /// Why the loop is to end at once, if a panic says so.
    pub(super) fn stop_reason(&mut self) -> &mut Option<Exit> {
        &mut self.stop_reason
    }
}

/// Events for machines.
impl<M: Machine> Dispatch<M> {
    #[inline(always)]
    pub(super) fn ready<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        events: EventSet,
    ) {
        // A machine that asked to be called again is called behind the others, once, with all that
        // came meanwhile.
        if !self.scheduler.slots().can_be_called_unless(token, Calls::READY) {
            return self.ready_later(token, events);
        }
        self.counters.stats.events += 1;
        self.clock.before_call(refs.backend, refs.environment);
        self.call(refs, token, || Event::Ready(events), Woken::default());
    }

    /// Keeps the events for a machine that cannot be called now.
    #[cold]
    #[inline(never)]
    fn ready_later(&mut self, token: Token, events: EventSet) {
        if !self.scheduler.pend_ready(token, events) {
            self.counters.stats.stale += 1;
        }
    }

    /// Keeps another call for a machine that cannot be called now.
    #[cold]
    fn pend_event(&mut self, token: Token, calls: Calls) {
        if self.scheduler.queue().wakes().is_alive(token) {
            self.scheduler.pend(token, calls);
        } else {
            self.counters.stats.stale += 1;
        }
    }

    /// Wakes the machine of a slot that came from the wake queue.
    pub(super) fn wake_slot<B: Backend>(&mut self, refs: &mut Refs<'_, M, B>, index: u32) {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(refs.environment);
            self.counters.stats.stale += 1;
            return;
        }
        let Some(token) = self.scheduler.wake_now(index, wakeup_calls(whole)) else { return };
        self.wakeup(refs, token, whole);
    }

    /// `whole` says that the machine itself was woken, not only parts of it.
    ///
    /// A thread that wakes a part puts it into the channel first and the machine into the list
    /// after that. If the part was taken in between, the machine is in the list for nothing.
    fn wakeup<B: Backend>(&mut self, refs: &mut Refs<'_, M, B>, token: Token, whole: bool) {
        if !whole && !self.scheduler.queue().parts().has(token) {
            return;
        }
        if !self.scheduler.slots().can_be_called(token) {
            return self.pend_event(token, wakeup_calls(whole));
        }
        self.counters.stats.wakeups += 1;
        // Before the call: what is woken while it runs is for the next.
        let parts = self.scheduler.queue().parts().take(token);
        refs.environment.waiters.begin_wakeup(token);
        self.clock.before_cheap_call(refs.backend, refs.environment);
        let woken = Woken { whole, parts: &parts };
        self.call(refs, token, || Event::Wakeup, woken);
        // A slot that was granted with this wake-up and not used is the next one's in line. Not
        // before the call: the handler may have used it, by spawning.
        refs.environment.waiters.end_wakeup(token, whole, &parts);
    }

    /// Makes the calls that are pending for a machine. What its handlers add meanwhile is left for
    /// the next turn.
    pub(super) fn resume<B: Backend>(&mut self, refs: &mut Refs<'_, M, B>, token: Token) {
        let Some(pending) = self.next_pending(refs, token) else { return };
        // Before the drain, at which machines end: it may find what had come before that. Once is
        // enough: one that answers `again` for ever would never hear of the drain.
        if pending.has(Calls::READY) {
            self.ready(refs, token, pending.events());
        }
        if pending.has(Calls::DRAINING) {
            self.draining(refs, token);
        }
        if pending.has(Calls::WAKEUP) {
            self.wakeup(refs, token, pending.has(Calls::WAKEUP_WHOLE));
        }
    }

    /// Takes what is pending for a machine from the run queue, if it is there to be called.
    #[inline(always)]
    pub(super) fn next_pending<B>(
        &mut self,
        refs: &Refs<'_, M, B>,
        token: Token,
    ) -> Option<Pending> {
        if !self.away.is_empty() && self.hold_if_away(token) {
            return None;
        }
        let Some(pending) = self.scheduler.take_pending(token) else {
            self.counters.stats.stale += 1;
            return None;
        };
        if pending.has(Calls::END) {
            self.drop_machine(refs.environment, refs.config, token);
            return None;
        }
        Some(pending)
    }
}

fn wakeup_calls(whole: bool) -> Calls {
    if whole { Calls::WAKEUP_WHOLE } else { Calls::WAKEUP }
}

/// One call: from the machine to its answer, applied.
impl<M: Machine> Dispatch<M> {
    /// Hands an event to a machine that can be called, and applies its answer.
    ///
    /// A machine that can is called in its slot, and copied nowhere: no handler reaches the slots,
    /// and one that panics has its machine dropped there. Its name is asked where it is wanted: by
    /// who watches, for an answer other than to go on, and for a panic while that unwinds.
    #[inline(always)]
    fn call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        event: impl Fn() -> Event<M::Seed>,
        woken: Woken<'_>,
    ) {
        // `Again` repeats them.
        let events = if let Event::Ready(events) = event() { events } else { EventSet::EMPTY };
        let is_noted = refs.config.notes_calls || is_traced();
        let started = if is_noted { self.note_in_slot(refs, token, event()) } else { None };
        let callee = &mut self.callee;
        let panics = move |machine: &M| *callee = Some(Callee::guarded(token, machine));
        let Some(mut in_hand) = self.scheduler.slots_mut().callable(token, panics) else { return };
        let Some(machine) = in_hand.machine() else {
            in_hand.let_go();
            return;
        };
        let scope = &mut Scope::new(refs.context, refs.environment, token, woken);
        let response = machine.handle_in_place(event(), scope);
        // What nearly all say: the machine stays where it is.
        if let InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) = response {
            let state = in_hand.let_go();
            // Nothing is in it: to drop it would be to look whether there is.
            std::mem::forget(response);
            if is_noted {
                self.end_noted(refs, started);
            }
            return self.scheduler.settle(refs.environment, token, state, deadline);
        }
        let callee = match response {
            InPlace::Declined(_) => Callee::of(token, machine),
            // It may have nothing left that has a name, and has answered: that counts.
            InPlace::Handled(_) => Callee::guarded(token, machine),
        };
        let Some(machine) = in_hand.take() else { return };
        self.callee = Some(callee);
        let response = match response {
            InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
            InPlace::Declined(event) => machine.handle(event, scope),
        };
        self.end_call(refs, callee, started, events, response);
    }

    /// Shows the call of a machine in its slot to who watches, times or traces. Returns when it
    /// began, if it is timed.
    #[cold]
    #[inline(never)]
    fn note_in_slot<B>(
        &mut self,
        refs: &Refs<'_, M, B>,
        token: Token,
        event: Event<M::Seed>,
    ) -> Option<Time> {
        let (_, machine) = self.scheduler.slots().at(token.index())?;
        let about = (&mut self.callee, self.pulse.as_mut(), &self.counters);
        let (callee, started) = begin_call(refs, token, machine?, about);
        trace(callee, || event);
        started
    }

    #[cold]
    #[inline(never)]
    fn end_noted<B>(&mut self, refs: &Refs<'_, M, B>, started: Option<Time>) {
        if let Some(callee) = self.callee {
            self.note_time(refs, callee, started);
        }
        self.callee = None;
    }

    /// Notes whose handler is to run, and when it began if that is wanted.
    #[inline(always)]
    fn begin_call<B>(
        &mut self,
        refs: &Refs<'_, M, B>,
        token: Token,
        machine: &M,
    ) -> (Callee, Option<Time>) {
        let about = (&mut self.callee, self.pulse.as_mut(), &self.counters);
        begin_call(refs, token, machine, about)
    }

    #[inline(always)]
    fn note_time<B>(&mut self, refs: &Refs<'_, M, B>, callee: Callee, started: Option<Time>) {
        if let Some(started) = started {
            let took = refs.environment.handle.now() - started;
            self.counters.handler_took(took, callee.type_name, refs.config.time_handlers);
        }
    }

    #[inline(always)]
    fn end_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        started: Option<Time>,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        self.note_time(refs, callee, started);
        // What nearly all answers say is inlined, so that the machine is copied as few times as may
        // be on its way.
        if let Answer::Continue(machine) = response.answer {
            self.scheduler.keep(refs.environment, callee.token, machine, response.deadline);
        } else {
            self.apply_rarer(refs, callee, events, response);
        }
        self.callee = None;
    }

    /// Applies any answer; and those to spawns, each of which another may follow.
    ///
    /// Not inlined: `call` stays small where machines are called most.
    #[inline(never)]
    fn apply_rarer<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        events: EventSet,
        mut response: Response<M, M::Seed>,
    ) {
        let mut spawns = 0;
        while let Some((machine, event)) = self.apply(refs, callee, events, spawns, response) {
            spawns += 1;
            let woken = Woken::default();
            let scope = &mut Scope::new(refs.context, refs.environment, callee.token, woken);
            response = machine.handle(event, scope);
        }
    }

    /// Applies an answer. Returns the machine where it is to hear of its spawn now, and what.
    fn apply<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        events: EventSet,
        spawns: u32,
        Response { answer, deadline }: Response<M, M::Seed>,
    ) -> Option<(M, Event<M::Seed>)> {
        let token = callee.token;
        // Before the answer is applied: that may make another machine, which has its own.
        self.scheduler.pend_if_it_woke_itself(refs.environment, token);
        match answer {
            Answer::Continue(machine) => {
                self.scheduler.keep(refs.environment, token, machine, deadline);
            }
            Answer::Again(machine) => {
                self.scheduler.keep(refs.environment, token, machine, deadline);
                self.scheduler.call_again(token, events);
            }
            Answer::Spawn(machine, seed) => {
                // Now: if the spawn is deferred, the deadline holds meanwhile.
                self.scheduler.set_deadline(refs.environment.now(), token, deadline);
                // One that spawns at each answer must not hold up the others.
                if spawns == refs.config.spawns_per_event {
                    self.scheduler.defer_spawn(refs.environment, token, machine, seed);
                    return None;
                }
                let event = self.spawn_for(refs, token, seed);
                trace(callee, || &event);
                return Some((machine, event));
            }
            Answer::Done => {
                self.counters.stats.ended += 1;
                self.scheduler.end(refs.environment, token);
            }
            Answer::Error(error) => {
                self.counters.stats.failed += 1;
                self.scheduler.end(refs.environment, token);
                report(refs.config, callee, FailureCause::Error(&error));
                // It is of the user's type: two panics at once would end the process.
                drop_guarded(error, "an error");
            }
        }
        None
    }
}

/// Notes whose handler is to run, and when it began if that is wanted.
#[inline(always)]
fn begin_call<M: Machine, B>(
    refs: &Refs<'_, M, B>,
    token: Token,
    machine: &M,
    (noted, pulse, counters): (&mut Option<Callee>, Option<&mut Pulse>, &Counters),
) -> (Callee, Option<Time>) {
    // It is asked for its name, and may panic.
    *noted = Some(Callee::unnamed::<M>(token));
    let callee = Callee::of(token, machine);
    *noted = Some(callee);
    let started = match refs.config.notes_calls {
        true => note_call(refs, callee, pulse, counters),
        false => None,
    };
    (callee, started)
}

/// Shows the call to the watchdog, and returns when it began, as is wanted.
#[inline(never)]
fn note_call<M: Machine, B>(
    refs: &Refs<'_, M, B>,
    callee: Callee,
    pulse: Option<&mut Pulse>,
    counters: &Counters,
) -> Option<Time> {
    if let Some(pulse) = pulse {
        pulse.calls(callee.token, callee.type_name);
    }
    let is_timed = refs.config.time_handlers || counters.is_sampled(refs.config.sample_mask);
    is_timed.then(|| refs.environment.handle.now())
}

/// Whether there is one line for each event: `log`'s static levels leave nothing of this in a
/// program that never wants it.
#[inline(always)]
fn is_traced() -> bool {
    Level::Trace <= log::STATIC_MAX_LEVEL && Level::Trace <= log::max_level()
}

/// The line of an event, where it is wanted. The event is asked for then: one that is shown by
/// reference is kept in memory for all calls.
#[inline(always)]
fn trace<E: fmt::Debug>(callee: Callee, event: impl FnOnce() -> E) {
    if is_traced() {
        write_trace(callee, &event());
    }
}

#[cold]
fn write_trace(Callee { token, type_name }: Callee, event: &dyn fmt::Debug) {
    log_guarded!(trace, "machine {token} ({type_name}): {event:?}");
}

#[cfg(test)]
mod tests;
