//! `OffloadPool`, and the builder that makes it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use quick_error::quick_error;

use super::settings::{OnJobPanic, Settings, WhenFull};
use super::stats::PoolStats;
use super::threads::Shared;
use super::work::OffloadJob;

/// A pool of threads for work that would hold up a loop: computations, files, libraries that block.
///
/// Clones are handles to the same pool. Every [`Config`](crate::Config) has one, shared by the
/// loops made from clones of that `Config`; [`JobBuilder::on`](crate::JobBuilder::on) gives a job
/// to another pool. A pool without jobs has no threads, unless
/// [`threads_min`](PoolBuilder::threads_min) says otherwise. When the last clone is dropped, the
/// waiting jobs are dropped, and each thread ends after its current job.
///
/// Nothing waits for these threads at the end of the process: a job that still runs when `main`
/// returns is cut off. If it must be finished, keep its future in a machine that does not end
/// before it. A drain waits for that machine, within its time limit.
#[doc(alias = "thread pool")]
#[doc(alias = "spawn_blocking")]
#[doc(alias = "executor")]
#[derive(Clone)]
pub struct OffloadPool {
    owner: Arc<Owner>,
}

/// The error of a pool that has no room for another job. It returns the closure.
///
/// This is not a mistake: do without the job, respond "busy", or try again later. There is room
/// again when a job begins to run.
#[doc(alias = "backpressure")]
pub struct OffloadFull<F>(pub F);

/// A builder of an [`OffloadPool`]. Each setting has a default.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{OffloadPool, WhenFull};
///
/// # fn main() -> Result<(), rotor::PoolError> {
/// let disk = OffloadPool::builder()
///     .name("disk")
///     .threads_max(2)
///     .jobs_max(64)
///     .when_full(WhenFull::RunOldestHere)
///     .build()?;
/// assert_eq!(disk.stats().threads, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use = "a builder makes nothing until `build`"]
pub struct PoolBuilder {
    settings: Settings,
}

quick_error! {
    /// Why a pool was not made.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum PoolError {
        /// The caller's mistake: `threads_max` is 0. For a pool that runs nothing on its own
        /// threads, set `jobs_max` to 0 and use
        /// [`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere).
        NoThreads {
            display("a pool needs at least one thread (threads_max)")
        }
        /// The caller's mistake: `threads_min` is greater than `threads_max`.
        MinAboveMax(min: usize, max: usize) {
            display("a pool of at most {max} threads cannot keep {min} (threads_min, threads_max)")
        }
        /// The caller's mistake: the name contains a zero byte, which is not possible in a thread's
        /// name.
        ZeroInName {
            display("the name of a pool's threads has a zero byte in it")
        }
        /// The system could not start one of the `threads_min` threads.
        Thread(error: io::Error) {
            source(error)
            display("a thread of the pool could not be started")
        }
    }
}

impl OffloadPool {
    /// Creates a pool of at most `threads` threads (at least 1), in which at most `jobs` jobs (at
    /// least 1) wait for a thread. Everything else has the default of
    /// [`builder`](OffloadPool::builder).
    pub fn new(threads: usize, jobs: usize) -> OffloadPool {
        let builder = OffloadPool::builder().threads_max(threads.max(1)).jobs_max(jobs.max(1));
        OffloadPool::with(builder.settings)
    }

    /// Returns a builder with the default settings.
    pub fn builder() -> PoolBuilder {
        PoolBuilder {
            settings: Settings {
                threads_max: 4,
                threads_min: 0,
                jobs_max: 1_024,
                name: "offload".into(),
                stack_bytes: None,
                keep_idle: Duration::from_secs(10),
                on_thread_start: None,
                on_thread_stop: None,
                on_panic: OnJobPanic::Log,
                when_full: WhenFull::Refuse,
            },
        }
    }

    #[cfg(test)]
    pub(super) fn shared(&self) -> Arc<Shared> {
        self.owner.shared.clone()
    }

    fn with(settings: Settings) -> OffloadPool {
        OffloadPool { owner: Arc::new(Owner { shared: Arc::new(Shared::new(settings)) }) }
    }

    /// Takes the job that `make` creates. `make` is called only if there is room. Returns whether
    /// the job was taken.
    ///
    /// This is for implementations of backends; machines use
    /// [`Scope::offload`](crate::Scope::offload).
    pub fn offer(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.owner.shared.offer(false, make)
    }

    /// Does the same for an urgent job, which begins before all jobs that are not urgent.
    pub fn offer_urgent(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.owner.shared.offer(true, make)
    }

    /// Returns the pool's statistics. This takes the lock of the queue of jobs, so call it a few
    /// times a second at most, not for each job.
    pub fn stats(&self) -> PoolStats {
        self.owner.shared.stats()
    }
}

impl PoolBuilder {
    /// Sets the maximum number of threads. Each thread runs one job at a time. Default 4: enough to
    /// look names up and read small files, and too few to be a load by themselves. At least 1.
    pub fn threads_max(mut self, threads: usize) -> PoolBuilder {
        self.settings.threads_max = threads;
        self
    }

