//! `Delivery`: delivers what is due to machines: events, pending calls, wake-ups and the results of
//! deferred spawns. A machine that cannot be called now keeps the call until it can.

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use super::{CallKind, Dispatch, Refs};
use crate::backend::Backend;
use crate::event_loop::run_queue::Pending;
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::token::Token;

/// The code that makes the calls of a turn: the turn itself, or code to which the calls are
/// issued. In the latter case each function breaks off, and the turn stops there until the call was
/// made.
pub(in crate::event_loop) trait Caller<M: Machine> {
    fn call<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        kind: CallKind,
    ) -> ControlFlow<()>;

    /// Carries out a spawn that a machine requested in an earlier turn, and reports the result to
    /// it.
    fn spawn<B: Backend>(
        &mut self,
        dispatch: &mut Dispatch<M>,
        refs: &mut Refs<'_, M, B>,
        token: Token,
        spawn: (M, M::Seed),
    ) -> ControlFlow<()>;

    /// Keeps the rest of a machine's pending calls, when the turn stops at one of them.
    fn keep_remaining_calls(&mut self, _: Token, _: Pending) {}
}

/// The machines of a loop, what a turn needs besides them, and the code that calls them.
pub(in crate::event_loop) struct Delivery<'a, M: Machine, B, C> {
    pub(in crate::event_loop) dispatch: &'a mut Dispatch<M>,
    pub(in crate::event_loop) refs: Refs<'a, M, B>,
    pub(in crate::event_loop) caller: C,
}

impl<M: Machine, B: Backend, C: Caller<M>> Delivery<'_, M, B, C> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn deliver_ready(
        &mut self,
        token: Token,
        events: EventSet,
    ) -> ControlFlow<()> {
        // A machine that returned `again` is called once, behind the others, with all events that
        // came meanwhile.
        let callable = self.dispatch.scheduler.slots().callable(token);
        if callable.is_none_or(|state| state.pending.has(Pending::READY)) {
            self.dispatch.postpone(token, Pending::ready(events));
            return Continue(());
        }
        self.dispatch.monitor.stats().events += 1;
        self.dispatch.clock.before_call(self.refs.backend, self.refs.environment);
        self.caller.call(self.dispatch, &mut self.refs, token, CallKind::Ready(events))
    }

    /// Has the caller make a call other than `ready`.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn call_cheaply(&mut self, token: Token, kind: CallKind) -> ControlFlow<()> {
        self.dispatch.clock.before_cheap_call(self.refs.backend, self.refs.environment);
        self.caller.call(self.dispatch, &mut self.refs, token, kind)
    }

    /// Wakes the machine of a slot from the wake queue.
    pub(in crate::event_loop) fn wake_slot(&mut self, index: u32) -> ControlFlow<()> {
        let Some((token, whole)) = self.dispatch.take_woken(&self.refs, index) else {
            return Continue(());
        };
        self.deliver_wakeup(token, whole)
    }

    /// Calls `wakeup`. `whole` says that the machine itself was woken, not only parts of it.
    ///
    /// A thread that wakes a part first puts the part into the channel, and then the machine into
    /// the list. If the part was taken in between, the machine is in the list for nothing.
    fn deliver_wakeup(&mut self, token: Token, whole: bool) -> ControlFlow<()> {
        let scheduler = &mut self.dispatch.scheduler;
        if !whole && !scheduler.queue().parts().has(token) {
            return Continue(());
        }
        if !scheduler.slots().can_be_called(token) {
            self.dispatch.postpone(token, wakeup_calls(whole));
            return Continue(());
        }
        self.dispatch.monitor.stats().wakeups += 1;
        self.call_cheaply(token, CallKind::Wakeup { whole })
    }

    /// Makes the pending calls of a machine. Calls that its handlers add meanwhile are left for the
    /// next turn.
    pub(in crate::event_loop) fn resume(&mut self, token: Token) -> ControlFlow<()> {
        let pending = self.dispatch.take_pending_calls(&self.refs, token);
        pending.map_or(Continue(()), |pending| self.make_pending_calls(token, pending))
    }

    /// Makes calls that were taken from the pending ones.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(in crate::event_loop) fn make_pending_calls(
        &mut self,
        token: Token,
        mut pending: Pending,
    ) -> ControlFlow<()> {
        // Before `draining`, at which machines end: there may be input that arrived before. Once is
        // enough: a machine that returned `again` forever would never be told of the drain.
        if pending.remove(Pending::READY) {
            let stops = self.deliver_ready(token, pending.events());
            stops.map_break(|()| self.caller.keep_remaining_calls(token, pending))?;
        }
        if pending.remove(Pending::DRAINING) {
            let stops = self.deliver_draining(token);
            stops.map_break(|()| self.caller.keep_remaining_calls(token, pending))?;
        }
        if pending.has(Pending::WAKEUP) {
            self.deliver_wakeup(token, pending.has(Pending::WAKEUP_WHOLE))?;
        }
        Continue(())
    }

    /// Tells the machine of the next slot that the loop drains.
    pub(in crate::event_loop) fn notify_next_of_drain(&mut self) -> ControlFlow<()> {
        let token = self.dispatch.next_to_notify();
        token.map_or(Continue(()), |token| self.deliver_draining(token))
    }

    fn deliver_draining(&mut self, token: Token) -> ControlFlow<()> {
        // `Verdict::Drain` may come without a drain of the loop.
        let environment = self.refs.environment;
        let until = environment.drain_until().unwrap_or_else(|| environment.now());
        if !self.dispatch.scheduler.slots().can_be_called(token) {
            self.dispatch.postpone(token, Pending::DRAINING);
            return Continue(());
        }
        self.call_cheaply(token, CallKind::Draining(until))
    }

    /// Fires the deadline of an expired slot, if the slot still has it.
    pub(in crate::event_loop) fn fire_deadline(&mut self, index: u32) -> ControlFlow<()> {
        let Some((token, deadline)) = self.dispatch.scheduler.take_expired(index) else {
            return Continue(());
        };
        let times = self.dispatch.monitor.counters().times();
        times.record_lag(deadline, self.refs.environment.now());
        self.deliver_timeout(token)
    }

    /// Calls a machine that was queued as overdue, if it still has a deadline that has passed.
    pub(in crate::event_loop) fn fire_overdue(&mut self, token: Token) -> ControlFlow<()> {
        if self.dispatch.scheduler.take_overdue(self.refs.environment.now(), token) {
            self.deliver_timeout(token)?;
        }
        Continue(())
    }

    fn deliver_timeout(&mut self, token: Token) -> ControlFlow<()> {
        if !self.dispatch.scheduler.slots().can_be_called(token) {
            self.dispatch.postpone_timeout(self.refs.environment.now(), token);
            return Continue(());
        }
        self.dispatch.scheduler.slots_mut().clear_deadline(token);
        self.dispatch.monitor.stats().timeouts += 1;
        self.call_cheaply(token, CallKind::Timeout)
    }

    /// Continues a spawn of an earlier turn. If the machine that requested it is gone, the seed is
    /// dropped.
    pub(in crate::event_loop) fn resume_spawn(
        &mut self,
        token: Token,
        seed: M::Seed,
    ) -> ControlFlow<()> {
        match self.dispatch.take_deferred(&self.refs, token) {
            Some(machine) => {
                self.caller.spawn(self.dispatch, &mut self.refs, token, (machine, seed))
            }
            None => {
                drop_guarded(seed, "a seed");
                Continue(())
            }
        }
    }
}

