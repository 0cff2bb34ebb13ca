//! `UringStats`: the statistics of a ring.

/// The statistics of a ring. All fields except `sockets` count since it was opened.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct UringStats {
    /// Calls of `io_uring_enter`.
    pub enters: u64,
    /// Operations that were submitted to the kernel.
    pub submitted: u64,
    /// Completions that were taken.
    pub completed: u64,
    /// Operations that found the submission queue full, and waited in the process's memory.
    pub submissions_overflowed: u64,
    /// Turns after which the kernel held completions that did not fit into the completion queue.
    pub completions_overflowed: u64,
    /// Receives that found no free buffer, so that the sockets were read with system calls instead.
    pub buffers_exhausted: u64,
    /// Unread bytes that were copied at the end of a turn, to free their buffers.
    pub bytes_copied: u64,
    /// How often the kernel delivered no more data to a stream because too much was unread.
    pub held_back: u64,
    /// Reads, writes and accepts that took a system call of their own: for sockets that are read
    /// directly, and for data that is too large to be copied.
    pub direct_calls: u64,
    /// Sends of which the kernel took only a part, or nothing, so that the rest was submitted again
    /// when there was room.
    pub short_sends: u64,
    /// Streams that were dropped and could not send everything in time, or before
    /// [too many others](crate::UringConfig::lingering_max) were dropped.
    pub lingered_too_long: u64,
    /// Completions for a socket that does not exist, or that make no sense: a bug, of this crate or
    /// of the kernel.
    pub stale: u64,
    /// Sockets of the ring now, including those of which the kernel still has operations.
    pub sockets: usize,
}
