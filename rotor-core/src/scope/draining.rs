//! A drain, seen from a handler.

use std::sync::atomic::Ordering::Relaxed;

use super::Scope;
use crate::drain::Phase;
use crate::time::Time;

impl<C> Scope<'_, C> {
    /// Until when the loop drains; `None` while it does not. An answer to a peer may say that no
    /// other will follow.
    pub fn draining_until(&self) -> Option<Time> {
        self.environment.draining()
    }

    /// In which phase the loop is. Once it is not [`Serving`](Phase::Serving), a response may say
    /// that no other will follow, and a probe for readiness says no:
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

    /// Until when a machine that waits for its peer from now on, and has nothing else under way, is
    /// to do so: the [grace](crate::Drain::grace) from now, within the drain. `None` while the loop
    /// does not drain.
    ///
    /// A peer that was told of no end may have asked for something by now, and finds nobody if the
    /// connection closes. So set this as the deadline, answer with the protocol's way to say that
    /// the connection ends, and end at the deadline.
    pub fn grace_until(&self) -> Option<Time> {
        self.environment.grace_until()
    }

    /// For a machine that others need until they end (a pool, a resolver, a service of your own):
    /// asked in `draining`, whether it is to go on. It says with that that it ends last.
    ///
    /// True while a machine is left that has not said so in this drain: go on serving, and
    /// `draining` is called again when there is none. False when there is nobody left to serve: the
    /// machine may end.
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
    /// The drain's deadline holds for it as for all. False in a loop that does not drain.
    pub fn wait_for_others(&self) -> bool {
        self.draining_until().is_some()
            && self.environment.machines.load(Relaxed) > self.environment.last.add(self.token)
    }

    /// Whether this machine has said [`wait_for_others`](Self::wait_for_others) in this drain, for
    /// layers that watch what is around: such a machine is told of the drain again.
    pub fn is_last_in_drain(&self) -> bool {
        self.draining_until().is_some() && self.environment.last.contains(self.token)
    }
}