/// Calls for machines that cannot be called now, and calls that were left from earlier.
impl<M: Machine> Dispatch<M> {
    /// Keeps calls for a machine that cannot be called now.
    #[cold]
    #[inline(never)]
    fn postpone(&mut self, token: Token, calls: Pending) {
        if !self.scheduler.mark_pending(token, calls) {
            self.monitor.stats().stale += 1;
        }
    }

    /// Returns the machine of a slot from the wake queue, if it is to be called in this turn, and
    /// whether it was woken itself.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_woken<B>(&mut self, refs: &Refs<'_, M, B>, index: u32) -> Option<(Token, bool)> {
        let whole = self.scheduler.queue().take_wakeup(index);
        if self.scheduler.slots_mut().reclaim(index) {
            self.scheduler.publish_slot_counts(refs.environment);
            self.monitor.stats().stale += 1;
            return None;
        }
        let token = self.scheduler.wake_or_postpone(index, wakeup_calls(whole))?;
        Some((token, whole))
    }

    /// Takes the pending calls of a machine from the run queue, if it exists and can be called.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_pending_calls<B>(&mut self, refs: &Refs<'_, M, B>, token: Token) -> Option<Pending> {
        if !self.detached.is_empty() && self.hold_if_detached(token) {
            return None;
        }
        let Some(pending) = self.scheduler.take_pending(token) else {
            self.monitor.stats().stale += 1;
            return None;
        };
        if pending.has(Pending::END) {
            self.drop_machine(refs.environment, refs.config, token);
            return None;
        }
        Some(pending)
    }

    /// Takes a machine whose spawn was deferred out of its slot, unless it is gone or must end.
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn take_deferred<B>(&mut self, refs: &Refs<'_, M, B>, token: Token) -> Option<M> {
        let pending = self.scheduler.end_deferral(token)?;
        if pending.has(Pending::END) {
            self.drop_machine(refs.environment, refs.config, token);
            return None;
        }
        self.scheduler.slots_mut().take(token)
    }
}

fn wakeup_calls(whole: bool) -> Pending {
    if whole { Pending::WAKEUP_WHOLE } else { Pending::WAKEUP }
}
