//! The time that is used to check certificates and the age of tickets: that of the loop of the
//! handshake.

use std::cell::Cell;
use std::time::{Duration, SystemTime};

use rustls::pki_types::UnixTime;
use rustls::time_provider::TimeProvider;

thread_local! {
    /// The wall-clock time of this thread's current or last handshake, since 1970.
    static NOW: Cell<Option<Duration>> = const { Cell::new(None) };
    /// When the session began that this handshake resumes, if it resumes one.
    static SESSION_BEGAN: Cell<Option<Duration>> = const { Cell::new(None) };
}

/// Sets a time that [`now`] has returned before.
pub(crate) fn restore(time: Duration) {
    NOW.set(Some(time));
}

/// Returns the time that was set, since 1970.
pub(crate) fn now() -> Option<Duration> {
    NOW.get()
}

/// Returns when the session began that the current handshake resumes, since 1970.
pub(crate) fn session_began() -> Option<Duration> {
    SESSION_BEGAN.get()
}

/// Sets the beginning of the session: from its ticket, and again for each step of the handshake,
/// which may run on another thread, or after a step of another handshake.
pub(crate) fn set_session_began(began: Option<Duration>) {
    SESSION_BEGAN.set(began);
}

/// Sets the time for the next operations of this thread.
pub(crate) fn set(time: SystemTime) {
    // With a clock before 1970, all certificates are not valid yet.
    NOW.set(Some(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()));
}

/// The source of time for rustls.
#[derive(Debug)]
pub(crate) struct LoopClock;

impl TimeProvider for LoopClock {
    fn current_time(&self) -> Option<UnixTime> {
        NOW.get().map(UnixTime::since_unix_epoch)
    }
}
