//! `StreamBuffers`: the data of a stream that has something to do.

use crate::inbox::Inbox;
use crate::outbox::Outbox;

/// What a stream has received and not read, and what it has to send. An idle stream has none of it:
/// there are many of those, and few are at work in a turn.
#[derive(Default)]
pub(super) struct StreamBuffers {
    pub(super) inbox: Inbox,
    pub(super) outbox: Outbox,
}

impl StreamBuffers {
    /// Whether it is in its initial state: nothing is unread, to be sent, or to be remembered.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.inbox.is_empty() && self.outbox.is_initial()
    }
}
