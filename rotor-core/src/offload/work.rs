//! What a pool runs, as the pool sees it.

use std::time::Duration;

use crate::clock::Clock;

/// Boxed work for another thread: a closure, or what [`Scope::job`](crate::Scope::job) makes.
#[doc(alias = "Job")]
pub type OffloadJob = Box<dyn OffloadWork>;

/// Work that a pool runs. Every closure that takes nothing and returns nothing is such work.
///
/// For those who implement a backend: each piece of work must be run once, or dropped.
pub trait OffloadWork: Send {
    /// Does the work, and returns what became of it. The work may panic; the caller must catch
    /// that.
    fn run(self: Box<Self>, begun: &Begun<'_>) -> JobEnd;
}

impl<F: FnOnce() + Send> OffloadWork for F {
    fn run(self: Box<Self>, _: &Begun<'_>) -> JobEnd {
        self();
        JobEnd::Done
    }
}

/// What work can ask when it begins.
pub struct Begun<'a> {
    queued_for: Duration,
    clock: Option<Clock>,
    again: Option<&'a dyn Again>,
}

/// Queues work anew.
pub(crate) type QueueAgain = Box<dyn FnOnce(OffloadJob) + Send>;

/// A queue that takes back work that cannot be done yet.
pub(crate) trait Again {
    /// Returns a function that queues the work anew, as the next to begin; it may be called on any
    /// thread. The work keeps its place in the pool until the function is called or dropped.
    fn queue_again(&self) -> QueueAgain;
}

impl<'a> Begun<'a> {
    /// Makes one for work that has waited for a thread for `queued_for`.
    pub fn after(queued_for: Duration) -> Begun<'a> {
        Begun { queued_for, clock: None, again: None }
    }

    /// Sets the clock that measures the run, which is not measured otherwise, and what queues the
    /// work anew; without that, work that had to wait is run where it becomes possible.
    pub(crate) fn on_thread(self, clock: Clock, again: &'a dyn Again) -> Begun<'a> {
        Begun { clock: Some(clock), again: Some(again), ..self }
    }

    pub(crate) fn clock(&self) -> Option<Clock> {
        self.clock
    }

    pub(crate) fn queue_again(&self) -> Option<QueueAgain> {
        Some(self.again?.queue_again())
    }

    /// Returns how long the work has waited for a thread.
    pub fn queued_for(&self) -> Duration {
        self.queued_for
    }
}

impl std::fmt::Debug for Begun<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Begun(after {:?})", self.queued_for)
    }
}

/// What became of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum JobEnd {
    /// It was done.
    Done,
    /// Nobody waited for it any more, so it was not begun.
    Cancelled,
    /// It could no longer begin in time
    /// ([`JobBuilder::begin_before`](crate::JobBuilder::begin_before)), so it was not begun.
    Late,
    /// It waits for a permit, and will be run again.
    Waits,
}
