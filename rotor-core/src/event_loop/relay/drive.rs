//! Running a loop on the thread that has it.

use std::cell::Cell;
use std::sync::Arc;

use super::call::{
    ApplyOutcome, CallOutcome, ResponseApplier, call_by_value, call_in_place, call_lifted,
};
use super::loop_hand_over::LoopHandOver;
use super::state_cell::StateCell;
use super::worker::Worker;
use super::{Baton, LoopState, Relay};
use crate::backend::Backend;
use crate::event_loop::core::NextAction;
use crate::event_loop::dispatch::IssuedCall;
use crate::guard::{drop_guarded, guard};
use crate::machine::Machine;
use crate::scope::Scope;
use crate::time::Time;

/// The state of a thread that runs a loop. The loop's state is in the worker's state cell.
pub(super) struct DriveState<M: Machine> {
    pub(super) context: Option<Box<M::Context>>,
    /// The call that the thread makes.
    pub(super) issued: IssuedCall<M>,
    /// Whether the machine has woken itself in this call; used if other threads may have the loop
    /// meanwhile.
    pub(super) woke_itself: Cell<bool>,
    /// When the call began, if it is made for a loop that another thread runs.
    pub(super) detached_since: Option<Time>,
}

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Runs the loop until it has ended, is given to another thread, was taken, or is dropped.
    pub(super) fn drive<P: StateCell<M, B>>(
        self: &Arc<Self>,
        baton: Baton<M, B>,
        worker: &Worker<M, B, P>,
    ) {
        self.set_running_thread(worker);
        let Baton { mut loop_state, context } = baton;
        loop_state.lender = None;
        self.record_takeover(&mut loop_state);
        self.prepare_next_context(&mut loop_state, &context);
        *worker.state_cell.lock() = Some(loop_state);
        let mut drive_state = DriveState {
            context: Some(context),
            issued: IssuedCall::empty(),
            woke_itself: Cell::new(false),
            detached_since: None,
        };
        self.drive_guarded(&mut drive_state, worker);
        // If the loop was taken, this is the context of this thread: another handle than that of
        // the thread that goes on.
        drop_guarded(drive_state, "a context");
    }

    fn drive_guarded<P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        worker: &Worker<M, B, P>,
    ) {
        // One guard for all handlers, as in a turn that calls them itself. After a panic the loop
        // is in its place again, unless it was taken or dropped.
        loop {
            match guard(|| self.make_calls(drive_state, worker)) {
                Ok(()) => return,
                Err(panicked) => {
                    let mut place = worker.state_cell.lock();
                    let Some(loop_state) = place.as_mut() else {
                        drop(place);
                        return self.submit_late_panic(drive_state, panicked);
                    };
                    drive_state.woke_itself.set(false);
                    let LoopState { core, progress, .. } = &mut **loop_state;
                    match core.handler_panicked(&*self.environment, progress, &panicked) {
                        Ok(()) => {}
                        Err(error) => return self.end_loop(drive_state, place.take(), Err(error)),
                    }
                }
            }
        }
    }

    fn make_calls<P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        worker: &Worker<M, B, P>,
    ) {
        let mut loop_state = worker.state_cell.lock();
        loop {
            if self.control.has_handler_request() {
                loop_state = match self.serve_other_threads(drive_state, worker, loop_state) {
                    Some(loop_state) => loop_state,
                    None => return,
                };
            }
            let DriveState { context, issued, .. } = &mut *drive_state;
            let (Some(state), Some(own)) = (loop_state.as_mut(), context.as_deref_mut()) else {
                return;
            };
            let LoopState { core, repeated, progress, .. } = &mut **state;
            match core.advance(issued, progress, own, &*self.environment, repeated, &self.control) {
                Ok(NextAction::Call) => {
                    let mut lifted = core.lift(&*self.environment, issued);
                    if P::IS_SHARED
                        && !state.suspects.is_empty()
                        && self.try_detach_call(drive_state, &mut lifted, state)
                    {
                        continue;
                    }
                    match self.call(drive_state, lifted, worker, loop_state) {
                        Some(state) => loop_state = state,
                        None => return,
                    }
                }
                #[cfg(not(rotor_handed))]
                Ok(NextAction::TurnOver) => {
                    if worker.take_wants_successor() {
                        loop_state = match self.leave_thread::<P>(drive_state, loop_state) {
                            Some(loop_state) => loop_state,
                            None => return,
                        };
                    }
                }
                #[cfg(rotor_handed)]
                Ok(NextAction::TurnOver) => match self.pass_next_turn::<P>(drive_state, loop_state)
                {
                    Some(state) => loop_state = state,
                    None => return,
                },
                Ok(NextAction::Ended(exit)) => {
                    return self.end_loop(drive_state, loop_state.take(), Ok(exit));
                }
                Err(error) => return self.end_loop(drive_state, loop_state.take(), Err(error)),
            }
        }
    }

    /// Lets another thread go on with the loop, if there is one. Returns `None` if the loop is no
    /// longer here.
    #[cold]
    #[inline(never)]
    pub(super) fn leave_thread<'a, P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        mut loop_state: P::Guard<'a>,
    ) -> Option<P::Guard<'a>>
    where
        B: 'a,
    {
        let (state, context) = (loop_state.take()?, drive_state.context.take()?);
        match self.pass_on(Baton { loop_state: state, context }) {
            Ok(()) => None,
            Err(Baton { loop_state: state, context }) => {
                *loop_state = Some(state);
                drive_state.context = Some(context);
                Some(loop_state)
            }
        }
    }

    /// Makes a call, and the further ones that report the results of spawns. Returns `None` if the
    /// loop is no longer here.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn call<'a, P: StateCell<M, B>>(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        mut lifted: Option<M>,
        worker: &'a Worker<M, B, P>,
        mut loop_state: P::Guard<'a>,
    ) -> Option<P::Guard<'a>> {
        let DriveState { context, issued, woke_itself, .. } = &mut *drive_state;
        let environment = &*self.environment;
        let state_cell = &worker.state_cell;
        let called = call_lifted!(
            lifted, loop_state, state_cell, issued, context, environment, woke_itself,
            {
                let hand_over = LoopHandOver::new(self, worker, issued, woke_itself);
                #[cfg(rotor_handed)]
                hand_over.round_trip(context);
                let (lent, token) = (P::lend_context(context, &hand_over), issued.callee.token);
            }
            Scope::with_context(lent, environment, token, issued.wake_target())
        );
        match called {
            CallOutcome::Done(state) => Some(state),
            CallOutcome::Late(response) => {
                self.submit_late_answer(drive_state, response);
                None
            }
        }
    }
}
