//! Deadlines that have been reached, and machines that are to be told.

use super::{Dispatch, Refs};
use crate::backend::Backend;
use crate::event::Event;
use crate::machine::Machine;
use crate::scope::Woken;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    fn timeout<B: Backend>(&mut self, refs: &mut Refs<'_, M, B>, token: Token) {
        let mut lifted = self.scheduler.slots_mut().lift(token);
        if lifted.is_none() {
            // It waits to hear of its spawn, and hears of this after that. Put among the overdue,
            // and again each turn, until the spawn is answered.
            return self.scheduler.time_out_now(refs.environment.now(), token);
        }
        self.scheduler.slots_mut().clear_deadline(token);
        self.counters.stats.timeouts += 1;
        self.clock.before_cheap_call(refs.backend, refs.environment);
        self.call(refs, token, &mut lifted, Event::Timeout, Woken::default());
    }

    /// Fires the deadline of a slot that has expired, if it still has it.
    pub(in crate::event_loop) fn fire<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        index: u32,
    ) {
        let Some((token, state)) = self.scheduler.slots_mut().state_at(index) else { return };
        // Left to `fire_overdue`: fired here, a machine that answers with a passed deadline again
        // would be called by both in one turn.
        let queued = state.in_overdue;
        if !queued && self.scheduler.slots_mut().take_expired(index) {
            self.scheduler.queue().note_fired();
            self.timeout(refs, token);
        }
    }

    /// Calls a machine that was queued as overdue, if it still has a deadline that has passed.
    pub(in crate::event_loop) fn fire_overdue<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
    ) {
        let Some(state) = self.scheduler.slots_mut().state(token) else { return };
        state.in_overdue = false;
        let deadline = self.scheduler.slots().deadline(token.index());
        if deadline.is_some_and(|deadline| deadline <= refs.environment.now()) {
            self.timeout(refs, token);
        }
    }
}
