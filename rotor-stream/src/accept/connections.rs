//! `Connections`: counts a listener's connections without a lock.

use std::sync::Arc;

use rotor_core::{Notifier, Token};

use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::{AtomicBool, AtomicUsize};

pub(super) struct Connections {
    counts: Arc<Counts>,
    /// The state of guards to which nothing is attached; all of them share it.
    plain_state: Arc<GuardState>,
}

struct Counts {
    live: AtomicUsize,
    max: usize,
    /// Whether the listener waits for the next connection to end.
    is_waiting: AtomicBool,
    listener: Notifier,
}

/// The counters of a connection's listener, and what is attached to the guard and lives as long as
/// the connection. Behind one pointer, because each slot of a loop has room for it.
struct GuardState {
    counts: Arc<Counts>,
    _attached: Option<Box<dyn Send + Sync>>,
}

/// Counts one connection until it is dropped.
pub(super) struct ConnectionGuard {
    state: Arc<GuardState>,
}

impl Connections {
    pub(super) fn new(max: usize, listener: Notifier) -> Connections {
        let counts = Arc::new(Counts {
            live: AtomicUsize::new(0),
            max,
            is_waiting: AtomicBool::new(false),
            listener,
        });
        Connections {
            plain_state: Arc::new(GuardState { counts: counts.clone(), _attached: None }),
            counts,
        }
    }

    /// Returns whether one more connection is allowed. If not, the listener is woken when a
    /// connection ends.
    pub(super) fn has_room(&self) -> bool {
        // `SeqCst` here and in `drop`: with a weaker order each side could miss what the other has
        // just stored, and the listener would sleep although a place is free.
        let Counts { live, max, is_waiting, .. } = &*self.counts;
        if live.load(SeqCst) < *max {
            return true;
        }
        is_waiting.store(true, SeqCst);
        // A connection that ended between the two lines above did not see that the listener waits.
        live.load(SeqCst) < *max
    }

    /// Counts one more connection.
    pub(super) fn add(&self) -> ConnectionGuard {
        self.counts.live.fetch_add(1, SeqCst);
        ConnectionGuard { state: self.plain_state.clone() }
    }

    /// Counts one more connection, and keeps `attached` until the guard is dropped.
    pub(super) fn add_with(&self, attached: impl Send + Sync + 'static) -> ConnectionGuard {
        self.counts.live.fetch_add(1, SeqCst);
        let attached: Box<dyn Send + Sync> = Box::new(attached);
        ConnectionGuard {
            state: Arc::new(GuardState { counts: self.counts.clone(), _attached: Some(attached) }),
        }
    }
}

impl ConnectionGuard {
    /// Returns the listener of the connection.
    pub(super) fn listener(&self) -> Token {
        self.state.counts.listener.token()
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        let Counts { live, is_waiting, listener, .. } = &*self.state.counts;
        live.fetch_sub(1, SeqCst);
        // The load comes first: usually the listener does not wait, and a swap would be a locked
        // write for each connection that ends.
        if is_waiting.load(SeqCst) && is_waiting.swap(false, SeqCst) {
            listener.wakeup();
        }
    }
}
