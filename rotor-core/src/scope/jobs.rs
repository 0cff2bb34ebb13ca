//! Work for other threads.

use std::fmt;

use super::Scope;
use crate::backend::JobOrder;
use crate::coordination::Permits;
use crate::future::{self, Future, OnCancel, Waiter};
use crate::offload::job::{BeginBefore, Job, Work};
use crate::offload::under_way::UnderWay;
use crate::offload::{Batch, OffloadFull, OffloadPool};
use crate::time::Time;

/// A job that is about to be given to a pool; made by [`Scope::job`].
#[must_use = "a job is not begun until `start`"]
pub struct JobBuilder<'a, C, F> {
    scope: &'a Scope<'a, C>,
    f: F,
    terms: Terms<'a>,
}

/// What was said of a job, besides what it does.
#[derive(Clone, Copy)]
pub(super) struct Terms<'a> {
    order: JobOrder<'a>,
    begin_before: BeginBefore,
    permits: Option<&'a Permits>,
    batch: Option<&'a Batch>,
}

impl<'a> Terms<'a> {
    /// Nothing but which pool.
    pub(super) fn on(pool: &'a OffloadPool) -> Terms<'a> {
        let order = JobOrder { pool: Some(pool), ..JobOrder::default() };
        Terms { order, ..Terms::default() }
    }
}

impl Default for Terms<'_> {
    fn default() -> Self {
        let begin_before = BeginBefore::NEVER;
        Terms { order: JobOrder::default(), begin_before, permits: None, batch: None }
    }
}

impl<C> Scope<'_, C> {
    /// Runs `work` on another thread, and wakes this machine when it is done.
    ///
    /// [`Future::take`] then returns the result, or [`Lost::Panicked`](crate::Lost::Panicked), or
    /// [`Lost::Dropped`](crate::Lost::Dropped) when the pool ended first. On a simulated loop the
    /// work takes virtual time instead.
    ///
    /// Dropping the future before a thread has begun the job cancels the job. If it is dropped
    /// later, or this machine has ended, the result is dropped.
    /// [`Stats::unclaimed`](crate::Stats::unclaimed) counts both. [`job`](Scope::job) does the same
    /// with more options.
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
    /// [`OffloadFull`], with the closure, when as many jobs wait as the pool takes:
    /// [`Config::offload_pool`](crate::Config::offload_pool).
    pub fn offload<T, F>(&self, work: F) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        self.give_away(work, |work| move |_: &Job<'_>| work(), &Terms::default())
    }

    /// Begins a job for another thread, with options: which pool, how soon, until when. `work` gets
    /// a [`Job`], which it can ask while it runs.
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
        JobBuilder { scope: self, f: work, terms: Terms::default() }
    }

    /// Makes a batch of jobs: this machine is woken once, when all of them are done and the batch
    /// has been dropped.
    pub fn create_batch(&self) -> Batch {
        Batch::new(self.notifier())
    }

    /// Gives the backend the job that `wrap` makes of `work`, if there is room for it.
    pub(super) fn give_away<T, F, W>(
        &self,
        work: F,
        wrap: impl Fn(F) -> W,
        terms: &Terms<'_>,
    ) -> Result<Future<T>, OffloadFull<F>>
    where
        W: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        let (mut work, mut given) = (Some(work), None);
        self.backend().offload_job(&terms.order, &mut || {
            // A backend that calls `make` twice gets a job that does nothing.
            let Some(work) = work.take() else { return Box::new(|| {}) };
            // No port before the pool takes the job: one that is dropped wakes its machine.
            let waiter = match terms.batch {
                Some(batch) => batch.waiter(),
                None => Waiter::Machine(self.notifier()),
            };
            let (port, future) = future::pair(waiter, OnCancel::Nobody);
            given = Some(future);
            let under_way = UnderWay::begin(&self.environment.jobs);
            let Terms { begin_before, permits, .. } = *terms;
            let permits = permits.cloned();
            let f = wrap(work);
            Box::new(Work { f, port, under_way, begin_before, permits, permit: None })
        });
        match work {
            Some(work) => Err(OffloadFull(work)),
            None => Ok(given.expect("who took the work made its future")),
        }
    }
}

impl<'a, C, F> JobBuilder<'a, C, F> {
    /// Sets the pool. Default: that of the loop
    /// ([`Config::offload_pool`](crate::Config::offload_pool)). A simulated loop has one virtual
    /// pool for all.
    pub fn on(mut self, pool: &'a OffloadPool) -> Self {
        self.terms.order.pool = Some(pool);
        self
    }

    /// Sets the time by which the job must have begun. Default: none.
    ///
    /// A job that no thread has begun by then is dropped, and its future says
    /// [`Lost::Late`](crate::Lost::Late). The machine is told when a thread gets to it, so set a
    /// deadline as well if you cannot wait for that. A job that has begun goes on.
    #[doc(alias = "deadline")]
    #[doc(alias = "timeout")]
    pub fn begin_before(mut self, time: Time) -> Self {
        self.terms.begin_before = BeginBefore { time, within: time - self.scope.now() };
        self
    }

    /// Has the job begin only with one of these permits, which it returns when it is done.
    ///
    /// It waits for the permit in line with all others who ask for one and blocks no thread
    /// meanwhile. But it keeps its place among the jobs that the pool takes until its future is
    /// dropped. A job that has become too late ([`begin_before`](JobBuilder::begin_before)) keeps
    /// the place until its turn has come. Once the permits are closed its future says
    /// [`Lost::Cancelled`](crate::Lost::Cancelled).
    ///
    /// So the jobs of several pools may share a resource that bears few users at a time, and one
    /// pool may serve several kinds of work of which none may take all of its threads.
    #[doc(alias = "semaphore")]
    pub fn permits(mut self, permits: &'a Permits) -> Self {
        self.terms.permits = Some(permits);
        self
    }

    /// Makes the job one of a batch: the machine is woken when all of them are done, not for each.
    /// The machine that made the batch is the one that is woken, so make the batch in the machine
    /// that starts the jobs.
    pub fn of(mut self, batch: &'a Batch) -> Self {
        self.terms.batch = Some(batch);
        self
    }

    /// Lets the job begin before all that are not urgent. Urgent jobs begin in the order in which
    /// they were started.
    #[doc(alias = "priority")]
    pub fn urgent(mut self) -> Self {
        self.terms.order.is_urgent = true;
        self
    }

    /// Gives the job to the pool, and wakes this machine when there is something to
    /// [take](Future::take).
    ///
    /// # Errors
    ///
    /// [`OffloadFull`], with the closure, when the pool has no room, or no thread can be started.
    pub fn start<T>(self) -> Result<Future<T>, OffloadFull<F>>
    where
        F: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        self.scope.give_away(self.f, |work| work, &self.terms)
    }
}

impl<C, F> fmt::Debug for JobBuilder<'_, C, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "JobBuilder({:?})", self.terms.order)
    }
}
