//! `Permits`: limits how many may do something at a time, across machines, loops and threads.
//!
//! Here is what those who want permits have of them; `shared` has the permits, and those who wait.

mod shared;

use std::fmt;
use std::sync::Arc;

pub(crate) use self::shared::WaitingJob;
use self::shared::{PERMITS_MAX, Shared, Waiter};
pub use self::shared::{Permit, PermitStats};
use crate::future::{Future, Lost};
use crate::scope::Scope;
use crate::time::Time;

/// Limits how many may do something at a time: run a section that blocks, use a library that bears
/// few callers, ask one server.
///
/// Clones are the same permits, for machines of any loop and for threads. First come, first served:
/// while anybody waits, [`try_take`](Permits::try_take) returns `None`. Dropping a [`Permit`] gives
/// it to the first in line, or back.
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
    /// Makes this many permits, all of them free. 0 is allowed: everybody waits until
    /// [`set`](Permits::set) changes the number.
    ///
    /// At most 2^62 - 1; a greater number counts as that.
    pub fn new(permits: usize) -> Permits {
        Permits { shared: Arc::new(Shared::new(permits.min(PERMITS_MAX))) }
    }

    /// Takes a permit; `None` if none is free, somebody waits for one, or the permits are
    /// [closed](Permits::close).
    pub fn try_take(&self) -> Option<Permit> {
        self.shared.try_take()
    }

    /// Asks for a permit. The machine is woken when it gets one, even if it gets one at once. Then
    /// [`Future::take`] returns it; or [`Lost::Cancelled`] once the permits are
    /// [closed](Permits::close); or [`Lost::Dropped`] when no permits and no clones of this are
    /// left.
    ///
    /// Dropping the future leaves the line; a permit that had come already is given back.
    pub fn ask<C>(&self, scope: &Scope<'_, C>) -> Future<Permit> {
        self.ask_until(Time::NEVER, scope)
    }

    /// Asks for a permit that is of no use after `until`: then the future resolves to
    /// [`Lost::Late`]; at once where that time has passed, even if a permit is free, or the permits
    /// are [closed](Permits::close).
    ///
    /// Otherwise this is no deadline: the machine is told only when its turn comes. To do something
    /// else at that time, it returns a deadline of its own, and drops the future then. The permits
    /// learn the time only from those who ask with such a time, on whatever loop.
    pub fn ask_until<C>(&self, until: Time, scope: &Scope<'_, C>) -> Future<Permit> {
        let (port, future) = scope.create_future();
        if until < scope.now() {
            port.lose(Lost::Late);
            return future;
        }
        let waiter = Waiter::Machine(port);
        match self.try_take() {
            Some(permit) => {
                // The machine that asks is there; if it were not, the permit would go back.
                if !waiter.give(permit) {
                    self.shared.put_back(true);
                    self.shared.serve();
                }
            }
            None => {
                if until != Time::NEVER {
                    self.tell_time(scope.now());
                }
                self.shared.line_up(waiter, until);
            }
        }
        future
    }

    /// Notes the time, so that nobody is given a permit that has become useless to it.
    fn tell_time(&self, now: Time) {
        let mut look = self.shared.look();
        look.state.now = look.state.now.max(now);
    }

    /// Gives the job a permit, at once or when one is given back.
    pub(crate) fn take_or_wait(&self, job: Box<dyn WaitingJob>) {
        match self.try_take() {
            Some(permit) => job.give(permit),
            None => self.shared.line_up(Waiter::Job(job), Time::NEVER),
        }
    }

    /// Sets how many permits there are. Additional ones are given at once to those who wait. If
    /// there are fewer now, those that are out stay valid, and the surplus is not given again when
    /// it comes back.
    pub fn set(&self, permits: usize) {
        let permits = permits.min(PERMITS_MAX);
        {
            let look = &mut self.shared.look();
            let state = &mut *look.state;
            let before = std::mem::replace(&mut state.total, permits);
            if permits >= before {
                let kept = state.surplus.min(permits - before);
                state.surplus -= kept;
                look.free += permits - before - kept;
            } else {
                let taken = look.free.min(before - permits);
                state.surplus += before - permits - taken;
                look.free -= taken;
            }
        }
        self.shared.serve();
    }

    /// Returns how many permits are free now.
    pub fn available(&self) -> usize {
        self.shared.look().free
    }

    /// Returns how many wait for a permit now.
    pub fn waiting(&self) -> usize {
        self.shared.look().state.line.len()
    }

    /// Closes the permits: all who wait, and all who ask from now on, get [`Lost::Cancelled`], and
    /// [`try_take`](Permits::try_take) returns `None`. Permits that are out stay valid.
    pub fn close(&self) {
        let waiting = {
            let mut look = self.shared.look();
            look.state.is_closed = true;
            look.state.line.take_all()
        };
        waiting.for_each(|waiting| waiting.whom.lose(Lost::Cancelled));
    }

    /// Returns the statistics.
    pub fn stats(&self) -> PermitStats {
        let look = self.shared.look();
        PermitStats { available: look.free, waiting: look.state.line.len(), ..look.state.stats }
    }
}

impl fmt::Debug for Permits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let PermitStats { available, waiting, .. } = self.stats();
        write!(f, "Permits({available} free, {waiting} wait)")
    }
}
