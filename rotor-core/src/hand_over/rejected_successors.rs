//! `RejectedSuccessors`: how many processes connected for the listeners and do not serve.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// A count of the processes that connected for the listeners of this process and did not follow it.
///
/// These are processes of another user, a second one while the first one starts, and processes that
/// violate the protocol, are not ready in time, or end before they serve. The log says which; none
/// of them causes a loss.
///
/// [`HandOver::rejected_successors`](super::HandOver::rejected_successors) returns the count, and
/// [`counting`](super::HandOver::counting) sets one that exists already. Clones share their count.
#[doc(alias = "SentAway")]
#[derive(Clone, Default)]
pub struct RejectedSuccessors(Arc<AtomicU64>);

impl RejectedSuccessors {
    /// Returns how many processes were sent away.
    pub fn count(&self) -> u64 {
        self.0.load(Relaxed)
    }

    pub(super) fn add(&self) {
        self.0.fetch_add(1, Relaxed);
    }
}

impl fmt::Debug for RejectedSuccessors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RejectedSuccessors({})", self.count())
    }
}
