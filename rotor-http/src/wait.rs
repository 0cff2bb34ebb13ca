//! What a connection waits for, of servers and clients.

use rotor_core::Deadline;
use rotor_stream::Intent;

/// What a connection waits for.
#[derive(Clone, Copy)]
pub(crate) struct Wait {
    /// So many unread bytes in all.
    pub(crate) input: Option<usize>,
    /// No more than so many unsent ones.
    pub(crate) flush: Option<usize>,
    pub(crate) deadline: Deadline,
}

impl Wait {
    #[inline]
    pub(crate) fn intent<P>(self, protocol: P) -> Intent<P> {
        let intent = Intent::of(protocol);
        let waiting = match self.input {
            Some(bytes) => intent.bytes(bytes),
            None => intent.sleep(),
        };
        let waiting = match self.flush {
            Some(left) => waiting.or_flush(left),
            None => waiting,
        };
        waiting.with(self.deadline)
    }
}
