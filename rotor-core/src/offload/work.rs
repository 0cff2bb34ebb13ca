//! What a pool runs, as the pool sees it.

use std::time::Duration;

use crate::clock::Clock;

/// Work for another thread: a closure in a box, or what [`Scope::job`](crate::Scope::job) makes.
#[doc(alias = "Job")]
pub type OffloadJob = Box<dyn OffloadWork>;

/// What an [`OffloadJob`] is: every closure that takes nothing and returns nothing is such work.
///
/// For those who implement a backend: whatever is given away is run once, or dropped.
pub trait OffloadWork: Send {
    /// Does it, and says what became of it. A panic is the work's own; whoever calls this catches
    /// it.
    fn run(self: Box<Self>, begun: &Begun<'_>) -> JobEnd;
}

impl<F: FnOnce() + Send> OffloadWork for F {
    fn run(self: Box<Self>, _: &Begun<'_>) -> JobEnd {
        self();
        JobEnd::Done
    }
}

/// What work is told as it begins.
pub struct Begun<'a> {
    queued_for: Duration,
    clock: Option<Clock>,
    again: Option<&'a dyn Again>,
}

/// Queues work anew.
pub(crate) type QueueAgain = Box<dyn FnOnce(OffloadJob) + Send>;

/// What takes work back that cannot be done yet.
pub(crate) trait Again {
    /// Returns what queues the work anew, as the next to be begun, from any thread. Until then the
    /// work keeps its place in the pool, or until this is dropped.
    fn queue_again(&self) -> QueueAgain;
}

impl<'a> Begun<'a> {
    /// Says how long the work has waited for a thread.
    pub fn after(queued_for: Duration) -> Begun<'a> {
        Begun { queued_for, clock: None, again: None }
    }

    /// Says what time is measured by, without which it is not; and by what the work is queued anew,
    /// without which it is run where that becomes possible.
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
    /// It came too late ([`JobBuilder::begin_before`](crate::JobBuilder::begin_before)), so it was
    /// not begun.
    Late,
    /// It waits for a permit, and will be run again.
    Waits,
}
