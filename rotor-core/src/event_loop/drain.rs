//! A drain: machines are told that the loop ends, those that others need last, and have until its
//! deadline to finish.
//!
//! ```text
//!   asked for ──▶ poll, until a poll brings less than it may ──▶ tell slot by slot ──▶ tell the last ──▶ none left, or deadline
//! ```

use std::time::Duration;

use super::dispatch::{Dispatch, Lent};
use super::run_queue::Pending;
use crate::backend::Backend;
use crate::config::Config;
use crate::machine::Machine;
use crate::scope::AnyEnvironment;
use crate::time::Time;

/// The drain that is under way, if one is.
#[derive(Default)]
pub(super) struct Drain(Option<State>);

struct State {
    until: Time,
    /// How often the backend is still to be polled before any machine hears of it.
    polls_left: usize,
    /// How many machines had been made when those that wait for the others were told that there are
    /// none left.
    told_last: Option<u64>,
}

impl Drain {
    /// Begins a drain, or brings the end of the one under way nearer.
    pub(super) fn begin<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        dispatch: &Dispatch<M>,
        time: Duration,
    ) {
        let until = environment.handle.now() + time;
        let polls_left = dispatch.slots().len() / config.events_max + 1;
        // A drain that is asked for again can end earlier, never later.
        let state = self.0.get_or_insert(State { until, polls_left, told_last: None });
        state.until = state.until.min(until);
        environment.set_draining(state.until);
    }

    pub(super) fn is_under_way(&self) -> bool {
        self.0.is_some()
    }

    /// When it ends, whoever is left.
    pub(super) fn until(&self) -> Option<Time> {
        self.0.as_ref().map(|state| state.until)
    }

    /// Whether the backend is to be polled before any machine hears of it.
    #[inline]
    pub(super) fn wants_poll(&self) -> bool {
        self.0.as_ref().is_some_and(|state| state.polls_left > 0)
    }

    /// What has come before a drain is delivered before machines hear of it: they would end, and
    /// lose it. So the backend is polled first, until a poll brings less than it may, or there were
    /// as many as it takes for all machines.
    #[inline]
    pub(super) fn note_poll(&mut self, events: usize, config: &Config) {
        let Some(state) = &mut self.0 else { return };
        // The waker of a backend may take one place.
        let is_full = events + 1 >= config.events_max;
        state.polls_left = if is_full { state.polls_left.saturating_sub(1) } else { 0 };
    }

    /// Tells machines that the loop drains, as many as one turn may look at.
    #[inline]
    pub(super) fn tell<M: Machine, B: Backend>(
        &mut self,
        lent: &mut Lent<'_, M, B>,
        dispatch: &mut Dispatch<M>,
    ) {
        if let Some(state) = &mut self.0 {
            state.tell(lent, dispatch);
        }
    }

    /// Whether it is over: no machine is left, or its deadline has come and all have been told.
    pub(super) fn is_over<M: Machine>(
        &self,
        environment: &AnyEnvironment,
        dispatch: &Dispatch<M>,
    ) -> bool {
        let is_late = self.until().is_some_and(|until| until <= environment.now());
        dispatch.slots().len() == 0 || (is_late && !dispatch.is_drain_to_be_told())
    }

    /// Ends it. Returns how many machines were dropped.
    pub(super) fn end<M: Machine>(
        &mut self,
        environment: &AnyEnvironment,
        config: &Config,
        dispatch: &mut Dispatch<M>,
    ) -> usize {
        self.0 = None;
        environment.end_draining();
        dispatch.forget_drain();
        dispatch.drop_all(environment, config)
    }
}

impl State {
    #[cold]
    fn tell<M: Machine, B: Backend>(
        &mut self,
        lent: &mut Lent<'_, M, B>,
        dispatch: &mut Dispatch<M>,
    ) {
        let mut left = lent.config.scan_budget;
        while self.polls_left == 0 && left > 0 && dispatch.is_drain_to_be_told() {
            left -= 1;
            dispatch.tell_next_of_drain(lent);
        }
        self.tell_last(lent.environment, dispatch);
    }

    /// Tells the machines that wait for all others, once none of these is left; again if others
    /// came and went since.
    fn tell_last<M: Machine>(&mut self, environment: &AnyEnvironment, dispatch: &mut Dispatch<M>) {
        let machines = dispatch.slots().len();
        if machines == 0 || dispatch.is_drain_to_be_told() {
            return;
        }
        let made = Some(dispatch.counters().stats.spawned);
        if self.told_last == made {
            return;
        }
        let Some(last) = environment.last.all(machines) else { return };
        self.told_last = made;
        last.into_iter().for_each(|token| dispatch.scheduler().pend(token, Pending::DRAINING));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_poll_asks_for_another_and_one_with_room_is_the_last() {
        let config = Config::new().events_max(8);
        let state = State { until: Time::ZERO, polls_left: 3, told_last: None };
        let mut drain = Drain(Some(state));
        drain.note_poll(7, &config);
        assert!(drain.wants_poll(), "the waker may have taken a place");
        drain.note_poll(8, &config);
        assert!(drain.wants_poll());
        drain.note_poll(6, &config);
        assert!(!drain.wants_poll());
        assert_eq!(drain.until(), Some(Time::ZERO));
    }

    #[test]
    fn after_as_many_polls_as_show_all_machines_there_is_no_other() {
        let config = Config::new().events_max(8);
        let mut drain = Drain(Some(State { until: Time::ZERO, polls_left: 2, told_last: None }));
        for wants_poll in [true, false, false] {
            drain.note_poll(8, &config);
            assert_eq!(drain.wants_poll(), wants_poll);
        }
    }

    #[test]
    fn without_a_drain_nothing_is_asked() {
        let mut drain = Drain::default();
        drain.note_poll(8, &Config::new().events_max(8));
        assert!(!drain.is_under_way() && !drain.wants_poll() && drain.until().is_none());
    }
}
