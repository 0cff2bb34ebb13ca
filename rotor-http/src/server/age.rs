//! `Age`: the time from which a connection is too old for further requests.

use std::time::Duration;

use rotor_core::{Scope, Time};

use crate::limits::Limits;

/// The time until which a connection may have further requests, in units of 2²⁶ ns (some 67 ms).
/// This is half the size of a `Time`, and each idle connection keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Age(u32);

const SHIFT: u32 = 26;

impl Age {
    /// A connection that never gets too old.
    const NONE: Age = Age(u32::MAX);

    /// Returns the age limit of a connection that begins now.
    pub(super) fn begin<C>(limits: &Limits, scope: &Scope<'_, C>) -> Age {
        match limits.connection_age_max {
            Duration::MAX => Age::NONE,
            max => Age::of(max, scope.now(), scope.random_u64()),
        }
    }

    fn of(max: Duration, now: Time, random: u64) -> Age {
        // The random share is subtracted from the age, not from the end: the end may be later than
        // any `Time`.
        Age::from(now + (max - max.mul_f64(share(random) / 10.0)))
    }

    fn from(until: Time) -> Age {
        let units = until.as_nanos() >> SHIFT;
        u32::try_from(units).map_or(Age::NONE, Age)
    }

    #[inline]
    pub(super) fn is_over(self, now: Time) -> bool {
        // Both are in whole units, so that the rest of a unit need not pass.
        now.as_nanos() >> SHIFT >= u64::from(self.0) && self != Age::NONE
    }
}

/// Returns a number from 0 to 1.
fn share(random: u64) -> f64 {
    (random >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_over_when_its_time_has_come_to_a_unit() {
        let until = Time::ZERO + Duration::from_secs(100);
        let unit = Duration::from_nanos(1 << SHIFT);
        let age = Age::from(until);
        assert!(!age.is_over(Time::ZERO) && !age.is_over(until - unit));
        assert!(age.is_over(until) && age.is_over(until + Duration::from_secs(1)));
        assert!(!Age::NONE.is_over(Time::NEVER));
        assert_eq!(Age::from(Time::NEVER), Age::NONE);
    }

    #[test]
    fn an_age_beyond_all_time_is_none() {
        let second = Duration::from_secs(1);
        for max in [
            Duration::from_secs(u64::MAX),
            Duration::MAX - second,
            Duration::from_secs(10_000_000_000),
        ] {
            for random in [0, 1 << 63, u64::MAX] {
                let age = Age::of(max, Time::ZERO + second, random);
                assert!(!age.is_over(Time::ZERO + 1_000_000_000 * second), "{max:?} {random}");
            }
        }
    }

    #[test]
    fn chance_takes_no_more_than_all_of_its_share() {
        for (random, least, most) in [(0, 0.0, 0.0), (u64::MAX, 0.999, 1.0), (1 << 63, 0.5, 0.5)] {
            assert!((least..=most).contains(&share(random)));
        }
    }
}
