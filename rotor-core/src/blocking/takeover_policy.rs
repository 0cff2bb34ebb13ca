//! `TakeoverPolicy`: decides when a loop is taken from a handler that is stuck.
//!
//! ```text
//!             not polled for one patience            taken
//!   normal ───────────────────────────────▶ alert ─────▶ alert
//!      ▲                                        │
//!      └── polled, and none taken for 50 ms ────┘
//! ```
//!
//! Normally, a handler has one patience. With that rule alone, a hundred handlers that all block
//! would each cost one patience, and many handlers that each block for less than a patience would
//! never be noticed. So lateness belongs to the loop, not to one handler: while the loop is late,
//! each handler has only a fraction of the patience.

use std::time::Duration;

use super::stall_detector::TICKS;
use crate::time::Time;

/// How long a loop is watched more closely after it was taken: a handler that blocks is seldom
/// alone.
const ALERT_TIME: Duration = Duration::from_millis(50);

/// The state for one loop.
pub(super) struct TakeoverPolicy {
    patience: Duration,
    lagging_patience: Duration,
    /// The last call from which the loop was taken, and when.
    taken: Option<(u64, Time)>,
    /// The last call from which the loop could not be taken, when that was, and why.
    failed: Option<(u64, Time, TakeoverResult)>,
}

/// The result of taking a loop from a handler that is stuck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TakeoverResult {
    /// Another thread has the loop now.
    Taken,
    /// No other thread is available.
    NoThread,
    /// The loop was not taken: it does work of its own, the handler has returned, or no other
    /// thread has a context.
    NotTaken,
}

impl TakeoverPolicy {
    pub(super) fn new(patience: Duration, lagging_patience: Duration) -> TakeoverPolicy {
        TakeoverPolicy {
            patience,
            lagging_patience: lagging_patience.min(patience),
            taken: None,
            failed: None,
        }
    }

    fn is_alert(&self, now: Time, lag: Duration) -> bool {
        lag >= self.patience || self.just_taken(now).is_some()
    }

    /// Returns the call from which the loop was taken, if that was not long ago.
    fn just_taken(&self, now: Time) -> Option<u64> {
        self.taken.filter(|(_, then)| now - *then < ALERT_TIME).map(|(call, _)| call)
    }

    /// Returns whether the loop should be taken from the handler of this call, which has had
    /// `own_time`, while the loop has not polled for `lag`. On alert, `possible_wait` counts
    /// as well: a handler that waits in the kernel need not be observed for all of that time.
    pub(super) fn is_due(
        &self,
        now: Time,
        call: u64,
        own_time: Duration,
        possible_wait: Duration,
        lag: Duration,
    ) -> bool {
        // A thread may have become free since then, but this is not checked at each tick.
        let has_just_failed = self.failed_at(call).is_some_and(|then| now - then < self.patience);
        // The thread that has the loop now may not have called a handler yet.
        let has_moved_on = self.just_taken(now) == Some(call);
        let is_late = if self.is_alert(now, lag) {
            own_time.max(possible_wait) >= self.lagging_patience
        } else {
            own_time >= self.patience
        };
        is_late && !has_just_failed && !has_moved_on
    }

    /// Returns when the loop could not be taken from this call, if that was so at the last attempt.
    fn failed_at(&self, call: u64) -> Option<Time> {
        self.failed.filter(|(failed, ..)| *failed == call).map(|(_, then, _)| then)
    }

    /// Returns whether no thread was available for this call at the last attempt.
    pub(super) fn is_refused(&self, call: u64) -> bool {
        self.failed
            .is_some_and(|(failed, _, why)| failed == call && why == TakeoverResult::NoThread)
    }

    pub(super) fn record(&mut self, now: Time, call: u64, result: TakeoverResult) {
        match result {
            TakeoverResult::Taken => self.taken = Some((call, now)),
            TakeoverResult::NoThread | TakeoverResult::NotTaken => {
                self.failed = Some((call, now, result));
            }
        }
    }

