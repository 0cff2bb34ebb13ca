//! `AgeLimit`: the time from which a connection is too old for further requests.

use std::time::Duration;

use rotor_core::{Scope, Time};

use crate::limits::Limits;

/// The time until which a connection may have further requests, in units of 2²⁶ ns (some 67 ms).
/// This is half the size of a `Time`, and each idle connection keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct AgeLimit(u32);

const SHIFT: u32 = 26;

impl AgeLimit {
    /// A connection that never gets too old.
    const NONE: AgeLimit = AgeLimit(u32::MAX);

    /// Returns the age limit of a connection that begins now.
    pub(super) fn start<C>(limits: &Limits, scope: &Scope<'_, C>) -> AgeLimit {
        match limits.connection_age_max {
            Duration::MAX => AgeLimit::NONE,
            max => AgeLimit::randomized(max, scope.now(), scope.random_u64()),
        }
    }

    fn randomized(max: Duration, now: Time, random: u64) -> AgeLimit {
        // The random share is subtracted from the age, not from the end: the end may be later than
        // any `Time`.
        AgeLimit::at_time(now + (max - max.mul_f64(fraction(random) / 10.0)))
    }

    fn at_time(until: Time) -> AgeLimit {
        let units = until.as_nanos() >> SHIFT;
        u32::try_from(units).map_or(AgeLimit::NONE, AgeLimit)
    }

    #[inline]
    pub(super) fn has_passed(self, now: Time) -> bool {
        // Both are in whole units, so that the rest of a unit need not pass.
        now.as_nanos() >> SHIFT >= u64::from(self.0) && self != AgeLimit::NONE
    }
}

/// Returns a number from 0 to 1.
fn fraction(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_age_limit_passes_to_the_precision_of_a_unit() {
        let until = Time::ZERO + Duration::from_secs(100);
        let unit = Duration::from_nanos(1 << SHIFT);
        let age = AgeLimit::at_time(until);
        assert!(!age.has_passed(Time::ZERO) && !age.has_passed(until - unit));
        assert!(age.has_passed(until) && age.has_passed(until + Duration::from_secs(1)));
        assert!(!AgeLimit::NONE.has_passed(Time::NEVER));
        assert_eq!(AgeLimit::at_time(Time::NEVER), AgeLimit::NONE);
    }

    #[test]
    fn an_age_limit_beyond_the_clock_never_passes() {
        let second = Duration::from_secs(1);
        for max in [
            Duration::from_secs(u64::MAX),
            Duration::MAX - second,
            Duration::from_secs(10_000_000_000),
        ] {
            for random in [0, 1 << 63, u64::MAX] {
                let age = AgeLimit::randomized(max, Time::ZERO + second, random);
                assert!(!age.has_passed(Time::ZERO + 1_000_000_000 * second), "{max:?} {random}");
            }
        }
    }

    #[test]
    fn the_random_fraction_is_between_zero_and_one() {
        for (random, least, most) in [(0, 0.0, 0.0), (u64::MAX, 0.999, 1.0), (1 << 63, 0.5, 0.5)] {
            assert!((least..=most).contains(&fraction(random)));
        }
    }
}
