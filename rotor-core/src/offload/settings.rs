//! What a pool is told when it is made.

use std::sync::Arc;
use std::time::Duration;

/// What a panic in a job costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum OnJobPanic {
    /// Its result: it is logged, the machine hears of [`Lost::Panicked`](crate::Lost::Panicked),
    /// the thread goes on. The default.
    #[default]
    Log,
    /// The process: it is logged, then the process aborts. For jobs that share state whose halves
    /// must never be seen.
    Abort,
}

/// What becomes of a job for which the pool has no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum WhenFull {
    /// The closure comes back ([`OffloadFull`](crate::OffloadFull)). The default: the machine
    /// decides, and the loop goes on.
    #[default]
    Refuse,
    /// The job that would be begun next (the oldest urgent one, else the oldest) is run at once by
    /// whoever offers one more, on the loop's own thread, and the new one takes its place; so jobs
    /// begin in the order in which they were given away. The loop stands still meanwhile, which is
    /// backpressure that no machine can overlook.
    ///
    /// Jobs that wait for a permit ([`JobBuilder::permits`](crate::JobBuilder::permits)) keep their
    /// places. Where they have all of them, the new job itself is run here; if it then waits for a
    /// permit as well, there is one job more than places, and closures come back as with `Refuse`
    /// until there are no more jobs than places.
    #[doc(alias = "caller runs")]
    RunOldestHere,
}

/// Told a number of a thread.
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
