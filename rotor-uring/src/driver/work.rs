//! `Work`: what a stream has while it has something to do.

use crate::inbox::Inbox;
use crate::outgo::Outgo;

/// What came for a stream and was not read, and what it has taken to be sent. A stream that waits has
/// none of it: there are many of those, and few are at work in a turn.
#[derive(Default)]
pub(super) struct Work {
    pub(super) inbox: Inbox,
    pub(super) outgo: Outgo,
}

impl Work {
    /// Whether it is as it was made: nothing is unread, to be sent, or to be kept in mind.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.inbox.is_empty() && self.outgo.is_fresh()
    }
}
