//! `Worker`: what a thread that runs a loop now and then keeps.

use std::cell::OnceCell;
use std::sync::Arc;

use super::Baton;
use crate::backend::Backend;
use crate::blocking::{Seat, ThreadProbe};
use crate::machine::Machine;

/// Of one thread, and not sent to others.
pub(super) struct Worker<M: Machine, B: Backend> {
    /// Where it waits for the loop.
    pub(super) seat: Arc<Seat<Baton<M, B>>>,
    probe: OnceCell<ThreadProbe>,
}

impl<M: Machine, B: Backend> Worker<M, B> {
    pub(super) fn new(seat: Arc<Seat<Baton<M, B>>>) -> Worker<M, B> {
        Worker { seat, probe: OnceCell::new() }
    }

    /// How the watchdog asks about this thread. The system is asked for it once, and only where
    /// there is a watchdog: the loop comes here at each hand-over.
    pub(super) fn probe(&self) -> &ThreadProbe {
        self.probe.get_or_init(ThreadProbe::of_this_thread)
    }
}
