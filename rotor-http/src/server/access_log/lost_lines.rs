//! `LostLines`: the counter of lost lines.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counts the lines of an access log that were lost, because there was no room for them or they
/// could not be written.
#[derive(Clone, Default)]
pub struct LostLines(Arc<AtomicU64>);

impl LostLines {
    /// Returns how many lines were lost.
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for LostLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LostLines({})", self.count())
    }
}
