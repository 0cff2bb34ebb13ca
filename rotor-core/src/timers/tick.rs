//! Ticks: time in the steps in which deadlines fire.

use crate::time::Time;

/// Nanoseconds in a tick: 1 ms, the finest that every backend can wait for.
pub(super) const TICK_NANOS: u64 = 1_000_000;

/// The last whole tick of the range of `Time`. A later deadline cannot be rounded up, and is
/// treated as none.
pub(super) const LAST_TICK_TIME: Time = Time::from_nanos(u64::MAX / TICK_NANOS * TICK_NANOS);

/// Returns the last tick that has been reached at this time.
pub(super) fn tick_before(time: Time) -> u64 {
    time.as_nanos() / TICK_NANOS
}

/// Returns the first tick that is not before this time, which must not be after the last whole
/// tick.
pub(super) fn tick_after(time: Time) -> u64 {
    // Like `div_ceil`, which also computes the remainder. If the sum leaves the range, the tick is
    // the last one.
    time.as_nanos().saturating_add(TICK_NANOS - 1) / TICK_NANOS
}

/// Returns when a tick is reached; it must be in the range of `Time`.
pub(super) fn time_of(tick: u64) -> Time {
    Time::from_nanos(tick * TICK_NANOS)
}
