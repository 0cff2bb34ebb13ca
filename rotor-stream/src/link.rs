//! `Link`: whether a persistent connection is up, for those who wait on it; and the way to end it.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::Notifier;

/// Whether a persistent connection is up, for those who wait on it.
///
/// Clones name the same connection; any thread may hold one.
#[derive(Clone, Default)]
pub struct Link {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    is_up: AtomicBool,
    is_closed: AtomicBool,
    owner: Mutex<Option<Notifier>>,
    watchers: Mutex<Vec<Notifier>>,
}

impl Link {
    /// The link of a connection that is not yet made.
    pub fn new() -> Link {
        Link::default()
    }

    /// Whether the connection is up: the protocol's `create` was called, and the protocol has not ended since.
    pub fn is_up(&self) -> bool {
        self.shared.is_up.load(SeqCst)
    }

    /// Wakes a machine whenever the connection goes up or down, until that machine ends.
    ///
    /// It is woken for changes after this call; look at [`is_up`](Link::is_up) after it.
    pub fn watch(&self, watcher: Notifier) {
        let mut watchers = self.watchers();
        watchers.retain(Notifier::is_alive);
        watchers.push(watcher);
    }

    /// Ends the persistent connection: the machine, and the connection with it, at its next turn.
    pub fn close(&self) {
        self.shared.is_closed.store(true, SeqCst);
        if let Some(owner) = &*self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) {
            owner.wakeup();
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(SeqCst)
    }

    pub(crate) fn own(&self, owner: Notifier) {
        *self.shared.owner.lock().unwrap_or_else(PoisonError::into_inner) = Some(owner);
    }

    pub(crate) fn set(&self, is_up: bool) {
        if self.shared.is_up.swap(is_up, SeqCst) != is_up {
            self.watchers().retain(Notifier::wakeup);
        }
    }

    fn watchers(&self) -> MutexGuard<'_, Vec<Notifier>> {
        self.shared.watchers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Link(up: {})", self.is_up())
    }
}
