//! `Completion`: what the kernel says of an operation, with what it gives back.

use crate::books::Piece;
use crate::key::Key;

/// What the kernel says of an operation.
pub(crate) struct Completion {
    /// Whose it is.
    pub(crate) key: Key,
    /// As the system call would return it; errors below zero.
    pub(crate) result: i32,
    /// No other follows it.
    pub(crate) is_last: bool,
    pub(crate) carried: Carried,
}

/// What comes with a completion.
pub(crate) enum Carried {
    Nothing,
    /// Bytes that came.
    Piece(Piece),
    /// The memory that was sent from, and from where in it.
    Memory(Vec<u8>, usize),
}
