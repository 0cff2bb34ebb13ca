//! The count of a listener's connections, kept without a lock by the connections themselves.

use std::sync::Arc;

use rotor_core::{Notifier, Token};

use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::{AtomicBool, AtomicUsize};

pub(super) struct Connections {
    live: AtomicUsize,
    max: usize,
    /// The listener waits for the next connection to end.
    is_waiting: AtomicBool,
    listener: Notifier,
}

/// One connection, as long as it lives.
pub(super) struct Counted {
    connections: Arc<Connections>,
}

impl Connections {
    pub(super) fn new(max: usize, listener: Notifier) -> Arc<Connections> {
        Arc::new(Connections {
            live: AtomicUsize::new(0),
            max,
            is_waiting: AtomicBool::new(false),
            listener,
        })
    }

    /// Whether there may be one more; if not, the listener is woken when one ends.
    pub(super) fn has_room(&self) -> bool {
        // `SeqCst` here and in `drop`: with a weaker order each could miss what the other has just
        // stored, and the listener would sleep beside a free place.
        if self.live.load(SeqCst) < self.max {
            return true;
        }
        self.is_waiting.store(true, SeqCst);
        // One that ended between the two lines above did not see that anybody waits.
        self.live.load(SeqCst) < self.max
    }

    /// Counts one more.
    pub(super) fn add(self: &Arc<Connections>) -> Counted {
        self.live.fetch_add(1, SeqCst);
        Counted { connections: self.clone() }
    }
}

impl Counted {
    /// The listener that the connection counts for.
    pub(super) fn listener(&self) -> Token {
        self.connections.listener.token()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.connections.live.fetch_sub(1, SeqCst);
        // The load first: nearly always nobody waits, and a swap would cost every end a locked
        // write.
        if self.connections.is_waiting.load(SeqCst)
            && self.connections.is_waiting.swap(false, SeqCst)
        {
            self.connections.listener.wakeup();
        }
    }
}
