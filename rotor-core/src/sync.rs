//! Threads and what they share: the standard library's, by other names.
//!
//! What threads of this crate share is taken from here, so that the models in `loom/` can put
//! loom's in their place, which tries the orders in which the threads' steps may come. `std` itself
//! is for what only one thread touches, for counts that nothing is concluded from, and for each
//! `Arc` of which nobody asks whether it is the last: those who do take this one, since loom sees
//! the order between two owners only then.

pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc};
pub(crate) use std::{hint, thread};

/// Returns how many times a thread spins that waits without sleeping, of the `times` that it asks
/// for. Here all of them; the models have it spin less often, since each time is a step to be
/// tried.
pub(crate) const fn spins(times: u32) -> u32 {
    times
}
