//! Dispatch: delivers events to machines. Each call lends the machine to its handler in its slot,
//! or takes it out of the slot for a handler that takes it by value, and then applies the response.
//!
//! ```text
//!   event ──▶ handle_in_place() ─ declined ─▶ take(), handle() ──▶ apply: Continue ──▶ its slot
//!     │                        └─ handled ───────────────────▶        Again ─────▶ and the run queue
//!     ▼ it cannot be called now                                       Spawn ─────▶ create(), next event
//!   pending: the run queue has it called later                        Done, Error ▶ its slot ends
//! ```
//!
//! A handler that panics unwinds to the turn, which calls `handler_panicked` and goes on.

mod call;
mod creation;
mod deadlines;
mod detached_handler;
mod detachment;
mod end_requests;
mod ending;
mod failures;
pub(super) mod inline_caller;
mod issued_call;
mod issuing;
mod turn_clock;

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use self::detached_handler::DetachedHandler;
pub(super) use self::ending::backend_panicked;
pub(super) use self::failures::Callee;
pub(super) use self::issued_call::{CallKind, IssuedCall};
use self::turn_clock::TurnClock;
use super::handle::Exit;
use super::run_queue::{Calls, Pending, RunQueue};
use super::scheduler::Scheduler;
use super::slots::Slots;
use crate::backend::Backend;
use crate::blocking::HeartbeatWriter;
use crate::config::Config;
use crate::event_set::EventSet;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::stats::{Counters, StatsHandle};
use crate::token::Token;

/// References to what a turn needs, besides the machines, while it calls them.
pub(super) struct Refs<'a, M: Machine, B> {
    pub(super) context: &'a mut M::Context,
    pub(super) environment: &'a AnyEnvironment,
    pub(super) backend: &'a mut B,
    pub(super) config: &'a Config,
}

/// The code that makes the calls of a turn: the turn itself, or code to which the calls are
/// issued. In the latter case each function breaks off, and the turn stops there until the call was
/// made.
pub(in crate::event_loop) trait Caller<M: Machine> {
    fn call<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        kind: CallKind,
    ) -> ControlFlow<()>;

    /// Carries out a spawn that a machine requested in an earlier turn, and reports the result to
    /// it.
    fn spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        spawn: (M, M::Seed),
    ) -> ControlFlow<()>;

    /// Keeps the rest of a machine's pending calls, when the turn stops at one of them.
    fn keep_remaining_calls(&mut self, token: Token, left: Pending);
}

/// The machines of a loop, and the call that is in progress.
pub(super) struct Dispatch<M: Machine> {
    scheduler: Scheduler<M>,
    clock: TurnClock,
    counters: Counters,
    /// The machine whose handler is running.
    callee: Option<Callee>,
    /// The state that the watchdog sees.
    heartbeat: Option<HeartbeatWriter>,
    /// Set when a handler has panicked, with `OnPanic::StopLoop`.
    stop_reason: Option<Exit>,
    /// The next slot to be told of the current drain.
    drain_cursor: u32,
    /// Machines whose handlers are detached: they have given the loop away and have not returned.
    detached: Vec<DetachedHandler>,
}

impl<M: Machine> Dispatch<M> {
    pub(super) fn new(scheduler: Scheduler<M>, counters: Counters) -> Dispatch<M> {
        Dispatch {
            scheduler,
            clock: TurnClock::default(),
            counters,
            callee: None,
            heartbeat: None,
            stop_reason: None,
            drain_cursor: 0,
            detached: Vec::new(),
        }
    }

    /// Sets the heartbeat: from now on the watchdog sees what the loop does.
    pub(super) fn set_heartbeat(&mut self, heartbeat: HeartbeatWriter) {
        self.heartbeat = Some(heartbeat);
    }

