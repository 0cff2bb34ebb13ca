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
mod callee;
mod creation;
mod delivery;
mod detached_handlers;
mod detachment;
mod end_requests;
mod failures;
mod forced_ends;
pub(super) mod inline_caller;
mod issued_call;
mod issuing;
mod monitor;
mod turn_clock;

pub(super) use self::callee::Callee;
pub(super) use self::delivery::{Caller, Delivery};
use self::detached_handlers::DetachedHandlers;
pub(super) use self::forced_ends::backend_panicked;
pub(super) use self::issued_call::{CallKind, IssuedCall};
use self::monitor::Monitor;
use self::turn_clock::TurnClock;
use super::handle::Exit;
use super::run_queue::RunQueue;
use super::scheduler::Scheduler;
use super::slots::Slots;
use crate::config::Config;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::stats::{Counters, StatsHandle};

/// References to what a turn needs, besides the machines, while it calls them.
pub(super) struct Refs<'a, M: Machine, B> {
    pub(super) context: &'a mut M::Context,
    pub(super) environment: &'a AnyEnvironment,
    pub(super) backend: &'a mut B,
    pub(super) config: &'a Config,
}

/// The machines of a loop, and the call that is in progress.
pub(super) struct Dispatch<M: Machine> {
    scheduler: Scheduler<M>,
    clock: TurnClock,
    monitor: Monitor,
    /// Set when a handler has panicked, with `OnPanic::StopLoop`.
    stop_reason: Option<Exit>,
    /// The next slot to be told of the current drain.
    drain_cursor: u32,
    detached: DetachedHandlers,
}

impl<M: Machine> Dispatch<M> {
    pub(super) fn new(scheduler: Scheduler<M>, counters: Counters) -> Dispatch<M> {
        Dispatch {
            scheduler,
            clock: TurnClock::default(),
            monitor: Monitor::new(counters),
            stop_reason: None,
            drain_cursor: 0,
            detached: DetachedHandlers::default(),
        }
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

    pub(super) fn monitor(&self) -> &Monitor {
        &self.monitor
    }

    #[inline]
    pub(super) fn monitor_mut(&mut self) -> &mut Monitor {
        &mut self.monitor
    }

    /// Publishes the statistics to other threads.
    pub(super) fn publish(&self) {
        let slots = self.scheduler.slots();
        self.monitor.counters().publish(slots.len(), slots.armed_deadlines());
    }

    /// Returns the statistics, including what has happened so far.
    pub(super) fn stats(&self) -> StatsHandle {
        self.publish();
        self.monitor.counters().handle()
    }

    /// Returns why the loop must end at once, if a panic requires that.
    pub(super) fn stop_reason(&mut self) -> &mut Option<Exit> {
        &mut self.stop_reason
    }
}

#[cfg(test)]
mod tests;
