//! The work that a pool runs, as the pool sees it.

use std::sync::Weak;
use std::time::Duration;

use crate::clock::Clock;
use crate::waiter_queue::WaiterQueue;

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

/// A pool that takes back work that cannot be done yet.
pub(crate) trait Requeue {
    /// Keeps the work's place in the pool while it waits for something other than a thread.
    fn keep_place(&self) -> Box<dyn KeptPlace>;
}

/// The place in a pool of work that waits for something else. It is kept until this is dropped or
/// the work is queued again.
pub(crate) trait KeptPlace: Send {
    /// Notes in which queue the work waits, and where, so that it is removed from there when the
    /// pool ends. Returns `false` if the pool has ended already.
    fn leave_queue_on_close(&self, queue: Weak<dyn WaiterQueue>, place: u64) -> bool;

    /// Returns whether the pool has ended, so that the work will not be done.
    fn is_pool_closed(&self) -> bool;

    /// Queues the work again, as the next to begin. This may be called on any thread.
    fn requeue(self: Box<Self>, job: OffloadJob);
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

    pub(crate) fn keep_place(&self) -> Option<Box<dyn KeptPlace>> {
        Some(self.requeuer?.keep_place())
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
