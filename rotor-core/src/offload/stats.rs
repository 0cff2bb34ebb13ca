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
    /// Threads there are now, those that are being started included.
    pub threads: usize,
    /// The most threads there were at a time.
    pub threads_most: usize,
    /// Jobs that are being run.
    pub running: usize,
    /// Jobs that wait for a thread.
    pub queued: usize,
    /// The most jobs that waited at a time.
    pub queued_most: usize,
    /// Jobs that a thread took; those that turned out to be late or cancelled are among them.
    /// One that waits for a permit meanwhile is counted once.
    pub begun: u64,
    /// Jobs that were done.
    pub done: u64,
    /// Jobs that were not taken, because there was no room or no thread.
    pub refused: u64,
    /// Jobs that were run on a loop's own thread
    /// ([`WhenFull::RunOldestHere`](crate::WhenFull::RunOldestHere)); they are among those begun.
    pub run_here: u64,
    /// Jobs that were dropped since it was too late to begin them.
    pub late: u64,
    /// Jobs that were dropped before they began since nobody waited for them any more.
    pub cancelled: u64,
    /// Jobs that panicked.
    pub panicked: u64,
    /// How long jobs waited until a thread first took them; for a permit they wait after that.
    pub queue_time: Histogram,
    /// How long they then ran.
    pub run_time: Histogram,
}
