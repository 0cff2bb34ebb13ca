//! `Work`: the data of a stream that has something to do.

use crate::inbox::Inbox;
use crate::outgo::Outgo;

/// What a stream has received and not read, and what it has to send. An idle stream has none of it:
/// there are many of those, and few are at work in a turn.
#[derive(Default)]
pub(super) struct Work {
    pub(super) inbox: Inbox,
    pub(super) outgo: Outgo,
}

impl Work {
    /// Whether it is in its initial state: nothing is unread, to be sent, or to be remembered.
    #[inline]
    pub(super) fn is_done(&self) -> bool {
        self.inbox.is_empty() && self.outgo.is_fresh()
    }
}
