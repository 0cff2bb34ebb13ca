//! `LeastRate` and `RateWatch`: the lowest rate at which bytes may pass, checked step by step.

use std::time::Duration;

use rotor_core::Time;

/// The lowest rate at which bytes may pass: a number of bytes in each period, and how far behind
/// the peer may fall.
///
/// Each complete step of bytes extends the time by one period, but never beyond the slack. So a
/// burst does not pay for later silence: after it, the peer may be silent for the slack, however
/// much it sent before. With an average since the beginning, a megabyte in one piece would pay for
/// a quarter of an hour of silence at a kilobyte a second.
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; }
/// use rotor::stream::LeastRate;
/// use std::time::Duration;
///
/// // At least 1 KiB a second; five seconds without a byte are allowed, at the beginning and later.
/// let rate = LeastRate::new(1024, Duration::from_secs(1)).slack(Duration::from_secs(5));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
#[doc(alias = "slowloris")]
#[doc(alias = "minimum data rate")]
pub struct LeastRate {
    step: u64,
    time: Duration,
    slack: Duration,
}

impl LeastRate {
    /// Makes a rate of `bytes` in each period `time`. The slack is one period too, so each step
    /// must be complete in its period. With 0 bytes there is no lowest rate, and nobody is too
    /// slow.
    pub const fn new(bytes: u64, time: Duration) -> LeastRate {
        LeastRate { step: bytes, time, slack: time }
    }

    /// Sets how far the peer may fall behind: the time for the first step, and the longest silence
    /// after that. If the slack is less than the period, each step must be complete within the
    /// slack.
    pub const fn slack(mut self, slack: Duration) -> LeastRate {
        self.slack = slack;
        self
    }
}

/// Checks a [`LeastRate`]: it says until when the next step must be complete. The caller passes the
/// current time.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::Time;
/// use rotor::stream::{LeastRate, RateWatch};
/// use std::time::Duration;
///
/// let second = |number| Time::ZERO + Duration::from_secs(number);
/// let rate = LeastRate::new(100, Duration::from_secs(1)).slack(Duration::from_secs(5));
/// let mut watch = RateWatch::new(rate, second(0));
/// assert_eq!(watch.until(), second(5));
/// watch.pass(300, rate, second(3));
/// assert_eq!(watch.until(), second(8), "three steps, three seconds");
/// watch.pass(1_000_000, rate, second(4));
/// assert_eq!(watch.until(), second(9), "five seconds ahead and no more");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RateWatch {
    until: Time,
    /// The bytes of the current, incomplete step.
    passed: u64,
}

impl RateWatch {
    /// A watch that is not running.
    pub const NONE: RateWatch = RateWatch { until: Time::NEVER, passed: 0 };

    /// Begins to watch, with the full slack.
    #[doc(alias = "begin")]
    pub fn new(rate: LeastRate, now: Time) -> RateWatch {
        match rate.step {
            0 => RateWatch::NONE,
            _ => RateWatch { until: now + rate.slack, passed: 0 },
        }
    }

    /// Returns until when the next step must be complete, for use as a deadline; `Time::NEVER` if
    /// nothing is watched.
    #[inline]
    pub const fn until(&self) -> Time {
        self.until
    }

    /// Counts bytes that have passed. If they are reported only after [`until`](RateWatch::until),
    /// because the loop was late, they count from now.
    pub fn pass(&mut self, bytes: u64, rate: LeastRate, now: Time) {
        if self.until == Time::NEVER {
            return;
        }
        // There was a rate before, and there is none now.
        if rate.step == 0 {
            *self = RateWatch::NONE;
            return;
        }
        self.passed = self.passed.saturating_add(bytes);
        if self.passed < rate.step {
            return;
        }
        let steps = u32::try_from(self.passed / rate.step).unwrap_or(u32::MAX);
        // A step that is late because the loop was late counts from now, so that nobody is punished
        // for that.
        let bought = self.until.max(now) + rate.time.saturating_mul(steps);
        let most = now + rate.slack;
        *self = if bought < most {
            RateWatch { until: bought, passed: self.passed % rate.step }
        } else {
            // The rest of a step would also be time gained in advance.
            RateWatch { until: most, passed: 0 }
        };
    }

    /// Extends the time by a period in which nothing could pass, and not because of the peer: we
    /// did not read, or there was nothing to write.
    pub fn put_off(&mut self, time: Duration) {
        self.until += time;
    }

