//! `SentAway`: how many asked for the listeners and do not serve.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// How many processes have asked for the listeners of this one and have not followed it: another
/// user's, a second one while the first starts, one that talks nonsense, is not ready in time, or
/// has gone before it served. The log says which; nothing is lost by any of them.
///
/// [`HandOver::sent_away`](super::HandOver::sent_away) has it, or counts in one that was made
/// before ([`counting`](super::HandOver::counting)). Clones count together.
#[derive(Clone, Default)]
pub struct SentAway(Arc<AtomicU64>);

impl SentAway {
    /// Returns how many.
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for SentAway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SentAway({})", self.count())
    }
}
