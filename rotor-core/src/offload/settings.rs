//! The settings of a pool.

use std::sync::Arc;
use std::time::Duration;

/// What to do if a job panics.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnJobPanic {
    /// Only its result is lost: the panic is logged, the machine gets
    /// [`FutureError::Panicked`](crate::FutureError::Panicked), and the thread goes on. The
    /// default.
    #[default]
    Log,
    /// The panic is logged, then the process aborts. This is for jobs that share state which must
    /// never be seen half changed.
    Abort,
}

/// What to do with a job for which the pool has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// The closure is returned in [`OffloadFull`](crate::OffloadFull). The machine decides what to
    /// do, and the loop goes on. This is the default.
    #[default]
    Refuse,
    /// The job that would begin next (the oldest urgent one, or else the oldest one) runs at once
    /// on the thread that offers the new one, which is the loop's own thread. The new job takes its
    /// place in the queue. So jobs begin in the order in which they were offered. The loop is
    /// blocked meanwhile, which is backpressure that no machine can ignore.
    ///
    /// Jobs that wait for a permit ([`JobBuilder::permits`](crate::JobBuilder::permits)) keep their
    /// places. If they occupy all places, the new job itself runs here. If it then waits for a
    /// permit as well, there is one job more than places; closures are then returned as with
    /// `Refuse`, until there are no more jobs than places.
    #[doc(alias = "caller runs")]
    RunOldestHere,
}

/// A function that is called with the number of a thread.
pub(crate) type ThreadHook = Arc<dyn Fn(usize) + Send + Sync>;

#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) threads_max: usize,
    pub(crate) threads_min: usize,
    pub(crate) jobs_max: usize,
    pub(crate) name: String,
    pub(crate) stack_bytes: Option<usize>,
    pub(crate) keep_idle: Duration,
    pub(crate) on_thread_start: Option<ThreadHook>,
    pub(crate) on_thread_stop: Option<ThreadHook>,
    pub(crate) on_panic: OnJobPanic,
    pub(crate) when_full: WhenFull,
}
