//! Taking over: the loop is taken from a thread that is stuck in a handler which has not declared
//! that it blocks.
//!
//! ```text
//!   thread 1: handler ── is stuck ──────────────┬──────── answers late ──▶ parks
//!                                               │             │
//!   watchdog: ──── looks ─── looks ─── takes the rest         │ the answer waits
//!                                               │             ▼
//!   thread 2: (parked) ─────────────────────────┴── all others, and what thread 1 answered ──▶
//! ```
//!
//! The handler keeps the context that it was lent, so each thread has one of its own: a clone is
//! another handle to the same data. The rest is in an [open](super::berth::Open) place while a
//! handler runs. A handler that finds this place empty has answered late.

use std::sync::{Arc, PoisonError};

use super::berth::{Berth, OpenPlace};
use super::drive::Held;
use super::late::{Late, Outcome};
use super::worker::Worker;
use super::{Baton, Relay, Rest};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::{BlockCounts, TakeoverResult};
use crate::event_loop::dispatch::Terms;
use crate::event_loop::handle::Exit;
use crate::guard::{Panicked, drop_guarded, guard, log_guarded};
use crate::machine::Machine;
use crate::response::Response;

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Takes the loop from its running handler; if `call` is given, only if that call is still in
    /// progress.
    pub(in crate::event_loop) fn take_over(self: &Arc<Self>, call: Option<u64>) -> TakeoverResult {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(open) = open.and_then(|open| open.upgrade()) else {
            return TakeoverResult::NotTaken;
        };
        self.take_from(&open, call)
    }

    fn take_from(self: &Arc<Self>, open: &OpenPlace<M, B>, call: Option<u64>) -> TakeoverResult {
        // Locked until another thread has it: a handler that returns meanwhile waits, and finds it
        // either here or gone.
        let Some(mut place) = open.try_lock() else { return TakeoverResult::NotTaken };
        let Some(mut rest) = place.take() else { return TakeoverResult::NotTaken };
        // The stuck handler may have returned, and another one may be running.
        let callee = rest.core.dispatch().callee_of(call);
        let taken = callee.and_then(|callee| Some((callee, rest.next_context.take()?)));
        let Some((callee, context)) = taken else {
            *place = Some(rest);
            return TakeoverResult::NotTaken;
        };
        let blocks = &self.environment.blocks;
        rest.core.dispatch_mut().leave(callee);
        self.environment.waiters.leave_called(callee.token);
        self.sections.begin(callee.token, callee.type_name, false);
        BlockCounts::add(&blocks.taken_over);
        rest.suspects.record_takeover(callee.type_name);
        let Err(Baton { mut rest, context }) = self.pass(Baton { rest, context }) else {
            return TakeoverResult::Taken;
        };
        blocks.taken_over.fetch_sub(1, std::sync::atomic::Ordering::Relaxed);
        BlockCounts::add(&blocks.no_thread);
        self.sections.end(callee.token);
        rest.core.dispatch_mut().stay(callee);
        rest.next_context = Some(context);
        *place = Some(rest);
        TakeoverResult::NoThread
    }

    /// Handles the response of a handler if the loop is no longer here.
    #[cold]
    #[inline(never)]
    pub(super) fn answered_late(&self, held: &mut Held<M>, response: Response<M, M::Seed>) {
        self.comes_late(held, Outcome::Answered(response));
    }

    /// Does the same for a handler that has panicked.
    #[cold]
    #[inline(never)]
    pub(super) fn panicked_late(&self, held: &mut Held<M>, panicked: Panicked) {
        self.comes_late(held, Outcome::Panicked(panicked));
    }

    fn comes_late(&self, held: &mut Held<M>, outcome: Outcome<M>) {
        if self.share.is_none() {
            // The loop was handed over, and is gone.
            drop_guarded(outcome, "a machine whose loop is gone");
            return;
        }
        let terms = std::mem::replace(&mut held.terms, Terms::nothing());
        self.sections.end(terms.callee.token);
        BlockCounts::add(&self.environment.blocks.late_answers);
        let woke_itself = held.woke_itself.take();
        let took = held.detached.map(|begun| self.environment.handle.now() - begun);
        self.late.add(Late { terms, woke_itself, took, outcome });
        self.environment.wakes.wake_loop();
    }

    /// Serves the other threads: applies late answers, and gives the loop to a handler that wants
    /// it back. Returns `None` if it is no longer here.
    #[cold]
    #[inline(never)]
    pub(super) fn heed_others<'a, P: Berth<M, B>>(
        self: &Arc<Self>,
        held: &mut Held<M>,
        worker: &'a Worker<M, B, P>,
        mut rest: P::Guard<'a>,
    ) -> Option<P::Guard<'a>> {
        while let Some(late) = self.late.take_first() {
            rest = self.apply(held, worker, rest, late)?;
        }
        if !self.control.is_wanted() {
            return Some(rest);
        }
        let (Some(there), Some(context)) = (rest.take(), held.context.take()) else { return None };
        match self.line.give(Baton { rest: there, context }) {
            Ok(()) => None,
            Err(Baton { rest: there, context }) => {
                *rest = Some(there);
                held.context = Some(context);
                Some(rest)
            }
        }
    }

    fn apply<'a, P: Berth<M, B>>(
        self: &Arc<Self>,
        held: &mut Held<M>,
        worker: &'a Worker<M, B, P>,
        mut rest: P::Guard<'a>,
        late: Late<M>,
    ) -> Option<P::Guard<'a>> {
        let environment = &*self.environment;
        held.terms = late.terms;
        let (there, context) = (rest.as_mut()?, held.context.as_deref_mut()?);
        let Rest { core, progress, suspects, .. } = &mut **there;
        if let Some(took) = late.took {
            suspects.record_return(
                held.terms.callee.type_name,
                took >= self.blocking.lagging_patience(),
            );
        }
        core.come_back(environment, progress, held.terms.callee);
        if late.woke_itself {
            environment.note_woke_itself();
        }
        let terms = &mut held.terms;
        let told = match late.outcome {
            Outcome::Answered(response) => core.answered(terms, context, environment, response),
            Outcome::Panicked(panicked) => {
                match core.handler_panicked(environment, progress, &panicked) {
                    Ok(()) => None,
                    Err(error) => {
                        self.end_with(held, rest.take(), Err(error));
                        return None;
                    }
                }
            }
        };
        match told {
            Some(machine) => self.call(held, Some(machine), worker, rest),
            None => Some(rest),
        }
    }

    /// Ends the loop on this thread.
    pub(super) fn end_with(
        &self,
        held: &mut Held<M>,
        rest: Option<Box<Rest<M, B>>>,
        ended: std::io::Result<Exit>,
    ) {
        if let (Some(rest), Some(context)) = (rest, held.context.take()) {
            self.end(Baton { rest, context }, ended);
        }
    }

    /// Makes the context for the next thread, if the loop can be taken.
    pub(super) fn prepare_next_context(&self, rest: &mut Rest<M, B>, context: &M::Context) {
        let Some(share) = self.share.filter(|_| rest.next_context.is_none()) else { return };
        match guard(|| Box::new(share(context))) {
            Ok(next) => rest.next_context = Some(next),
            Err(panicked) => log_guarded!(
                error,
                "the clone of a context {panicked}: the loop is not taken from who runs it now"
            ),
        }
    }
}
