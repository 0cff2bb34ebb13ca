//! `Place`: where work that blocks is run, chosen at run time.

use std::fmt;

use super::Scope;
use super::jobs::JobOptions;
use crate::coordination::Permits;
use crate::future::Future;
use crate::offload::job::Job;
use crate::offload::{Measured, OffloadFull, OffloadPool};

/// Where work is run that blocks or takes long: a setting for code that does such work.
#[doc(alias = "BlockingPolicy")]
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Place {
    /// In the handler. The loop stands still meanwhile, so this is for short work, and for a loop
    /// that does nothing else. The loop's time ([`Scope::now`]) stands still too, whereas the other
    /// places that run work in the handler read the clock afterwards.
    Here,
    /// In the handler, as by [`Scope::blocking`], at most as many at a time as there are permits.
    /// If none is free, the work is returned.
    Handed(Permits),
    /// On the threads of a pool.
    Pool(OffloadPool),
    /// In the handler as long as the recent runs of this work were short, otherwise on the threads
    /// of a pool.
    Measured(Measured),
}

/// The result of [`Scope::run_at`].
#[doc(alias = "Ran")]
#[must_use = "work that was refused was not done, and a future that is dropped cancels"]
pub enum RunAtResult<T, F> {
    /// The work is done, with this result.
    Now(T),
    /// The work is in progress: the machine is woken when the result is available.
    Later(Future<T>),
    /// No permit was free, or the pool was full. This is the work, which was not run.
    Refused(F),
}

impl<C> Scope<'_, C> {
    /// Runs `work` at the given place, now or on another thread.
    ///
    /// ```
    /// # use rotor_core as rotor;
    /// use rotor::{Future, Place, RunAtResult, Scope};
    ///
    /// enum Lookup {
    ///     Found(u32),
    ///     Waits(Future<u32>),
    ///     Busy,
    /// }
    ///
    /// fn look_up<C>(name: String, place: &Place, scope: &mut Scope<'_, C>) -> Lookup {
    ///     match scope.run_at(place, move || name.len() as u32) {
    ///         RunAtResult::Now(found) => Lookup::Found(found),
    ///         RunAtResult::Later(future) => Lookup::Waits(future),
    ///         RunAtResult::Refused(_work) => Lookup::Busy,
    ///     }
    /// }
    /// ```
    pub fn run_at<T, F>(&mut self, place: &Place, work: F) -> RunAtResult<T, F>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        match place {
            Place::Here => RunAtResult::Now(work()),
            Place::Handed(permits) => match self.blocking_with(permits, work) {
                Ok(value) => RunAtResult::Now(value),
                Err(refused) => RunAtResult::Refused(refused.into_closure()),
            },
            Place::Pool(pool) => self.run_on_pool(pool, work, |work| move |_: &Job<'_>| work()),
            Place::Measured(measured) if measured.is_short() => {
                let started = self.refresh_now();
                let value = work();
                measured.record(self.refresh_now() - started);
                RunAtResult::Now(value)
            }
            Place::Measured(measured) => self.run_on_pool(measured.pool(), work, |work| {
                let measured = measured.clone();
                move |job: &Job<'_>| {
                    let started = job.now();
                    let value = work();
                    if let (Some(started), Some(ended)) = (started, job.now()) {
                        measured.record(ended - started);
                    }
                    value
                }
            }),
        }
    }

    fn run_on_pool<T, F, W>(
        &self,
        pool: &OffloadPool,
        work: F,
        wrap: impl Fn(F) -> W,
    ) -> RunAtResult<T, F>
    where
        W: FnOnce(&Job<'_>) -> T + Send + 'static,
        T: Send + 'static,
    {
        match self.submit(work, wrap, &JobOptions::on(pool)) {
            Ok(future) => RunAtResult::Later(future),
            Err(OffloadFull(work)) => RunAtResult::Refused(work),
        }
    }
}

impl<T: fmt::Debug, F> fmt::Debug for RunAtResult<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunAtResult::Now(value) => f.debug_tuple("Now").field(value).finish(),
            RunAtResult::Later(future) => f.debug_tuple("Later").field(future).finish(),
            RunAtResult::Refused(_) => f.write_str("Refused(..)"),
        }
    }
}
