//! The context: what all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use rotor::StatsHandle;

use super::store::Store;

/// The context.
pub(crate) struct Shared {
    pub(crate) store: Store,
    pub(crate) places: Places,
    pub(crate) counts: Counts,
    /// The statistics of the loop, if it has any.
    pub(crate) stats: Option<StatsHandle>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commands: u64,
    /// Commands that were answered with `ERR`, and lines that were too long.
    pub(crate) errors: u64,
    /// Connections that were refused because there was no place.
    pub(crate) refused: u64,
    /// Connections that were closed because nothing arrived, or not fast enough.
    pub(crate) late: u64,
}

impl Shared {
    pub(crate) fn new(store: Store, clients_max: usize) -> Shared {
        let places = Places { taken: Arc::default(), max: clients_max };
        Shared { store, places, counts: Counts::default(), stats: None }
    }
}

/// The places for clients.
pub(crate) struct Places {
    taken: Arc<AtomicUsize>,
    max: usize,
}

/// One of the places, which is freed when this is dropped.
pub(crate) struct Place(Arc<AtomicUsize>);

impl Places {
    pub(crate) fn taken(&self) -> usize {
        self.taken.load(Relaxed)
    }

    /// Takes a place, if there is one. The handlers of a loop run one after the other, so nothing
    /// can happen between the two lines.
    pub(crate) fn take(&self) -> Option<Place> {
        if self.taken() >= self.max {
            return None;
        }
        self.taken.fetch_add(1, Relaxed);
        Some(Place(self.taken.clone()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
