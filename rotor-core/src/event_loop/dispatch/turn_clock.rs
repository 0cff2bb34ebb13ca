//! `TurnClock`: decides when a turn reads the clock, so that handlers see the right time at little
//! cost.

use crate::backend::Backend;
use crate::scope::AnyEnvironment;
use crate::time::Time;

/// One in this many calls other than `ready` reads the coarse clock. An event is worth a system
/// call or two, but a wake-up within the loop takes 30 ns, and such a reading 8 ns.
const CALLS_PER_READING: u8 = 8;

/// The state of the clock within a turn.
#[derive(Default)]
pub(in crate::event_loop) struct TurnClock {
    /// The result of the turn's last reading of the clock, if nothing that takes time was called
    /// since.
    fresh: Option<Time>,
    /// Counts the cheap calls, modulo `CALLS_PER_READING`. At 0 the next one reads the coarse
    /// clock.
    cheap_calls: u8,
}

impl TurnClock {
    /// Notes that the clock was read just now.
    pub(in crate::event_loop) fn record_reading(&mut self, now: Time) {
        self.fresh = Some(now);
    }

    /// Notes that something that takes time is about to be called.
    pub(in crate::event_loop) fn discard_reading(&mut self) {
        self.fresh = None;
    }

    /// Takes the last reading, if nothing that takes time was called since.
    pub(in crate::event_loop) fn take_reading(&mut self) -> Option<Time> {
        self.fresh.take()
    }

    /// Called before any of the user's code. Reads the clock if the coarse clock, which costs
    /// little, shows that earlier calls took long. Otherwise a deadline of 100 ms that is set late
    /// in a turn of 300 ms would have passed when it is set.
    #[inline]
    pub(in crate::event_loop) fn before_call<B: Backend>(
        &mut self,
        backend: &B,
        environment: &AnyEnvironment,
    ) {
        // A fresh reading serves only this call, because nobody knows how long it will take.
        if self.fresh.take().is_some() {
            self.cheap_calls = 0;
        } else if backend.coarse_now() > environment.now() {
            environment.refresh_now();
        }
    }

    /// Does the same for calls that are so cheap that a reading before each would be noticeable:
    /// reads only before one in `CALLS_PER_READING`.
    #[inline]
    pub(in crate::event_loop) fn before_cheap_call<B: Backend>(
        &mut self,
        backend: &B,
        environment: &AnyEnvironment,
    ) {
        if self.fresh.is_some() || self.cheap_calls == 0 {
            self.before_call(backend, environment);
        }
        self.cheap_calls = (self.cheap_calls + 1) % CALLS_PER_READING;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::io;
    use std::rc::Rc;
    use std::sync::Arc;
    use std::time::SystemTime;

    use super::*;
    use crate::backend::{BackendHandle, NoWaker, Wake};
    use crate::config::Config;
    use crate::environment::Environment;
    use crate::event_set::EventSet;
    use crate::token::Token;
    use crate::wake_queue::WakeQueue;

    /// A clock that is set by hand; it counts the readings of its coarse time.
    #[derive(Clone, Default)]
    struct Clock {
        nanos: Rc<Cell<u64>>,
        coarse_readings: Rc<Cell<u32>>,
    }

    impl BackendHandle for Clock {
        fn name(&self) -> &str {
            "by hand"
        }
        fn now(&self) -> Time {
            Time::from_nanos(self.nanos.get())
        }
        fn wall_time(&self) -> SystemTime {
            SystemTime::UNIX_EPOCH
        }
    }

    impl Backend for Clock {
        type Handle = Clock;
        fn handle(&self) -> io::Result<Clock> {
            Ok(self.clone())
        }
        fn waker(&self) -> io::Result<Arc<dyn Wake>> {
            Ok(Arc::new(NoWaker))
        }
        fn wait(&mut self, _: Option<Time>, _: &mut Vec<(Token, EventSet)>) -> io::Result<()> {
            Ok(())
        }
        fn coarse_now(&self) -> Time {
            self.coarse_readings.set(self.coarse_readings.get() + 1);
            Time::from_nanos(self.nanos.get())
        }
    }

    fn bench() -> (TurnClock, Clock, Environment<Clock>) {
        let clock = Clock::default();
        let (wakes, _) = WakeQueue::new(1, Arc::new(NoWaker)).expect("memory");
        let environment = Environment::new(clock.clone(), Arc::new(wakes), &Config::new());
        (TurnClock::default(), clock, environment.expect("random bytes"))
    }

    #[test]
    fn the_first_call_of_a_turn_reads_no_clock_and_the_second_does() {
        let (mut turn_clock, clock, environment) = bench();
        turn_clock.record_reading(environment.now());
        clock.nanos.set(5);
        turn_clock.before_call(&clock, &environment);
        assert_eq!((environment.now(), clock.coarse_readings.get()), (Time::ZERO, 0));
        turn_clock.before_call(&clock, &environment);
        assert_eq!((environment.now(), clock.coarse_readings.get()), (Time::from_nanos(5), 1));
        assert!(turn_clock.take_reading().is_none());
    }

    #[test]
    fn one_in_eight_cheap_calls_reads_the_coarse_clock() {
        let (mut turn_clock, clock, environment) = bench();
        for _ in 0..17 {
            turn_clock.before_cheap_call(&clock, &environment);
        }
        assert_eq!(clock.coarse_readings.get(), 3);
        turn_clock.record_reading(environment.now());
        turn_clock.before_cheap_call(&clock, &environment);
        assert_eq!(clock.coarse_readings.get(), 3, "the turn has just read the clock");
        turn_clock.before_cheap_call(&clock, &environment);
        assert_eq!(clock.coarse_readings.get(), 3);
    }
}
