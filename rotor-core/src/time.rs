//! `Time`: a point in loop time, on a clock that starts with the process, or with a simulation.
//!
//! Nothing here reads a clock. A handler gets the time from its scope, and the loop gets it from
//! its backend, so the same machine runs in real and in virtual time.

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::time::Duration;

/// A point in loop time: whole nanoseconds since the epoch of the process, or of the simulation.
///
/// All loops of a process share one epoch, so their times can be compared and sent in messages. A
/// `Time` has no relation to the calendar; for that, use wall-clock time. While the computer
/// sleeps, loop time stands still on Linux.
///
/// Arithmetic saturates at [`Time::ZERO`] and [`Time::NEVER`]: a deadline computed from a number
/// that a peer sent may be useless, but it can neither panic nor wrap around into the past. The
/// range is about 584 years.
///
/// # Examples
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::Time;
/// use std::time::Duration;
///
/// let now = Time::from_nanos(5_000_000_000);
/// let deadline = now + Duration::from_secs(10);
/// assert!(now < deadline);
/// assert_eq!(deadline - now, Duration::from_secs(10));
/// assert_eq!(now - deadline, Duration::ZERO);
/// assert_eq!(now + Duration::MAX, Time::NEVER);
/// ```
#[doc(alias = "Instant")]
#[doc(alias = "monotonic clock")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch itself, the earliest time.
    pub const ZERO: Time = Time(0);

    /// The end of the range, later than any other time. As a deadline it means that there is no
    /// deadline.
    pub const NEVER: Time = Time(u64::MAX);

    /// Makes a time from the number of nanoseconds since the epoch.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Returns the number of nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the time that has passed since `earlier`, or zero if `earlier` is later than this
    /// time.
    ///
    /// The operator `-` between two times does the same. The time left until a deadline is
    /// `deadline - now`.
    pub const fn duration_since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::NEVER`].
    fn add(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(saturating_nanos(duration)))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, duration: Duration) {
        *self = *self + duration;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;

    /// Saturates at [`Time::ZERO`].
    fn sub(self, duration: Duration) -> Time {
        Time(self.0.saturating_sub(saturating_nanos(duration)))
    }
}

impl SubAssign<Duration> for Time {
    fn sub_assign(&mut self, duration: Duration) {
        *self = *self - duration;
    }
}

impl Sub for Time {
    type Output = Duration;

    /// Saturates at zero, as [`Time::duration_since`] does.
    fn sub(self, earlier: Time) -> Duration {
        self.duration_since(earlier)
    }
}

/// Prints seconds, as `Time(12.000000250s)`, because nineteen digits of nanoseconds are hard to
/// read.
impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Time::NEVER {
            return f.write_str("Time(never)");
        }
        write!(f, "Time({}.{:09}s)", self.0 / NANOS_PER_SECOND, self.0 % NANOS_PER_SECOND)
    }
}

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// Returns nanoseconds in 64 bits; `Duration::as_nanos` would compute in 128.
fn saturating_nanos(duration: Duration) -> u64 {
    duration
        .as_secs()
        .saturating_mul(NANOS_PER_SECOND)
        .saturating_add(u64::from(duration.subsec_nanos()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adding_saturates_at_never() {
        let edge = Time::from_nanos(u64::MAX - 2);
        assert_eq!(edge + Duration::from_nanos(1), Time::from_nanos(u64::MAX - 1));
        assert_eq!(edge + Duration::from_nanos(2), Time::NEVER);
        assert_eq!(edge + Duration::from_nanos(3), Time::NEVER);
        assert_eq!(Time::ZERO + Duration::from_secs(u64::MAX), Time::NEVER);
        assert_eq!(Time::NEVER + Duration::MAX, Time::NEVER);
    }

    #[test]
    fn a_duration_beyond_the_range_saturates() {
        let range = Duration::from_nanos(u64::MAX);
        assert_eq!(saturating_nanos(range - Duration::from_nanos(1)), u64::MAX - 1);
        assert_eq!(saturating_nanos(range), u64::MAX);
        assert_eq!(saturating_nanos(range + Duration::from_nanos(1)), u64::MAX);
    }

    #[test]
    fn subtracting_saturates_at_zero() {
        let second = Time::from_nanos(NANOS_PER_SECOND);
        assert_eq!(second - Duration::from_millis(999), Time::from_nanos(1_000_000));
        assert_eq!(second - Duration::from_secs(1), Time::ZERO);
        assert_eq!(second - Duration::from_secs(2), Time::ZERO);
        assert_eq!(second - Time::ZERO, Duration::from_secs(1));
        assert_eq!(Time::ZERO - second, Duration::ZERO);
        assert_eq!(Time::NEVER - Time::ZERO, Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn assigning_operators_agree_with_the_binary_ones() {
        let mut time = Time::ZERO;
        time += Duration::from_secs(3);
        time -= Duration::from_secs(1);
        assert_eq!(time, Time::from_nanos(2 * NANOS_PER_SECOND));
    }

    #[test]
    fn times_print_as_seconds() {
        assert_eq!(format!("{:?}", Time::from_nanos(12_000_000_250)), "Time(12.000000250s)");
        assert_eq!(format!("{:?}", Time::ZERO), "Time(0.000000000s)");
        assert_eq!(format!("{:?}", Time::NEVER), "Time(never)");
    }
}
