//! `Haste`: decides when a loop is taken from a handler that is stuck.
//!
//! ```text
//!             not polled for one patience            taken
//!   at ease ──────────────────────────────▶ in haste ─────▶ in haste
//!      ▲                                        │
//!      └── polled, and none taken for 50 ms ────┘
//! ```
//!
//! At ease, a handler has one patience. With that rule alone, a hundred handlers that all block
//! would each cost one patience, and many handlers that each block for less than a patience would
//! never be noticed. So lateness belongs to the loop, not to one handler: while the loop is late,
//! each handler has only a fraction of the patience.

use std::time::Duration;

use super::patience::TICKS;
use crate::time::Time;

/// How long a loop is watched more closely after it was taken: a handler that blocks is seldom
/// alone.
const CALM: Duration = Duration::from_millis(50);

/// The state for one loop.
pub(super) struct Haste {
    patience: Duration,
    behind: Duration,
    taken: Option<Time>,
    /// The call for which no thread was left, and when that was.
    refused: Option<(u64, Time)>,
}

/// The result of taking a loop from a handler that is stuck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Taking {
    /// Another thread has the loop now.
    Taken,
    /// No other thread is available.
    NoThread,
    /// The loop was not taken: it does work of its own, the handler has returned, or no other
    /// thread has a context.
    Not,
}

impl Haste {
    pub(super) fn new(patience: Duration, behind: Duration) -> Haste {
        Haste { patience, behind: behind.min(patience), taken: None, refused: None }
    }

    fn is_in_haste(&self, now: Time, lag: Duration) -> bool {
        lag >= self.patience || self.taken.is_some_and(|taken| now - taken < CALM)
    }

    /// Returns whether the loop should be taken from the handler of this call, which has had `own`
    /// time, while the loop has not polled for `lag`. In haste, `unseen` counts as well: a handler
    /// that is already waiting in the kernel when it is first seen, and may have waited for up to
    /// that long, need not be seen a second time.
    pub(super) fn is_due(
        &self,
        now: Time,
        call: u64,
        own: Duration,
        unseen: Duration,
        lag: Duration,
    ) -> bool {
        // Threads may have become free since then, but this is not checked at each tick.
        let is_refused = self.refused_at(call).is_some_and(|then| now - then < self.patience);
        let is_late = if self.is_in_haste(now, lag) {
            own.max(unseen) >= self.behind
        } else {
            own >= self.patience
        };
        is_late && !is_refused
    }

    /// Returns when no thread was available for this call, if that was so at the last attempt.
    fn refused_at(&self, call: u64) -> Option<Time> {
        self.refused.filter(|(refused, _)| *refused == call).map(|(_, then)| then)
    }

    /// Returns whether no thread was available for this call at the last attempt.
    pub(super) fn is_refused(&self, call: u64) -> bool {
        self.refused_at(call).is_some()
    }

    pub(super) fn note(&mut self, now: Time, call: u64, taking: Taking) {
        match taking {
            Taking::Taken => self.taken = Some(now),
            Taking::NoThread => self.refused = Some((call, now)),
            Taking::Not => {}
        }
    }

    /// Returns how long to wait before the next check of the loop.
    pub(super) fn tick(&self, now: Time, lag: Duration) -> Duration {
        let usual = self.patience / TICKS;
        if self.is_in_haste(now, lag) { usual.min(self.behind / 2) } else { usual }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Time {
        Time::from_nanos(micros * 1_000)
    }

    const fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    fn haste() -> Haste {
        Haste::new(micros(10_000), micros(100))
    }

    #[test]
    fn a_handler_has_one_patience_while_the_loop_is_in_time() {
        let haste = haste();
        for (own, lag, is_due) in
            [(9_999, 9_999, false), (10_000, 9_999, true), (99, 10_000, false), (100, 10_000, true)]
        {
            assert_eq!(
                haste.is_due(at(0), 7, micros(own), Duration::ZERO, micros(lag)),
                is_due,
                "{own} {lag}"
            );
        }
        assert_eq!(haste.tick(at(0), micros(9_999)), micros(2_500));
        assert_eq!(haste.tick(at(0), micros(10_000)), micros(50));
    }

    #[test]
    fn in_haste_a_handler_that_waits_is_not_watched_twice() {
        let haste = haste();
        for (unseen, lag, is_due) in
            [(99, 10_000, false), (100, 10_000, true), (100, 9_999, false), (10_000, 9_999, false)]
        {
            let (unseen, lag) = (micros(unseen), micros(lag));
            assert_eq!(haste.is_due(at(0), 7, Duration::ZERO, unseen, lag), is_due);
        }
    }

    #[test]
    fn a_loop_that_was_taken_is_watched_closely_for_a_while() {
        let mut haste = haste();
        haste.note(at(1_000), 7, Taking::Taken);
        for (now, is_due) in [(50_999, true), (51_000, false)] {
            assert_eq!(
                haste.is_due(at(now), 8, micros(100), Duration::ZERO, Duration::ZERO),
                is_due
            );
            assert_eq!(haste.tick(at(now), Duration::ZERO) == micros(50), is_due);
        }
        haste.note(at(60_000), 8, Taking::Not);
        assert!(!haste.is_due(at(60_000), 8, micros(100), Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn without_a_thread_it_is_tried_again_a_patience_later_and_for_others_at_once() {
        let mut haste = haste();
        haste.note(at(1_000), 7, Taking::NoThread);
        for (now, call, is_due) in [(10_999, 7, false), (11_000, 7, true), (1_001, 8, true)] {
            assert_eq!(
                haste.is_due(at(now), call, micros(10_000), Duration::ZERO, Duration::ZERO),
                is_due
            );
        }
        assert!(haste.is_refused(7) && !haste.is_refused(8), "which is said of it in between");
    }

    #[test]
    fn who_is_behind_has_no_more_than_one_patience() {
        let haste = Haste::new(micros(1_000), micros(5_000));
        assert!(haste.is_due(at(0), 7, micros(1_000), Duration::ZERO, micros(2_000)));
        assert_eq!(haste.tick(at(0), micros(2_000)), micros(250));
    }
}
