//! Machines whose handlers have given the loop away.

use super::away::Away;
use super::{Callee, Dispatch};
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// The machine whose handler runs; with `call`, only if that is still the call.
    pub(in crate::event_loop) fn callee_of(&self, call: Option<u64>) -> Option<Callee> {
        let is_it =
            call.is_none_or(|call| self.pulse.as_ref().is_some_and(|pulse| pulse.is_in_call(call)));
        self.callee.filter(|_| is_it)
    }

    /// The handler that runs gives the loop away.
    pub(in crate::event_loop) fn leave(&mut self, callee: Callee) {
        self.callee = None;
        if !self.is_away(callee.token) {
            self.away.push(Away { token: callee.token, is_timed_out: false });
        }
    }

    /// It has not, since there was no thread: it goes on in the same call.
    pub(in crate::event_loop) fn stay(&mut self, callee: Callee) {
        self.callee = Some(callee);
        self.clock.forget_reading();
    }

    /// It has it again.
    pub(in crate::event_loop) fn come_back(&mut self, callee: Callee) {
        self.stay(callee);
        // What is left of the handler is a call of its own to who watches: others were called last.
        if let Some(pulse) = &mut self.pulse {
            pulse.calls(callee.token, callee.type_name);
        }
    }

    /// The machine whose handler was away has answered, or is gone. Returns whether its deadline
    /// was reached meanwhile.
    pub(in crate::event_loop) fn take_away(&mut self, token: Token) -> bool {
        let place = self.away.iter().position(|away| away.token == token);
        place.is_some_and(|place| self.away.swap_remove(place).is_timed_out)
    }

    pub(in crate::event_loop) fn is_away(&self, token: Token) -> bool {
        self.away.iter().any(|away| away.token == token)
    }

    /// What is pending for a machine that is away waits in its slot until it has answered.
    #[cold]
    pub(super) fn hold_if_away(&mut self, token: Token) -> bool {
        self.is_away(token) && self.scheduler.hold(token)
    }

    /// The deadline of a machine was reached that cannot be called now.
    #[cold]
    pub(super) fn time_out_later(&mut self, now: Time, token: Token) {
        match self.away.iter_mut().find(|away| away.token == token) {
            Some(away) => {
                away.is_timed_out = true;
                self.scheduler.slots_mut().clear_deadline(token);
            }
            // It waits to hear of its spawn, and hears of this after that. Put among the overdue,
            // and again each turn, until the spawn is answered.
            None => self.scheduler.time_out_now(now, token),
        }
    }

    /// A drain ends: the machines that are away are given up.
    #[cold]
    #[inline(never)]
    pub(super) fn give_up_away(&mut self, environment: &AnyEnvironment) {
        // They stay in the list: one that comes back finds no machine any more.
        for Away { token, .. } in &self.away {
            if self.scheduler.slots().is_there(*token) {
                self.scheduler.end(environment, *token);
                self.counters.stats.ended += 1;
            }
        }
    }
}
