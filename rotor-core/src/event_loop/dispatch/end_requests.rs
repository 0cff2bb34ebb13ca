//! Asking machines to end: all of them when the loop drains, slot by slot and each once; and idle
//! ones when others need what they hold.

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use super::{CallKind, Caller, Dispatch, Refs};
use crate::backend::Backend;
use crate::event::Event;
use crate::event_loop::run_queue::Calls;
use crate::machine::Machine;
use crate::scope::WakeTarget;
use crate::token::Token;

impl<M: Machine> Dispatch<M> {
    /// Returns whether there are slots whose machines must still be told of the drain.
    pub(in crate::event_loop) fn has_slots_to_notify(&self) -> bool {
        self.drain_cursor < self.scheduler.slots().high_water()
    }

    /// Returns whether a machine was told of a drain and must still be called for it.
    pub(in crate::event_loop) fn has_pending_draining(&self) -> bool {
        self.scheduler.slots().states().any(|(_, state)| state.pending.has(Calls::DRAINING))
    }

    /// Tells the machine of the next slot that the loop drains.
    pub(in crate::event_loop) fn notify_next_of_drain<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
    ) -> ControlFlow<()> {
        let token = self.next_to_notify();
        token.map_or(Continue(()), |token| self.deliver_draining(refs, caller, token))
    }

    /// Returns the machine of the next slot, if it can be told now.
    fn next_to_notify(&mut self) -> Option<Token> {
        let index = self.drain_cursor;
        self.drain_cursor += 1;
        let (token, _) = self.scheduler.slots().at(index)?;
        // `ready` comes first: there may be input that arrived before the drain.
        let state = self.scheduler.slots_mut().state(token);
        if state.is_some_and(|state| state.pending.has(Calls::READY)) {
            self.scheduler.mark_pending(token, Calls::DRAINING);
            return None;
        }
        Some(token)
    }

    /// Notes that no drain is in progress any more.
    pub(in crate::event_loop) fn reset_drain_cursor(&mut self) {
        self.drain_cursor = 0;
    }

    pub(super) fn deliver_draining<B: Backend>(
        &mut self,
        refs: &mut Refs<'_, M, B>,
        caller: &mut impl Caller<M>,
        token: Token,
    ) -> ControlFlow<()> {
        // `Verdict::Drain` may come without a drain of the loop.
        let until = refs.environment.drain_until().unwrap_or_else(|| refs.environment.now());
        if !self.scheduler.slots().can_be_called(token) {
            self.defer_call(token, Calls::DRAINING);
            return Continue(());
        }
        self.clock.before_cheap_call(refs.backend, refs.environment);
        caller.call(self, refs, token, CallKind::Draining(until))
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
        self.call(refs, token, || Event::MakeRoom, WakeTarget::default());
        // Its response was applied in `call`; the generation shows whether the machine has ended.
        !self.scheduler.queue().wakes().is_alive(token)
    }
}
