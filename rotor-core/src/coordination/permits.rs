//! `Permits`: limits how many users do something at the same time, across machines, loops and
//! threads.
//!
//! This file has the public interface of those who want permits. `shared` has the permits and the
//! queue for them.

mod shared;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::shared::JobWaiter;
use self::shared::{PERMITS_MAX, Shared, Waiter};
pub use self::shared::{Permit, PermitStats};
use crate::future::{Future, FutureError};
use crate::scope::Scope;
use crate::time::Time;

/// Limits how many machines, jobs or threads do something at the same time: run a section that
/// blocks, use a library that stands only a few callers, send requests to one server. Elsewhere
/// called a semaphore.
///
/// Clones are the same permits, for machines of any loop and for threads. First come, first served:
/// while others wait, [`try_take`](Permits::try_take) returns `None`. Dropping a [`Permit`] gives
/// it to the first in the queue; if nothing waits, it becomes free.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Future, Outcome, Permit, Permits, Response, Scope};
/// # use rotor::{Machine, Infallible};
///
/// enum Writer {
///     Waits(Future<Permit>),
///     Writes(Permit),
/// }
///
/// # struct Disk { permits: Permits }
/// impl Writer {
///     fn new(scope: &Scope<'_, Disk>) -> Writer {
///         Writer::Waits(scope.permits.ask(scope))
///     }
/// }
///
/// impl Machine for Writer {
///     type Context = Disk;
///     type Seed = Infallible;
///
///     fn wakeup(self, _: &mut Scope<'_, Disk>) -> Response<Self, Infallible> {
///         match self {
///             Writer::Waits(permit) => match permit.take() {
///                 Outcome::Value(permit) => Response::keep(Writer::Writes(permit)),
///                 Outcome::Pending(permit) => Response::keep(Writer::Waits(permit)),
///                 Outcome::Lost(closed) => Response::error(closed),
///             },
///             writes => Response::keep(writes),
///         }
///     }
/// }
/// ```
#[doc(alias = "semaphore")]
#[derive(Clone)]
pub struct Permits {
    shared: Arc<Shared>,
}

impl Permits {
    /// Makes this many permits, all of them free. With 0, all wait until [`set`](Permits::set)
    /// changes the number.
    ///
    /// The maximum is 2^62 - 1; a larger number is reduced to that.
    pub fn new(permits: usize) -> Permits {
        Permits { shared: Arc::new(Shared::new(permits.min(PERMITS_MAX))) }
    }

    /// Takes a permit. Returns `None` if none is free, others wait for one, or the permits are
    /// [closed](Permits::close).
    pub fn try_take(&self) -> Option<Permit> {
        self.shared.try_take()
    }

    /// Asks for a permit. The machine is woken when it gets one, even if it gets one at once. Then
    /// [`Future::take`] returns the permit. It returns [`FutureError::Cancelled`] if the permits
    /// are [closed](Permits::close), and [`FutureError::Dropped`] if all clones and permits have
    /// been dropped.
    ///
    /// Dropping the future leaves the queue. If it already contained a permit, the permit is given
    /// back.
    pub fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<Permit> {
        self.ask_until(Time::NEVER, scope)
    }

    /// Asks for a permit that is useless after `until`. When that time has passed, the future
    /// returns [`FutureError::Late`] instead of a permit. If it has passed already, the future does
    /// so at once, even if a permit is free or the permits are [closed](Permits::close).
    ///
    /// This is not a deadline: the machine is woken only when its turn comes. To do something else
    /// at that time, it must return a deadline of its own, and then drop the future. The permits
    /// know the time only from calls of this method, on whatever loop.
    pub fn ask_until<C>(&self, until: Time, scope: &Scope<'_, C>) -> Future<Permit> {
        let (port, future) = scope.create_future();
        if until < scope.now() {
            port.fail(FutureError::Late);
            return future;
        }
        let waiter = Waiter::Machine(port);
        match self.try_take() {
            Some(permit) => {
                // The machine that asks is alive; if it were not, the permit would be given back.
                if !waiter.give(permit) {
                    self.shared.return_permit(true);
                    self.shared.serve();
                }
            }
            None => {
                if until != Time::NEVER {
                    self.update_time(scope.now());
                }
                self.shared.enqueue(waiter, until);
            }
        }
        future
    }

    /// Records the time, so that no permit is given to a waiter that it would reach too late.
    fn update_time(&self, now: Time) {
        let mut guard = self.shared.lock();
        guard.state.now = guard.state.now.max(now);
    }

    /// Gives the job a permit, now or when one is given back.
    pub(crate) fn take_or_enqueue(&self, job: Box<dyn JobWaiter>) {
        match self.try_take() {
            Some(permit) => job.give(permit),
            None => self.shared.enqueue(Waiter::Job(job), Time::NEVER),
        }
    }

    /// Sets the number of permits. Additional ones are given at once to those that wait. If there
    /// are fewer than before, permits in use stay valid, and the surplus disappears when they are
    /// given back.
    pub fn set(&self, permits: usize) {
        let permits = permits.min(PERMITS_MAX);
        {
            let guard = &mut self.shared.lock();
            let state = &mut *guard.state;
            let before = std::mem::replace(&mut state.total, permits);
            if permits >= before {
                let kept = state.surplus.min(permits - before);
                state.surplus -= kept;
                guard.free += permits - before - kept;
            } else {
                let taken = guard.free.min(before - permits);
                state.surplus += before - permits - taken;
                guard.free -= taken;
            }
        }
        self.shared.serve();
    }

    /// Returns how many permits are free now.
    pub fn available(&self) -> usize {
        self.shared.lock().free
    }

    /// Returns how many machines and jobs wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.shared.lock().state.queue.len()
    }

    /// Closes the permits: all that wait, and all that ask from now on, get
    /// [`FutureError::Cancelled`], and [`try_take`](Permits::try_take) returns `None`. Permits in
    /// use stay valid.
    pub fn close(&self) {
        let waiting = {
            let mut guard = self.shared.lock();
            guard.state.is_closed = true;
            guard.state.queue.take_all()
        };
        waiting.for_each(|waiting| waiting.waiter.fail(FutureError::Cancelled));
    }

    /// Returns the statistics.
    pub fn stats(&self) -> PermitStats {
        let guard = self.shared.lock();
        PermitStats { available: guard.free, waiting: guard.state.queue.len(), ..guard.state.stats }
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PermitStats { available, waiting, .. } = self.stats();
        write!(f, "Permits({available} free, {waiting} wait)")
    }
}
