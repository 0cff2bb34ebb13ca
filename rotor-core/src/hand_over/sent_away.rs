//! `SentAway`: how many processes asked for the listeners and do not serve.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Counts the processes that have asked for the listeners of this one and have not followed it:
/// another user's, a second one while the first starts, one that talks nonsense, is not ready in
/// time, or has gone before it served. The log says which; none of them causes a loss.
///
/// [`HandOver::sent_away`](super::HandOver::sent_away) returns it, and
/// [`counting`](super::HandOver::counting) sets one that was made before. Clones count together.
#[derive(Clone, Default)]
pub struct SentAway(Arc<AtomicU64>);

impl SentAway {
    /// Returns how many processes were sent away.
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
