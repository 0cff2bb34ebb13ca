//! Calls of a loop that can be handed over. Each call is issued, and its response comes back,
//! perhaps from another thread. Nothing of the loop is borrowed in between.

use super::issued_call::{CallKind, IssuedCall};
use super::monitor::trace;
use super::{Dispatch, Refs};
use crate::backend::Backend;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// Records a call, to be made by the owner of this value.
impl<M: Machine> IssuedCall<M> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn record(
        &mut self,
        dispatch: &mut Dispatch<M>,
        environment: &AnyEnvironment,
        token: Token,
        kind: CallKind,
    ) {
        self.begin(token, kind);
        if let CallKind::Wakeup { whole } = kind {
            self.woken = Some(whole);
            self.last_grant = environment.waiters.begin_wakeup(token);
            dispatch.scheduler.queue().parts().take_into(token, &mut self.parts);
        }
    }

    /// Records the result of a spawn. Returns whether the machine must be told of it now; the machine
    /// is in its slot.
    pub(in crate::event_loop) fn record_spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        (machine, seed): (M, M::Seed),
    ) -> bool {
        let (callee, started) = dispatch.monitor.begin_call(refs.environment, token, &machine);
        self.begin(token, CallKind::SpawnResult);
        self.callee = callee;
        self.started.set(started);
        let reporting = dispatch.apply_response(refs, self, Response::spawn(machine, seed));
        let Some(machine) = reporting else { return false };
        dispatch.scheduler.slots_mut().put(token, machine);
        true
    }
}

impl<M: Machine> Dispatch<M> {
    /// Takes the machine that is to be called out of its slot, and notes that its handler runs.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        issued: &mut IssuedCall<M>,
    ) -> Option<M> {
        let token = issued.callee.token;
        // The report of a spawn's result belongs to the same call.
        if !matches!(issued.kind, CallKind::SpawnResult)
            && let Some(machine) = self.scheduler.slots().machine_at(token.index())
        {
            let (callee, started) = self.monitor.begin_call(environment, token, machine);
            issued.callee = callee;
            issued.started.set(started);
            trace(callee, || issued.take_event());
        }
        self.scheduler.slots_mut().lift(token.index())
    }
}

/// Applying responses. Each function returns the machine if another call follows, which reports the
/// result of its spawn.
impl<M: Machine> Dispatch<M> {
    /// Applies the usual response, to continue. Inlined, so that the machine is copied as few times
    /// as possible.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn apply_continue<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        issued: &mut IssuedCall<M>,
        machine: M,
        deadline: Deadline,
    ) -> Option<M> {
        if !self.detached.is_empty() {
            let response = Response { answer: Answer::Continue(machine), deadline };
            return self.apply_response_with_detached(refs, issued, response);
        }
        self.record_issued_time(refs, issued);
        self.scheduler.return_to_slot(refs.environment, issued.callee.token, machine, deadline);
        self.end_issued_call(refs.environment, issued);
        None
    }

    /// Applies any response.
    #[inline(never)]
    pub(in crate::event_loop) fn apply_response<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        issued: &mut IssuedCall<M>,
        response: Response<M, M::Seed>,
    ) -> Option<M> {
        if !self.detached.is_empty() {
            return self.apply_response_with_detached(refs, issued, response);
        }
        self.record_issued_time(refs, issued);
        self.apply_and_report_spawn(refs, issued, response)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn record_issued_time<B>(&mut self, refs: &Refs<'_, M, B>, issued: &IssuedCall<M>) {
        let (callee, started) = (issued.callee, issued.started.get());
        self.monitor.record_handler_time(refs.environment, refs.config, callee, started);
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn end_issued_call(&mut self, environment: &AnyEnvironment, issued: &IssuedCall<M>) {
        *self.monitor.callee() = None;
        if let Some(whole) = issued.woken {
            let IssuedCall { parts, last_grant, .. } = issued;
            environment.waiters.end_wakeup(issued.callee.token, whole, parts, *last_grant);
        }
    }

    /// Applies a response while handlers are detached, possibly including this one.
    #[cold]
    #[inline(never)]
    fn apply_response_with_detached<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        issued: &mut IssuedCall<M>,
        mut response: Response<M, M::Seed>,
    ) -> Option<M> {
        let token = issued.callee.token;
        self.record_issued_time(refs, issued);
        let is_timed_out = self.detached.remove(token);
        if !self.scheduler.slots().contains(token) {
            // Its machine was dropped by a drain while the handler was detached.
            refs.environment.take_self_wakeup();
            *self.monitor.callee() = None;
            drop_guarded(response, "a machine that its loop had given up");
            return None;
        }
        response.deadline = deadline_after(is_timed_out, refs.environment.now(), response.deadline);
        self.apply_and_report_spawn(refs, issued, response)
    }

    fn apply_and_report_spawn<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        issued: &mut IssuedCall<M>,
        response: Response<M, M::Seed>,
    ) -> Option<M> {
        let IssuedCall { callee, events, spawns, .. } = *issued;
        let Some((machine, event)) = self.apply(refs, callee, events, spawns, response) else {
            self.end_issued_call(refs.environment, issued);
            return None;
        };
        issued.kind = CallKind::SpawnResult;
        issued.spawn_result = Some(event);
        issued.started.set(None);
        issued.spawns += 1;
        Some(machine)
    }
}

/// Returns the deadline of a response. If the machine keeps a deadline that has passed while its
/// handler was detached, it is due now.
fn deadline_after(is_timed_out: bool, now: Time, deadline: Deadline) -> Deadline {
    if is_timed_out && matches!(deadline, Deadline::Keep) { Deadline::At(now) } else { deadline }
}
