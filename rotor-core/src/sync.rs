//! Threads and shared data: re-exports of the standard library.
//!
//! Whatever the threads of this crate share is imported from here, so that the models in `loom/`
//! can replace it by loom's types, which try all orders of the threads' steps. `std` itself is used
//! for what only one thread touches, for counts from which nothing is concluded, and for each `Arc`
//! that is never checked for being the last one. An `Arc` that is checked must come from here,
//! since loom sees the order between two owners only then.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc};
pub(crate) use std::{hint, thread};

/// Returns how often a thread should spin instead of sleeping, if it asks for `times`. Here this is
/// `times`. In the models it is less, since each time is another step to try.
pub(crate) const fn spins(times: u32) -> u32 {
    times
}
