//! Detached calls: another thread makes them, so that the loop does not wait for them. They are for
//! machines of a type whose handlers were stuck shortly before.
//!
//! ```text
//!   thread 1: has the loop ── calls others ────────┬── calls others ──▶
//!                   │                              │
//!                   │ machine, terms, a context    │ the answer waits
//!                   ▼                              │
//!   thread 2: (parked) ───────── handler ──────────┴── parks
//! ```
//!
//! For the machine, the events for it and its response, it makes no difference from a loop that was
//! [taken](super::takeover) from its handler right at the beginning.

use std::mem;
use std::sync::Arc;

use super::drive::DriveState;
use super::state_cell::StateCell;
use super::thread_work::DetachedCall;
use super::worker::Worker;
use super::{LoopState, Relay};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::BlockCounts;
use crate::event_loop::dispatch::IssuedCall;
use crate::guard::{drop_guarded, guard};
use crate::machine::Machine;

impl<M, B> Relay<M, B>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    /// Lets another thread make the call of this machine, if its type is suspected to block.
    /// Returns whether another thread does.
    #[cold]
    #[inline(never)]
    pub(super) fn try_detach_call(
        self: &Arc<Self>,
        drive_state: &mut DriveState<M>,
        lifted: &mut Option<M>,
        loop_state: &mut LoopState<M, B>,
    ) -> bool {
        let callee = drive_state.issued.callee;
        if !loop_state.suspects.may_detach(callee.type_name) {
            return false;
        }
        let Some(context) = loop_state.next_context.take() else { return false };
        loop_state.core.dispatch_mut().detach(callee);
        self.environment.waiters.detach_wakeup(callee.token);
        self.sections.begin(callee.token, callee.type_name, false);
        let call = Box::new(DetachedCall {
            lifted: lifted.take(),
            issued: mem::replace(&mut drive_state.issued, IssuedCall::empty()),
            context,
            since: self.environment.handle.now(),
        });
        let given = self.thread_queue.give_to_parked(call).or_else(|call| self.start_thread(call));
        if let Err(call) = given {
            let DetachedCall { lifted: unused, issued, context, .. } = *call;
            (*lifted, drive_state.issued) = (unused, issued);
            loop_state.next_context = Some(context);
            self.sections.end(callee.token);
            loop_state.core.dispatch_mut().continue_call(callee);
            return false;
        }
        BlockCounts::add(&self.environment.blocks.taken_over);
        loop_state.suspects.record_detached(callee.type_name);
        if let Some(context) = &drive_state.context {
            self.prepare_next_context(loop_state, context);
        }
        true
    }

    /// Makes a call for a loop that another thread runs.
    pub(super) fn run_detached_call<P: StateCell<M, B>>(
        self: &Arc<Self>,
        call: DetachedCall<M>,
        worker: &Worker<M, B, P>,
    ) {
        let DetachedCall { lifted, issued, context, since } = call;
        let begun = self.environment.handle.now();
        issued.exclude_time_since(since, || begun);
        let mut drive_state = DriveState {
            context: Some(context),
            issued,
            woke_itself: Default::default(),
            detached_since: Some(begun),
        };
        // There is no loop in this thread's state cell, so the response is late.
        let result =
            guard(|| drop(self.call(&mut drive_state, lifted, worker, worker.state_cell.lock())));
        if let Err(panicked) = result {
            self.submit_late_panic(&mut drive_state, panicked);
        }
        drop_guarded(drive_state, "a context");
    }
}
