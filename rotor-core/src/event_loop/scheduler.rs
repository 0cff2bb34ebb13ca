//! `Scheduler`: the slots and the run queue together. A machine that is put into a slot, has
//! pending calls or gets a deadline is queued here, so that the two always agree.

use std::sync::atomic::Ordering::Relaxed;

use super::run_queue::{CallState, Pending, RunQueue};
use super::slots::Slots;
use crate::event_set::EventSet;
use crate::guard::drop_guarded;
use crate::machine::Machine;
use crate::response::Deadline;
use crate::scope::AnyEnvironment;
use crate::time::Time;
use crate::token::Token;

/// The machines of a loop, and the work that is due for them.
pub(super) struct Scheduler<M: Machine> {
    slots: Slots<M>,
    queue: RunQueue<M::Seed>,
}

impl<M: Machine> Scheduler<M> {
    pub(super) fn new(slots: Slots<M>, queue: RunQueue<M::Seed>) -> Scheduler<M> {
        Scheduler { slots, queue }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slots(&self) -> &Slots<M> {
        &self.slots
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn slots_mut(&mut self) -> &mut Slots<M> {
        &mut self.slots
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn queue(&mut self) -> &mut RunQueue<M::Seed> {
        &mut self.queue
    }

    pub(super) fn is_due(&self) -> bool {
        self.queue.is_due()
    }

    /// Checks that the run queue and the states of the slots agree.
    ///
    /// Pending calls for a machine that is detached are only in its slot.
    pub(super) fn check(&self, is_detached: impl Fn(Token) -> bool) -> Result<(), String> {
        self.queue.check(self.slots.states().filter(|(token, _)| !is_detached(*token)))
    }
}

/// Calls for machines that cannot be called now.
impl<M: Machine> Scheduler<M> {
    /// Schedules calls for the next turn. Returns whether the machine exists.
    pub(super) fn mark_pending(&mut self, token: Token, calls: Pending) -> bool {
        let Some(state) = self.slots.state(token) else { return false };
        state.pending.add(calls);
        self.queue.push(token, state);
        true
    }

    /// Returns the machine of a woken slot, if it is to be called in this turn. Otherwise, unless
    /// it is gone, `calls` become pending for the next turn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn wake_or_postpone(&mut self, index: u32, calls: Pending) -> Option<Token> {
        let (token, state) = self.slots.state_at(index)?;
        if !self.queue.must_wait_for_next_turn(state) {
            return Some(token);
        }
        state.pending.add(calls);
        self.queue.push(token, state);
        None
    }

    /// Leaves the pending calls of a machine whose handler is running, until it has returned.
    /// Returns whether the machine exists.
    pub(super) fn hold_pending(&mut self, token: Token) -> bool {
        let Some(state) = self.slots.state(token) else { return false };
        state.is_queued = false;
        true
    }

    /// Takes the pending calls of a machine that was taken from the run queue; `None` if it is
    /// gone.
    pub(super) fn take_pending(&mut self, token: Token) -> Option<Pending> {
        let state = self.slots.state(token)?;
        state.is_queued = false;
        if state.awaits_spawn {
            // It is queued again when its spawn has a result.
            return Some(Pending::default());
        }
        Some(std::mem::take(&mut state.pending))
    }

    /// Returns whether a machine was told of a drain and must still be called for it.
    pub(super) fn has_pending_draining(&self) -> bool {
        self.slots.states().any(|(_, state)| state.pending.has(Pending::DRAINING))
    }

    /// Returns whether a call of the machine is pending, or the machine is gone.
    pub(super) fn has_pending_call(&mut self, token: Token) -> bool {
        self.queue.wakes().is_woken(token.index())
            || self.slots.state(token).is_none_or(|state| !state.pending.is_empty())
    }
}

/// Machines that continue, and machines that have ended.
impl<M: Machine> Scheduler<M> {
    /// Puts a machine into its slot, with the deadline of its response.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn return_to_slot(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        machine: M,
        deadline: Deadline,
    ) {
        let state = self.slots.put(token, machine);
        self.reschedule(environment, token, state, deadline);
    }

    /// Puts a new machine into its slot. If it was woken in `create`, it stays in the line of the
    /// wake-ups: it has had no call of its own yet, so it need not wait for the next turn.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn put_new(&mut self, now: Time, token: Token, machine: M, deadline: Deadline) {
        let state = self.slots.put(token, machine);
        debug_assert!(state.pending.is_empty(), "machine {token} had a call before it was made");
        self.set_deadline(now, token, deadline);
    }

