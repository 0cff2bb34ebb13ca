//! Machines whose handlers are detached: they have given the loop away, or it was taken from them.

use super::detached_handler::DetachedHandler;
use super::{Callee, Dispatch};
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Returns the machine whose handler is running; if `call` is given, only if that call is still
    /// in progress.
    pub(in crate::event_loop) fn running_callee(&self, call: Option<u64>) -> Option<Callee> {
        let is_running = call.is_none_or(|call| {
            self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.is_in_call(call))
        });
        self.callee.filter(|_| is_running)
    }

    /// Notes that the running handler gives the loop away.
    pub(in crate::event_loop) fn detach(&mut self, callee: Callee) {
        self.callee = None;
        if !self.is_detached(callee.token) {
            self.detached.push(DetachedHandler { token: callee.token, is_timed_out: false });
        }
    }

    /// Called after `detach` if there was no other thread: the handler goes on in the same call.
    pub(in crate::event_loop) fn continue_call(&mut self, callee: Callee) {
        self.callee = Some(callee);
        self.clock.discard_reading();
    }

    /// Notes that the handler has the loop again.
    pub(in crate::event_loop) fn reattach(&mut self, callee: Callee) {
        self.continue_call(callee);
        // To the watchdog, the rest of the handler is a new call, because other machines were
        // called in between.
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.record_call(callee.token, callee.type_name);
        }
    }

    /// Removes a machine from the detached ones: its handler has returned, or the machine is
    /// gone. Returns whether its deadline has passed meanwhile.
    pub(in crate::event_loop) fn remove_detached(&mut self, token: Token) -> bool {
        let position = self.detached.iter().position(|detached| detached.token == token);
        position.is_some_and(|position| self.detached.swap_remove(position).is_timed_out)
    }

    pub(in crate::event_loop) fn is_detached(&self, token: Token) -> bool {
        self.detached.iter().any(|detached| detached.token == token)
    }

    /// Leaves the pending calls of a detached machine in its slot, until its handler has
    /// returned.
    #[cold]
    pub(super) fn hold_if_detached(&mut self, token: Token) -> bool {
        self.is_detached(token) && self.scheduler.hold_pending(token)
    }

    /// Notes that the deadline of a machine has passed that cannot be called now.
    #[cold]
    pub(super) fn defer_timeout(&mut self, now: Time, token: Token) {
        match self.detached.iter_mut().find(|detached| detached.token == token) {
            Some(detached) => {
                detached.is_timed_out = true;
                self.scheduler.slots_mut().clear_deadline(token);
            }
            // It waits for the result of its spawn, and is told of the deadline after that. It is
            // put among the overdue machines, again in each turn until then.
            None => self.scheduler.schedule_timeout_now(now, token),
        }
    }

    /// Gives up the detached machines, because a drain ends.
    #[cold]
    #[inline(never)]
    pub(super) fn abandon_detached(&mut self, environment: &AnyEnvironment) {
        // They stay in the list. A handler that comes back finds that its machine is gone.
        for DetachedHandler { token, .. } in &self.detached {
            if self.scheduler.slots().contains(*token) {
                self.scheduler.release_slot(environment, *token);
                self.counters.stats.ended += 1;
            }
        }
    }
}
