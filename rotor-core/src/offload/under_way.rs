//! The jobs of one loop that are under way, and how the loop waits for jobs that are nearly done.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crate::sync::{spins, thread};

/// Counts that a loop and the threads that run its jobs share.
#[derive(Default)]
pub(crate) struct JobCounts {
    under_way: AtomicUsize,
    unclaimed: AtomicU64,
}

impl JobCounts {
    /// Returns how many results were not taken because their receiver was gone.
    pub(crate) fn unclaimed(&self) -> u64 {
        self.unclaimed.load(Relaxed)
    }

    /// Returns whether any job was given away and is not done.
    #[inline]
    pub(crate) fn are_under_way(&self) -> bool {
        self.under_way.load(Relaxed) > 0
    }
}

/// Counts a job as under way for as long as this value exists.
pub(crate) struct UnderWay(Arc<JobCounts>);

impl UnderWay {
    pub(crate) fn begin(counts: &Arc<JobCounts>) -> UnderWay {
        counts.under_way.fetch_add(1, Relaxed);
        UnderWay(counts.clone())
    }

    /// Notes that the receiver of the result was gone.
    pub(crate) fn count_unclaimed(&self) {
        self.0.unclaimed.fetch_add(1, Relaxed);
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.under_way.fetch_sub(1, Relaxed);
    }
}

/// Decides whether a loop that only waits for jobs should yield the CPU to their threads for a
/// moment before it sleeps. Results that come within that moment cost no system call, and more of
/// them are found at once.
///
/// This pays off if jobs are short. If a loop has yielded in vain, it does not try again for the
/// next few sleeps: each time for twice as many.
#[derive(Default)]
pub(crate) struct JobWatch {
    // Atomics because the environment is shared by `&`; only one thread uses them.
    to_skip: AtomicU32,
    skipped: AtomicU32,
}

impl JobWatch {
    /// Yields for a moment, or until `has_come` returns `true`.
    #[cold]
    pub(crate) fn watch(&self, has_come: impl Fn() -> bool) {
        let to_skip = self.to_skip.load(Relaxed);
        if to_skip > 0 {
            return self.to_skip.store(to_skip - 1, Relaxed);
        }
        for _ in 0..spins(YIELDS) {
            thread::yield_now();
            if has_come() {
                return self.skipped.store(0, Relaxed);
            }
        }
        let skipped = (self.skipped.load(Relaxed) * 2 + 1).min(SKIPPED_MAX);
        self.skipped.store(skipped, Relaxed);
        self.to_skip.store(skipped, Relaxed);
    }
}

/// How often the loop yields. A yield takes a third of a microsecond if no other thread wants the
/// CPU.
const YIELDS: u32 = 4;

/// The maximum number of sleeps without a new attempt; so high that an attempt costs next to
/// nothing on average.
const SKIPPED_MAX: u32 = 255;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_loop_that_waits_in_vain_tries_again_after_twice_as_many_sleeps() {
        let (job_watch, looks) = (JobWatch::default(), Cell::new(0));
        let looks_in = |sleeps: u32, comes: bool| {
            looks.set(0);
            for _ in 0..sleeps {
                job_watch.watch(|| {
                    looks.set(looks.get() + 1);
                    comes
                });
            }
            looks.get()
        };
        let all = spins(YIELDS);
        assert_eq!(looks_in(1, false), all);
        assert_eq!(looks_in(1, false), 0, "one is left out");
        assert_eq!(looks_in(1, false), all);
        assert_eq!((looks_in(3, false), looks_in(1, false)), (0, all), "three are left out");
        assert_eq!((looks_in(7, false), looks_in(1, true)), (0, 1));
        assert_eq!(looks_in(5, true), 5, "what has paid is done each time");
        assert_eq!((looks_in(1, false), looks_in(1, false)), (all, 0));
        looks_in(100_000, false);
        assert_eq!(job_watch.skipped.load(Relaxed), SKIPPED_MAX);
    }

    #[test]
    fn jobs_are_under_way_until_they_are_dropped() {
        let counts = Arc::new(JobCounts::default());
        let job = UnderWay::begin(&counts);
        job.count_unclaimed();
        assert!(counts.are_under_way());
        drop(job);
        assert!(!counts.are_under_way());
        assert_eq!(counts.unclaimed(), 1);
    }
}
