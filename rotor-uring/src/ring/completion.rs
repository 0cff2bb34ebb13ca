//! `Completion`: what the kernel reports about an operation, and the memory that it gives back.

use crate::buffer_table::Piece;
use crate::key::Key;

/// What the kernel reports about an operation.
pub(crate) struct Completion {
    /// The key of the operation.
    pub(crate) key: Key,
    /// The result as the system call would return it; errors are negative.
    pub(crate) result: i32,
    /// No further completion of the operation follows.
    pub(crate) is_last: bool,
    pub(crate) payload: Payload,
}

/// What a completion gives back.
pub(crate) enum Payload {
    Nothing,
    /// Received bytes.
    Piece(Piece),
    /// The memory of a send.
    Memory(Vec<u8>),
}