    /// Schedules a new machine that woke itself in `create` for this turn.
    pub(super) fn schedule_woken_in_create(&mut self, token: Token) {
        if let Some(state) = self.slots.state(token) {
            self.queue.push_woken_in_create(token, state);
        }
    }

    /// Schedules a machine that is in its slot for another `ready` in the next turn, with these
    /// events and those that come until then.
    pub(super) fn call_again(&mut self, token: Token, events: EventSet) {
        if let Some(state) = self.slots.state(token) {
            self.queue.push_again(token, state, events);
        }
    }

    /// Queues the calls that came meanwhile for a machine that is back in its slot, or was called
    /// there, and sets its deadline.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn reschedule(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        state: CallState,
        deadline: Deadline,
    ) {
        // Each of the three is rare: there is one branch for all, and the rest is not inlined.
        // `state` is a copy, so it is looked up again there.
        let is_woken = self.queue.wakes().is_woken(token.index());
        if is_woken | !state.pending.is_empty() | environment.has_self_wakeup() {
            self.reschedule_calls(environment, token, is_woken);
        }
        self.set_deadline(environment.now(), token, deadline);
    }

    #[inline(never)]
    fn reschedule_calls(&mut self, environment: &AnyEnvironment, token: Token, is_woken: bool) {
        let woke_itself = environment.take_self_wakeup();
        let Some(state) = self.slots.state(token) else { return };
        if woke_itself {
            self.queue.push_self_wakeup(token, state, is_woken);
        }
        if is_woken {
            // Woken by its own handler, by another thread meanwhile, or before the call.
            self.queue.mark_woken_in_call(state);
        }
        if !state.pending.is_empty() {
            self.queue.push(token, state);
        }
    }

    /// Called when a handler has returned. If its machine woke itself, this wake-up is left for the
    /// next turn, together with all that come until then, so that it cannot starve other machines.
    pub(super) fn schedule_self_wakeup(&mut self, environment: &AnyEnvironment, token: Token) {
        if environment.take_self_wakeup()
            && let Some(state) = self.slots.state(token)
        {
            let is_woken = self.queue.wakes().is_woken(token.index());
            self.queue.push_self_wakeup(token, state, is_woken);
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn set_deadline(&mut self, now: Time, token: Token, deadline: Deadline) {
        if self.slots.set_deadline(token, deadline, now) {
            self.push_overdue(token);
        }
    }

    /// Queues a machine whose deadline had passed when it was set. Not inlined, so that calls are
    /// small.
    #[cold]
    #[inline(never)]
    fn push_overdue(&mut self, token: Token) {
        if let Some(state) = self.slots.state(token) {
            self.queue.push_overdue(token, state);
        }
    }

    /// Frees the slot of a machine that is gone, with everything that was kept for it.
    pub(super) fn release_slot(&mut self, environment: &AnyEnvironment, token: Token) {
        // Taken and ignored.
        self.queue.parts().take(token);
        self.slots.end(token);
        environment.waiters.remove(token);
        if environment.drain_until().is_some() {
            environment.last.remove(token);
        }
        self.publish_slot_counts(environment);
    }

    /// Frees the slots whose machines have ended and whose last wake-ups are still in the list.
    /// Returns how many there were.
    #[cold]
    pub(super) fn reclaim_slots(&mut self, environment: &AnyEnvironment) -> u64 {
        let Scheduler { slots, queue } = self;
        let mut reclaimed = 0;
        queue.remove_woken(|index| {
            let is_ended = slots.reclaim(index);
            reclaimed += u64::from(is_ended);
            is_ended
        });
        self.publish_slot_counts(environment);
        reclaimed
    }

    /// Publishes to handlers how many slots are free.
    pub(super) fn publish_slot_counts(&self, environment: &AnyEnvironment) {
        // Relaxed: handlers read it, nearly always on this thread. The worst effect of a stale
        // count is a spawn that is refused or late.
        environment.free_slots.store(self.slots.vacant(), Relaxed);
        environment.machines.store(self.slots.len(), Relaxed);
    }

    /// Leaves a spawn for the next turn. Until then the machine that requested it gets no calls.
    pub(super) fn defer_spawn(
        &mut self,
        environment: &AnyEnvironment,
        token: Token,
        machine: M,
        seed: M::Seed,
    ) {
        self.return_to_slot(environment, token, machine, Deadline::Keep);
        if let Some(state) = self.slots.state(token) {
            self.queue.defer_spawn(token, state, seed);
        }
    }

    /// Resumes a deferred spawn. Returns the calls that became pending for the machine meanwhile,
    /// for which it is queued; `None` if it is gone.
    pub(super) fn end_deferral(&mut self, token: Token) -> Option<Pending> {
        let state = self.slots.state(token)?;
        state.awaits_spawn = false;
        // A machine that must be dropped gets no calls.
        if !state.pending.is_empty() && !state.pending.has(Pending::END) {
            self.queue.push(token, state);
        }
        Some(state.pending)
    }

    /// Drops the seeds of deferred spawns.
    pub(super) fn drop_deferred_spawns(&mut self) {
        self.queue.drain_deferred_spawns().for_each(|seed| drop_guarded(seed, "a seed"));
    }
}

/// Deadlines.
impl<M: Machine> Scheduler<M> {
    /// Schedules `timeout` as soon as possible, as if the deadline were now.
    pub(super) fn schedule_timeout_now(&mut self, now: Time, token: Token) {
        if self.slots.contains(token) {
            self.set_deadline(now, token, Deadline::At(now));
        }
    }

    /// Takes the deadline of a slot from the run queue, if the slot still has it. Returns its
    /// machine, and when the deadline was.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn take_expired(&mut self, index: u32) -> Option<(Token, Time)> {
        let (token, state) = self.slots.state_at(index)?;
        // Left to `take_overdue`. If it fired here too, a machine that again returns a deadline
        // that has passed would be called by both in the same turn.
        let queued = state.is_overdue;
        let deadline = self.slots.deadline(index)?;
        if queued || !self.slots.take_expired(index) {
            return None;
        }
        self.queue.count_fired();
        Some((token, deadline))
    }

    /// Takes a machine that was queued as overdue. Returns whether it still has a deadline that has
    /// passed.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(super) fn take_overdue(&mut self, now: Time, token: Token) -> bool {
        let Some(state) = self.slots.state(token) else { return false };
        state.is_overdue = false;
        let deadline = self.slots.deadline(token.index());
        deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Appends the slots whose deadlines have passed to the run queue. `order` may reorder the
    /// slots of one tick.
    pub(super) fn collect_expired(&mut self, now: Time, mut order: impl FnMut(&mut [Token])) {
        let expired = self.queue.expired_mut();
        let before = expired.len();
        self.slots.collect_expired(now, expired);
        // A single one needs no order; nearly all turns have at most one.
        if expired.len() - before < 2 {
            return;
        }
        let mut tokens: Vec<Token> = Vec::new();
        let collected = &mut expired.make_contiguous()[before..];
        for group in collected.chunk_by_mut(|a, b| a.tick == b.tick).filter(|group| group.len() > 1)
        {
            tokens.clear();
            tokens.extend(group.iter().filter_map(|due| Some(self.slots.at(due.index)?.0)));
            order(&mut tokens);
            for (due, token) in group.iter_mut().zip(&tokens) {
                due.index = token.index();
            }
        }
    }
}