    /// Returns how long to wait before the next check of the loop, which is in this call. If the
    /// loop cannot be taken from that, there is nothing to be quick for.
    pub(super) fn check_interval(&self, now: Time, call: u64, lag: Duration) -> Duration {
        let usual = self.patience / TICKS;
        let is_urgent = self.is_alert(now, lag) && self.failed_at(call).is_none();
        if is_urgent { usual.min(self.lagging_patience / 2) } else { usual }
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

    fn policy() -> TakeoverPolicy {
        TakeoverPolicy::new(micros(10_000), micros(100))
    }

    #[test]
    fn a_handler_has_one_patience_until_the_loop_is_late() {
        let policy = policy();
        for (own_time, lag, is_due) in
            [(9_999, 9_999, false), (10_000, 9_999, true), (99, 10_000, false), (100, 10_000, true)]
        {
            assert_eq!(
                policy.is_due(at(0), 7, micros(own_time), Duration::ZERO, micros(lag)),
                is_due,
                "{own_time} {lag}"
            );
        }
        assert_eq!(policy.check_interval(at(0), 7, micros(9_999)), micros(2_500));
        assert_eq!(policy.check_interval(at(0), 7, micros(10_000)), micros(50));
    }

    #[test]
    fn a_possible_wait_counts_on_alert_only() {
        let policy = policy();
        for (possible_wait, lag, is_due) in
            [(99, 10_000, false), (100, 10_000, true), (100, 9_999, false), (10_000, 9_999, false)]
        {
            let (possible_wait, lag) = (micros(possible_wait), micros(lag));
            assert_eq!(policy.is_due(at(0), 7, Duration::ZERO, possible_wait, lag), is_due);
        }
    }

    #[test]
    fn a_loop_stays_under_alert_for_50_ms_after_a_takeover() {
        let mut policy = policy();
        policy.record(at(1_000), 7, TakeoverResult::Taken);
        for (now, is_due) in [(50_999, true), (51_000, false)] {
            assert_eq!(
                policy.is_due(at(now), 8, micros(100), Duration::ZERO, Duration::ZERO),
                is_due
            );
            assert_eq!(policy.check_interval(at(now), 8, Duration::ZERO) == micros(50), is_due);
        }
        policy.record(at(60_000), 8, TakeoverResult::NotTaken);
        assert!(!policy.is_due(at(60_000), 8, micros(100), Duration::ZERO, Duration::ZERO));
    }

    #[test]
    fn a_loop_just_taken_is_checked_closely_until_its_next_call() {
        let (mut policy, lag) = (policy(), micros(20_000));
        policy.record(at(1_000), 7, TakeoverResult::Taken);
        for (now, call, is_due) in [(1_050, 7, false), (50_999, 7, false), (1_050, 8, true)] {
            assert_eq!(policy.is_due(at(now), call, lag, Duration::ZERO, lag), is_due);
            assert_eq!(policy.check_interval(at(now), call, lag), micros(50));
        }
        // Whatever keeps the other thread from its first call, there is nothing to be quick for.
        assert!(policy.is_due(at(51_000), 7, lag, Duration::ZERO, lag));
        policy.record(at(51_000), 7, TakeoverResult::NotTaken);
        assert_eq!(policy.check_interval(at(51_000), 7, lag), micros(2_500));
    }

    #[test]
    fn a_refused_takeover_is_retried_for_this_call_after_one_patience() {
        let mut policy = policy();
        policy.record(at(1_000), 7, TakeoverResult::NoThread);
        for (now, call, is_due) in [(10_999, 7, false), (11_000, 7, true), (1_001, 8, true)] {
            assert_eq!(
                policy.is_due(at(now), call, micros(10_000), Duration::ZERO, Duration::ZERO),
                is_due
            );
        }
        assert!(policy.is_refused(7) && !policy.is_refused(8), "which is said of it in between");
    }

    #[test]
    fn a_call_from_which_the_loop_cannot_be_taken_is_checked_at_the_usual_pace() {
        for result in [TakeoverResult::NoThread, TakeoverResult::NotTaken] {
            let mut policy = policy();
            policy.record(at(1_000), 7, result);
            for (call, interval) in [(7, 2_500), (8, 50)] {
                let lag = micros(10_000);
                assert_eq!(policy.check_interval(at(1_000), call, lag), micros(interval));
            }
            assert_eq!(policy.is_refused(7), result == TakeoverResult::NoThread);
        }
    }

    #[test]
    fn the_lagging_patience_is_capped_by_the_patience() {
        let policy = TakeoverPolicy::new(micros(1_000), micros(5_000));
        assert!(policy.is_due(at(0), 7, micros(1_000), Duration::ZERO, micros(2_000)));
        assert_eq!(policy.check_interval(at(0), 7, micros(2_000)), micros(250));
    }
}
