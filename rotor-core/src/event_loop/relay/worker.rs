//! `Worker`: the state of a thread that runs a loop from time to time.

use std::cell::{Cell, OnceCell};
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
    lifetime: ThreadLifetime,
    /// Whether another thread is to go on with the loop: on the thread of the caller of `run`, after
    /// a section has blocked the loop there.
    wants_successor: Cell<bool>,
    probe: OnceCell<ThreadProbe>,
}

impl<M: Machine, B: Backend, P: StateCell<M, B>> Worker<M, B, P> {
    pub(super) fn new(
        work_parker: Arc<Parker<ThreadWork<M, B>>>,
        lifetime: ThreadLifetime,
    ) -> Worker<M, B, P> {
        Worker {
            loop_parker: Parker::new(),
            work_parker,
            state_cell: P::empty(),
            lifetime,
            wants_successor: Cell::new(false),
            probe: OnceCell::new(),
        }
    }

    /// Returns whether a handler on this thread may give the loop away. On the thread of the caller
    /// of `run` it may not: the loop could end elsewhere meanwhile, and `run` could not return,
    /// because the handler would wait for the loop in it. Then another thread is to go on with the
    /// loop after this turn.
    pub(super) fn may_release_loop(&self) -> bool {
        let may_release = self.lifetime != ThreadLifetime::CallerOwned;
        self.wants_successor.set(!may_release);
        may_release
    }

    /// Returns whether another thread is to go on with the loop, once after each section that has
    /// blocked it.
    #[cfg(not(rotor_handed))]
    pub(super) fn take_wants_successor(&self) -> bool {
        self.wants_successor.take()
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
