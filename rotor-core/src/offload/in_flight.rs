//! The jobs of one loop that are under way, and how the loop waits for jobs that are nearly done.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize};

use crate::guard::log_guarded;
use crate::log_limit::LogLimit;
use crate::sync::{spins, thread};
use crate::time::Time;

/// Counts that a loop and the threads that run its jobs share.
#[derive(Default)]
pub(crate) struct JobCounts {
    in_flight: AtomicUsize,
    unclaimed: AtomicU64,
    /// Of the message that a detached job was not begun.
    lost_jobs: LogLimit,
}

impl JobCounts {
    /// Returns how many results were not taken because their receiver was gone.
    pub(crate) fn unclaimed(&self) -> u64 {
        self.unclaimed.load(Relaxed)
    }

    /// Returns whether any job was given away and is not done.
    #[inline]
    pub(crate) fn has_jobs_in_flight(&self) -> bool {
        self.in_flight.load(Relaxed) > 0
    }
}

/// Counts a job as under way for as long as this value exists.
pub(crate) struct InFlightGuard {
    counts: Arc<JobCounts>,
    /// The job is detached, and has not begun: if it is lost, only the log says so.
    is_to_be_logged: bool,
}

impl InFlightGuard {
    pub(crate) fn begin(counts: &Arc<JobCounts>, is_detached: bool) -> InFlightGuard {
        counts.in_flight.fetch_add(1, Relaxed);
        InFlightGuard { counts: counts.clone(), is_to_be_logged: is_detached }
    }

    /// Notes that the job has begun.
    pub(crate) fn note_begun(&mut self) {
        self.is_to_be_logged = false;
    }

    /// Logs that the job will not begin, if it is detached. The messages have a limit: under load
    /// each request may have such a job.
    pub(crate) fn log_loss(&mut self, why: &str, now: Time) {
        let is_to_be_logged = std::mem::take(&mut self.is_to_be_logged);
        if is_to_be_logged && let Some(suppressed) = self.counts.lost_jobs.try_pass(now) {
            log_guarded!(
                warn,
                "a detached job was not begun: {why} ({suppressed} such messages were suppressed)"
            );
        }
    }

    /// Records that the receiver of the result was gone.
    pub(crate) fn count_unclaimed(&self) {
        self.counts.unclaimed.fetch_add(1, Relaxed);
    }
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        // Without a clock: the first of the jobs that end with their pool is logged.
        self.log_loss("its pool is gone", Time::ZERO);
        self.counts.in_flight.fetch_sub(1, Relaxed);
    }
}

/// Decides whether a loop that only waits for jobs should yield the CPU to their threads for a
/// moment before it sleeps. Results that come within that moment cost no system call, and more of
/// them are found at once.
///
/// This pays off if jobs are short. If a loop has yielded in vain, it does not try again for the
/// next few sleeps: each time for twice as many.
#[derive(Default)]
pub(crate) struct YieldPolicy {
    // Atomics because the environment is shared by `&`; only one thread uses them.
    skips_left: AtomicU32,
    skip_count: AtomicU32,
}

impl YieldPolicy {
    /// Yields for a moment, or until `has_arrived` returns `true`.
    #[cold]
    pub(crate) fn yield_for_results(&self, has_arrived: impl Fn() -> bool) {
        let skips_left = self.skips_left.load(Relaxed);
        if skips_left > 0 {
            return self.skips_left.store(skips_left - 1, Relaxed);
        }
        for _ in 0..spins(YIELDS) {
            thread::yield_now();
            if has_arrived() {
                return self.skip_count.store(0, Relaxed);
            }
        }
        let skip_count = (self.skip_count.load(Relaxed) * 2 + 1).min(SKIPS_MAX);
        self.skip_count.store(skip_count, Relaxed);
        self.skips_left.store(skip_count, Relaxed);
    }
}

/// How often the loop yields. A yield takes a third of a microsecond if no other thread wants the
/// CPU.
const YIELDS: u32 = 4;

/// The maximum number of sleeps without a new attempt; so high that an attempt costs next to
/// nothing on average.
const SKIPS_MAX: u32 = 255;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn failed_yields_double_the_sleeps_until_the_next_attempt() {
        let (yield_policy, checks) = (YieldPolicy::default(), Cell::new(0));
        let checks_in = |sleeps: u32, arrives: bool| {
            checks.set(0);
            for _ in 0..sleeps {
                yield_policy.yield_for_results(|| {
                    checks.set(checks.get() + 1);
                    arrives
                });
            }
            checks.get()
        };
        let all = spins(YIELDS);
        assert_eq!(checks_in(1, false), all);
        assert_eq!(checks_in(1, false), 0, "one is left out");
        assert_eq!(checks_in(1, false), all);
        assert_eq!((checks_in(3, false), checks_in(1, false)), (0, all), "three are left out");
        assert_eq!((checks_in(7, false), checks_in(1, true)), (0, 1));
        assert_eq!(checks_in(5, true), 5, "what has paid is done each time");
        assert_eq!((checks_in(1, false), checks_in(1, false)), (all, 0));
        checks_in(100_000, false);
        assert_eq!(yield_policy.skip_count.load(Relaxed), SKIPS_MAX);
    }

    #[test]
    fn a_job_is_in_flight_until_it_is_dropped() {
        let counts = Arc::new(JobCounts::default());
        let job = InFlightGuard::begin(&counts, false);
        job.count_unclaimed();
        assert!(counts.has_jobs_in_flight());
        drop(job);
        assert!(!counts.has_jobs_in_flight());
        assert_eq!(counts.unclaimed(), 1);
    }
}
