//! Jobs: work for other threads.

use std::fmt;

use super::Scope;
use crate::backend::JobOrder;
use crate::coordination::Permits;
use crate::future::{self, Future, OnCancel, Waiter};
use crate::offload::in_flight::InFlightGuard;
use crate::offload::job::{BeginBefore, ClosureJob, Job};
use crate::offload::{Batch, OffloadFull, OffloadPool};
use crate::time::Time;

/// A job that has not been given to a pool yet; made by [`Scope::job`].
#[must_use = "a job is not begun until `start`"]
pub struct JobBuilder<'a, C, F> {
    scope: &'a Scope<'a, C>,
    f: F,
    options: JobOptions<'a>,
}

/// The options of a job.
#[derive(Clone, Copy)]
pub(super) struct JobOptions<'a> {
    order: JobOrder<'a>,
    begin_before: BeginBefore,
    permits: Option<&'a Permits>,
    batch: Option<&'a Batch>,
    is_detached: bool,
}

impl<'a> JobOptions<'a> {
    /// Returns the options of a job that differ from the defaults only by the pool.
    pub(super) fn on(pool: &'a OffloadPool) -> JobOptions<'a> {
        let order = JobOrder { pool: Some(pool), ..JobOrder::default() };
        JobOptions { order, ..JobOptions::default() }
    }
}

impl Default for JobOptions<'_> {
    fn default() -> Self {
        let begin_before = BeginBefore::NEVER;
        let order = JobOrder::default();
        JobOptions { order, begin_before, permits: None, batch: None, is_detached: false }
    }
}

impl<C> Scope<'_, C> {
    /// Runs `work` on another thread, and wakes this machine when it is done.
    ///
    /// [`Future::take`] then returns the result, or
    /// [`FutureError::Panicked`](crate::FutureError::Panicked), or
    /// [`FutureError::Dropped`](crate::FutureError::Dropped) if the pool ended first. On a
    /// simulated loop the work takes virtual time instead.
    ///
    /// Dropping the future before a thread has begun the job cancels the job, as does the end of
    /// this machine. If either happens later, the result is dropped.
    /// [`Stats::unclaimed`](crate::Stats::unclaimed) counts both. [`job`](Scope::job) does the same
    /// with more options; one is to run the job in any case
    /// ([`start_detached`](JobBuilder::start_detached)).
    ///
    /// ```
    /// # use rotor_core::{Future, OffloadFull, Scope};
    /// fn checksum<C>(bytes: Vec<u8>, scope: &Scope<'_, C>) -> Option<Future<u64>> {
    ///     let work = move || bytes.iter().fold(0, |sum, byte| sum * 31 % 1_000_007 + u64::from(*byte));
    ///     scope.offload(work).ok()
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// [`OffloadFull`], with the closure, if the pool's limit of waiting jobs is reached:
    /// [`Config::offload_pool`](crate::Config::offload_pool).
    pub fn offload<T, F>(&self, work: F) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.submit(work, |work| move |_: &Job<'_>| work(), &JobOptions::default())
    }

    /// Makes a job for another thread, with options: which pool, how soon, until when. `work` gets
    /// a [`Job`], by which it can find out, for example, whether the job was cancelled.
    ///
    /// ```
    /// # use rotor_core::{Future, Job, OffloadPool, Scope};
    /// # use std::time::Duration;
    /// fn count<C>(pool: &OffloadPool, scope: &Scope<'_, C>) -> Option<Future<u64>> {
    ///     let primes = |job: &Job<'_>| {
    ///         let is_prime = |number: &u64| (2..*number).all(|divisor| number % divisor != 0);
    ///         (2..50_000).take_while(|_| !job.is_cancelled()).filter(is_prime).count() as u64
    ///     };
    ///     let deadline = scope.now() + Duration::from_secs(1);
    ///     scope.job(primes).on(pool).begin_before(deadline).start().ok()
    /// }
    /// ```
    pub fn job<T, F>(&self, work: F) -> JobBuilder<'_, C, F>
    where
        F: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        JobBuilder { scope: self, f: work, options: JobOptions::default() }
    }

    /// Makes a batch of jobs. This machine is woken once, when all of them are done and the batch
    /// has been dropped.
    pub fn create_batch(&self) -> Batch {
        Batch::new(self.notifier())
    }

    /// Gives the backend the job that `wrap` makes from `work`, if the pool has room for it.
    pub(super) fn submit<T, F, W>(
        &self,
        work: F,
        wrap: impl Fn(F) -> W,
        options: &JobOptions<'_>,
    ) -> Result<Future<T>, OffloadFull<F>>
    where
        W: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        let (mut work, mut given) = (Some(work), None);
        self.backend().offload_job(&options.order, &mut || {
            // If a backend calls `make` twice, the second job does nothing.
            let Some(work) = work.take() else { return Box::new(|| {}) };
            // The port is made only when the pool takes the job: dropping a port wakes its machine.
            let waiter = match options.batch {
                Some(batch) => batch.waiter(),
                None => Waiter::Machine(self.notifier()),
            };
            let (port, future) = future::channel(waiter, OnCancel::Nobody);
            given = Some(future);
            let JobOptions { begin_before, permits, is_detached, .. } = *options;
            let in_flight = InFlightGuard::begin(&self.environment.jobs, is_detached);
            Box::new(ClosureJob {
                f: wrap(work),
                port,
                in_flight,
                begin_before,
                permits: permits.cloned(),
                permit: None,
                is_detached,
            })
        });
        match work {
            Some(work) => Err(OffloadFull(work)),
            None => Ok(given.expect("the job was made, and its future with it")),
        }
    }
}

