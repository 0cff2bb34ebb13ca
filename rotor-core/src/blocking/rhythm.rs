//! `Rhythm`: when the watchdog checks its loops, and when it sleeps until one of them wakes it.
//!
//! ```text
//!              all loops asleep, a second after it began to tick
//!   Ticking ─────────────────────────────────────────────────▶ Drowsy ──still all asleep──▶ sleeps
//!      ▲                    a loop is awake, or has woken it     │                            │
//!      └─────────────────────────────────────────────────────────┴────────────────────────────┘
//! ```
//!
//! A loop that wakes checks, with one relaxed load, whether the watchdog is drowsy, and if so wakes
//! it. Either thread may see the other's store late. Therefore there is one tick between becoming
//! drowsy and sleeping, which is long enough for each store to become visible.

use std::time::Duration;

use crate::time::Time;

/// The minimum time for which the watchdog ticks, so that a loop that wakes often wakes it at most
/// once in that time.
const AWAKE_MIN: Duration = Duration::from_secs(1);

pub(super) enum Rhythm {
    Ticking { since: Time },
    Drowsy,
}

/// How the watchdog waits before its next check.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pause {
    /// Sleeps for a tick.
    Tick,
    /// Sleeps for a tick, and lets loops wake it.
    DrowsyTick,
    /// Sleeps until it is woken.
    Sleep,
}

impl Rhythm {
    pub(super) fn new(now: Time) -> Rhythm {
        Rhythm::Ticking { since: now }
    }

    /// Decides how to wait. `is_woken` says that a loop has woken the watchdog since it became
    /// drowsy.
    pub(super) fn pause(&mut self, now: Time, is_any_awake: bool, is_woken: bool) -> Pause {
        match self {
            Rhythm::Ticking { since } if is_any_awake || now - *since < AWAKE_MIN => Pause::Tick,
            Rhythm::Ticking { .. } => {
                *self = Rhythm::Drowsy;
                Pause::DrowsyTick
            }
            Rhythm::Drowsy if is_any_awake || is_woken => {
                *self = Rhythm::new(now);
                Pause::Tick
            }
            Rhythm::Drowsy => Pause::Sleep,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each step: the time in ms, whether a loop is awake, whether one has woken the watchdog, and
    /// the expected pause.
    fn check(steps: &[(u64, bool, bool, Pause)]) {
        let mut rhythm = Rhythm::new(Time::ZERO);
        for (at, is_any_awake, is_woken, expected) in steps {
            let now = Time::ZERO + Duration::from_millis(*at);
            assert_eq!(rhythm.pause(now, *is_any_awake, *is_woken), *expected, "at {at} ms");
        }
    }

    #[test]
    fn the_watchdog_sleeps_one_tick_after_it_became_drowsy() {
        use Pause::{DrowsyTick, Sleep, Tick};
        check(&[
            (0, true, false, Tick),
            (999, false, false, Tick),
            (1_000, false, false, DrowsyTick),
            (1_003, false, false, Sleep),
            // A spurious wakeup of the thread.
            (1_500, false, false, Sleep),
            (2_000, false, true, Tick),
            (2_999, false, false, Tick),
            (3_000, false, false, DrowsyTick),
        ]);
    }

    #[test]
    fn an_awake_loop_keeps_the_watchdog_awake() {
        use Pause::{DrowsyTick, Tick};
        check(&[
            (5_000, true, false, Tick),
            (6_000, false, false, DrowsyTick),
            // A loop woke at the last moment, and did not notice that it should wake the watchdog.
            (6_003, true, false, Tick),
            (7_002, false, false, Tick),
            (7_003, false, false, DrowsyTick),
        ]);
    }
}
