//! What is notified when a future is dropped before it has a value.

use std::sync::{Arc, Weak};
use std::task::Waker;

use crate::notifier::Notifier;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::Ordering::{AcqRel, Release};
use crate::waiter_queue::WaiterQueue;

/// What is notified when the future is dropped.
pub(crate) enum OnCancel {
    Nobody,
    Machine(Notifier),
    /// Async code that computes the value.
    Waker(Waker),
    Server(Arc<Cancellations>),
    /// The queue in which the future had a place, which becomes free. `Weak`, because the queue
    /// holds the port, and must be dropped together with the last one that could serve it.
    Queue(Weak<dyn WaiterQueue>, u64),
}

/// Tells a machine that one of many futures was dropped, so that it searches them only then.
pub(crate) struct Cancellations {
    server: Notifier,
    happened: AtomicBool,
}

impl Cancellations {
    pub(crate) fn new(server: Notifier) -> Cancellations {
        Cancellations { server, happened: AtomicBool::new(false) }
    }

    /// Returns whether a future was dropped since the last call.
    pub(crate) fn take(&self) -> bool {
        self.happened.swap(false, AcqRel)
    }

    fn notify(&self) {
        // Set before the wake-up, so that the server finds it.
        self.happened.store(true, Release);
        self.server.wakeup();
    }
}

impl OnCancel {
    pub(super) fn value_unclaimed(&self) {
        if let OnCancel::Queue(queue, _) = self
            && let Some(queue) = queue.upgrade()
        {
            queue.value_unclaimed();
        }
    }

    pub(super) fn notify(&self) {
        match self {
            OnCancel::Nobody => {}
            OnCancel::Machine(notifier) => {
                notifier.wakeup();
            }
            OnCancel::Waker(waker) => waker.wake_by_ref(),
            OnCancel::Server(cancellations) => cancellations.notify(),
            OnCancel::Queue(queue, place) => {
                if let Some(queue) = queue.upgrade() {
                    queue.remove(*place);
                }
            }
        }
    }
}
