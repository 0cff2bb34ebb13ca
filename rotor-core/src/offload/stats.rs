//! `PoolStats`: the statistics of a pool.

use crate::histogram::Histogram;

/// The statistics of a pool of threads: what it has done since it was made, and what it is doing
/// now.
///
/// [`OffloadPool::stats`](crate::OffloadPool::stats) returns them. Counters never decrease, and all
/// figures are of the same moment.
#[doc(alias = "metrics")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PoolStats {
    /// The threads that exist now, including those that are starting or ending.
    pub threads: usize,
    /// The most threads that existed at a time.
    pub threads_most: usize,
    /// Jobs that are running now.
    pub running: usize,
    /// Jobs that wait for a thread now.
    pub queued: usize,
    /// The most jobs that waited at a time.
    pub queued_most: usize,
    /// Jobs that a thread took, including those that turned out to be late or cancelled. A job that
    /// waits for a permit after that is counted once; if it gets none, because the permits were
    /// closed or are gone, it is counted nowhere else.
    pub begun: u64,
    /// Jobs that were completed.
    pub done: u64,
    /// Jobs that were refused, because there was no room or no thread.
    pub refused: u64,
    /// Jobs that ran on a loop's own thread
    /// ([`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere)), each counted at its end. They
    /// are included in [`begun`](PoolStats::begun).
    pub run_here: u64,
    /// Jobs that were dropped because it was too late to begin them.
    pub late: u64,
    /// Jobs that were dropped before they began, because their results were no longer wanted.
    pub cancelled: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// How long jobs waited until a thread first took them. A wait for a permit comes after that
    /// and is not included.
    pub queue_time: Histogram,
    /// How long jobs ran.
    pub run_time: Histogram,
}
