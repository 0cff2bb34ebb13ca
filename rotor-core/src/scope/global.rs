//! `GlobalScope`: a scope without a machine.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::Ordering::SeqCst;
use std::time::SystemTime;

use super::AnyEnvironment;
use crate::drain::Phase;
use crate::time::Time;

/// A scope without a machine: it gives access to the context, to time and randomness, and can stop
/// the loop.
///
/// Code that runs between handlers gets it: [`Broadcast::post`](crate::Broadcast::post) and
/// [`LoopInstance::every`](crate::LoopInstance::every). It has no token, so nothing can be
/// registered or woken through it.
pub struct GlobalScope<'a, C> {
    context: &'a mut C,
    environment: &'a AnyEnvironment,
}

impl<'a, C> GlobalScope<'a, C> {
    pub(crate) fn new(context: &'a mut C, environment: &'a AnyEnvironment) -> GlobalScope<'a, C> {
        GlobalScope { context, environment }
    }

    /// Returns the loop's time; see [`Scope::now`](crate::Scope::now).
    pub fn now(&self) -> Time {
        self.environment.now()
    }

    /// Returns the current time of the loop's clock, whereas [`now`](GlobalScope::now) stays the
    /// same for the turn. This is for work that must end in time, such as a long walk over
    /// machines. In a simulation no time passes within a turn, unless a fault makes that turn slow.
    pub fn exact_now(&self) -> Time {
        self.environment.handle.now()
    }

    /// Returns the wall-clock time, read now; see [`Scope::wall_time`](crate::Scope::wall_time).
    pub fn wall_time(&self) -> SystemTime {
        self.environment.handle.wall_time()
    }

    /// Returns a random number that must not serve as a secret; see
    /// [`Scope::random_u64`](crate::Scope::random_u64).
    pub fn random_u64(&self) -> u64 {
        self.environment.random_u64()
    }

    /// Returns random bytes that nobody can guess; see
    /// [`Scope::secure_random`](crate::Scope::secure_random).
    pub fn secure_random<const N: usize>(&self) -> [u8; N] {
        self.environment.secure_random()
    }

    /// Asks the loop to stop after this turn; see [`Scope::stop_loop`](crate::Scope::stop_loop).
    pub fn stop_loop(&self) {
        self.environment.stop.store(true, SeqCst);
    }

    /// Returns the time until which the loop drains; see
    /// [`Scope::draining_until`](crate::Scope::draining_until).
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.drain_until()
    }

    /// Returns the phase of the loop; see [`Scope::phase`](crate::Scope::phase).
    pub fn phase(&self) -> Phase {
        self.environment.phase()
    }
}

impl<C> Deref for GlobalScope<'_, C> {
    type Target = C;
    fn deref(&self) -> &C {
        self.context
    }
}

impl<C> DerefMut for GlobalScope<'_, C> {
    fn deref_mut(&mut self) -> &mut C {
        self.context
    }
}

impl<C> fmt::Debug for GlobalScope<'_, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GlobalScope").field("now", &self.now()).finish_non_exhaustive()
    }
}
