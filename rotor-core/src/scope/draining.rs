//! The drain of a loop, as a handler sees it.

use std::sync::atomic::Ordering::Relaxed;

use super::Scope;
use crate::drain::Phase;
use crate::time::Time;

impl<C> Scope<'_, C> {
    /// Returns the time until which the loop drains, or `None` if it does not drain. During a
    /// drain, a response to a peer may say that no other response will follow.
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.drain_until()
    }

    /// Returns the phase of the loop. Once it is no longer [`Serving`](Phase::Serving), a response
    /// may say that no other response will follow, and a readiness probe should report that the
    /// server is not ready:
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

    /// Returns the time until which a machine should wait that from now on only waits for its peer:
    /// the [grace](crate::Drain::grace) from now, within the drain. Returns `None` while the loop
    /// does not drain.
    ///
    /// A peer that does not know yet that the connection will end may already have sent a request,
    /// which would be lost if the connection closed now. So set this time as the deadline, tell the
    /// peer in the protocol's way that the connection ends, and end at the deadline.
    pub fn grace_until(&self) -> Option<Time> {
        self.environment.grace_until()
    }

    /// Returns, in `draining`, whether this machine should go on because others still need it. This
    /// is for a machine that serves others until they end: a pool, a resolver, a service of your
    /// own. By this call the machine declares that it ends last.
    ///
    /// Returns `true` while there is a machine that has not declared this in this drain: go on
    /// serving. `draining` is called again when there is none. Returns `false` when no other
    /// machine is left to serve: the machine may end.
    ///
    /// Only machines of this loop count. If machines of other loops need this one as well, drain
    /// its loop when those have ended.
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
    /// The drain's deadline applies to this machine as to all others. In a loop that does not
    /// drain, this returns `false`.
    pub fn wait_for_others(&self) -> bool {
        self.draining_until().is_some()
            && self.environment.machines.load(Relaxed) > self.environment.last.add(self.token)
    }

    /// Returns whether this machine has called [`wait_for_others`](Self::wait_for_others) in this
    /// drain. This is for a layer, whose inner machine may have made the call. `draining` is called
    /// again for such a machine.
    pub fn is_last_in_drain(&self) -> bool {
        self.draining_until().is_some() && self.environment.last.contains(self.token)
    }
}
