//! The clocks of the system: the one file that reads them.

use std::sync::OnceLock;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use std::time::Instant;
use std::time::SystemTime;

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// The clocks of the system: the only place that reads them, for those who implement a backend.
///
/// All loops of a process count from the same instant, so that their times compare and can travel
/// in messages: a backend that has real peers answers by this.
#[doc(alias = "CLOCK_MONOTONIC")]
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch: Epoch,
}

/// The instant that times are counted from.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    instant: Instant,
    /// In nanoseconds since the system was started. std has two numbers for that, and each reading
    /// subtracts and joins them.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    since_start: u64,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the scope stands for")]
impl Clock {
    /// Makes the clock of this process.
    #[expect(clippy::new_without_default, reason = "a clock is made where a loop is, by name")]
    pub fn new() -> Clock {
        // One for all loops of the process: times that they exchange can be compared.
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
        // Saturating, since std does not rule out a clock that goes backwards.
        Time::ZERO + Instant::now().saturating_duration_since(self.epoch.instant)
    }

    /// Returns the time of the system's last timer interrupt, 1 to 10 ms ago at the most: reading
    /// it asks no hardware.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    pub fn coarse_now(&self) -> Time {
        // Saturating, since it lags behind the exact one: at first it may be before the epoch.
        Time::from_nanos(
            since_start(ClockId::MonotonicCoarse).saturating_sub(self.epoch.since_start),
        )
    }

    /// Reads the exact clock, where no coarse one is known.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn coarse_now(&self) -> Time {
        // No coarse clock is known there. The exact one is as right, and costs more.
        self.now()
    }

    /// Returns how long ago the system was started, without the time in which it slept, in
    /// microseconds (CLOCK_MONOTONIC): what a service manager is told. 0 where that is not known.
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

/// Returns what a clock says that counts from the start of the system, in nanoseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn since_start(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
