//! A drain: machines are told that the loop ends, those that others need last, and have until its
//! time limit to finish.
//!
//! ```text
//!   requested ──▶ announced, if so wanted ──▶ poll, until a poll is not full ──▶ tell slot by slot ──▶ tell the last ──▶ none left, or time over
//! ```

use std::ops::ControlFlow;
use std::ops::ControlFlow::Continue;

use super::dispatch::{Caller, Delivery, Dispatch};
use super::run_queue::Pending;
use crate::backend::Backend;
use crate::config::Config;
use crate::drain::Drain;
use crate::drain::Grace;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;

/// The drain that is in progress, if any.
///
/// Other facts about it are kept where they are used: its end in the environment, for handlers; the
/// machines that end last as well, because machines register themselves; the progress over the
/// slots in `Dispatch`, which also makes new machines.
#[derive(Default)]
pub(super) struct DrainProgress(Option<Stage>);

enum Stage {
    /// The drain begins at that time; until then everything goes on.
    Announced {
        begins: Time,
        requested: Drain,
    },
    Begun(BegunDrain),
}

struct BegunDrain {
    until: Time,
    grace: Grace,
    /// How many more polls of the backend are needed before any machine is told.
    polls_left: usize,
    /// How many more slots this turn may look at.
    slots_left: usize,
    /// The number of the turn in which the time was over and a machine was still to be told. The
    /// drain goes on for one turn after that.
    grace_turn: Option<u64>,
    /// How many machines had been made when the machines that wait for all others were told that
    /// none of these are left.
    created_at_last_notification: Option<u64>,
}

impl DrainProgress {
    /// Announces a drain or begins it, or brings the end of the current drain nearer.
    ///
    /// `polls` is how many polls, if all of them are full, show everything that is ready now.
    pub(super) fn request(&mut self, environment: &AnyEnvironment, polls: usize, requested: Drain) {
        let now = environment.handle.now();
        let requested = match &mut self.0 {
            None => requested,
            Some(Stage::Announced { begins, requested: previous }) => {
                previous.announce(*begins - now).combine_earliest(requested)
            }
            Some(Stage::Begun(state)) => {
                // A second request can bring the end nearer, but never postpone it.
                state.until = state.until.min(now + requested.announce + requested.time);
                state.grace = Grace::For(state.grace.time().min(requested.grace.time()));
                return environment.set_draining(state.until, state.grace);
            }
        };
        if requested.announce.is_zero() {
            return self.begin(environment, polls, requested);
        }
        self.0 = Some(Stage::Announced { begins: now + requested.announce, requested });
        environment.set_announced();
    }

    /// Begins the drain if its announcement is over.
    pub(super) fn begin_if_due(&mut self, environment: &AnyEnvironment, polls: usize) {
        if let Some(Stage::Announced { begins, requested }) = self.0
            && begins <= environment.now()
        {
            self.begin(environment, polls, requested);
        }
    }

    fn begin(&mut self, environment: &AnyEnvironment, polls: usize, requested: Drain) {
        let until = environment.handle.now() + requested.time;
        self.0 = Some(Stage::Begun(BegunDrain::new(until, requested.grace, polls)));
        environment.set_draining(until, requested.grace);
    }

    /// Begins a turn that may look at `budget` slots.
    pub(super) fn begin_turn(&mut self, budget: usize) {
        if let Some(state) = self.state_mut() {
            state.slots_left = budget;
        }
    }

    /// Returns whether the loop is to end, even if that is only announced.
    #[inline]
    pub(super) fn is_requested(&self) -> bool {
        self.0.is_some()
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state().is_some()
    }

    #[inline]
    fn state(&self) -> Option<&BegunDrain> {
        match &self.0 {
            Some(Stage::Begun(state)) => Some(state),
            _ => None,
        }
    }

    #[inline]
    fn state_mut(&mut self) -> Option<&mut BegunDrain> {
        match &mut self.0 {
            Some(Stage::Begun(state)) => Some(state),
            _ => None,
        }
    }

    /// Returns when the drain begins, if it is announced, or else when its time is over, which may
    /// be never.
    #[inline]
    pub(super) fn next_deadline(&self) -> Time {
        match &self.0 {
            None => Time::NEVER,
            Some(Stage::Announced { begins, .. }) => *begins,
            Some(Stage::Begun(state)) => state.until,
        }
    }

    /// Returns whether there are machines to be told in the next turn. The last other machines may
    /// have ended after `notify`: by `make_room`, or in a turn that a panic ended.
    #[inline]
    pub(super) fn is_due<M: Machine>(
        &self,
        environment: &AnyEnvironment,
        dispatch: &Dispatch<M>,
    ) -> bool {
        self.state().is_some_and(|state| state.is_due(environment, dispatch))
    }

    /// Returns whether the backend must be polled before any machine is told.
    #[inline]
    pub(super) fn needs_poll(&self) -> bool {
        self.state().is_some_and(|state| state.polls_left > 0)
    }

