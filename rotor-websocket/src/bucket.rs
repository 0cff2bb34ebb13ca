//! `Bucket`: limits a rate, and allows a burst.

use std::time::Duration;

use rotor_core::Time;

/// A leaky bucket, stored as one time: when everything taken so far would have drained.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    busy_until: Time,
}

impl Bucket {
    pub(crate) fn new() -> Bucket {
        Bucket { busy_until: Time::ZERO }
    }

    /// Takes one; returns false if that exceeds `burst` at once, and `rate` per second after it.
    pub(crate) fn take(&mut self, now: Time, burst: u32, rate: u32) -> bool {
        // With zero, a burst of any length would take no time, even one that is longer than allowed.
        let interval = (Duration::from_secs(1) / rate.max(1)).max(Duration::from_nanos(1));
        let busy_until = self.busy_until.max(now) + interval;
        if busy_until > now + interval.saturating_mul(burst) {
            return false;
        }
        self.busy_until = busy_until;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_allowed_and_then_a_rate_per_second() {
        let mut bucket = Bucket::new();
        let mut now = Time::ZERO + Duration::from_secs(5);
        assert_eq!((0..200).filter(|_| bucket.take(now, 100, 10)).count(), 100);
        for (millis, more) in [(50, 0), (50, 1), (1_000, 10), (5_000, 50), (100_000, 100)] {
            now += Duration::from_millis(millis);
            assert_eq!((0..200).filter(|_| bucket.take(now, 100, 10)).count(), more, "{millis}");
        }
        for rate in [10, u32::MAX] {
            assert!(!Bucket::new().take(now, 0, rate));
        }
    }
}
