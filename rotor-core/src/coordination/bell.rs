//! `Bell`: tells one listener, or all of them, that something has happened.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::wait_queue::WaitQueue;
use crate::future::{Future, Port};
use crate::scope::Scope;
use crate::sync::{Mutex, MutexGuard};
use crate::waiter_queue::WaiterQueue;

/// A bell that machines listen to and that any machine or thread can ring. Elsewhere called a
/// condition variable, or notify.
///
/// Clones are the same bell. Each call of [`listen`](Bell::listen) gets one ring that happens after
/// the call. A ring without listeners is lost, so call `listen` first, then check the condition
/// that the bell announces, then wait.
#[doc(alias = "condvar")]
#[doc(alias = "notify")]
#[derive(Clone, Default)]
pub struct Bell {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<WaitQueue<Port<()>>>,
}

impl Bell {
    /// Makes a bell.
    pub fn new() -> Bell {
        Bell::default()
    }

    /// Listens for one ring. The machine is woken by the first ring that is for it, or when the
    /// last clone of the bell is dropped ([`FutureError::Dropped`](crate::FutureError::Dropped)).
    /// Dropping the future stops listening.
    pub fn listen<C>(&self, scope: &Scope<'_, C>) -> Future<()> {
        let (port, future) = scope.create_future();
        self.shared.lock().push_port(port, Arc::downgrade(&self.shared) as _);
        future
    }

    /// Rings for the listener that has waited longest, and returns whether there was one. If its
    /// future is dropped before the ring is taken, even because its machine has ended, the next
    /// listener gets the ring.
    #[doc(alias = "notify_one")]
    pub fn ring_one(&self) -> bool {
        self.shared.ring_one()
    }

    /// Rings for all current listeners, and returns how many there were.
    #[doc(alias = "notify_all")]
    #[doc(alias = "notify_waiters")]
    pub fn ring_all(&self) -> usize {
        let all = self.shared.lock().take_all();
        // If such a ring is not taken, it need not be passed on: all listeners have got one.
        let ring = |port: Port<()>| {
            port.clear_on_cancel();
            port.set(()).ok()
        };
        all.filter_map(ring).count()
    }

    /// Returns how many machines listen.
    pub fn listening(&self) -> usize {
        self.shared.lock().len()
    }
}

impl Shared {
    fn ring_one(&self) -> bool {
        loop {
            let Some(first) = self.lock().pop() else { return false };
            // A listener that is dropped at this moment leaves the ring to the next one.
            if first.set(()).is_ok() {
                return true;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitQueue<Port<()>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaiterQueue for Shared {
    fn remove(&self, place: u64) {
        let removed = self.lock().remove(place);
        drop(removed);
    }

    fn value_unclaimed(&self) {
        self.ring_one();
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bell({} listen)", self.listening())
    }
}
