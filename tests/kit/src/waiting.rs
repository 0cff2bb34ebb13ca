//! Waiting for what another thread or process does.
#![expect(clippy::disallowed_methods, reason = "the waits of tests, outside of any loop")]

use std::io::{self, ErrorKind};
use std::thread::yield_now;
use std::time::{Duration, Instant};

/// How long to wait for something that is immediate on an idle machine.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Asks until there is an answer.
///
/// # Panics
///
/// If there is none within [`PATIENCE`].
pub fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Some(answer) => return answer,
            None if begun.elapsed() < PATIENCE => yield_now(),
            None => panic!("not within {PATIENCE:?}: {what}"),
        }
    }
}

/// Repeats a socket call that EINTR interrupts. With a timeout set, the kernel does not restart the
/// call after the process was stopped and continued (signal(7)).
///
/// # Errors
///
/// Any other error of the call.
pub fn again<T>(mut ask: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match ask() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            said => return said,
        }
    }
}
