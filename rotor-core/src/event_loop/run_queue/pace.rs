//! How often a loop that has work polls its backend.

use std::time::Duration;

use crate::config::Config;
use crate::time::Time;

/// How a turn waits at its beginning.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::event_loop) enum WaitMode {
    /// Until there is something to do. A loop that has work goes on with it, and polls the backend
    /// at its pace.
    AtPace,
    /// For at most this time, or until there is something to do; it polls in any case.
    AtMost(Option<Duration>),
}

/// When the backend was polled, and how much was done since.
///
/// If machines wake themselves or are spawned in chains, turns consist of a few calls, while a poll
/// of the backend is a system call. So such turns may follow each other without a poll: at most
/// [`TURNS_MAX`] of them, for at most [`TIME_MAX`]. If a machine returned `again`, it has more
/// input, perhaps much, so other machines' sockets are polled first.
pub(in crate::event_loop) struct Pace {
    polled_at: Time,
    /// All events until this time have been reported, unless the last poll was full.
    reported_until: Time,
    /// When the last turn ended.
    ended_at: Time,
    turns: u32,
    /// While polls are full: how many more are needed until every source has been shown once.
    round_left: usize,
}

impl Pace {
    /// Creates the pace of a new loop, which has not polled yet.
    pub(in crate::event_loop) fn new(now: Time) -> Pace {
        Pace {
            polled_at: Time::ZERO,
            reported_until: Time::ZERO,
            ended_at: now,
            turns: TURNS_MAX,
            round_left: 0,
        }
    }

    /// Returns whether a turn may begin without a poll.
    pub(in crate::event_loop) fn allows_turn_without_poll(&self) -> bool {
        self.turns < TURNS_MAX
    }

    /// Begins a turn after a poll that has reported all events until `reported_until`.
    pub(in crate::event_loop) fn begin_turn_after_poll(
        &mut self,
        now: Time,
        reported_until: Time,
        round: Option<usize>,
    ) {
        self.record_poll(now, round);
        // Since then the thread may have waited for a CPU, so `now` may be much later. All events
        // from before the wait were reported in any case.
        self.reported_until = reported_until.min(now).max(self.ended_at);
    }

    /// Notes a poll at `now`. If the poll was full, `round` is how many full polls are needed to
    /// show everything that was ready at the first of them, and the next turn polls again.
    pub(in crate::event_loop) fn record_poll(&mut self, now: Time, round: Option<usize>) {
        (self.polled_at, self.reported_until) = (now, now);
        let Some(round) = round else {
            (self.turns, self.round_left) = (0, 0);
            return;
        };
        self.turns = TURNS_MAX;
        // A round keeps the length that it began with. Otherwise machines that come and go could
        // postpone its end forever.
        let left = if self.round_left == 0 { round } else { self.round_left };
        self.round_left = left.saturating_sub(1);
    }

    /// Returns until when the last poll has surely reported all events, unless it was full.
    #[inline]
    pub(in crate::event_loop) fn reported_until(&self) -> Time {
        self.reported_until
    }

    /// Returns whether the backend may still hold events from before the round began. A backend
    /// reports events first in, first out, so at the end of a round it has reported all of these.
    #[inline]
    pub(in crate::event_loop) fn may_have_missed_events(&self) -> bool {
        self.round_left > 0
    }

    /// Notes the end of a turn.
    pub(in crate::event_loop) fn record_turn_end(&mut self, now: Time) {
        self.turns += 1;
        self.ended_at = now;
        if now - self.polled_at >= TIME_MAX {
            self.turns = TURNS_MAX;
        }
    }

    /// Makes the next turn poll.
    pub(in crate::event_loop) fn request_poll(&mut self) {
        self.turns = TURNS_MAX;
    }
}

/// Returns how many polls are needed to show each of `sources` sources once, if all polls are full:
/// at least as many as the backend says (`Backend::full_waits`).
///
/// Sources are counted as machines, because the loop does not know how many of them each machine
/// has registered. If machines have more than one each, the last ones may be seen late, after a
/// deadline or a drain. The size of a poll is taken to be [`Config::events_max`], even if the
/// backend takes fewer events at a time.
pub(in crate::event_loop) fn polls_for(sources: usize, config: &Config, least: usize) -> usize {
    sources.div_ceil(config.events_max).max(least)
}

