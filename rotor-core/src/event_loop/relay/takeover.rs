//! Taking over: the loop is taken from a thread that is stuck in a handler which has not declared
//! that it blocks.
//!
//! ```text
//!   thread 1: handler ── is stuck ──────────────┬──────── answers late ──▶ parks
//!                                               │             │
//!   watchdog: ──── looks ─── looks ─── takes the state        │ the answer waits
//!                                               │             ▼
//!   thread 2: (parked) ─────────────────────────┴── all others, and what thread 1 answered ──▶
//! ```
//!
//! The handler keeps the context that it was lent, so each thread has one of its own: a clone is
//! another handle to the same data. The state is in a [shared cell](super::state_cell::SharedCell)
//! while a handler runs. A handler that finds this cell empty has answered late.

use std::sync::{Arc, PoisonError};

use super::drive::DriveState;
use super::late_answers::{HandlerOutcome, LateAnswer};
use super::state_cell::{SharedState, StateCell};
use super::worker::Worker;
use super::{Baton, LoopState, Relay};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::{BlockCounts, TakeoverResult};
use crate::event_loop::dispatch::IssuedCall;
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
        let shared_state = self.shared_state.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(shared_state) = shared_state.and_then(|shared_state| shared_state.upgrade())
        else {
            return TakeoverResult::NotTaken;
        };
        self.take_from_cell(&shared_state, call)
    }

    fn take_from_cell(
        self: &Arc<Self>,
        shared_state: &SharedState<M, B>,
        call: Option<u64>,
    ) -> TakeoverResult {
        // Locked until another thread has it: a handler that returns meanwhile waits, and finds it
        // either here or gone.
        let Some(mut place) = shared_state.try_lock() else { return TakeoverResult::NotTaken };
        let Some(mut loop_state) = place.take() else { return TakeoverResult::NotTaken };
        // The stuck handler may have returned, and another one may be running.
        let callee = loop_state.core.dispatch().monitor().running_callee(call);
        let taken = callee.and_then(|callee| Some((callee, loop_state.next_context.take()?)));
        let Some((callee, context)) = taken else {
            *place = Some(loop_state);
            return TakeoverResult::NotTaken;
        };
        loop_state.core.dispatch_mut().detach(callee);
        self.environment.waiters.detach_wakeup(callee.token);
        self.sections.begin(callee.token, callee.type_name, false);
        loop_state.taken_from = Some(callee.type_name);
        let Err(Baton { mut loop_state, context }) = self.pass_on(Baton { loop_state, context })
        else {
            return TakeoverResult::Taken;
        };
        loop_state.taken_from = None;
        BlockCounts::add(&self.environment.blocks.no_thread);
        self.sections.end(callee.token);
        loop_state.core.dispatch_mut().continue_call(callee);
        loop_state.next_context = Some(context);
        *place = Some(loop_state);
        TakeoverResult::NoThread
    }

    /// Records that this thread has the loop because it was taken from a handler, if it was. Not
    /// before: if no other thread is available, the loop is not taken after all.
    pub(super) fn record_takeover(&self, loop_state: &mut LoopState<M, B>) {
        if let Some(machine) = loop_state.taken_from.take() {
            BlockCounts::add(&self.environment.blocks.taken_over);
            loop_state.suspects.record_takeover(machine);
        }
    }

    /// Handles the response of a handler if the loop is no longer here.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_late_answer(
        &self,
        drive_state: &mut DriveState<M>,
        response: Response<M, M::Seed>,
    ) {
        self.submit_late(drive_state, HandlerOutcome::Answered(response));
    }

    /// Does the same for a handler that has panicked.
    #[cold]
    #[inline(never)]
    pub(super) fn submit_late_panic(&self, drive_state: &mut DriveState<M>, panicked: Panicked) {
        self.submit_late(drive_state, HandlerOutcome::Panicked(panicked));
    }

    fn submit_late(&self, drive_state: &mut DriveState<M>, outcome: HandlerOutcome<M>) {
        if self.share_context.is_none() {
            // The loop was handed over, and is gone.
            drop_guarded(outcome, "a machine whose loop is gone");
            return;
        }
        let issued = std::mem::replace(&mut drive_state.issued, IssuedCall::empty());
        self.sections.end(issued.callee.token);
        BlockCounts::add(&self.environment.blocks.late_answers);
        let woke_itself = drive_state.woke_itself.take();
        let elapsed = drive_state.detached_since.map(|begun| self.environment.handle.now() - begun);
        self.late.add(LateAnswer { issued, woke_itself, elapsed, outcome });
        self.environment.wakes.wake_loop();
    }

    /// Serves the other threads: applies late answers, and gives the loop to a handler that wants
    /// it back. Returns `None` if it is no longer here.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_other_threads<'a, P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        worker: &'a Worker<M, B, P>,
        mut loop_state: P::Guard<'a>,
    ) -> Option<P::Guard<'a>> {
        while let Some(late) = self.late.take_first() {
            loop_state = self.apply_late(drive_state, worker, loop_state, late)?;
        }
        if !self.control.is_loop_wanted() {
            return Some(loop_state);
        }
        let (Some(state), Some(context)) = (loop_state.take(), drive_state.context.take()) else {
            return None;
        };
        match self.thread_queue.give(Baton { loop_state: state, context }) {
            Ok(()) => None,
            Err(Baton { loop_state: state, context }) => {
                *loop_state = Some(state);
                drive_state.context = Some(context);
                Some(loop_state)
            }
        }
    }

    fn apply_late<'a, P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        worker: &'a Worker<M, B, P>,
        mut loop_state: P::Guard<'a>,
        late: LateAnswer<M>,
    ) -> Option<P::Guard<'a>> {
        let environment = &*self.environment;
        drive_state.issued = late.issued;
        let (state, context) = (loop_state.as_mut()?, drive_state.context.as_deref_mut()?);
        let LoopState { core, progress, suspects, .. } = &mut **state;
        if let Some(elapsed) = late.elapsed {
            suspects.record_return(
                drive_state.issued.callee.type_name,
                elapsed >= self.blocking.lagging_patience(),
            );
        }
        core.reattach(environment, progress, drive_state.issued.callee);
        if late.woke_itself {
            environment.record_self_wakeup();
        }
        let issued = &mut drive_state.issued;
        let reporting = match late.outcome {
            HandlerOutcome::Answered(response) => {
                core.apply_response(issued, context, environment, response)
            }
            HandlerOutcome::Panicked(panicked) => {
                match core.handler_panicked(environment, progress, &panicked) {
                    Ok(()) => None,
                    Err(error) => {
                        self.end_loop(drive_state, loop_state.take(), Err(error));
                        return None;
                    }
                }
            }
        };
        match reporting {
            Some(machine) => self.call(drive_state, Some(machine), worker, loop_state),
            None => Some(loop_state),
        }
    }

    /// Ends the loop on this thread.
    pub(super) fn end_loop(
        &self,
        drive_state: &mut DriveState<M>,
        loop_state: Option<Box<LoopState<M, B>>>,
        ended: std::io::Result<Exit>,
    ) {
        if let (Some(loop_state), Some(context)) = (loop_state, drive_state.context.take()) {
            self.record_end(Baton { loop_state, context }, ended);
        }
    }

    /// Makes the context for the next thread, if the loop can be taken.
    pub(super) fn prepare_next_context(
        &self,
        loop_state: &mut LoopState<M, B>,
        context: &M::Context,
    ) {
        let Some(share_context) = self.share_context.filter(|_| loop_state.next_context.is_none())
        else {
            return;
        };
        match guard(|| Box::new(share_context(context))) {
            Ok(next) => loop_state.next_context = Some(next),
            Err(panicked) => log_guarded!(
                error,
                "the clone of a context {panicked}: the loop is not taken from who runs it now"
            ),
        }
    }
}
