//! One call: from the machine to its response, which is applied.

use std::fmt;
use std::mem;

use log::Level;

use super::failures::{Callee, report_failure};
use super::{Dispatch, Refs};
use crate::backend::Backend;
use crate::config::Config;
use crate::event::{Event, InPlace};
use crate::event_set::EventSet;
use crate::guard::{drop_guarded, log_guarded};
use crate::machine::Machine;
use crate::machine_failure::FailureCause;
use crate::response::{Answer, Response};
use crate::scope::{AnyEnvironment, Scope, WakeTarget};
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Delivers an event to a machine that can be called, and applies its response.
    ///
    /// A machine that supports it is called in its slot, without being copied. This is safe because
    /// no handler can reach the slots; if the handler panics, its machine is dropped in the slot.
    /// The machine's name is read only when it is needed: by the watchdog, for a response other
    /// than to continue, and for a panic while that unwinds.
    #[inline(always)]
    pub(super) fn call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        event: impl Fn() -> Event<M::Seed>,
        woken: WakeTarget<'_>,
    ) {
        let events = ready_events(event());
        let is_observed = refs.config.observes_calls;
        let started = if is_observed { self.observe_call_in_slot(refs, token) } else { None };
        if is_traced() {
            self.trace_in_slot(token, event());
        }
        let callee = &mut self.callee;
        let on_panic = move |machine: &M| *callee = Some(Callee::guarded(token, machine));
        let Some(mut in_call) = self.scheduler.slots_mut().lend_for_call(token, on_panic) else {
            return;
        };
        let Some(machine) = in_call.machine() else {
            in_call.finish();
            return;
        };
        let scope = &mut Scope::new(refs.context, refs.environment, token, woken);
        let response = machine.handle_in_place(event(), scope);
        // The usual response: the machine stays where it is.
        if let InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) = response {
            let state = in_call.finish();
            // The response is empty: dropping it would only check that.
            mem::forget(response);
            if is_observed {
                self.end_observed_call(refs, started);
                self.callee = None;
            }
            return self.scheduler.reschedule(refs.environment, token, state, deadline);
        }
        let callee = match response {
            InPlace::Declined(_) => Callee::of(token, machine),
            // The machine may be in no state to tell its name, but it has returned, and its
            // response counts.
            InPlace::Handled(_) => Callee::guarded(token, machine),
        };
        let Some(machine) = in_call.take() else { return };
        self.callee = Some(callee);
        let response = match response {
            InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
            InPlace::Declined(event) => machine.handle(event, scope),
        };
        self.end_call(refs, callee, started, events, response);
    }

    /// Shows the call of a machine in its slot to the watchdog, and times it if wanted. Returns
    /// when the call began, if it is timed.
    #[inline(never)]
    fn observe_call_in_slot<B>(&mut self, refs: &Refs<'_, M, B>, token: Token) -> Option<Time> {
        let machine = self.scheduler.slots().machine_at(token.index())?;
        // `type_name` is the machine's code, and may panic.
        self.callee = Some(Callee::unnamed::<M>(token));
        let callee = Callee::of(token, machine);
        self.callee = Some(callee);
        self.report_call(refs.config, callee).then(|| refs.environment.handle.now())
    }

    #[cold]
    #[inline(never)]
    fn trace_in_slot(&mut self, token: Token, event: Event<M::Seed>) {
        if let Some(machine) = self.scheduler.slots().machine_at(token.index()) {
            // `type_name` is the machine's code, and may panic.
            let previous = self.callee.replace(Callee::unnamed::<M>(token));
            write_trace(Callee::of(token, machine), &event);
            self.callee = previous;
        }
    }

    #[inline(always)]
    fn end_observed_call<B>(&mut self, refs: &Refs<'_, M, B>, started: Option<Time>) {
        if started.is_some()
            && let Some(callee) = self.callee
        {
            self.record_handler_time(refs.environment, refs.config, callee, started);
        }
    }

    /// Notes whose handler runs, and when it began if that is wanted.
    #[inline(always)]
    pub(super) fn begin_call(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        token: Token,
        machine: &M,
    ) -> (Callee, Option<Time>) {
        // `type_name` is the machine's code, and may panic.
        self.callee = Some(Callee::unnamed::<M>(token));
        let callee = Callee::of(token, machine);
        self.callee = Some(callee);
        let started = match config.observes_calls {
            true => self.observe_call(environment, config, callee),
            false => None,
        };
        (callee, started)
    }

    /// Shows the call to the watchdog. Returns when it began, if it is timed.
    ///
    /// Not inlined, because most loops are not watched.
    #[inline(never)]
    pub(super) fn observe_call(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        callee: Callee,
    ) -> Option<Time> {
        self.report_call(config, callee).then(|| environment.handle.now())
    }

    /// Shows the call to the watchdog. Returns whether it must be timed.
    #[inline(always)]
    fn report_call(&mut self, config: &Config, callee: Callee) -> bool {
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.record_call(callee.token, callee.type_name);
        }
        config.time_handlers || self.counters.is_sampled(config.sample_mask)
    }

    #[inline(always)]
    pub(super) fn record_handler_time(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        callee: Callee,
        started: Option<Time>,
    ) {
        if let Some(started) = started {
            let elapsed = environment.handle.now() - started;
            self.counters.record_handler_time(elapsed, callee.type_name, config.time_handlers);
        }
    }

    #[inline(always)]
    pub(super) fn end_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        started: Option<Time>,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        self.record_handler_time(refs.environment, refs.config, callee, started);
        // The usual response is inlined, so that the machine is copied as few times as possible.
        if let Answer::Continue(machine) = response.answer {
            self.scheduler.return_to_slot(
                refs.environment,
                callee.token,
                machine,
                response.deadline,
            );
        } else {
            self.apply_uncommon(refs, callee, events, response);
        }
        self.callee = None;
    }

    /// Applies any response, and those to the results of spawns, each of which may be another
    /// spawn.
    ///
    /// Not inlined, so that `call` stays small where most calls are made.
    #[inline(never)]
    fn apply_uncommon<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        events: EventSet,
        mut response: Response<M, M::Seed>,
    ) {
        let mut spawns = 0;
        while let Some((machine, event)) = self.apply(refs, callee, events, spawns, response) {
            spawns += 1;
            let woken = WakeTarget::default();
            let scope = &mut Scope::new(refs.context, refs.environment, callee.token, woken);
            response = machine.handle(event, scope);
        }
    }

    /// Applies a response. If the machine must be told the result of a spawn now, returns the
    /// machine and that event.
    pub(super) fn apply<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        events: EventSet,
        spawns: u32,
        response: Response<M, M::Seed>,
    ) -> Option<(M, Event<M::Seed>)> {
        let token = callee.token;
        let deadline = response.deadline;
        // Before the response is applied: that may make another machine, which has its own flag.
        self.scheduler.schedule_self_wakeup(refs.environment, token);
        // Destructured here rather than in the parameter, which saves one copy.
        match response.answer {
            Answer::Continue(machine) => {
                self.scheduler.return_to_slot(refs.environment, token, machine, deadline);
            }
            Answer::Again(machine) => {
                self.scheduler.return_to_slot(refs.environment, token, machine, deadline);
                self.scheduler.call_again(token, events);
            }
            Answer::Spawn(machine, seed) => {
                // Set now: if the spawn is deferred, the deadline applies meanwhile.
                self.scheduler.set_deadline(refs.environment.now(), token, deadline);
                // A machine that spawns in each response must not hold up the others.
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
                self.scheduler.release_slot(refs.environment, token);
            }
            Answer::Error(error) => {
                self.counters.stats.failed += 1;
                self.scheduler.release_slot(refs.environment, token);
                report_failure(refs.config, callee, FailureCause::Error(&error));
                // The error is of the user's type, and its drop may panic: a second panic would
                // abort the process.
                drop_guarded(error, "an error");
            }
        }
        None
    }
}

/// Returns the events that `Again` repeats.
#[inline(always)]
fn ready_events<S>(event: Event<S>) -> EventSet {
    let events = if let Event::Ready(events) = &event { *events } else { EventSet::EMPTY };
    // An event that can be made repeatedly owns nothing, so there is nothing to drop.
    mem::forget(event);
    events
}

/// Returns whether each event is logged. With `log`'s static levels, nothing of this is left in a
/// program that does not want it.
#[inline(always)]
fn is_traced() -> bool {
    Level::Trace <= log::STATIC_MAX_LEVEL && Level::Trace <= log::max_level()
}

/// Logs an event, if wanted. The event is passed as a closure: if it were passed by reference, it
/// would have to be in memory for every call.
#[inline(always)]
pub(super) fn trace<E: fmt::Debug>(callee: Callee, event: impl FnOnce() -> E) {
    if is_traced() {
        write_trace(callee, &event());
    }
}

#[cold]
fn write_trace(Callee { token, type_name }: Callee, event: &dyn fmt::Debug) {
    log_guarded!(trace, "machine {token} ({type_name}): {event:?}");
}
