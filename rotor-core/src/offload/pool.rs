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

/// Threads for work that would hold up a loop: computations, files, libraries that block.
///
/// Clones are the same pool. Every [`Config`](crate::Config) carries one, so that the loops made
/// from clones of one `Config` share it; a job may also be given to another
/// ([`JobBuilder::on`](crate::JobBuilder::on)). Without jobs it has no threads. When the last clone
/// is dropped, what still waits is dropped, and each thread ends after the job that it runs.
#[doc(alias = "thread pool")]
#[doc(alias = "spawn_blocking")]
#[doc(alias = "executor")]
#[derive(Clone)]
pub struct OffloadPool {
    owner: Arc<Owner>,
}

/// The pool has no room for another job; the closure comes back.
///
/// Nobody's fault: do without, answer "busy", or try again later. There is room when a job begins
/// to run.
#[doc(alias = "backpressure")]
pub struct OffloadFull<F>(pub F);

/// Makes an [`OffloadPool`]; each setting has a default.
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
        /// The caller's mistake: `threads_max` is 0. A pool that is to run nothing on threads of
        /// its own has `jobs_max` 0 and
        /// [`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere).
        NoThreads {
            display("a pool of 0 threads runs no job (threads_max)")
        }
        /// The caller's mistake: more threads are to be there always than there may be.
        MinAboveMax(min: usize, max: usize) {
            display("a pool of at most {max} threads cannot keep {min} (threads_min, threads_max)")
        }
        /// The caller's mistake: a name of a thread has no zero byte.
        ZeroInName {
            display("the name of a pool's threads has a zero byte in it")
        }
        /// The system could not start one of the threads that are to be there always.
        Thread(error: io::Error) {
            source(error)
            display("a thread of the pool could not be started")
        }
    }
}

impl OffloadPool {
    /// Makes a pool of up to `threads` threads (at least 1) in which up to `jobs` jobs (at least 1)
    /// wait for one. All else as [`builder`](OffloadPool::builder) has it by default.
    pub fn new(threads: usize, jobs: usize) -> OffloadPool {
        let builder = OffloadPool::builder().threads_max(threads.max(1)).jobs_max(jobs.max(1));
        OffloadPool::with(builder.settings)
    }

    /// Begins a pool of your own settings.
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

    /// Takes the job that `make` makes, which is called only if there is room. Returns whether it
    /// was.
    ///
    /// For those who implement a backend; machines use [`Scope::offload`](crate::Scope::offload).
    pub fn offer(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.owner.shared.offer(false, make)
    }

    /// Does the same for a job that is to be begun before all that are not urgent.
    pub fn offer_urgent(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        self.owner.shared.offer(true, make)
    }

    /// Returns what the pool has done and does now. It takes the lock that jobs are queued under:
    /// for some times a second, not for each job.
    pub fn stats(&self) -> PoolStats {
        self.owner.shared.stats()
    }
}

impl PoolBuilder {
    /// Sets the most threads, each of which runs one job at a time. Default 4: enough to look names
    /// up and read small files, few enough to be no load by themselves. At least 1.
    pub fn threads_max(mut self, threads: usize) -> PoolBuilder {
        self.settings.threads_max = threads;
        self
    }

    /// Sets how many threads there are always, from the start. Default 0: a thread is started when
    /// a job finds none that is idle. At most `threads_max`.
    pub fn threads_min(mut self, threads: usize) -> PoolBuilder {
        self.settings.threads_min = threads;
        self
    }

    /// Sets the most jobs that wait for a thread. Default 1,024. With 0 none waits:
    /// [`when_full`](PoolBuilder::when_full) decides of each at once, so that
    /// [`RunOldestHere`](WhenFull::RunOldestHere) runs every job on the loop that offers it, and
    /// [`Refuse`](WhenFull::Refuse) refuses every one.
    pub fn jobs_max(mut self, jobs: usize) -> PoolBuilder {
        self.settings.jobs_max = jobs;
        self
    }

    /// Sets the name of the threads, to which a hyphen and a number from 0 are added. Default
    /// `offload`. Linux shows 15 bytes of it.
    pub fn name(mut self, name: impl Into<String>) -> PoolBuilder {
        self.settings.name = name.into();
        self
    }

    /// Sets the size of a thread's stack, in bytes; the system may round it up, or refuse to start
    /// a thread with too small a one. Default: what the standard library says, 2 MiB unless
    /// `RUST_MIN_STACK` does. It is address space; memory is used only where a job has been.
    pub fn stack_bytes(mut self, bytes: usize) -> PoolBuilder {
        self.settings.stack_bytes = Some(bytes);
        self
    }

    /// Sets how long a thread waits for a job before it ends. Default 10 s: it outlives the pauses
    /// of a service under load, and a burst is forgotten soon.
    pub fn keep_idle(mut self, time: Duration) -> PoolBuilder {
        self.settings.keep_idle = time;
        self
    }

    /// Sets what each thread calls first, with its number. Default: nothing. A panic in it is
    /// logged.
    pub fn on_thread_start(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> PoolBuilder {
        self.settings.on_thread_start = Some(Arc::new(hook));
        self
    }

    /// Sets what each thread calls last, with its number. Default: nothing. A panic in it is
    /// logged.
    pub fn on_thread_stop(mut self, hook: impl Fn(usize) + Send + Sync + 'static) -> PoolBuilder {
        self.settings.on_thread_stop = Some(Arc::new(hook));
        self
    }

    /// Sets what a panic in a job costs. Default: its result.
    pub fn on_panic(mut self, action: OnJobPanic) -> PoolBuilder {
        self.settings.on_panic = action;
        self
    }

    /// Sets what becomes of a job when as many wait as may. Default: the closure comes back.
    pub fn when_full(mut self, action: WhenFull) -> PoolBuilder {
        self.settings.when_full = action;
        self
    }

    /// Makes the pool, and starts the threads that are to be there always.
    ///
    /// # Errors
    ///
    /// Settings that contradict each other, each with a variant of its own; and what the system
    /// says of a thread that cannot be started. There is no pool then, and no thread.
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
        pool.owner.shared.start_first().map_err(PoolError::Thread)?;
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
    /// 4 threads and 1,024 jobs: enough to look names up and read small files, few enough to be no
    /// load by themselves.
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
        f.write_str("no thread has room for another job (Config::offload_pool)")
    }
}

impl<F> std::error::Error for OffloadFull<F> {}

/// What the clones of a pool share, and the threads do not: its end is the end of the pool.
struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.close();
    }
}
