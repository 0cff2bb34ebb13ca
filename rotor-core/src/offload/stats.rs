//! `PoolStats`: what a pool has done.

use crate::histogram::Histogram;

/// What a pool of threads has done since it was made, and what it does now.
///
/// Counters never run backwards, and all figures are of one moment:
/// [`OffloadPool::stats`](crate::OffloadPool::stats).
#[doc(alias = "metrics")]
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct PoolStats {
    /// The threads that exist now, including those that are being started.
    pub threads: usize,
    /// The most threads at a time so far.
    pub threads_most: usize,
    /// Jobs that are running now.
    pub running: usize,
    /// Jobs that wait for a thread now.
    pub queued: usize,
    /// The most jobs that waited at a time so far.
    pub queued_most: usize,
    /// Jobs that a thread took, including those that turned out to be late or cancelled. A job that
    /// waits for a permit in between is counted once.
    pub begun: u64,
    /// Jobs that were done.
    pub done: u64,
    /// Jobs that were refused, because there was no room or no thread.
    pub refused: u64,
    /// Jobs that were run on a loop's own thread
    /// ([`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere)); they are included in
    /// [`begun`](PoolStats::begun).
    pub run_here: u64,
    /// Jobs that were dropped because it was too late to begin them.
    pub late: u64,
    /// Jobs that were dropped before they began, because nobody waited for them any more.
    pub cancelled: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// How long jobs waited until a thread first took them. Waiting for a permit comes after that.
    pub queue_time: Histogram,
    /// How long jobs ran.
    pub run_time: Histogram,
}
