//! `UringStats`: what a ring has done.

/// What a ring has done, and what it holds. All but `sockets` are counts since it was made.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UringStats {
    /// System calls `io_uring_enter`.
    pub enters: u64,
    /// Operations that were handed to the kernel.
    pub submitted: u64,
    /// Completions that were taken.
    pub completed: u64,
    /// Operations that found the submission queue full, and waited in memory of ours.
    pub submissions_overflowed: u64,
    /// Turns after which the kernel held completions for which the queue had no room.
    pub completions_overflowed: u64,
    /// Receives that found no buffer: their sockets were asked instead.
    pub buffers_exhausted: u64,
    /// Unread bytes that were copied at the end of a turn, so that their buffers went back.
    pub bytes_copied: u64,
    /// How often a stream was given no more, since too much of it was unread.
    pub held_back: u64,
    /// Reads, writes and accepts that were system calls of their own: of sockets that are asked,
    /// and of what is too large to be copied.
    pub direct_calls: u64,
    /// Sends of which the kernel took a part, so that the rest was handed to it again.
    pub short_sends: u64,
    /// Streams that were dropped before all that they had taken was sent, and whose time to send it
    /// ran out.
    pub lingered_too_long: u64,
    /// Completions for a socket that is gone, or that make no sense: a bug, of ours or the kernel's.
    pub stale: u64,
    /// Sockets that the ring knows now, those included with which the kernel is not done yet.
    pub sockets: usize,
}
