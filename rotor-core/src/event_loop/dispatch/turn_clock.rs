//! `TurnClock`: when a turn reads the clock, so that handlers are told the time and pay little for
//! it.

use crate::backend::Backend;
use crate::scope::AnyEnvironment;
use crate::time::Time;

/// One in so many calls other than `ready` reads the coarse clock. An event was worth a system
/// call or two; a wake-up within the loop takes 30 ns, and that reading 8.
const CALLS_PER_READING: u8 = 8;

/// What is known of the clock within a turn.
#[derive(Default)]
pub(in crate::event_loop) struct TurnClock {
    /// What the clock said when the turn last read it, as long as nothing that takes time has been
    /// called since.
    fresh: Option<Time>,
    /// Cheap calls since one of them read the coarse clock, round and round: at 0 the next one
    /// does.
    cheap_calls: u8,
}

impl TurnClock {
    /// The clock was read just now.
    pub(in crate::event_loop) fn was_read(&mut self, now: Time) {
        self.fresh = Some(now);
    }

    /// Something that takes time is about to be called.
    pub(in crate::event_loop) fn forget_reading(&mut self) {
        self.fresh = None;
    }

    /// Takes what the clock said, if nothing that takes time has been called since.
    pub(in crate::event_loop) fn take_fresh(&mut self) -> Option<Time> {
        self.fresh.take()
    }

    /// Before something of the user's is called: reads the clock if the coarse one, which costs
    /// little, says that what was called before took long. Otherwise a deadline of 100 ms, set
    /// late in a turn of 300 ms, has passed when set.
    #[inline]
    pub(in crate::event_loop) fn before_call<B: Backend>(
        &mut self,
        backend: &B,
        environment: &AnyEnvironment,
    ) {
        // A reading of just now serves this call alone: nobody knows how long that takes.
        if self.fresh.take().is_some() {
            self.cheap_calls = 0;
        } else if backend.coarse_now() > environment.now() {
            environment.refresh_now();
        }
    }

    /// The same before calls that cost so little that a reading before each would show: before one
    /// in `CALLS_PER_READING`.
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

    /// A clock that is set by hand, and how often its coarse side was read.
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
    fn the_first_call_of_a_turn_reads_nothing_and_the_next_sees_that_time_has_passed() {
        let (mut turn_clock, clock, environment) = bench();
        turn_clock.was_read(environment.now());
        clock.nanos.set(5);
        turn_clock.before_call(&clock, &environment);
        assert_eq!((environment.now(), clock.coarse_readings.get()), (Time::ZERO, 0));
        turn_clock.before_call(&clock, &environment);
        assert_eq!((environment.now(), clock.coarse_readings.get()), (Time::from_nanos(5), 1));
        assert!(turn_clock.take_fresh().is_none());
    }

    #[test]
    fn of_cheap_calls_one_in_eight_reads_the_coarse_clock() {
        let (mut turn_clock, clock, environment) = bench();
        for _ in 0..17 {
            turn_clock.before_cheap_call(&clock, &environment);
        }
        assert_eq!(clock.coarse_readings.get(), 3);
        turn_clock.was_read(environment.now());
        turn_clock.before_cheap_call(&clock, &environment);
        assert_eq!(clock.coarse_readings.get(), 3, "the turn has just read the clock");
        turn_clock.before_cheap_call(&clock, &environment);
        assert_eq!(clock.coarse_readings.get(), 3);
    }
}
