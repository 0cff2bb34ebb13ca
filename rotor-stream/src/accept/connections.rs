//! `Connections`: counts a listener's connections without a lock.

use std::sync::Arc;

use rotor_core::{Notifier, Token};

use crate::sync::atomic::Ordering::SeqCst;
use crate::sync::atomic::{AtomicBool, AtomicUsize};

pub(super) struct Connections {
    counts: Arc<Counts>,
    /// The handle of a connection with which nothing else is kept; all such connections share it.
    plain: Arc<Kept>,
}

struct Counts {
    live: AtomicUsize,
    max: usize,
    /// Whether the listener waits for the next connection to end.
    is_waiting: AtomicBool,
    listener: Notifier,
}

/// The counters of a connection's listener, and what is kept as long as the connection lives.
/// Behind one pointer, because each slot of a loop has room for it.
struct Kept {
    counts: Arc<Counts>,
    _beside: Option<Box<dyn Send + Sync>>,
}

/// Counts one connection until it is dropped.
pub(super) struct Counted {
    kept: Arc<Kept>,
}

impl Connections {
    pub(super) fn new(max: usize, listener: Notifier) -> Connections {
        let counts = Arc::new(Counts {
            live: AtomicUsize::new(0),
            max,
            is_waiting: AtomicBool::new(false),
            listener,
        });
        Connections { plain: Arc::new(Kept { counts: counts.clone(), _beside: None }), counts }
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
    pub(super) fn add(&self) -> Counted {
        self.counts.live.fetch_add(1, SeqCst);
        Counted { kept: self.plain.clone() }
    }

    /// Counts one more connection, and keeps `beside` as long as the connection lives.
    pub(super) fn add_with(&self, beside: impl Send + Sync + 'static) -> Counted {
        self.counts.live.fetch_add(1, SeqCst);
        let beside: Box<dyn Send + Sync> = Box::new(beside);
        Counted { kept: Arc::new(Kept { counts: self.counts.clone(), _beside: Some(beside) }) }
    }
}

impl Counted {
    /// Returns the listener of the connection.
    pub(super) fn listener(&self) -> Token {
        self.kept.counts.listener.token()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let Counts { live, is_waiting, listener, .. } = &*self.kept.counts;
        live.fetch_sub(1, SeqCst);
        // The load comes first: usually the listener does not wait, and a swap would be a locked
        // write for each connection that ends.
        if is_waiting.load(SeqCst) && is_waiting.swap(false, SeqCst) {
            listener.wakeup();
        }
    }
}
