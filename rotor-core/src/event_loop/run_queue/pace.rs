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
    turns: u32,
    /// How many polls in a row found more than they could take.
    full_polls: usize,
}

impl Pace {
    /// Of a loop that has not polled yet.
    pub(in crate::event_loop) fn new() -> Pace {
        Pace { polled_at: Time::ZERO, turns: TURNS_MAX, full_polls: 0 }
    }

    /// Whether a turn may begin without a poll.
    pub(in crate::event_loop) fn allows_a_turn(&self) -> bool {
        self.turns < TURNS_MAX
    }

    /// The backend was polled at the beginning of a turn. If it may have more than was
    /// taken, the next turn polls again.
    pub(in crate::event_loop) fn polled(&mut self, now: Time, may_have_more: bool) {
        *self = match may_have_more {
            false => Pace { polled_at: now, turns: 0, full_polls: 0 },
            true => Pace { polled_at: now, turns: TURNS_MAX, full_polls: self.full_polls + 1 },
        };
    }

    /// When the backend was last polled.
    #[inline]
    pub(in crate::event_loop) fn polled_at(&self) -> Time {
        self.polled_at
    }

    /// Whether the last poll found more than it could take.
    #[inline]
    pub(in crate::event_loop) fn was_full(&self) -> bool {
        self.full_polls > 0
    }

    /// Whether the backend may still hold something older than the last poll.
    ///
    /// After `polls` full polls in a row every source has been reported once; so it is false then,
    /// and after each multiple of them, and true between these.
    pub(in crate::event_loop) fn may_have_missed(&self, polls: usize) -> bool {
        !self.full_polls.is_multiple_of(polls.max(1))
    }

    /// A turn has ended.
    pub(in crate::event_loop) fn turn_ended(&mut self, now: Time) {
        self.turns += 1;
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

/// Turns from one poll to the next: tokio polls as many tasks, and with more the system call no
/// longer shows.
const TURNS_MAX: u32 = 64;

/// Time from one poll to the turn that polls next: what a socket may wait longer than without this.
/// A tenth of what the deadlines may be late.
const TIME_MAX: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const POLLED: Time = Time::from_nanos(5_000_000);

    #[test]
    fn a_new_loop_polls_first() {
        assert!(!Pace::new().allows_a_turn());
    }

    #[test]
    fn every_64th_turn_polls() {
        let mut pace = Pace::new();
        pace.polled(POLLED, false);
        for _ in 0..63 {
            pace.turn_ended(POLLED);
            assert!(pace.allows_a_turn());
        }
        pace.turn_ended(POLLED);
        assert!(!pace.allows_a_turn());
        pace.polled(POLLED, false);
        pace.turn_ended(POLLED);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn a_turn_polls_when_the_time_is_over() {
        let after = |nanos| {
            let mut pace = Pace::new();
            pace.polled(POLLED, false);
            pace.turn_ended(POLLED + Duration::from_nanos(nanos));
            pace.allows_a_turn()
        };
        assert!(after(99_999));
        assert!(!after(100_000));
        assert!(!after(100_001));
    }

    #[test]
    fn a_poll_that_was_full_is_followed_by_another_one() {
        let mut pace = Pace::new();
        pace.polled(POLLED, true);
        assert!(!pace.allows_a_turn());
        pace.polled(POLLED, false);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn nothing_was_missed_after_a_poll_that_was_not_full_or_as_many_as_show_all() {
        let mut pace = Pace::new();
        assert!(!pace.may_have_missed(3));
        for missed in [true, true, false, true, true, false] {
            pace.polled(POLLED, true);
            assert_eq!(pace.may_have_missed(3), missed);
            assert!(!pace.may_have_missed(1) && !pace.may_have_missed(0), "one poll shows all");
        }
        pace.polled(POLLED, true);
        pace.polled(POLLED, false);
        assert!(!pace.may_have_missed(3));
    }

    #[test]
    fn whoever_wants_a_poll_gets_it_in_the_next_turn() {
        let mut pace = Pace::new();
        pace.polled(POLLED, false);
        pace.poll_next();
        pace.turn_ended(POLLED);
        assert!(!pace.allows_a_turn());
    }
}
