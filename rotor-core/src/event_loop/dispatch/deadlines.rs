//! Deadlines that have been reached, and machines that are to be told.

use super::{Dispatch, Lent};
use crate::backend::Backend;
use crate::response::Deadline;
use crate::scope::{AnyEnvironment, Woken};
use crate::{Event, Machine, Token};

impl<M: Machine> Dispatch<M> {
    fn timeout<B: Backend>(&mut self, lent: &mut Lent<'_, M, B>, token: Token) {
        let lifted = self.slots.lift(token, 0);
        if lifted.is_none() {
            return self.expire(lent.environment, token);
        }
        self.slots.clear_deadline(token);
        self.counters.stats.timeouts += 1;
        self.clock.note_at_times(lent.backend, lent.environment);
        self.call(lent, token, lifted, Event::Timeout, Woken::default());
    }

    /// Has `timeout` called as soon as that can be, as if the deadline were now.
    pub(in crate::event_loop) fn expire(&mut self, environment: &AnyEnvironment, token: Token) {
        if self.queue.wakes().is_alive(token) {
            self.set_deadline(environment, token, Deadline::At(environment.now()));
        }
    }

    /// Fires the deadline of a slot that has expired, if it still has it.
    pub(in crate::event_loop) fn fire<B: Backend>(
        &mut self,
        lent: &mut Lent<'_, M, B>,
        index: u32,
    ) {
        let Some((token, mark)) = self.slots.mark_at(index) else { return };
        // What is queued as overdue is called from there, or it would be called twice.
        let queued = mark.queued.is_overdue();
        if !queued && self.slots.take_expired(index) {
            self.queue.note_fired();
            self.timeout(lent, token);
        }
    }

    /// Calls a machine that was queued as overdue, if it still has a deadline that has passed.
    pub(in crate::event_loop) fn fire_overdue<B: Backend>(
        &mut self,
        lent: &mut Lent<'_, M, B>,
        token: Token,
    ) {
        let Some(mark) = self.slots.mark(token) else { return };
        mark.queued.leave_overdue();
        let deadline = self.slots.deadline(token.index());
        if deadline.is_some_and(|deadline| deadline <= lent.environment.now()) {
            self.timeout(lent, token);
        }
    }

    /// Appends the slots whose deadlines have been reached to the run queue. The backend may order
    /// those that fire in one tick.
    pub(in crate::event_loop) fn collect_expired<B: Backend>(&mut self, lent: &mut Lent<'_, M, B>) {
        let expired = self.queue.expired();
        let before = expired.len();
        self.slots.expire(lent.environment.now(), expired);
        if expired.len() - before < 2 {
            return;
        }
        let mut tokens: Vec<Token> = Vec::new();
        let collected = &mut expired.make_contiguous()[before..];
        for group in collected.chunk_by_mut(|a, b| a.tick == b.tick).filter(|group| group.len() > 1)
        {
            tokens.clear();
            tokens.extend(group.iter().filter_map(|due| Some(self.slots.at(due.index)?.0)));
            lent.backend.order(&mut tokens);
            for (due, token) in group.iter_mut().zip(&tokens) {
                due.index = token.index();
            }
        }
    }
}
