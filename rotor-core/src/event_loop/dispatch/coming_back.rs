//! Machines whose handlers have given the loop away.

use super::away::Away;
use super::{Callee, Dispatch};
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Returns the machine whose handler is running; if `call` is given, only if that call is still
    /// in progress.
    pub(in crate::event_loop) fn callee_of(&self, call: Option<u64>) -> Option<Callee> {
        let is_it = call.is_none_or(|call| {
            self.heartbeat.as_ref().is_some_and(|heartbeat| heartbeat.is_in_call(call))
        });
        self.callee.filter(|_| is_it)
    }

    /// Notes that the running handler gives the loop away.
    pub(in crate::event_loop) fn leave(&mut self, callee: Callee) {
        self.callee = None;
        if !self.is_away(callee.token) {
            self.away.push(Away { token: callee.token, is_timed_out: false });
        }
    }

    /// Undoes `leave`, because there was no other thread: the handler goes on in the same call.
    pub(in crate::event_loop) fn stay(&mut self, callee: Callee) {
        self.callee = Some(callee);
        self.clock.forget_reading();
    }

    /// Notes that the handler has the loop again.
    pub(in crate::event_loop) fn come_back(&mut self, callee: Callee) {
        self.stay(callee);
        // To the watchdog, the rest of the handler is a new call, because other machines were
        // called in between.
        if let Some(heartbeat) = &mut self.heartbeat {
            heartbeat.record_call(callee.token, callee.type_name);
        }
    }

    /// Removes a machine from those that are away: its handler has returned, or the machine is
    /// gone. Returns whether its deadline has passed meanwhile.
    pub(in crate::event_loop) fn take_away(&mut self, token: Token) -> bool {
        let place = self.away.iter().position(|away| away.token == token);
        place.is_some_and(|place| self.away.swap_remove(place).is_timed_out)
    }

    pub(in crate::event_loop) fn is_away(&self, token: Token) -> bool {
        self.away.iter().any(|away| away.token == token)
    }

    /// Leaves the pending calls of a machine that is away in its slot, until its handler has
    /// returned.
    #[cold]
    pub(super) fn hold_if_away(&mut self, token: Token) -> bool {
        self.is_away(token) && self.scheduler.hold_pending(token)
    }

    /// Notes that the deadline of a machine has passed that cannot be called now.
    #[cold]
    pub(super) fn time_out_later(&mut self, now: Time, token: Token) {
        match self.away.iter_mut().find(|away| away.token == token) {
            Some(away) => {
                away.is_timed_out = true;
                self.scheduler.slots_mut().clear_deadline(token);
            }
            // It waits for the result of its spawn, and is told of the deadline after that. It is
            // put among the overdue machines, again in each turn until then.
            None => self.scheduler.schedule_timeout_now(now, token),
        }
    }

    /// Gives up the machines that are away, because a drain ends.
    #[cold]
    #[inline(never)]
    pub(super) fn give_up_away(&mut self, environment: &AnyEnvironment) {
        // They stay in the list. A handler that comes back finds that its machine is gone.
        for Away { token, .. } in &self.away {
            if self.scheduler.slots().contains(*token) {
                self.scheduler.release_slot(environment, *token);
                self.counters.stats.ended += 1;
            }
        }
    }
}
