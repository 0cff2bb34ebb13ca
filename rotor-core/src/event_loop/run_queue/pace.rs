//! How often a loop that has work polls its backend.

use std::time::Duration;

use crate::config::Config;
use crate::time::Time;

/// How a turn begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(in crate::event_loop) enum Wait {
    /// Until there is something to do; a loop that has work goes on with it, and polls the
    /// backend at its pace.
    AtPace,
    /// That long at most, or until there is something to do; with a poll in any case.
    AtMost(Option<Duration>),
}

/// When the backend was polled, and what was done since.
///
/// Machines that wake themselves or are spawned in chains have turns of a few calls, and polling
/// the backend is a system call. So such turns may follow each other without a poll, [`TURNS_MAX`]
/// of them and for [`TIME_MAX`] at most. A machine that answered `again` has more to do with its
/// socket, which may be much: the others' sockets are polled first.
pub(in crate::event_loop) struct Pace {
    polled_at: Time,
    /// What was ready until then has been reported.
    reported_until: Time,
    /// When the last turn ended.
    ended_at: Time,
    turns: u32,
    /// While polls are full: how many more of them until every source has been shown once.
    round_left: usize,
}

impl Pace {
    /// Of a loop that is made now, and has not polled yet.
    pub(in crate::event_loop) fn new(now: Time) -> Pace {
        Pace {
            polled_at: Time::ZERO,
            reported_until: Time::ZERO,
            ended_at: now,
            turns: TURNS_MAX,
            round_left: 0,
        }
    }

    /// Whether a turn may begin without a poll.
    pub(in crate::event_loop) fn allows_a_turn(&self) -> bool {
        self.turns < TURNS_MAX
    }

    /// A turn begins behind a poll. `is_any`: the poll has ended because something came, and not
    /// because its time was over.
    pub(in crate::event_loop) fn begins(&mut self, now: Time, is_any: bool, round: Option<usize>) {
        self.polled(now, round);
        if is_any {
            // It ended at some time of the wait, and then the thread may have waited for a processor:
            // what was ready before the wait is all that is sure.
            self.reported_until = self.ended_at;
        }
    }

    /// The backend was polled, at `now`. `round`, if that was full: how many full polls show all
    /// that was ready when the first of them was made. Then the next turn polls again.
    pub(in crate::event_loop) fn polled(&mut self, now: Time, round: Option<usize>) {
        (self.polled_at, self.reported_until) = (now, now);
        let Some(round) = round else {
            (self.turns, self.round_left) = (0, 0);
            return;
        };
        self.turns = TURNS_MAX;
        // A round keeps the length that it began with: machines that come and go would otherwise
        // put its end off for ever.
        let left = if self.round_left == 0 { round } else { self.round_left };
        self.round_left = left.saturating_sub(1);
    }

    /// Until when the last poll has surely reported all that was ready, unless it was full.
    #[inline]
    pub(in crate::event_loop) fn reported_until(&self) -> Time {
        self.reported_until
    }

    /// Whether the backend may still hold something that was ready when the round began: it hands
    /// out what is ready first in, first out, so at the end of a round it has shown all of that.
    #[inline]
    pub(in crate::event_loop) fn may_have_missed(&self) -> bool {
        self.round_left > 0
    }

    /// A turn has ended.
    pub(in crate::event_loop) fn turn_ended(&mut self, now: Time) {
        self.turns += 1;
        self.ended_at = now;
        if now - self.polled_at >= TIME_MAX {
            self.turns = TURNS_MAX;
        }
    }

    /// The next turn is to poll.
    pub(in crate::event_loop) fn poll_next(&mut self) {
        self.turns = TURNS_MAX;
    }
}

/// Returns how many polls show each of so many sources once, if all of them are full.
///
/// Sources are counted as machines, since the loop does not know what these have registered: with
/// more than one for each, the last ones may be seen late, behind a deadline or a drain. And a poll
/// as [`Config::events_max`], which a backend that takes fewer at a time does not show.
pub(in crate::event_loop) fn polls_for(sources: usize, config: &Config) -> usize {
    sources.div_ceil(config.events_max)
}

/// Turns from one poll to the next, as tokio's `event_interval` counts tasks (61): with more, the
/// system call no longer shows.
const TURNS_MAX: u32 = 64;

/// Time from one poll to the turn that polls next: what a socket may wait longer than without this.
/// A tenth of what the deadlines may be late.
const TIME_MAX: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const POLLED: Time = Time::from_nanos(5_000_000);

    #[test]
    fn a_round_has_an_end_though_machines_come_and_go_in_it() {
        let mut pace = Pace::new(Time::ZERO);
        let rounds = (0..100).filter(|poll| {
            pace.polled(POLLED, Some(2 + poll % 2));
            !pace.may_have_missed()
        });
        assert!(rounds.count() >= 33);
    }

    #[test]
    fn a_new_loop_polls_first() {
        assert!(!Pace::new(Time::ZERO).allows_a_turn());
    }

    #[test]
    fn what_was_ready_before_a_wait_is_all_that_its_events_tell() {
        let mut pace = Pace::new(Time::ZERO);
        pace.turn_ended(POLLED);
        let later = POLLED + Duration::from_millis(3);
        for (is_any, until) in [(true, POLLED), (false, later)] {
            pace.begins(later, is_any, None);
            assert_eq!(pace.reported_until(), until);
        }
        pace.begins(later, true, None);
        pace.polled(later, None);
        assert_eq!(pace.reported_until(), later);
    }

    #[test]
    fn every_64th_turn_polls() {
        let mut pace = Pace::new(Time::ZERO);
        pace.polled(POLLED, None);
        for _ in 0..63 {
            pace.turn_ended(POLLED);
            assert!(pace.allows_a_turn());
        }
        pace.turn_ended(POLLED);
        assert!(!pace.allows_a_turn());
        pace.polled(POLLED, None);
        pace.turn_ended(POLLED);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn a_turn_polls_when_the_time_is_over() {
        let after = |nanos| {
            let mut pace = Pace::new(Time::ZERO);
            pace.polled(POLLED, None);
            pace.turn_ended(POLLED + Duration::from_nanos(nanos));
            pace.allows_a_turn()
        };
        assert!(after(99_999));
        assert!(!after(100_000));
        assert!(!after(100_001));
    }

    #[test]
    fn a_poll_that_was_full_is_followed_by_another_one() {
        let mut pace = Pace::new(Time::ZERO);
        pace.polled(POLLED, Some(1));
        assert!(!pace.allows_a_turn());
        pace.polled(POLLED, None);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn nothing_was_missed_after_a_poll_that_was_not_full_or_as_many_as_show_all() {
        let mut pace = Pace::new(Time::ZERO);
        assert!(!pace.may_have_missed());
        for missed in [true, true, false, true, true, false] {
            pace.polled(POLLED, Some(3));
            assert_eq!(pace.may_have_missed(), missed);
        }
        for one_poll_shows_all in [1, 0] {
            pace.polled(POLLED, Some(one_poll_shows_all));
            assert!(!pace.may_have_missed());
        }
        pace.polled(POLLED, Some(3));
        pace.polled(POLLED, None);
        assert!(!pace.may_have_missed());
    }

    #[test]
    fn whoever_wants_a_poll_gets_it_in_the_next_turn() {
        let mut pace = Pace::new(Time::ZERO);
        pace.polled(POLLED, None);
        pace.poll_next();
        pace.turn_ended(POLLED);
        assert!(!pace.allows_a_turn());
    }
}
