//! `LogLimit`: keeps a failure that may recur with each call from flooding the log.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::time::Time;

/// Lets one log message pass every ten seconds, from whatever thread, and counts the others.
///
/// It is for warnings that a peer can cause as often as it likes, or that come with every request
/// while something is wrong, such as a full disk. It can be a `static`, a part of the context, or
/// shared in an `Arc`.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{LogLimit, Scope};
///
/// static BACKEND_DOWN: LogLimit = LogLimit::new();
///
/// fn warn<C>(why: &str, scope: &Scope<'_, C>) {
///     if let Some(others) = BACKEND_DOWN.try_pass(scope.now()) {
///         log::warn!("the backend does not answer: {why} (and {others} times before, unlogged)");
///     }
/// }
/// ```
#[doc(alias = "rate limit")]
#[doc(alias = "throttle")]
#[derive(Default)]
pub struct LogLimit {
    /// In nanoseconds: before this time, no message passes.
    silent_until: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimit {
    /// The minimum time between two messages: 10 s. That is often enough to show that the failure
    /// goes on, and too rarely to fill a disk.
    pub const PERIOD: Duration = Duration::from_secs(10);

    /// Creates a limit that lets the first message pass.
    pub const fn new() -> LogLimit {
        LogLimit { silent_until: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Returns whether a message may be logged now; if so, with the number of those that were
    /// suppressed since the last one.
    ///
    /// `now` is the loop's time ([`Scope::now`](crate::Scope::now)). If it lies more than a period
    /// before that of the last message, as in the next simulation, the message passes.
    pub fn try_pass(&self, now: Time) -> Option<u64> {
        let until = self.silent_until.load(Relaxed);
        let next = now + LogLimit::PERIOD;
        // Loops read the clock at different times, so another one's may be a little older.
        let is_anew = (next + LogLimit::PERIOD).as_nanos() < until;
        let passes = (now.as_nanos() >= until || is_anew)
            && self.silent_until.compare_exchange(until, next.as_nanos(), Relaxed, Relaxed).is_ok();
        if passes {
            return Some(self.suppressed.swap(0, Relaxed));
        }
        self.suppressed.fetch_add(1, Relaxed);
        None
    }
}

impl fmt::Debug for LogLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suppressed = self.suppressed.load(Relaxed);
        f.debug_struct("LogLimit").field("suppressed", &suppressed).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_passes_in_each_period_and_counts_the_others() {
        let (limit, at) = (LogLimit::new(), |nanos| Time::ZERO + nanos);
        let passed = [0, 1, 9_999_999_999, 10_000_000_000, 10_000_000_001, 60_000_000_000]
            .map(|nanos| limit.try_pass(at(Duration::from_nanos(nanos))));
        assert_eq!(passed, [Some(0), None, None, Some(2), None, Some(1)]);
    }

    #[test]
    fn a_clock_that_begins_anew_silences_nothing() {
        let limit = LogLimit::new();
        assert_eq!(limit.try_pass(Time::ZERO + Duration::from_secs(100)), Some(0));
        assert_eq!(limit.try_pass(Time::ZERO + Duration::from_secs(1)), Some(0));
        assert_eq!(limit.try_pass(Time::ZERO + Duration::from_secs(2)), None);
    }

    #[test]
    fn a_thread_whose_time_is_a_little_older_passes_no_second_message() {
        let limit = LogLimit::new();
        let at = |millis| Time::ZERO + Duration::from_millis(millis);
        let passed = [100_000, 99_999, 99_990, 90_000, 89_999].map(|now| limit.try_pass(at(now)));
        assert_eq!(passed, [Some(0), None, None, None, Some(3)]);
    }
}
