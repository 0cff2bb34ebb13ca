//! `Barrier`: machines that wait for each other.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::wait_queue::WaitQueue;
use crate::future::{Future, Port};
use crate::scope::Scope;
use crate::sync::{Mutex, MutexGuard};
use crate::waiter_queue::WaiterQueue;

/// A barrier: machines wait at it until a set number of them has arrived. Then all of them go on,
/// and the barrier starts over.
///
/// Clones are the same barrier.
#[derive(Clone)]
pub struct Barrier {
    shared: Arc<Shared>,
}

/// Reports that all machines have arrived at a [`Barrier`].
#[doc(alias = "Arrived")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BarrierReached {
    /// Whether this machine was the last one to arrive. This is true for exactly one of them, which
    /// can do what must be done once.
    pub is_last: bool,
}

struct Shared {
    count: usize,
    queue: Mutex<WaitQueue<Port<BarrierReached>>>,
}

impl Barrier {
    /// Makes a barrier for this many machines. With 0 or 1, machines do not wait at all.
    pub fn new(machines: usize) -> Barrier {
        Barrier { shared: Arc::new(Shared { count: machines, queue: Mutex::default() }) }
    }

    /// Arrives at the barrier. The machine is woken when all have arrived, even if it is the last
    /// one.
    ///
    /// Dropping the future before that withdraws the arrival, so another machine has to arrive. If
    /// the last clone of the barrier is dropped, the future returns
    /// [`FutureError::Dropped`](crate::FutureError::Dropped).
    pub fn arrive<C>(&self, scope: &Scope<'_, C>) -> Future<BarrierReached> {
        let (port, future) = scope.create_future();
        let others = {
            let mut queue = self.shared.lock();
            if queue.len() + 1 < self.shared.count {
                queue.push_port(port, Arc::downgrade(&self.shared) as _);
                return future;
            }
            queue.take_all()
        };
        // Called without the lock, since this wakes machines. A machine that leaves at this moment
        // counts as arrived.
        for other in others {
            let _gone = other.set(BarrierReached { is_last: false });
        }
        let _gone = port.set(BarrierReached { is_last: true });
        future
    }

    /// Returns how many machines wait for the others.
    pub fn waiting(&self) -> usize {
        self.shared.lock().len()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, WaitQueue<Port<BarrierReached>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaiterQueue for Shared {
    fn remove(&self, place: u64) {
        let removed = self.lock().remove(place);
        drop(removed);
    }
}

impl fmt::Debug for Barrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Barrier({} of {})", self.waiting(), self.shared.count)
    }
}
