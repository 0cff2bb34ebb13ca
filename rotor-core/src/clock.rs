//! `Clock`: the clocks of the system. This is the only file that reads them.

use std::sync::OnceLock;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use std::time::Instant;
use std::time::SystemTime;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// The clocks of the system, for implementations of backends. Nothing else in this crate reads a
/// clock.
///
/// All loops of a process count from the same instant, so that their times can be compared and sent
/// in messages. A backend that has real peers must use this clock.
#[doc(alias = "CLOCK_MONOTONIC")]
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Epoch,
}

/// The instant from which times are counted.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    instant: Instant,
    /// Nanoseconds since the system was started. (std's `Instant` consists of two numbers, which
    /// each reading must subtract and join.)
    #[cfg(any(target_os = "linux", target_os = "android"))]
    since_start: u64,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the scope stands for")]
impl Clock {
    /// Returns the clock of this process.
    #[expect(clippy::new_without_default, reason = "a clock is made where a loop is, by name")]
    pub fn new() -> Clock {
        // One epoch for all loops of the process, so that the times that they exchange can be
        // compared.
        static EPOCH: OnceLock<Epoch> = OnceLock::new();
        Clock { epoch: *EPOCH.get_or_init(Epoch::now) }
    }

    /// Reads the monotonic clock (CLOCK_MONOTONIC).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn now(&self) -> Time {
        Time::from_nanos(since_start(ClockId::Monotonic).saturating_sub(self.epoch.since_start))
    }

    /// Reads the monotonic clock.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn now(&self) -> Time {
        // Saturating, because std does not guarantee that the clock never goes backwards.
        Time::ZERO + Instant::now().saturating_duration_since(self.epoch.instant)
    }

    /// Returns the time of the system's last timer interrupt, which is at most 1 to 10 ms ago.
    /// Reading it does not access the hardware.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    pub fn coarse_now(&self) -> Time {
        // Saturating, because the coarse clock lags behind the exact one, so it may be before the
        // epoch at first.
        Time::from_nanos(
            since_start(ClockId::MonotonicCoarse).saturating_sub(self.epoch.since_start),
        )
    }

    /// Reads the exact clock, because no coarse clock is known on this system.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn coarse_now(&self) -> Time {
        // No coarse clock is known there. The exact one is also correct, but costs more.
        self.now()
    }

    /// Returns how many microseconds ago the system was started, not counting the time in which it
    /// slept (CLOCK_MONOTONIC), as a service manager expects it. Returns 0 if that is not known.
    pub(crate) fn since_start_micros() -> u64 {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return since_start(ClockId::Monotonic) / 1_000;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        0
    }

    /// Reads the wall clock.
    pub fn wall_time(&self) -> SystemTime {
        SystemTime::now()
    }
}

impl Epoch {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn now() -> Epoch {
        Epoch { since_start: since_start(ClockId::Monotonic) }
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    #[expect(clippy::disallowed_methods, reason = "this is the clock that the scope stands for")]
    fn now() -> Epoch {
        Epoch { instant: Instant::now() }
    }
}

/// Reads a clock that counts from the start of the system, in nanoseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn since_start(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