    /// Sets how many threads are started with the pool and never end before it. Default 0: a thread
    /// is started when a job finds no idle one. At most `threads_max`.
    pub fn threads_min(mut self, threads: usize) -> PoolBuilder {
        self.settings.threads_min = threads;
        self
    }

    /// Sets the maximum number of jobs that wait for a thread. Default 1,024. With 0, no job waits,
    /// and [`when_full`](PoolBuilder::when_full) applies to each of them:
    /// [`RunOldestHere`](WhenFull::RunOldestHere) runs every job on the loop that offers it, and
    /// [`Refuse`](WhenFull::Refuse) refuses every job.
    pub fn jobs_max(mut self, jobs: usize) -> PoolBuilder {
        self.settings.jobs_max = jobs;
        self
    }

    /// Sets the name of the threads. A hyphen and a number, from 0, are appended. Default
    /// `offload`. Linux shows only the first 15 bytes.
    pub fn name(mut self, name: impl Into<String>) -> PoolBuilder {
        self.settings.name = name.into();
        self
    }

    /// Sets the size of a thread's stack, in bytes. The system may round it up, or refuse to start
    /// a thread whose stack is too small. Default: that of the standard library, which is 2 MiB
    /// unless `RUST_MIN_STACK` is set. This is address space; memory is taken only for the part
    /// that jobs have used.
    pub fn stack_bytes(mut self, bytes: usize) -> PoolBuilder {
        self.settings.stack_bytes = Some(bytes);
        self
    }

    /// Sets how long an idle thread waits for a job before it ends. Default 10 s: threads survive
    /// the pauses of a service under load, and those started for a burst end soon.
    pub fn keep_idle(mut self, time: Duration) -> PoolBuilder {
        self.settings.keep_idle = time;
        self
    }

    /// Sets a function that each thread calls first, with its number: for example to lower the
    /// thread's priority, or to bind it to a CPU. Default: none. A panic in it is logged.
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> PoolBuilder {
        self.settings.on_thread_start = Some(Arc::new(hook));
        self
    }

    /// Sets a function that each thread calls last, with its number, which is given to no other
    /// thread before this has returned. Default: none. A panic in it is logged.
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> PoolBuilder {
        self.settings.on_thread_stop = Some(Arc::new(hook));
        self
    }

    /// Sets what happens if a job panics. Default: [`OnJobPanic::Log`].
    pub fn on_panic(mut self, action: OnJobPanic) -> PoolBuilder {
        self.settings.on_panic = action;
        self
    }

    /// Sets what happens to a job if `jobs_max` jobs are waiting already. Default:
    /// [`WhenFull::Refuse`].
    pub fn when_full(mut self, action: WhenFull) -> PoolBuilder {
        self.settings.when_full = action;
        self
    }

    /// Creates the pool, and starts its `threads_min` threads.
    ///
    /// # Errors
    ///
    /// Fails if the settings are invalid or contradict each other, with a variant for each case, or
    /// with the system's error if a thread cannot be started. In either case there is no pool and
    /// no thread.
    pub fn build(self) -> Result<OffloadPool, PoolError> {
        let Settings { threads_min: min, threads_max: max, .. } = self.settings;
        if max == 0 {
            return Err(PoolError::NoThreads);
        }
        if min > max {
            return Err(PoolError::MinAboveMax(min, max));
        }
        if self.settings.name.contains('\0') {
            return Err(PoolError::ZeroInName);
        }
        let pool = OffloadPool::with(self.settings);
        pool.owner.shared.start_min_threads().map_err(PoolError::Thread)?;
        Ok(pool)
    }
}

impl fmt::Debug for PoolBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { threads_max, jobs_max, name, .. } = &self.settings;
        write!(f, "PoolBuilder({name}, {threads_max} threads, {jobs_max} jobs)")
    }
}

impl Default for OffloadPool {
    /// Creates a pool of at most 4 threads and 1,024 waiting jobs: enough to look names up and read
    /// small files, and too few to be a load by themselves.
    fn default() -> OffloadPool {
        OffloadPool::new(4, 1_024)
    }
}

impl fmt::Debug for OffloadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Settings { threads_max, jobs_max, .. } = &self.owner.shared.settings;
        write!(f, "OffloadPool({threads_max} threads, {jobs_max} jobs)")
    }
}

impl<F> OffloadFull<F> {
    /// Returns the closure that was not taken.
    pub fn into_job(self) -> F {
        self.0
    }
}

impl<F> fmt::Debug for OffloadFull<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OffloadFull(..)")
    }
}

impl<F> fmt::Display for OffloadFull<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "the pool has no room for another job (PoolBuilder::jobs_max), or no thread for it",
        )
    }
}

impl<F> std::error::Error for OffloadFull<F> {}

/// Shared by the clones of a pool, but not by its threads. When it is dropped, the pool ends.
struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
    }
}