    #[inline]
    pub(super) fn heartbeat(&mut self) -> Option<&mut HeartbeatWriter> {
        self.heartbeat.as_mut()
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

    /// Checks that the run queue and the states of the slots agree.
    pub(super) fn check_queue(&self) -> Result<(), String> {
        self.scheduler.check(|token| self.is_detached(token))
    }

    pub(super) fn clock(&mut self) -> &mut TurnClock {
        &mut self.clock
    }

    pub(super) fn counters(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Returns how many machines have been made so far.
    pub(super) fn machines_created(&self) -> u64 {
        self.counters.stats.spawned
    }

    /// Publishes the statistics to other threads.
    pub(super) fn publish(&self) {
        let slots = self.scheduler.slots();
        self.counters.publish(slots.len(), slots.armed_deadlines());
    }

    /// Returns the statistics, including what has happened so far.
    pub(super) fn stats(&self) -> StatsHandle {
        self.publish();
        self.counters.handle()
    }

    /// Returns why the loop must end at once, if a panic requires that.
    pub(super) fn stop_reason(&mut self) -> &mut Option<Exit> {
        &mut self.stop_reason
    }
}

/// Delivering events to machines.
impl<M: Machine> Dispatch<M> {
    #[inline(always)]
    pub(super) fn deliver_ready<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
        events: EventSet,
    ) -> ControlFlow<()> {
        // A machine that returned `again` is called once, behind the others, with all events that
        // came meanwhile.
        if !self.scheduler.slots().can_be_called_unless(token, Calls::READY) {
            self.defer_ready(token, events);
            return Continue(());
        }
        self.counters.stats.events += 1;
        self.clock.before_call(refs.backend, refs.environment);
        caller.call(self, refs, token, CallKind::Ready(events))
    }

    /// Keeps the events for a machine that cannot be called now.
    #[cold]
    #[inline(never)]
    fn defer_ready(&mut self, token: Token, events: EventSet) {
        if !self.scheduler.mark_ready_pending(token, events) {
            self.counters.stats.stale += 1;
        }
    }

    /// Keeps another call for a machine that cannot be called now.
    #[cold]
    fn defer_call(&mut self, token: Token, calls: Calls) {
        if self.scheduler.queue().wakes().is_alive(token) {
            self.scheduler.mark_pending(token, calls);
        } else {
            self.counters.stats.stale += 1;
        }
    }

    /// Wakes the machine of a slot from the wake queue.
    pub(super) fn wake_slot<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        index: u32,
    ) -> ControlFlow<()> {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(refs.environment);
            self.counters.stats.stale += 1;
            return Continue(());
        }
        let token = self.scheduler.wake_or_postpone(index, wakeup_calls(whole));
        token.map_or(Continue(()), |token| self.deliver_wakeup(refs, caller, token, whole))
    }

    /// Calls `wakeup`. `whole` says that the machine itself was woken, not only parts of it.
    ///
    /// A thread that wakes a part first puts the part into the channel, and then the machine into
    /// the list. If the part was taken in between, the machine is in the list for nothing.
    fn deliver_wakeup<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
        whole: bool,
    ) -> ControlFlow<()> {
        if !whole && !self.scheduler.queue().parts().has(token) {
            return Continue(());
        }
        if !self.scheduler.slots().can_be_called(token) {
            self.defer_call(token, wakeup_calls(whole));
            return Continue(());
        }
        self.counters.stats.wakeups += 1;
        refs.environment.waiters.begin_wakeup(token);
        self.clock.before_cheap_call(refs.backend, refs.environment);
        caller.call(self, refs, token, CallKind::Wakeup { whole })
    }

    /// Makes the pending calls of a machine. Calls that its handlers add meanwhile are left for the
    /// next turn.
    pub(super) fn resume<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
    ) -> ControlFlow<()> {
        let pending = self.take_pending_calls(refs, token);
        pending
            .map_or(Continue(()), |pending| self.make_pending_calls(refs, caller, token, pending))
    }

    /// Makes calls that were taken from the pending ones.
    #[inline(always)]
    pub(super) fn make_pending_calls<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
        mut pending: Pending,
    ) -> ControlFlow<()> {
        // Before `draining`, at which machines end: there may be input that arrived before. Once is
        // enough: a machine that returned `again` forever would never be told of the drain.
        if pending.remove(Calls::READY) {
            let stops = self.deliver_ready(refs, caller, token, pending.events());
            stops.map_break(|()| caller.keep_remaining_calls(token, pending))?;
        }
        if pending.remove(Calls::DRAINING) {
            let stops = self.deliver_draining(refs, caller, token);
            stops.map_break(|()| caller.keep_remaining_calls(token, pending))?;
        }
        if pending.has(Calls::WAKEUP) {
            self.deliver_wakeup(refs, caller, token, pending.has(Calls::WAKEUP_WHOLE))?;
        }
        Continue(())
    }

    /// Takes the pending calls of a machine from the run queue, if it exists and can be called.
    #[inline(always)]
    fn take_pending_calls<B>(&mut self, refs: &Refs<'_, M, B>, token: Token) -> Option<Pending> {
        if !self.detached.is_empty() && self.hold_if_detached(token) {
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

#[cfg(test)]
mod tests;
