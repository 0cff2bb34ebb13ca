//! `ThreadCount`: how many threads one loop has.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use crate::blocking::{BlockCounts, ThreadBudget};

/// How many threads there are. The first of a loop is free: without it nothing runs. All others are
/// of one budget with those of the other loops.
pub(super) struct ThreadCount {
    now: AtomicUsize,
    counts: Arc<BlockCounts>,
    budget: Arc<ThreadBudget>,
}

impl ThreadCount {
    pub(super) fn new(counts: Arc<BlockCounts>, budget: Arc<ThreadBudget>) -> ThreadCount {
        ThreadCount { now: AtomicUsize::new(0), counts, budget }
    }

    /// Notes one more, if that may be.
    pub(super) fn begin(&self) -> bool {
        if self.now.fetch_add(1, Relaxed) > 0 && !self.budget.take() {
            self.now.fetch_sub(1, Relaxed);
            return false;
        }
        self.counts.thread_began();
        true
    }

    pub(super) fn end(&self) {
        self.counts.thread_ended();
        if self.now.fetch_sub(1, Relaxed) > 1 {
            self.budget.give_back();
        }
    }
}
