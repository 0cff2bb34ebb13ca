//! `Bell`: something has happened, for one or for all who listen.

use std::fmt;
use std::sync::{Arc, PoisonError};

use super::wait_line::WaitLine;
use crate::future::{Future, Leave, Port};
use crate::scope::Scope;
use crate::sync::{Mutex, MutexGuard};

/// What machines listen to, and any machine or thread rings.
///
/// Clones are the same bell. Each listens for one ring, from when it asked; a ring that nobody
/// listens to is lost. So listen first, then look at what the bell is about, then wait.
#[doc(alias = "condvar")]
#[doc(alias = "notify")]
#[derive(Clone, Default)]
pub struct Bell {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    line: Mutex<WaitLine<Port<()>>>,
}

impl Bell {
    /// Makes a bell that nobody listens to.
    pub fn new() -> Bell {
        Bell::default()
    }

    /// Listens for the next ring that is for this machine: then it is woken, or when the last clone
    /// of the bell is dropped ([`Lost::Dropped`](crate::Lost::Dropped)). Dropping the future ends
    /// that.
    pub fn listen<C>(&self, scope: &Scope<'_, C>) -> Future<()> {
        let (port, future) = scope.create_future();
        self.shared.lock().join_port(port, Arc::downgrade(&self.shared) as _);
        future
    }

    /// Rings for the one who has listened longest. Returns whether there was one. If his future is
    /// dropped before he takes the ring, also by the end of his machine, it is the next one's.
    #[doc(alias = "notify_one")]
    pub fn ring_one(&self) -> bool {
        self.shared.ring_one()
    }

    /// Rings for all who listen now. Returns how many there were.
    #[doc(alias = "notify_all")]
    #[doc(alias = "notify_waiters")]
    pub fn ring_all(&self) -> usize {
        let all = self.shared.lock().take_all();
        // One who does not take it leaves it to nobody: the others have their own.
        let ring = |port: Port<()>| {
            port.forget_line();
            port.set(()).ok()
        };
        all.filter_map(ring).count()
    }

    /// Returns how many listen.
    pub fn listening(&self) -> usize {
        self.shared.lock().len()
    }
}

impl Shared {
    fn ring_one(&self) -> bool {
        loop {
            let Some(first) = self.lock().next() else { return false };
            // One that is gone in this moment leaves the ring to the next.
            if first.set(()).is_ok() {
                return true;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, WaitLine<Port<()>>> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Leave for Shared {
    fn leave(&self, place: u64) {
        let gone = self.lock().leave(place);
        drop(gone);
    }

    fn was_not_taken(&self) {
        self.ring_one();
    }
}

impl fmt::Debug for Bell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bell({} listen)", self.listening())
    }
}