/// The maximum number of turns between polls. With more, the cost of the system call is no longer
/// noticeable. Compare tokio's `event_interval`, which counts tasks (61).
const TURNS_MAX: u32 = 64;

/// The maximum time from one poll to the turn that polls next: how much longer a socket may wait
/// because of this. It is a tenth of the tolerance of deadlines.
const TIME_MAX: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const POLLED: Time = Time::from_nanos(5_000_000);

    #[test]
    fn a_round_of_polls_ends_even_if_machines_come_and_go() {
        let mut pace = Pace::new(Time::ZERO);
        let rounds = (0..100).filter(|poll| {
            pace.record_poll(POLLED, Some(2 + poll % 2));
            !pace.may_have_missed_events()
        });
        assert!(rounds.count() >= 33);
    }

    #[test]
    fn a_new_loop_polls_first() {
        assert!(!Pace::new(Time::ZERO).allows_turn_without_poll());
    }

    #[test]
    fn a_wait_surely_reports_events_from_before_it_and_until_its_time_was_over() {
        let mut pace = Pace::new(Time::ZERO);
        pace.record_turn_end(POLLED);
        let time_over = POLLED + Duration::from_millis(1);
        let later = POLLED + Duration::from_millis(3);
        for (until, expected) in
            [(Time::ZERO, POLLED), (time_over, time_over), (Time::NEVER, later)]
        {
            pace.begin_turn_after_poll(later, until, None);
            assert_eq!(pace.reported_until(), expected);
        }
        pace.begin_turn_after_poll(later, Time::ZERO, None);
        pace.record_poll(later, None);
        assert_eq!(pace.reported_until(), later);
    }

    #[test]
    fn every_64th_turn_polls() {
        let mut pace = Pace::new(Time::ZERO);
        pace.record_poll(POLLED, None);
        for _ in 0..63 {
            pace.record_turn_end(POLLED);
            assert!(pace.allows_turn_without_poll());
        }
        pace.record_turn_end(POLLED);
        assert!(!pace.allows_turn_without_poll());
        pace.record_poll(POLLED, None);
        pace.record_turn_end(POLLED);
        assert!(pace.allows_turn_without_poll());
    }

    #[test]
    fn a_turn_polls_100_microseconds_after_the_last_poll() {
        let after = |nanos| {
            let mut pace = Pace::new(Time::ZERO);
            pace.record_poll(POLLED, None);
            pace.record_turn_end(POLLED + Duration::from_nanos(nanos));
            pace.allows_turn_without_poll()
        };
        assert!(after(99_999));
        assert!(!after(100_000));
        assert!(!after(100_001));
    }

    #[test]
    fn a_full_poll_is_followed_by_another() {
        let mut pace = Pace::new(Time::ZERO);
        pace.record_poll(POLLED, Some(1));
        assert!(!pace.allows_turn_without_poll());
        pace.record_poll(POLLED, None);
        assert!(pace.allows_turn_without_poll());
    }

    #[test]
    fn no_events_are_missed_after_a_whole_round_or_a_poll_with_room() {
        let mut pace = Pace::new(Time::ZERO);
        assert!(!pace.may_have_missed_events());
        for missed in [true, true, false, true, true, false] {
            pace.record_poll(POLLED, Some(3));
            assert_eq!(pace.may_have_missed_events(), missed);
        }
        for one_poll_shows_all in [1, 0] {
            pace.record_poll(POLLED, Some(one_poll_shows_all));
            assert!(!pace.may_have_missed_events());
        }
        pace.record_poll(POLLED, Some(3));
        pace.record_poll(POLLED, None);
        assert!(!pace.may_have_missed_events());
    }

    #[test]
    fn a_requested_poll_happens_in_the_next_turn() {
        let mut pace = Pace::new(Time::ZERO);
        pace.record_poll(POLLED, None);
        pace.request_poll();
        pace.record_turn_end(POLLED);
        assert!(!pace.allows_turn_without_poll());
    }
}
