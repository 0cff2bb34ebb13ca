//! The time against which certificates are checked and tickets aged: that of the loop whose
//! handshake it is.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

thread_local! {
    /// The wall-clock time of the handshake that this thread is at, or was at last, since 1970.
    static NOW: Cell<Option<Duration>> = const { Cell::new(None) };
    /// When the session began that this handshake continues, if it does.
    static SESSION_BEGAN: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Sets a time that [`now`] has returned.
pub(crate) fn set_again(time: Duration) {
    NOW.set(Some(time));
}

/// Returns the time that was set, since 1970.
pub(crate) fn now() -> Option<Duration> {
    NOW.get()
}

/// Returns when the session began that the handshake at hand continues, since 1970.
pub(crate) fn session_began() -> Option<Duration> {
    SESSION_BEGAN.get()
}

/// Sets that: by its ticket, and for each further step of the handshake, which may be on another
/// thread, or come behind a step of another one.
pub(crate) fn set_session_began(began: Option<Duration>) {
    SESSION_BEGAN.set(began);
}

/// Sets the time for what this thread does next.
pub(crate) fn set(time: SystemTime) {
    // A clock before 1970 makes all certificates not yet valid, which is what it says.
    NOW.set(Some(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()));
}

/// What rustls asks.
#[derive(Debug)]
pub(crate) struct LoopClock;

impl TimeProvider for LoopClock {
    fn current_time(&self) -> Option<UnixTime> {
        NOW.get().map(UnixTime::since_unix_epoch)
    }
}
