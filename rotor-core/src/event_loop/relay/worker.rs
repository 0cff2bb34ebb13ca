//! `Worker`: the state of a thread that runs a loop from time to time.

use std::cell::OnceCell;
use std::sync::Arc;

use super::baton::Baton;
use super::state_cell::StateCell;
use super::thread_work::ThreadWork;
use crate::backend::Backend;
use crate::blocking::{Parker, ThreadProbe};
use crate::machine::Machine;

/// The state of one thread; it is not sent to others.
pub(super) struct Worker<M: Machine, B: Backend, P> {
    /// Where the thread waits to get the loop back.
    pub(super) loop_parker: Arc<Parker<Baton<M, B>>>,
    /// Where the thread is parked.
    pub(super) work_parker: Arc<Parker<ThreadWork<M, B>>>,
    /// Where the loop is while the thread runs it.
    pub(super) state_cell: P,
    probe: OnceCell<ThreadProbe>,
}

impl<M: Machine, B: Backend, P: StateCell<M, B>> Worker<M, B, P> {
    pub(super) fn new(work_parker: Arc<Parker<ThreadWork<M, B>>>) -> Worker<M, B, P> {
        Worker {
            loop_parker: Parker::new(),
            work_parker,
            state_cell: P::empty(),
            probe: OnceCell::new(),
        }
    }

    /// Returns the watchdog's access to this thread. The system is called for it once, and only if
    /// there is a watchdog, because this is called at each hand-over.
    pub(super) fn probe(&self) -> &ThreadProbe {
        self.probe.get_or_init(ThreadProbe::of_this_thread)
    }
}

/// How long a thread exists for its loop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadLifetime {
    /// The thread belongs to the caller of `run`, and is not counted.
    CallerOwned,
    /// Until the thread has not been needed for a while.
    WhileUsed,
}
