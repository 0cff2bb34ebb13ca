//! `LoopHandOver`: the access of a handler's scope to the thread that runs the loop.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;

use super::state_cell::StateCell;
use super::worker::Worker;
use super::{Baton, LoopState, Relay};
use crate::backend::{Backend, BackendHandle};
use crate::blocking::BlockCounts;
use crate::event_loop::dispatch::IssuedCall;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::scope::{LoopHolder, ReclaimOutcome, ReleaseOutcome};
use crate::time::Time;

/// Gives the loop up for a section that blocks, and takes it back.
pub(super) struct LoopHandOver<'a, M: Machine, B: Backend, P> {
    pub(super) relay: &'a Arc<Relay<M, B>>,
    pub(super) worker: &'a Worker<M, B, P>,
    pub(super) issued: &'a IssuedCall<M>,
    /// When the section began.
    begun: Cell<Time>,
    /// Whether the machine had woken itself before the section.
    woke_itself: Cell<bool>,
    /// Whether the machine has woken itself; used if other threads may have the loop meanwhile.
    woke_itself_flag: &'a Cell<bool>,
}

impl<'a, M: Machine, B: Backend, P> LoopHandOver<'a, M, B, P> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn new(
        relay: &'a Arc<Relay<M, B>>,
        worker: &'a Worker<M, B, P>,
        issued: &'a IssuedCall<M>,
        woke_itself_flag: &'a Cell<bool>,
    ) -> LoopHandOver<'a, M, B, P> {
        let (begun, woke_itself) = (Cell::new(Time::ZERO), Cell::new(false));
        LoopHandOver { relay, worker, issued, begun, woke_itself, woke_itself_flag }
    }
}

impl<M, B, P: StateCell<M, B>> LoopHolder<M::Context> for LoopHandOver<'_, M, B, P>
where
    M: Machine<Seed: Send, Context: Send> + Send + 'static,
    B: Backend<Handle: Send + Sync> + Send + 'static,
{
    fn release_loop(&self, context: Option<Box<M::Context>>) -> ReleaseOutcome<M::Context> {
        let mut place = self.worker.state_cell.lock();
        let Some(mut loop_state) = place.take() else {
            return if P::IS_SHARED {
                ReleaseOutcome::Taken
            } else {
                ReleaseOutcome::Kept(context)
            };
        };
        #[cfg(rotor_handed)]
        if loop_state.is_one_turn {
            // In `turn`, which hands no section over.
            *place = Some(loop_state);
            return ReleaseOutcome::Kept(context);
        }
        if !self.worker.may_release_loop() {
            *place = Some(loop_state);
            BlockCounts::add(&self.relay.environment.blocks.no_thread);
            return ReleaseOutcome::Kept(context);
        }
        let has_own_context = context.is_some();
        let Some(context) = context.or_else(|| loop_state.next_context.take()) else {
            *place = Some(loop_state);
            return ReleaseOutcome::Kept(None);
        };
        drop(place);
        let environment = &*self.relay.environment;
        let callee = self.issued.callee;
        loop_state.core.dispatch_mut().detach(callee);
        // The flag belongs to this call, and the next calls are those of other machines.
        self.woke_itself.set(environment.take_self_wakeup());
        self.begun.set(environment.handle.now());
        let patience = self.relay.blocking.declared_patience();
        // Only the watchdog takes a lent baton, if the section turns out not to be short.
        let is_short =
            loop_state.is_watched && loop_state.sections.are_short(callee.type_name, patience);
        loop_state.lender = is_short.then_some(callee.token);
        let baton = Baton { loop_state, context };
        self.relay.sections.begin(callee.token, callee.type_name, true);
        if is_short {
            self.relay.thread_queue.lend(baton);
            return ReleaseOutcome::Released;
        }
        let Err(Baton { mut loop_state, context }) = self.relay.pass_on(baton) else {
            return ReleaseOutcome::Released;
        };
        self.relay.sections.end(callee.token);
        BlockCounts::add(&environment.blocks.no_thread);
        loop_state.core.dispatch_mut().continue_call(callee);
        if self.woke_itself.take() {
            environment.record_self_wakeup();
        }
        let context = if has_own_context {
            Some(context)
        } else {
            loop_state.next_context = Some(context);
            None
        };
        *self.worker.state_cell.lock() = Some(loop_state);
        ReleaseOutcome::Kept(context)
    }

    fn reclaim_loop(&self) -> ReclaimOutcome<M::Context> {
        let environment = &*self.relay.environment;
        let callee = self.issued.callee;
        let elapsed = environment.handle.now() - self.begun.get();
        // Before the wait, which other handlers may make long.
        self.relay.sections.end(callee.token);
        // The thread that has the loop may be asleep in its backend.
        let back = self
            .relay
            .thread_queue
            .reclaim(&self.worker.loop_parker, || environment.wakes.wake_loop());
        let Some(Baton { mut loop_state, context }) = back else {
            return if P::IS_SHARED {
                ReclaimOutcome::Reclaimed(None)
            } else {
                ReclaimOutcome::Dropped
            };
        };
        // A baton that is lent may be that of another handler, which is still in its section.
        let count = if loop_state.lender.take() == Some(callee.token) {
            &environment.blocks.handed_quick
        } else {
            self.relay.set_running_thread(self.worker);
            self.issued.exclude_time_since(self.begun.get(), || environment.handle.now());
            &environment.blocks.handed_over
        };
        if mem::take(&mut loop_state.was_refused) {
            BlockCounts::add(&environment.blocks.no_thread);
            environment.count_inline();
        } else {
            BlockCounts::add(count);
        }
        self.relay.record_takeover(&mut loop_state);
        let LoopState { core, progress, sections, .. } = &mut *loop_state;
        sections.record(callee.type_name, elapsed);
        core.reattach(environment, progress, callee);
        if self.woke_itself.take() {
            environment.record_self_wakeup();
        }
        if self.issued.is_wakeup() {
            environment.waiters.begin_wakeup(callee.token);
        }
        environment.refresh_now();
        let context = if P::IS_SHARED {
            // This handler has its own context. The thread that ran the loop meanwhile may have
            // left one for the next thread.
            if loop_state.next_context.is_none() {
                loop_state.next_context = Some(context);
            } else {
                drop_guarded(context, "a context");
            }
            None
        } else {
            Some(context)
        };
        *self.worker.state_cell.lock() = Some(loop_state);
        ReclaimOutcome::Reclaimed(context)
    }

    fn record_self_wakeup(&self) -> bool {
        self.woke_itself_flag.set(true);
        true
    }

    fn refresh_now(&self) -> Option<Time> {
        let place = self.worker.state_cell.lock();
        place.is_some().then(|| self.relay.environment.refresh_now())
    }

    fn hands_over(&self) -> bool {
        true
    }
}
