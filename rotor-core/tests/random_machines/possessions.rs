//! What a machine has while it is in a loop, has a permit, or holds the lock.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;

use crate::World;

/// Counts a machine of a loop.
pub(crate) struct InLoop(pub(crate) Arc<AtomicUsize>);

impl Drop for InLoop {
    fn drop(&mut self) {
        self.0.fetch_sub(1, SeqCst);
    }
}

/// Exists while its machine has a permit. Dropped before the permit.
pub(crate) struct Using(Arc<World>);

impl Using {
    pub(crate) fn new(world: &Arc<World>) -> Using {
        if world.users.fetch_add(1, SeqCst) == world.permits_total {
            abort("too many have a permit");
        }
        Using(world.clone())
    }
}

impl Drop for Using {
    fn drop(&mut self) {
        self.0.users.fetch_sub(1, SeqCst);
    }
}

/// Exists while its machine holds the lock. Dropped before the lock.
pub(crate) struct Locked(Arc<World>);

impl Locked {
    pub(crate) fn new(world: &Arc<World>) -> Locked {
        if world.is_locked.swap(true, SeqCst) {
            abort("two hold the lock");
        }
        Locked(world.clone())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.0.is_locked.store(false, SeqCst);
    }
}

/// A panic would be that of one of the machines.
pub(crate) fn abort(text: &str) -> ! {
    eprintln!("{text}");
    std::process::abort();
}
