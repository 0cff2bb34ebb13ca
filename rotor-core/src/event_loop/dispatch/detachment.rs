//! Machines whose handlers are detached: they have given the loop away, or it was taken from them.

use super::Dispatch;
use super::callee::Callee;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    pub(in crate::event_loop) fn is_detached(&self, token: Token) -> bool {
        self.detached.contains(token)
    }

    /// Notes that the running handler gives the loop away.
    pub(in crate::event_loop) fn detach(&mut self, callee: Callee) {
        *self.monitor.callee() = None;
        self.detached.add(callee.token);
    }

    /// Called after `detach` if there was no other thread: the handler goes on in the same call.
    pub(in crate::event_loop) fn continue_call(&mut self, callee: Callee) {
        *self.monitor.callee() = Some(callee);
        self.clock.discard_reading();
    }

    /// Notes that the handler has the loop again.
    pub(in crate::event_loop) fn reattach(&mut self, callee: Callee) {
        self.monitor.reattach(callee);
        self.clock.discard_reading();
    }

    /// Leaves the pending calls of a detached machine in its slot, until its handler has
    /// returned.
    #[cold]
    pub(super) fn hold_if_detached(&mut self, token: Token) -> bool {
        self.is_detached(token) && self.scheduler.hold_pending(token)
    }

    /// Notes that the deadline of a machine has passed that cannot be called now.
    #[cold]
    pub(super) fn postpone_timeout(&mut self, now: Time, token: Token) {
        if self.detached.record_timeout(token) {
            self.scheduler.slots_mut().clear_deadline(token);
        } else {
            // It waits for the result of its spawn, and is told of the deadline after that. It is
            // put among the overdue machines, again in each turn until then.
            self.scheduler.schedule_timeout_now(now, token);
        }
    }

    /// Gives up the detached machines, because a drain ends.
    #[cold]
    #[inline(never)]
    pub(super) fn abandon_detached(&mut self, environment: &AnyEnvironment) {
        // They stay in the list. A handler that comes back finds that its machine is gone.
        for token in self.detached.tokens() {
            if self.scheduler.slots().contains(token) {
                self.scheduler.release_slot(environment, token);
                self.monitor.stats().ended += 1;
            }
        }
    }
}
