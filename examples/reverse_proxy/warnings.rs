//! `Warnings`: logs failed requests, with a limited number of lines.

use std::fmt::Display;
use std::time::Duration;

use rotor::Time;

/// How long warnings are collected after one was logged. So there are at most two lines in this
/// time, whatever clients and upstreams do.
pub(crate) const PERIOD: Duration = Duration::from_secs(10);

/// Warnings that a client or an upstream can cause as often as it likes. The first one is logged at
/// once; those of the next ten seconds are counted, and reported in one line afterwards.
#[derive(Debug)]
pub(crate) struct Warnings {
    until: Time,
    more: u64,
}

impl Warnings {
    pub(crate) fn new() -> Warnings {
        Warnings { until: Time::ZERO, more: 0 }
    }

    /// Logs or counts a warning.
    pub(crate) fn warn(&mut self, warning: impl Display, now: Time) {
        self.sum_up(now);
        if self.admits(now) {
            log::warn!("{warning}");
        }
    }

    /// Reports how many were counted, when the period is over. Call this every [`PERIOD`], since
    /// there may be no further warning.
    pub(crate) fn sum_up(&mut self, now: Time) {
        if let Some(more) = self.take_sum(now) {
            log::warn!("{more} more warnings of requests that failed in {} s", PERIOD.as_secs());
        }
    }

    fn admits(&mut self, now: Time) -> bool {
        let admits = now >= self.until;
        match admits {
            true => self.until = now + PERIOD,
            false => self.more += 1,
        }
        admits
    }

    fn take_sum(&mut self, now: Time) -> Option<u64> {
        let is_over = now >= self.until && self.more > 0;
        is_over.then(|| std::mem::take(&mut self.more))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_warning_of_a_period_is_logged_and_the_others_are_counted() {
        let mut warnings = Warnings::new();
        let begin = Time::ZERO + Duration::from_secs(1);
        let tick = Duration::from_nanos(1);
        assert_eq!(warnings.take_sum(begin), None);
        let said = (0..1_000).filter(|_| warnings.admits(begin)).count();
        assert_eq!(said, 1);
        assert!(!warnings.admits(begin + (PERIOD - tick)));
        assert_eq!(warnings.take_sum(begin + (PERIOD - tick)), None, "they are not all of it yet");
        assert_eq!(warnings.take_sum(begin + PERIOD), Some(1_000));
        assert_eq!(warnings.take_sum(begin + PERIOD), None, "said once");
        assert!(warnings.admits(begin + PERIOD));
        assert_eq!(warnings.take_sum(begin + 3 * PERIOD), None, "there were no more");
    }
}
