//! Deadlines that have passed.

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use super::{CallKind, Caller, Dispatch, Refs};
use crate::backend::Backend;
use crate::machine::Machine;
use crate::time::Time;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    fn deliver_timeout<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
    ) -> ControlFlow<()> {
        if !self.scheduler.slots().can_be_called(token) {
            self.defer_timeout(refs.environment.now(), token);
            return Continue(());
        }
        self.scheduler.slots_mut().clear_deadline(token);
        self.counters.stats.timeouts += 1;
        self.clock.before_cheap_call(refs.backend, refs.environment);
        caller.call(self, refs, token, CallKind::Timeout)
    }

    /// Fires the deadline of an expired slot, if the slot still has it.
    pub(in crate::event_loop) fn fire_deadline<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        index: u32,
    ) -> ControlFlow<()> {
        let token = self.next_to_fire(refs.environment.now(), index);
        token.map_or(Continue(()), |token| self.deliver_timeout(refs, caller, token))
    }

    #[inline(always)]
    fn next_to_fire(&mut self, now: Time, index: u32) -> Option<Token> {
        let (token, state) = self.scheduler.slots_mut().state_at(index)?;
        // Left to `fire_overdue`. If it fired here too, a machine that again returns a deadline
        // that has passed would be called by both in the same turn.
        let queued = state.in_overdue;
        let deadline = self.scheduler.slots().deadline(index);
        if queued || !self.scheduler.slots_mut().take_expired(index) {
            return None;
        }
        self.scheduler.queue().count_fired();
        if let Some(deadline) = deadline {
            self.counters.times().record_lag(deadline, now);
        }
        Some(token)
    }

    /// Calls a machine that was queued as overdue, if it still has a deadline that has passed.
    pub(in crate::event_loop) fn fire_overdue<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
    ) -> ControlFlow<()> {
        if self.take_overdue(refs.environment.now(), token) {
            self.deliver_timeout(refs, caller, token)?;
        }
        Continue(())
    }

    #[inline(always)]
    fn take_overdue(&mut self, now: Time, token: Token) -> bool {
        let Some(state) = self.scheduler.slots_mut().state(token) else { return false };
        state.in_overdue = false;
        let deadline = self.scheduler.slots().deadline(token.index());
        deadline.is_some_and(|deadline| deadline <= now)
    }
}
