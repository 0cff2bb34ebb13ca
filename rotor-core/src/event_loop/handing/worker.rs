//! `Worker`: what a thread that runs a loop now and then keeps.

use std::cell::OnceCell;
use std::sync::Arc;

use crate::blocking::{Seat, ThreadProbe};

/// Of one thread, and not sent to others.
pub(super) struct Worker<T> {
    /// Where it waits for the loop.
    pub(super) seat: Arc<Seat<T>>,
    probe: OnceCell<ThreadProbe>,
}

impl<T> Worker<T> {
    pub(super) fn new(seat: Arc<Seat<T>>) -> Worker<T> {
        Worker { seat, probe: OnceCell::new() }
    }

    /// How the watchdog asks about this thread. The system is asked for it once, and only where
    /// there is a watchdog: the loop comes here at each hand-over.
    pub(super) fn probe(&self) -> &ThreadProbe {
        self.probe.get_or_init(ThreadProbe::of_this_thread)
    }
}
