//! `ThreadCount`: the number of threads of one loop.

use std::sync::{Arc, PoisonError};

use crate::blocking::{BlockCounts, ThreadBudget};
use crate::sync::Mutex;

/// Counts the threads of a loop. The first one is free, because without it nothing runs. All others
/// are taken from a budget that several loops share.
pub(super) struct ThreadCount {
    /// Whenever the lock is free, all but one of them are taken from the budget: whichever thread
    /// ends, one is given back if others remain.
    count: Mutex<usize>,
    counts: Arc<BlockCounts>,
    budget: Arc<ThreadBudget>,
}

impl ThreadCount {
    pub(super) fn new(counts: Arc<BlockCounts>, budget: Arc<ThreadBudget>) -> ThreadCount {
        ThreadCount { count: Mutex::new(0), counts, budget }
    }

    /// Counts one more thread, if that is allowed.
    pub(super) fn try_add(&self) -> bool {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        if *count > 0 && !self.budget.try_acquire() {
            return false;
        }
        *count += 1;
        self.counts.thread_started();
        true
    }

    pub(super) fn remove(&self) {
        let mut count = self.count.lock().unwrap_or_else(PoisonError::into_inner);
        *count -= 1;
        if *count > 0 {
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
    fn all_threads_but_one_are_taken_from_the_budget() {
        let budget = Blocking::new().threads_max(1).thread_budget();
        let threads = ThreadCount::new(Arc::default(), budget.clone());
        for _ in 0..2 {
            assert!(threads.try_add() && threads.try_add() && !threads.try_add());
            assert!(!budget.try_acquire(), "it is spent");
            threads.remove();
            assert!(budget.try_acquire(), "one is back");
            assert!(!threads.try_add(), "another loop has it");
            budget.release();
            threads.remove();
        }
        assert!(budget.try_acquire() && !budget.try_acquire());
    }
}
