//! `BlockCounts`: counts of blocking sections.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};

/// The counts of one loop, for its statistics only: no decision depends on them.
#[derive(Default)]
pub(crate) struct BlockCounts {
    pub(crate) inline: AtomicU64,
    pub(crate) handed_over: AtomicU64,
    pub(crate) handed_quick: AtomicU64,
    pub(crate) no_thread: AtomicU64,
    pub(crate) taken_over: AtomicU64,
    pub(crate) late_answers: AtomicU64,
    threads: AtomicUsize,
    threads_most: AtomicUsize,
}

impl BlockCounts {
    pub(crate) fn add(count: &AtomicU64) {
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn read(count: &AtomicU64) -> u64 {
        count.load(Relaxed)
    }

    pub(crate) fn thread_started(&self) {
        let threads = self.threads.fetch_add(1, Relaxed) + 1;
        self.threads_most.fetch_max(threads, Relaxed);
    }

    pub(crate) fn thread_ended(&self) {
        self.threads.fetch_sub(1, Relaxed);
    }

    /// Returns the current number of threads and the largest number so far.
    pub(crate) fn threads(&self) -> (u64, u64) {
        (self.threads.load(Relaxed) as u64, self.threads_most.load(Relaxed) as u64)
    }
}
