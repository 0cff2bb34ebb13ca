//! Calls of a loop that can be handed over. Each call is given out, and its response comes back,
//! perhaps from another thread. Nothing of the loop is borrowed in between.

use super::call::trace;
use super::terms::{Terms, What};
use super::{Callee, Dispatch, Refs};
use crate::backend::Backend;
use crate::config::Config;
use crate::event_loop::slots::LiftedMachine;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::response::{Answer, Deadline, Response};
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// Notes a call, to be made by the owner of these terms.
impl<M: Machine> Terms<M> {
    #[inline(always)]
    pub(in crate::event_loop) fn note(
        &mut self,
        dispatch: &mut Dispatch<M>,
        token: Token,
        what: What,
    ) {
        self.begin(token, what);
        if let What::Wakeup { whole } = what {
            self.woken = Some(whole);
            dispatch.scheduler.queue().parts().take_into(token, &mut self.parts);
        }
    }

    /// Notes the result of a spawn. Returns whether the machine must be told of it now; the machine
    /// is in its slot.
    pub(in crate::event_loop) fn note_spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        (machine, seed): (M, M::Seed),
    ) -> bool {
        let (callee, started) = dispatch.begin_call(refs.environment, refs.config, token, &machine);
        self.begin(token, What::SpawnAnswer);
        self.callee = callee;
        self.started.set(started);
        let told = dispatch.answered(refs, self, Response::spawn(machine, seed));
        let Some(machine) = told else { return false };
        dispatch.scheduler.slots_mut().put(token, machine);
        true
    }
}

impl<M: Machine> Dispatch<M> {
    /// Takes the machine that is to be called out of its slot, and notes that its handler runs.
    #[inline(always)]
    pub(in crate::event_loop) fn lift(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        terms: &mut Terms<M>,
    ) -> LiftedMachine<M> {
        let token = terms.callee.token;
        // The report of a spawn's result belongs to the same call.
        if !matches!(terms.what, What::SpawnAnswer)
            && let Some(machine) = self.scheduler.slots().machine_at(token.index())
        {
            // `type_name` is the machine's code, and may panic.
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

/// Applying responses. Each function returns the machine if another call follows, which reports the
/// result of its spawn.
impl<M: Machine> Dispatch<M> {
    /// Applies the usual response, to continue. Inlined, so that the machine is copied as few times
    /// as possible.
    #[inline(always)]
    pub(in crate::event_loop) fn goes_on<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        machine: M,
        deadline: Deadline,
    ) -> LiftedMachine<M> {
        if !self.away.is_empty() {
            let response = Response { answer: Answer::Continue(machine), deadline };
            return self.answered_with_some_away(refs, terms, response);
        }
        self.note_time(refs.environment, refs.config, terms.callee, terms.started.get());
        self.scheduler.return_to_slot(refs.environment, terms.callee.token, machine, deadline);
        self.end_answer(refs.environment, terms);
        None
    }

    /// Applies any response.
    #[inline(never)]
    pub(in crate::event_loop) fn answered<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        response: Response<M, M::Seed>,
    ) -> LiftedMachine<M> {
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

    /// Does the same while handlers are away, possibly including this one.
    #[cold]
    #[inline(never)]
    fn answered_with_some_away<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        terms: &mut Terms<M>,
        mut response: Response<M, M::Seed>,
    ) -> LiftedMachine<M> {
        let token = terms.callee.token;
        self.note_time(refs.environment, refs.config, terms.callee, terms.started.get());
        let is_late = self.take_away(token);
        if !self.scheduler.slots().contains(token) {
            // Its machine was dropped by a drain while the handler was away.
            refs.environment.take_self_wakeup();
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
    ) -> LiftedMachine<M> {
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

/// Returns the deadline of a response. If the machine keeps a deadline that has passed while its
/// handler was away, it is due now.
fn deadline_after(is_late: bool, now: Time, deadline: Deadline) -> Deadline {
    if is_late && matches!(deadline, Deadline::Keep) { Deadline::At(now) } else { deadline }
}
