//! The clocks of the system: the one file that reads them.

use std::sync::OnceLock;
use std::time::{Instant, SystemTime};

#[cfg(any(target_os = "linux", target_os = "android"))]
use rustix::time::{ClockId, clock_gettime};

use crate::time::Time;

/// The only place that reads the clocks of the system. All loops of a process count from the same
/// instant, so that their times compare and can travel in messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Epoch,
}

/// The instant that times are counted from.
#[derive(Clone, Copy, Debug)]
struct Epoch {
    instant: Instant,
    /// The same, or a little later, as the coarse clock counts: nanoseconds since the system was
    /// started.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    since_start: u64,
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the scope stands for")]
impl Clock {
    pub(crate) fn new() -> Clock {
        // One for all loops of the process: times that they exchange can be compared.
        static EPOCH: OnceLock<Epoch> = OnceLock::new();
        Clock { epoch: *EPOCH.get_or_init(Epoch::now) }
    }

    pub(crate) fn now(&self) -> Time {
        // Saturating, since std does not rule out a clock that goes backwards.
        Time::ZERO + Instant::now().saturating_duration_since(self.epoch.instant)
    }

    /// Returns the time of the system's last timer interrupt, 1 to 10 ms ago at the most: reading
    /// it asks no hardware.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[inline]
    pub(crate) fn coarse_now(&self) -> Time {
        // Saturating, since it lags behind the exact one: at first it may be before the epoch.
        Time::from_nanos(
            since_start(ClockId::MonotonicCoarse).saturating_sub(self.epoch.since_start),
        )
    }

    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub(crate) fn coarse_now(&self) -> Time {
        // No coarse clock is known there. The exact one is as right, and costs more.
        self.now()
    }

    pub(crate) fn wall_time(&self) -> SystemTime {
        SystemTime::now()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the clock that the scope stands for")]
impl Epoch {
    fn now() -> Epoch {
        Epoch {
            instant: Instant::now(),
            #[cfg(any(target_os = "linux", target_os = "android"))]
            since_start: since_start(ClockId::Monotonic),
        }
    }
}

/// Returns what a clock says that counts from the start of the system, in nanoseconds.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn since_start(clock: ClockId) -> u64 {
    let time = clock_gettime(clock);
    (time.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(time.tv_nsec as u64)
}