/// Drops foreign values one by one, so that a panic of one does not affect the others.
impl<M: Machine> Drop for Scheduler<M> {
    fn drop(&mut self) {
        self.queue.wakes().close();
        for index in 0..self.slots.high_water() {
            if let Some((token, _)) = self.slots.at(index)
                && let Some(machine) = self.slots.take(token)
            {
                drop_guarded(machine, "a machine of a loop that is gone");
            }
        }
        self.drop_deferred_spawns();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::backend::NoWaker;
    use crate::environment::Environment;
    use crate::event_loop::run_queue::NextWoken;
    use crate::wake_queue::WakeQueue;
    use crate::{Config, Infallible, Mio, MioHandle, backend::Backend};

    struct Plain;

    impl Machine for Plain {
        type Context = ();
        type Seed = Infallible;
    }

    fn scheduler() -> (Scheduler<Plain>, Environment<MioHandle>, Arc<WakeQueue>) {
        let (wakes, parts) = WakeQueue::new(2, Arc::new(NoWaker)).expect("memory");
        let wakes = Arc::new(wakes);
        let handle = Mio::new(1).and_then(|mio| mio.handle()).expect("a descriptor is left");
        let environment = Environment::new(handle, wakes.clone(), &Config::new());
        let slots = Slots::new(2, wakes.clone(), Time::ZERO).expect("memory");
        let scheduler = Scheduler::new(slots, RunQueue::new(wakes.clone(), parts, Time::ZERO));
        (scheduler, environment.expect("random bytes"), wakes)
    }

    fn next(scheduler: &mut Scheduler<Plain>) -> Option<Token> {
        scheduler.queue().begin_turn(&Config::new());
        scheduler.queue().next_runnable()
    }

    #[test]
    fn calls_for_a_machine_in_its_handler_are_queued_on_its_return() {
        let (mut scheduler, environment, _) = scheduler();
        let token = scheduler.slots_mut().reserve().expect("a slot");
        scheduler.return_to_slot(&environment, token, Plain, Deadline::Never);
        assert!(next(&mut scheduler).is_none());
        let lifted = scheduler.slots_mut().take(token).expect("it is in its slot");
        scheduler.mark_pending(token, Pending::DRAINING);
        scheduler.return_to_slot(&environment, token, lifted, Deadline::Keep);
        assert!(scheduler.check(|_| false).is_ok() && scheduler.has_pending_call(token));
        assert_eq!(next(&mut scheduler), Some(token));
        assert!(scheduler.take_pending(token).is_some_and(|calls| calls.has(Pending::DRAINING)));
        assert!(!scheduler.has_pending_call(token));
    }

    #[test]
    fn a_wakeup_during_a_handler_is_delivered_in_the_next_turn() {
        let (mut scheduler, environment, wakes) = scheduler();
        let token = scheduler.slots_mut().reserve().expect("a slot");
        scheduler.queue().begin_turn(&Config::new());
        wakes.wake(token);
        scheduler.return_to_slot(&environment, token, Plain, Deadline::Never);
        let Some(NextWoken::Slot(index)) = scheduler.queue().next_woken() else {
            panic!("it was woken");
        };
        scheduler.queue().take_wakeup(index);
        assert!(scheduler.wake_or_postpone(index, Pending::WAKEUP).is_none());
        assert_eq!(next(&mut scheduler), Some(token));
    }

    #[test]
    fn an_ended_machine_frees_its_slot_and_has_no_pending_calls() {
        let (mut scheduler, environment, _) = scheduler();
        let token = scheduler.slots_mut().reserve().expect("a slot");
        scheduler.publish_slot_counts(&environment);
        assert_eq!(environment.free_slots.load(Relaxed), 1);
        scheduler.release_slot(&environment, token);
        assert_eq!(environment.free_slots.load(Relaxed), 2);
        assert!(!scheduler.mark_pending(token, Pending::WAKEUP));
        assert!(!scheduler.is_due() && scheduler.take_pending(token).is_none());
    }

    #[test]
    fn a_machine_is_queued_after_its_spawn_unless_it_must_be_dropped() {
        for (calls, is_queued) in [(Pending::WAKEUP, true), (Pending::END, false)] {
            let (mut scheduler, _, _) = scheduler();
            let token = scheduler.slots_mut().reserve().expect("a slot");
            // The state that a deferred spawn leaves; its seed does not exist here.
            let state = scheduler.slots_mut().state(token).expect("it is there");
            state.awaits_spawn = true;
            scheduler.mark_pending(token, calls);
            assert!(next(&mut scheduler).is_none());
            assert!(scheduler.end_deferral(token).is_some_and(|pending| pending.has(calls)));
            assert_eq!(next(&mut scheduler).is_some(), is_queued);
        }
    }
}
