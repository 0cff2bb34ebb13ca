//! `TurnClock`: when a turn reads the clock, so that handlers are told the time and pay little for
//! it.

use crate::Time;
use crate::backend::Backend;
use crate::scope::AnyEnvironment;

/// Calls that are not of events, of which one looks at the clock. An event was worth a system call
/// or two; a wake-up within the loop takes 30 ns, and a look 8.
const CALLS_PER_LOOK: u8 = 8;

/// What is known of the clock within a turn.
#[derive(Default)]
pub(in crate::event_loop) struct TurnClock {
    /// What the clock said when the turn last read it, as long as nothing that takes time has been
    /// called since.
    fresh: Option<Time>,
    /// Calls since one of them looked at the clock, up to `CALLS_PER_LOOK`.
    calls: u8,
}

impl TurnClock {
    /// The clock was read just now.
    pub(in crate::event_loop) fn was_read(&mut self, now: Time) {
        self.fresh = Some(now);
    }

    /// Takes what the clock said, if nothing that takes time has been called since.
    pub(in crate::event_loop) fn take_fresh(&mut self) -> Option<Time> {
        self.fresh.take()
    }

    /// Before something of the user's is called: reads the clock if it is seen, by a look that
    /// costs little, that what was called before took long. Otherwise what is asked for in 100 ms,
    /// late in a turn of 300 ms, would be due at once.
    #[inline]
    pub(in crate::event_loop) fn note<B: Backend>(
        &mut self,
        backend: &B,
        environment: &AnyEnvironment,
    ) {
        if self.fresh.take().is_some() {
            self.calls = 0;
        } else if backend.coarse_now() > environment.now() {
            environment.refresh_now();
        }
    }

    /// The same before calls that cost so little that each look would show: for the first of some.
    #[inline]
    pub(in crate::event_loop) fn note_at_times<B: Backend>(
        &mut self,
        backend: &B,
        environment: &AnyEnvironment,
    ) {
        if self.fresh.is_some() || self.calls == 0 {
            self.note(backend, environment);
        }
        self.calls = (self.calls + 1) % CALLS_PER_LOOK;
    }
}
