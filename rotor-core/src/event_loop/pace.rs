//! How often a loop that has work looks at its backend.

use std::time::Duration;

use crate::Time;

/// How a turn begins.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until there is something to do; a loop that has work goes on with it, and looks at the
    /// backend at its pace.
    AtPace,
    /// That long at most, or until there is something to do; with a look in any case.
    AtMost(Option<Duration>),
}

/// When the backend was looked at, and what was done since.
///
/// Machines that wake themselves or are spawned in chains have turns of a few calls, and a look at
/// the backend is a system call. So such turns may follow each other without a look, [`TURNS_MAX`]
/// of them and for [`TIME_MAX`] at most. A machine that answered `again` has more to do with its
/// socket, which may be much: the others' sockets are looked at first.
pub(super) struct Pace {
    looked_at: Time,
    turns: u32,
    /// How many looks in a row found more than they had room for.
    full_looks: usize,
}

impl Pace {
    /// Of a loop that has looked at nothing yet.
    pub(super) fn new() -> Pace {
        Pace { looked_at: Time::ZERO, turns: TURNS_MAX, full_looks: 0 }
    }

    /// Whether a turn may begin without a look.
    pub(super) fn allows_a_turn(&self) -> bool {
        self.turns < TURNS_MAX
    }

    /// The backend was looked at, at the beginning of a turn. If it may have more than there was
    /// room for, the next turn looks again.
    pub(super) fn looked(&mut self, now: Time, may_have_more: bool) {
        *self = match may_have_more {
            false => Pace { looked_at: now, turns: 0, full_looks: 0 },
            true => Pace { looked_at: now, turns: TURNS_MAX, full_looks: self.full_looks + 1 },
        };
    }

    /// Whether the last look found more than it had room for.
    #[inline]
    pub(super) fn was_full(&self) -> bool {
        self.full_looks > 0
    }

    /// Whether something may have been ready before the last look that no look has shown, where
    /// that many looks show all sources once.
    pub(super) fn may_have_missed(&self, looks: usize) -> bool {
        !self.full_looks.is_multiple_of(looks.max(1))
    }

    /// A turn has ended.
    pub(super) fn turn_ended(&mut self, now: Time) {
        self.turns += 1;
        if now - self.looked_at >= TIME_MAX {
            self.turns = TURNS_MAX;
        }
    }

    /// The next turn is to look.
    pub(super) fn look_next(&mut self) {
        self.turns = TURNS_MAX;
    }
}

/// Turns from one look to the next: tokio polls as many tasks, and with more the system call no
/// longer shows.
const TURNS_MAX: u32 = 64;

/// Time from one look to the turn that looks next: what a socket may wait longer than without this.
/// A tenth of what the deadlines may be late.
const TIME_MAX: Duration = Duration::from_micros(100);

#[cfg(test)]
mod tests {
    use super::*;

    const LOOKED: Time = Time::from_nanos(5_000_000);

    #[test]
    fn a_new_loop_looks_first() {
        assert!(!Pace::new().allows_a_turn());
    }

    #[test]
    fn every_64th_turn_looks() {
        let mut pace = Pace::new();
        pace.looked(LOOKED, false);
        for _ in 0..63 {
            pace.turn_ended(LOOKED);
            assert!(pace.allows_a_turn());
        }
        pace.turn_ended(LOOKED);
        assert!(!pace.allows_a_turn());
        pace.looked(LOOKED, false);
        pace.turn_ended(LOOKED);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn a_turn_looks_when_the_time_is_over() {
        let after = |nanos| {
            let mut pace = Pace::new();
            pace.looked(LOOKED, false);
            pace.turn_ended(LOOKED + Duration::from_nanos(nanos));
            pace.allows_a_turn()
        };
        assert!(after(99_999));
        assert!(!after(100_000));
        assert!(!after(100_001));
    }

    #[test]
    fn a_look_that_was_full_is_followed_by_another_one() {
        let mut pace = Pace::new();
        pace.looked(LOOKED, true);
        assert!(!pace.allows_a_turn());
        pace.looked(LOOKED, false);
        assert!(pace.allows_a_turn());
    }

    #[test]
    fn nothing_was_missed_after_a_look_with_room_or_as_many_as_show_all() {
        let mut pace = Pace::new();
        assert!(!pace.may_have_missed(3));
        for missed in [true, true, false, true, true, false] {
            pace.looked(LOOKED, true);
            assert_eq!(pace.may_have_missed(3), missed);
            assert!(!pace.may_have_missed(1) && !pace.may_have_missed(0), "one look shows all");
        }
        pace.looked(LOOKED, true);
        pace.looked(LOOKED, false);
        assert!(!pace.may_have_missed(3));
    }

    #[test]
    fn whoever_wants_a_look_gets_it_in_the_next_turn() {
        let mut pace = Pace::new();
        pace.looked(LOOKED, false);
        pace.look_next();
        pace.turn_ended(LOOKED);
        assert!(!pace.allows_a_turn());
    }
}
