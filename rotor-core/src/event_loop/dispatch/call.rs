//! One call: from the machine to its response, which is applied.

use std::mem;

use super::callee::Callee;
use super::failures::report_failure;
use super::monitor::{is_traced, trace};
use super::{CallKind, Dispatch, Refs};
use crate::backend::Backend;
use crate::event::{Event, InPlace};
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::machine_failure::FailureCause;
use crate::response::{Answer, Response};
use crate::scope::{Scope, WakeTarget};
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Delivers an event to a machine that can be called, and applies its response.
    ///
    /// A machine that supports it is called in its slot, without being copied. This is safe because
    /// no handler can reach the slots; if the handler panics, its machine is dropped in the slot.
    /// The machine's name is read only when it is needed: by the watchdog, for a response other
    /// than to continue, and for a panic while that unwinds.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        kind: CallKind,
        woken: WakeTarget<'_>,
    ) {
        let is_observed = self.monitor.observes_calls();
        let mut started = None;
        if is_observed {
            let slots = self.scheduler.slots();
            started = self.monitor.begin_call_in_slot(slots, refs.environment, token);
        }
        if is_traced() {
            self.monitor.trace_in_slot(self.scheduler.slots(), token, kind.event());
        }
        let callee = self.monitor.callee();
        let on_panic = move |machine: &M| *callee = Some(Callee::guarded(token, machine));
        let Some(mut in_call) = self.scheduler.slots_mut().lend_for_call(token, on_panic) else {
            return;
        };
        let Some(machine) = in_call.machine() else {
            in_call.finish();
            return;
        };
        let scope = &mut Scope::new(refs.context, refs.environment, token, woken);
        let response = machine.handle_in_place(kind.event(), scope);
        // The usual response: the machine stays where it is.
        if let InPlace::Handled(Response { answer: Answer::Continue(()), deadline }) = response {
            let state = in_call.finish();
            // The response is empty: dropping it would only check that.
            mem::forget(response);
            if is_observed {
                self.monitor.end_call_in_slot(refs.environment, refs.config, started);
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
        *self.monitor.callee() = Some(callee);
        let response = match response {
            InPlace::Handled(response) => response.map(|()| machine, |seed| seed),
            InPlace::Declined(event) => machine.handle(event, scope),
        };
        self.end_call(refs, callee, started, kind.ready_events(), response);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn end_call<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        callee: Callee,
        started: Option<Time>,
        events: EventSet,
        response: Response<M, M::Seed>,
    ) {
        self.monitor.record_handler_time(refs.environment, refs.config, callee, started);
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
        *self.monitor.callee() = None;
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
                self.monitor.stats().ended += 1;
                self.scheduler.release_slot(refs.environment, token);
            }
            Answer::Error(error) => {
                self.monitor.stats().failed += 1;
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
