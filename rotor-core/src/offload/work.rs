//! The work that a pool runs, as the pool sees it.

use std::time::Duration;

use crate::clock::Clock;

/// Boxed work for another thread: a closure, or a job of [`Scope::job`](crate::Scope::job).
#[doc(alias = "Job")]
pub type OffloadJob = Box<dyn OffloadWork>;

/// Work that a pool runs. Every closure without arguments and result is such work.
///
/// This is for implementations of backends: each piece of work must be run once, or dropped.
pub trait OffloadWork: Send {
    /// Does the work, and returns its outcome. The work may panic; the caller must catch that.
    fn run(self: Box<Self>, begun: &JobStart<'_>) -> JobEnd;
}

impl<F: FnOnce() + Send> OffloadWork for F {
    fn run(self: Box<Self>, _: &JobStart<'_>) -> JobEnd {
        self();
        JobEnd::Done
    }
}

/// The information that work gets when it begins.
#[doc(alias = "Begun")]
pub struct JobStart<'a> {
    queued_for: Duration,
    clock: Option<Clock>,
    requeuer: Option<&'a dyn Requeue>,
}

/// A function that queues work again.
pub(crate) type RequeueFn = Box<dyn FnOnce(OffloadJob) + Send>;

/// A queue that takes back work that cannot be done yet.
pub(crate) trait Requeue {
    /// Returns a function that queues the work again, as the next to begin. It may be called on any
    /// thread. The work keeps its place in the pool until the function is called or dropped.
    fn requeue_fn(&self) -> RequeueFn;
}

impl<'a> JobStart<'a> {
    /// Creates the information for work that has waited for a thread for `queued_for`.
    pub fn after(queued_for: Duration) -> JobStart<'a> {
        JobStart { queued_for, clock: None, requeuer: None }
    }

    /// Sets the clock that measures the run, and the queue that takes the work back. Without them,
    /// the run is not measured, and work that has to wait runs wherever it becomes possible.
    pub(crate) fn on_thread(self, clock: Clock, requeuer: &'a dyn Requeue) -> JobStart<'a> {
        JobStart { clock: Some(clock), requeuer: Some(requeuer), ..self }
    }

    pub(crate) fn clock(&self) -> Option<Clock> {
        self.clock
    }

    pub(crate) fn requeue_fn(&self) -> Option<RequeueFn> {
        Some(self.requeuer?.requeue_fn())
    }

    /// Returns how long the work has waited for a thread.
    pub fn queued_for(&self) -> Duration {
        self.queued_for
    }
}

impl std::fmt::Debug for JobStart<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "JobStart(after {:?})", self.queued_for)
    }
}

/// The outcome of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JobEnd {
    /// The work was done.
    Done,
    /// The result was no longer wanted, so the work did not begin.
    Cancelled,
    /// It was too late to begin ([`JobBuilder::begin_before`](crate::JobBuilder::begin_before)), so
    /// the work did not begin.
    Late,
    /// The work waits for a permit, and will be run again.
    Waits,
}