    /// Notes a poll. Input that arrived before a drain is delivered before machines are told of it,
    /// because they would end and lose it. So the backend is polled first, until a poll is not
    /// full, or until there were enough polls to show the sources of all machines.
    #[inline]
    pub(super) fn record_poll(&mut self, is_full: bool) {
        let Some(state) = self.state_mut() else { return };
        state.polls_left = if is_full { state.polls_left.saturating_sub(1) } else { 0 };
    }

    /// Tells machines that the loop drains: as many as one turn may look at.
    #[inline]
    pub(super) fn notify<M: Machine, B: Backend>(
        &mut self,
        delivery: &mut Delivery<'_, M, B, impl Caller<M>>,
    ) -> ControlFlow<()> {
        self.state_mut().map_or(Continue(()), |state| state.notify(delivery))
    }

    /// Returns whether the drain is over: no machine is left, or its time is over and all machines
    /// have been told.
    ///
    /// A machine whose `draining` is still pending gets one more turn after that. It does not get
    /// two, because a machine that waits for its spawn may never be called.
    #[cold]
    #[inline(never)]
    pub(super) fn is_complete<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        dispatch: &mut Dispatch<M>,
        has_unsent: impl FnOnce() -> bool,
    ) -> bool {
        let Some(state) = self.state_mut() else { return false };
        if dispatch.slots().len() == 0 {
            return state.until <= environment.now() || !has_unsent();
        }
        if state.until > environment.now() || dispatch.has_slots_to_notify() {
            return false;
        }
        let turns = dispatch.monitor_mut().stats().turns;
        match state.grace_turn {
            Some(since) => turns > since,
            None if dispatch.scheduler().has_pending_draining() => {
                state.grace_turn = Some(turns);
                false
            }
            None => true,
        }
    }

    /// Ends the drain. Returns how many machines were dropped.
    pub(super) fn end<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        dispatch: &mut Dispatch<M>,
    ) -> usize {
        self.0 = None;
        environment.end_draining();
        dispatch.reset_drain_cursor();
        dispatch.drop_all(environment, config)
    }
}

impl BegunDrain {
    fn new(until: Time, grace: Grace, polls_left: usize) -> BegunDrain {
        BegunDrain {
            until,
            grace,
            polls_left,
            slots_left: 0,
            grace_turn: None,
            created_at_last_notification: None,
        }
    }

    #[cold]
    fn is_due<M: Machine>(&self, environment: &AnyEnvironment, dispatch: &Dispatch<M>) -> bool {
        dispatch.has_slots_to_notify()
            || (self.has_last_to_notify(dispatch)
                && environment.last.all(dispatch.slots().len()).is_some())
    }

    #[cold]
    fn notify<M: Machine, B: Backend>(
        &mut self,
        delivery: &mut Delivery<'_, M, B, impl Caller<M>>,
    ) -> ControlFlow<()> {
        while self.polls_left == 0 && self.slots_left > 0 && delivery.dispatch.has_slots_to_notify()
        {
            self.slots_left -= 1;
            delivery.notify_next_of_drain()?;
        }
        self.notify_last(delivery.refs.environment, delivery.dispatch);
        Continue(())
    }

    /// Returns whether the machines that wait for all others must still be told that these are
    /// gone, or machines were made since.
    fn has_last_to_notify<M: Machine>(&self, dispatch: &Dispatch<M>) -> bool {
        dispatch.slots().len() > 0
            && !dispatch.has_slots_to_notify()
            && self.created_at_last_notification != Some(dispatch.monitor().machines_created())
    }

    /// Tells the machines that wait for all others when these are gone; again if others came and
    /// went since.
    fn notify_last<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        dispatch: &mut Dispatch<M>,
    ) {
        if !self.has_last_to_notify(dispatch) {
            return;
        }
        let Some(last) = environment.last.all(dispatch.slots().len()) else { return };
        self.created_at_last_notification = Some(dispatch.monitor().machines_created());
        for token in last {
            dispatch.scheduler().mark_pending(token, Pending::DRAINING);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain_with_polls(polls_left: usize) -> DrainProgress {
        DrainProgress(Some(Stage::Begun(BegunDrain::new(
            Time::ZERO,
            Grace::WholeDrain,
            polls_left,
        ))))
    }

    #[test]
    fn a_full_poll_requests_another_and_one_with_room_is_the_last() {
        let mut drain = drain_with_polls(3);
        for _ in 0..2 {
            drain.record_poll(true);
            assert!(drain.needs_poll());
        }
        drain.record_poll(false);
        assert!(!drain.needs_poll());
        assert_eq!(drain.next_deadline(), Time::ZERO);
    }

    #[test]
    fn polls_end_once_they_could_have_shown_all_machines() {
        let mut drain = drain_with_polls(2);
        for needs_poll in [true, false, false] {
            drain.record_poll(true);
            assert_eq!(drain.needs_poll(), needs_poll);
        }
    }

    #[test]
    fn a_loop_without_a_drain_needs_no_poll_and_has_no_deadline() {
        let mut drain = DrainProgress::default();
        drain.record_poll(true);
        assert!(!drain.has_begun() && !drain.needs_poll());
        assert_eq!(drain.next_deadline(), Time::NEVER);
    }
}
