//! Asking machines to end: all of them when the loop drains, slot by slot and each once; and idle
//! ones when others need what they hold.

use super::{CallKind, Dispatch, Refs};
use crate::backend::Backend;
use crate::event_loop::run_queue::Pending;
use crate::machine::Machine;
use crate::scope::WakeTarget;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Returns whether there are slots whose machines must still be told of the drain.
    pub(in crate::event_loop) fn has_slots_to_notify(&self) -> bool {
        self.drain_cursor < self.scheduler.slots().high_water()
    }

    /// Returns the machine of the next slot, if it can be told of the drain now.
    pub(super) fn next_to_notify(&mut self) -> Option<Token> {
        let index = self.drain_cursor;
        self.drain_cursor += 1;
        let (token, _) = self.scheduler.slots().at(index)?;
        // `ready` comes first: there may be input that arrived before the drain.
        let state = self.scheduler.slots_mut().state(token);
        if state.is_some_and(|state| state.pending.has(Pending::READY)) {
            self.scheduler.mark_pending(token, Pending::DRAINING);
            return None;
        }
        Some(token)
    }

    /// Notes that no drain is in progress any more.
    pub(in crate::event_loop) fn reset_drain_cursor(&mut self) {
        self.drain_cursor = 0;
    }

    /// Asks a machine to end, because others need what it holds. Returns whether it did.
    pub(in crate::event_loop) fn make_room<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        token: Token,
    ) -> bool {
        if !self.scheduler.slots().can_be_called(token) {
            // It waits for the result of its spawn.
            return false;
        }
        self.clock.before_cheap_call(refs.backend, refs.environment);
        self.call(refs, token, CallKind::MakeRoom, WakeTarget::default());
        // Its response was applied in `call`; the generation shows whether the machine has ended.
        !self.scheduler.queue().wakes().is_alive(token)
    }
}
