//! `Worker`: what a thread that runs a loop now and then keeps.

use std::cell::OnceCell;
use std::sync::Arc;

use super::baton::Baton;
use super::berth::Berth;
use super::given::Given;
use crate::backend::Backend;
use crate::blocking::{Seat, ThreadProbe};
use crate::machine::Machine;

/// Of one thread, and not sent to others.
pub(super) struct Worker<M: Machine, B: Backend, P> {
    /// Where it waits to have the loop back.
    pub(super) seat: Arc<Seat<Baton<M, B>>>,
    /// Where it is parked.
    pub(super) parked: Arc<Seat<Given<M, B>>>,
    /// Where it has the loop.
    pub(super) berth: P,
    probe: OnceCell<ThreadProbe>,
}

impl<M: Machine, B: Backend, P: Berth<M, B>> Worker<M, B, P> {
    pub(super) fn new(parked: Arc<Seat<Given<M, B>>>) -> Worker<M, B, P> {
        Worker { seat: Seat::new(), parked, berth: P::empty(), probe: OnceCell::new() }
    }

    /// How the watchdog asks about this thread. The system is asked for it once, and only where
    /// there is a watchdog: the loop comes here at each hand-over.
    pub(super) fn probe(&self) -> &ThreadProbe {
        self.probe.get_or_init(ThreadProbe::of_this_thread)
    }
}

/// How long a thread is there for its loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Stays {
    /// It is the caller's, and not counted.
    ForThis,
    /// Until it has been of no use for a while.
    WhileOfUse,
}
