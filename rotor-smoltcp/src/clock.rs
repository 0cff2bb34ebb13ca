//! `LoopClock`: the time of a loop, from the system or from a clock that a test advances.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use rotor_core::Time;
use rotor_core::backend::Clock;

/// A clock that stands still until it is advanced, for loops in virtual time.
///
/// Loops and [memory devices](crate::MemoryDevice) with this clock tell it when they next have
/// something to do, and [`step`](ManualClock::step) advances it to that time. Give each loop a turn
/// (`turn(None)`, which then never waits), step, and repeat: minutes of lost packets pass in
/// milliseconds, and two runs with the same seed are the same.
#[derive(Clone, Debug)]
pub struct ManualClock(Arc<Mutex<ClockState>>);

#[derive(Debug)]
struct ClockState {
    now: Time,
    alarms: Vec<AlarmState>,
}

/// When one of the clock's users has something to do.
#[derive(Clone, Copy, Default, Debug)]
struct AlarmState {
    at: Option<Time>,
    /// The clock has already stood still for it once.
    was_waited_for: bool,
}

/// Through it, one of a clock's users says when it has something to do.
#[derive(Clone, Debug)]
pub(crate) struct Alarm {
    clock: ManualClock,
    number: usize,
}

/// The clock of a loop.
#[derive(Clone, Debug)]
pub(crate) enum LoopClock {
    Real(Clock),
    Manual(ManualClock),
}

impl ManualClock {
    /// Returns a clock at the beginning of time.
    #[expect(clippy::new_without_default, reason = "a clock is made by name, as the loop's is")]
    pub fn new() -> ManualClock {
        ManualClock(Arc::new(Mutex::new(ClockState { now: Time::ZERO, alarms: Vec::new() })))
    }

    /// Returns the current time of the clock.
    pub fn now(&self) -> Time {
        self.state().now
    }

    /// Advances the clock by a duration.
    pub fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now += by;
    }

    /// Advances the clock to the time when one of its users next has something to do. Returns false
    /// if no user has, so that nothing will ever happen.
    ///
    /// While a user has something to do now, the clock stays where it is, but only once for the
    /// same thing: what no user does (such as packets for a device that nobody reads) does not stop
    /// the time.
    pub fn step(&self) -> bool {
        self.step_until(Time::NEVER)
    }

    /// Does the same as [`step`](ManualClock::step), but advances at most to `limit`.
    pub fn step_until(&self, limit: Time) -> bool {
        let mut state = self.state();
        let now = state.now;
        let mut is_due = false;
        let mut next = None;
        for due in &mut state.alarms {
            match due.at {
                Some(at) if at > now => next = Some(next.unwrap_or(at).min(at)),
                Some(_) => is_due |= !std::mem::replace(&mut due.was_waited_for, true),
                None => {}
            }
        }
        if !is_due && let Some(next) = next {
            state.now = next.min(limit).max(now);
        }
        is_due || next.is_some()
    }

    /// Sets the clock to a time, unless that is earlier than its own.
    #[cfg(feature = "simulation")]
    pub(crate) fn set(&self, now: Time) {
        let mut state = self.state();
        state.now = state.now.max(now);
    }

    /// Returns when one of its users next has something to do, which may be now.
    #[cfg(feature = "simulation")]
    pub(crate) fn next(&self) -> Option<Time> {
        self.state().alarms.iter().filter_map(|due| due.at).min()
    }

    pub(crate) fn alarm(&self) -> Alarm {
        let mut state = self.state();
        state.alarms.push(AlarmState::default());
        Alarm { clock: self.clone(), number: state.alarms.len() - 1 }
    }

    fn state(&self) -> MutexGuard<'_, ClockState> {
        // The moments are consistent after each assignment.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Alarm {
    pub(crate) fn set(&self, at: Option<Time>) {
        self.clock.state().alarms[self.number] = AlarmState { at, was_waited_for: false };
    }

    /// Says that there is something to do at once.
    pub(crate) fn ring(&self) {
        self.set(Some(Time::ZERO));
    }
}

impl LoopClock {
    pub(crate) fn now(&self) -> Time {
        match self {
            LoopClock::Real(clock) => clock.now(),
            LoopClock::Manual(clock) => clock.now(),
        }
    }

    pub(crate) fn coarse_now(&self) -> Time {
        match self {
            LoopClock::Real(clock) => clock.coarse_now(),
            LoopClock::Manual(clock) => clock.now(),
        }
    }

    /// Returns the wall-clock time. In virtual time, that is the first second of 2026 plus the time
    /// of the clock.
    pub(crate) fn wall_time(&self) -> SystemTime {
        const START: Duration = Duration::from_secs(1_767_225_600);
        match self {
            LoopClock::Real(clock) => clock.wall_time(),
            LoopClock::Manual(clock) => SystemTime::UNIX_EPOCH + START + (clock.now() - Time::ZERO),
        }
    }

    pub(crate) fn alarm(&self) -> Option<Alarm> {
        match self {
            LoopClock::Real(_) => None,
            LoopClock::Manual(clock) => Some(clock.alarm()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_steps_to_the_first_alarm_and_never_back() {
        let clock = ManualClock::new();
        assert!(!clock.step(), "nobody waits for anything");
        let (one, two) = (clock.alarm(), clock.alarm());
        let at = |seconds| Time::ZERO + Duration::from_secs(seconds);
        one.set(Some(at(5)));
        two.set(Some(at(3)));
        assert!(clock.step_until(at(2)));
        assert_eq!(clock.now(), at(2));
        assert!(clock.step());
        assert_eq!(clock.now(), at(3));
        two.ring();
        assert!(clock.step());
        assert_eq!(clock.now(), at(3), "there is something to do now");
        assert!(clock.step());
        assert_eq!(clock.now(), at(5), "which nobody has done");
        one.set(Some(at(6)));
        clock.advance(Duration::from_secs(2));
        assert!(clock.step());
        assert_eq!(clock.now(), at(7), "what was due before is due now");
        assert!(!clock.step());
    }
}