    /// Requires the next step to be complete by `until`, if it is not required sooner.
    #[doc(alias = "hasten")]
    pub fn require_by(&mut self, until: Time) {
        if self.until != Time::NEVER {
            self.until = self.until.min(until);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Time {
        Time::ZERO + Duration::from_millis(millis)
    }

    const SECOND: Duration = Duration::from_secs(1);
    const RATE: LeastRate = LeastRate::new(10, SECOND).slack(Duration::from_secs(5));

    /// A name; the rate; the bytes that pass and the times in milliseconds at which they do; the
    /// resulting deadline in milliseconds.
    type Row<'a> = (&'a str, LeastRate, &'a [(u64, u64)], u64);

    #[test]
    fn complete_steps_extend_the_deadline_up_to_the_slack() {
        let rows: [Row<'_>; 14] = [
            ("the grace at first", RATE, &[], 5_000),
            ("a step", RATE, &[(10, 1_000)], 6_000),
            ("a byte less", RATE, &[(9, 1_000)], 5_000),
            ("a byte more is kept for the next", RATE, &[(11, 2_000), (9, 3_000)], 7_000),
            ("a burst is capped", RATE, &[(1_000_000, 1_000)], 6_000),
            ("a burst beyond all numbers", RATE, &[(u64::MAX, 1_000), (u64::MAX, 1_001)], 6_001),
            ("what a burst leaves of a step is not kept", RATE, &[(59, 1_000), (9, 1_000)], 6_000),
            ("at the last moment", RATE, &[(10, 5_000)], 6_000),
            ("told of late, it counts from then", RATE, &[(10, 60_000)], 61_000),
            ("told of late, and too little", RATE, &[(9, 60_000)], 5_000),
            (
                "without slack of its own",
                LeastRate::new(10, SECOND),
                &[(25, 400), (9, 1_399)],
                1_400,
            ),
            ("each step anew", LeastRate::new(10, SECOND), &[(10, 900), (10, 1_899)], 2_899),
            (
                "less slack than a step's time",
                LeastRate::new(10, SECOND * 9).slack(SECOND),
                &[(10, 900)],
                1_900,
            ),
            ("no time and no slack", LeastRate::new(10, Duration::ZERO), &[(10, 900)], 900),
        ];
        for (what, rate, passes, expected) in rows {
            let mut watch = RateWatch::new(rate, at(0));
            for (bytes, now) in passes {
                watch.pass(*bytes, rate, at(*now));
            }
            assert_eq!(watch.until(), at(expected), "{what}");
        }
    }

    #[test]
    fn exactly_the_lowest_rate_never_expires_in_pieces_of_any_size() {
        for (piece, every) in [(1, 100), (3, 300), (10, 1_000), (17, 1_700), (40, 4_000)] {
            let mut watch = RateWatch::new(RATE, at(0));
            for number in 1..100_000 {
                let now = at(number * every);
                assert!(watch.until() > now, "{piece} bytes every {every} ms, piece {number}");
                watch.pass(piece, RATE, now);
            }
        }
    }

    #[test]
    fn one_byte_less_than_each_step_uses_up_the_slack() {
        let mut watch = RateWatch::new(RATE, at(0));
        let late = (1..).find(|&second| {
            let is_late = watch.until() <= at(second * 1_000);
            watch.pass(9, RATE, at(second * 1_000));
            is_late
        });
        assert_eq!(late, Some(32), "by then 27 steps are complete, of 31");
    }

    #[test]
    fn put_off_extends_the_deadline_without_banking_time() {
        let mut watch = RateWatch::new(RATE, at(0));
        watch.pass(10, RATE, at(2_000));
        watch.put_off(Duration::from_secs(1_000));
        assert_eq!(watch.until(), at(1_006_000));
        // Nor does this bank time in advance.
        watch.pass(1_000, RATE, at(1_002_000));
        assert_eq!(watch.until(), at(1_007_000));
    }

    #[test]
    fn deadlines_near_the_maximum_time_saturate_to_never() {
        let late = Time::from_nanos(u64::MAX - 1);
        let mut watch = RateWatch::new(RATE, late);
        assert_eq!(watch.until(), Time::NEVER);
        watch.pass(10, RATE, late);
        watch.put_off(Duration::MAX);
        assert_eq!(watch.until(), Time::NEVER);
        let mut watch = RateWatch::new(RATE, at(0));
        watch.pass(10, RATE, late);
        assert_eq!(watch.until(), Time::NEVER);
    }

    #[test]
    fn a_watch_without_a_rate_never_expires() {
        let none = LeastRate::new(0, SECOND);
        let mut watch = RateWatch::new(none, at(0));
        watch.pass(0, none, at(1));
        watch.pass(1, none, at(2));
        watch.put_off(SECOND);
        watch.require_by(at(3));
        assert_eq!(watch, RateWatch::NONE);
        // Nor does a watch that has fallen behind, once there is no rate.
        let mut watch = RateWatch::new(RATE, at(0));
        watch.pass(0, none, at(1));
        assert_eq!(watch, RateWatch::NONE);
        // Nor does a watch that is not active.
        let mut watch = RateWatch::NONE;
        watch.pass(1_000, RATE, at(1));
        assert_eq!(watch, RateWatch::NONE);
    }

    #[test]
    fn hasten_never_extends_the_deadline() {
        let mut watch = RateWatch::new(RATE, at(0));
        watch.require_by(at(7_000));
        assert_eq!(watch.until(), at(5_000));
        watch.require_by(at(3_000));
        assert_eq!(watch.until(), at(3_000));
    }
}
