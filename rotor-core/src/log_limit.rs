//! `LogLimit`: keeps a failure that may recur with each call from flooding the log.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::time::Time;

/// Lets one message pass in each [`PERIOD`](LogLimit::PERIOD), from whatever thread.
#[derive(Default)]
pub(crate) struct LogLimit {
    /// In nanoseconds: before this time, no message passes.
    silent_until: AtomicU64,
    suppressed: AtomicU64,
}

impl LogLimit {
    /// Often enough to show that the failure goes on, and too rarely to fill a disk.
    pub(crate) const PERIOD: Duration = Duration::from_secs(10);

    /// Returns whether a message may be logged now; if so, with the number of those that were
    /// suppressed since the last one.
    pub(crate) fn try_pass(&self, now: Time) -> Option<u64> {
        let until = self.silent_until.load(Relaxed);
        let next = (now + LogLimit::PERIOD).as_nanos();
        let passes = now.as_nanos() >= until
            && self.silent_until.compare_exchange(until, next, Relaxed, Relaxed).is_ok();
        if passes {
            return Some(self.suppressed.swap(0, Relaxed));
        }
        self.suppressed.fetch_add(1, Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_message_passes_in_each_period_and_counts_the_others() {
        let (limit, at) = (LogLimit::default(), |nanos| Time::ZERO + nanos);
        let passed = [0, 1, 9_999_999_999, 10_000_000_000, 10_000_000_001, 60_000_000_000]
            .map(|nanos| limit.try_pass(at(Duration::from_nanos(nanos))));
        assert_eq!(passed, [Some(0), None, None, Some(2), None, Some(1)]);
    }
}
