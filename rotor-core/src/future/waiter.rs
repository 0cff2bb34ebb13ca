//! What waits for the value of a future.

use std::sync::Arc;

use crate::notifier::Notifier;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::{AcqRel, Relaxed};
use crate::sync::thread::Thread;

/// What is woken when the value is set.
pub(crate) enum Waiter {
    Machine(Notifier),
    Thread(Thread),
    /// A machine that is woken once for several values together.
    PortCounter(Arc<PortCounter>),
}

/// Counts ports that have not been set or dropped yet. When the count reaches zero, a machine is
/// woken.
pub(crate) struct PortCounter {
    pub(super) machine: Notifier,
    left: AtomicUsize,
}

impl PortCounter {
    /// Makes a counter with a count of one, which stands for ports that may still be added.
    pub(crate) fn new(machine: Notifier) -> PortCounter {
        PortCounter { machine, left: AtomicUsize::new(1) }
    }

    /// Adds a port.
    pub(crate) fn add_port(&self) {
        self.left.fetch_add(1, Relaxed);
    }

    /// Counts down by one. Returns `false` if the machine is gone.
    pub(crate) fn remove_port(&self) -> bool {
        // `AcqRel`: the machine, which the last port wakes, sees everything that was written before
        // each of the calls.
        match self.left.fetch_sub(1, AcqRel) {
            1 => self.machine.wakeup(),
            _ => self.machine.is_alive(),
        }
    }
}

impl Waiter {
    /// Wakes the waiter. Returns `false` if it is gone.
    pub(super) fn wake(&self) -> bool {
        match self {
            Waiter::Machine(notifier) => notifier.wakeup(),
            Waiter::Thread(thread) => {
                // This is not lost if the thread is about to park: `park` then returns at once.
                thread.unpark();
                true
            }
            Waiter::PortCounter(counter) => counter.remove_port(),
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        match self {
            Waiter::Machine(notifier) => notifier.is_alive(),
            // The thread holds the future as long as it waits. When it stops waiting, the state is
            // `Cancelled`.
            Waiter::Thread(_) => true,
            Waiter::PortCounter(counter) => counter.machine.is_alive(),
        }
    }

    /// Records that the port has ended although its future is gone.
    pub(super) fn release_port(&self) {
        if let Waiter::PortCounter(counter) = self {
            counter.remove_port();
        }
    }
}
