//! A drain, seen from a handler.

use std::sync::atomic::Ordering::Relaxed;

use super::Scope;
use crate::drain::Phase;
use crate::time::Time;

impl<C> Scope<'_, C> {
    /// Returns until when the loop drains; `None` while it does not. While it drains, an answer to
    /// a peer may say that no other will follow.
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.draining()
    }

    /// Returns which phase the loop is in. Once it is not [`Serving`](Phase::Serving), a response
    /// may say that no other will follow, and a readiness probe should be answered with no:
    ///
    /// ```
    /// # use rotor_core::{Phase, Scope};
    /// fn readiness<C>(scope: &Scope<'_, C>) -> u16 {
    ///     if scope.phase() == Phase::Serving { 200 } else { 503 }
    /// }
    /// ```
    #[inline]
    pub fn phase(&self) -> Phase {
        self.environment.phase()
    }

    /// Returns until when a machine that from now on only waits for its peer should do so: the
    /// [grace](crate::Drain::grace) from now, within the drain. `None` while the loop does not
    /// drain.
    ///
    /// A peer that has not been told that the connection ends may have sent a request by now, which
    /// would be lost if the connection closed. So set this as the deadline, answer in the
    /// protocol's way that the connection ends, and end at the deadline.
    pub fn grace_until(&self) -> Option<Time> {
        self.environment.grace_until()
    }

    /// Asks, in `draining`, whether this machine should go on because others still need it: for a
    /// machine that serves others until they end (a pool, a resolver, a service of your own). By
    /// asking, the machine declares that it ends last.
    ///
    /// Returns `true` while there is a machine that has not declared this in this drain: go on
    /// serving, and `draining` is called again when there is none. Returns `false` when nobody is
    /// left to serve: the machine may end.
    ///
    /// ```
    /// # use rotor_core::{Calls, Machine, Response, Scope, Time, Infallible};
    /// # struct Counter { calls: Calls<u32, u32> }
    /// # impl Machine for Counter {
    /// #     type Context = ();
    /// #     type Seed = Infallible;
    /// fn draining(self, _: Time, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
    ///     if scope.wait_for_others() { Response::keep(self) } else { Response::done() }
    /// }
    /// # }
    /// ```
    ///
    /// The drain's deadline holds for it as for all others. In a loop that does not drain this
    /// returns `false`.
    pub fn wait_for_others(&self) -> bool {
        self.draining_until().is_some()
            && self.environment.machines.load(Relaxed) > self.environment.last.add(self.token)
    }

    /// Returns whether this machine has called [`wait_for_others`](Self::wait_for_others) in this
    /// drain: for layers that watch the machines around them. Such a machine is told of the drain
    /// again.
    pub fn is_last_in_drain(&self) -> bool {
        self.draining_until().is_some() && self.environment.last.contains(self.token)
    }
}
