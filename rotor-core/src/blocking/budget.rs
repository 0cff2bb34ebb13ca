//! `ThreadBudget`: how many threads loops may have in addition to their first.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

#[derive(Debug)]
pub(crate) struct ThreadBudget {
    max: usize,
    left: AtomicUsize,
}

impl ThreadBudget {
    pub(super) fn new(threads: usize) -> ThreadBudget {
        ThreadBudget { max: threads, left: AtomicUsize::new(threads) }
    }

    /// Returns the maximum number of threads.
    pub(super) fn max(&self) -> usize {
        self.max
    }

    /// Takes a thread; returns `false` if none is left.
    pub(crate) fn try_acquire(&self) -> bool {
        self.left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    pub(crate) fn release(&self) {
        self.left.fetch_add(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_thread_can_be_acquired_again() {
        let budget = ThreadBudget::new(1);
        assert!(budget.try_acquire() && !budget.try_acquire());
        budget.release();
        assert!(budget.try_acquire());
    }
}