impl<'a, C, F> JobBuilder<'a, C, F> {
    /// Sets the pool. Default: the loop's pool
    /// ([`Config::offload_pool`](crate::Config::offload_pool)). A simulated loop has one virtual
    /// pool for all jobs.
    pub fn on(mut self, pool: &'a OffloadPool) -> Self {
        self.options.order.pool = Some(pool);
        self
    }

    /// Sets the time by which the job must have begun. Default: none.
    ///
    /// A job that no thread has begun by then is dropped, and its future returns
    /// [`FutureError::Late`](crate::FutureError::Late). The machine is woken only when a thread
    /// gets to the job, so set a deadline as well if you cannot wait for that. A job that has begun
    /// goes on.
    #[doc(alias = "deadline")]
    #[doc(alias = "timeout")]
    pub fn begin_before(mut self, time: Time) -> Self {
        // The loop's time may be old: this handler may have taken long already.
        self.options.begin_before = BeginBefore { time, within: time - self.scope.backend().now() };
        self
    }

    /// Makes the job wait for one of these permits before it begins. The permit is returned when
    /// the job is done.
    ///
    /// The job waits in the same queue as all others that ask for a permit, and blocks no thread
    /// meanwhile. It still counts towards the pool's limit of jobs; dropping its future frees that
    /// place. A job that has become too late ([`begin_before`](JobBuilder::begin_before)) keeps its
    /// place until its turn has come. If the permits are closed, its future returns
    /// [`FutureError::Cancelled`](crate::FutureError::Cancelled).
    ///
    /// With permits, the jobs of several pools can share a resource that stands only a few users at
    /// a time, and one pool can serve several kinds of work without any of them occupying all
    /// threads.
    #[doc(alias = "semaphore")]
    pub fn permits(mut self, permits: &'a Permits) -> Self {
        self.options.permits = Some(permits);
        self
    }

    /// Adds the job to a batch: the machine is woken when all of its jobs are done, not for each
    /// one. The machine that made the batch is woken, so make the batch in the machine that starts
    /// the jobs.
    pub fn of(mut self, batch: &'a Batch) -> Self {
        self.options.batch = Some(batch);
        self
    }

    /// Lets the job begin before all jobs that are not urgent. Urgent jobs begin in the order in
    /// which they were started.
    #[doc(alias = "priority")]
    pub fn urgent(mut self) -> Self {
        self.options.order.is_urgent = true;
        self
    }

    /// Gives the job to the pool, and wakes this machine when the future has a result to
    /// [take](Future::take).
    ///
    /// # Errors
    ///
    /// [`OffloadFull`], with the closure, if the pool is full, or if no thread can be started.
    pub fn start<T>(self) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.scope.submit(self.f, |work| work, &self.options)
    }

    /// Gives the job to the pool, which runs it whatever becomes of this machine: for work after
    /// the answer, such as a line of an audit log, or a file to be removed. The result is dropped.
    ///
    /// [`Job::is_cancelled`] stays `false`. A panic is logged. If the job is not begun, because it
    /// was too late, or its permits or its pool are gone, the log has a warning, at most one in ten
    /// seconds. No program waits for such jobs: those that wait for a thread when the last handle to
    /// their pool is dropped (with the loop, if it is its own), or when the process ends, are lost.
    ///
    /// ```
    /// # use rotor_core::Scope;
    /// fn remove<C>(file: std::path::PathBuf, scope: &Scope<'_, C>) {
    ///     let removed = scope.job(move |_| drop(std::fs::remove_file(file))).start_detached();
    ///     if removed.is_err() {
    ///         log::warn!("a file stays: too many jobs wait");
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// As [`start`](JobBuilder::start).
    #[doc(alias = "detach")]
    #[doc(alias = "fire and forget")]
    pub fn start_detached<T>(mut self) -> Result<(), OffloadFull<F>>
    where
        F: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.options.is_detached = true;
        self.start().map(drop)
    }
}

impl<C, F> fmt::Debug for JobBuilder<'_, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobBuilder({:?})", self.options.order)
    }
}
