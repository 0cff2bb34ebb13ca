//! `ThreadCount`: the number of threads of one loop.

use std::sync::{Arc, PoisonError};

use crate::blocking::{BlockCounts, ThreadBudget};
use crate::sync::Mutex;

/// Counts the threads of a loop. The first one is free, because without it nothing runs. All others
/// are taken from a budget that several loops share.
pub(super) struct ThreadCount {
    /// Whenever the lock is free, all but one of them are taken from the budget: whichever thread
    /// ends, one is given back if others remain.
    now: Mutex<usize>,
    counts: Arc<BlockCounts>,
    budget: Arc<ThreadBudget>,
}

impl ThreadCount {
    pub(super) fn new(counts: Arc<BlockCounts>, budget: Arc<ThreadBudget>) -> ThreadCount {
        ThreadCount { now: Mutex::new(0), counts, budget }
    }

    /// Counts one more thread, if that is allowed.
    pub(super) fn begin(&self) -> bool {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        if *now > 0 && !self.budget.try_acquire() {
            return false;
        }
        *now += 1;
        self.counts.thread_started();
        true
    }

    pub(super) fn end(&self) {
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        *now -= 1;
        if *now > 0 {
            self.budget.release();
        }
        self.counts.thread_ended();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocking::Blocking;

    #[test]
    fn one_is_free_whichever_ends_and_all_others_are_of_the_budget() {
        let budget = Blocking::new().threads_max(1).thread_budget();
        let count = ThreadCount::new(Arc::default(), budget.clone());
        for _ in 0..2 {
            assert!(count.begin() && count.begin() && !count.begin());
            assert!(!budget.try_acquire(), "it is spent");
            count.end();
            assert!(budget.try_acquire(), "one is back");
            assert!(!count.begin(), "another loop has it");
            budget.release();
            count.end();
        }
        assert!(budget.try_acquire() && !budget.try_acquire());
    }
}
