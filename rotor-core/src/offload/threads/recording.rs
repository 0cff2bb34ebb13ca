//! What is recorded of a job in the statistics of its pool.

use crate::guard::Panicked;
use crate::offload::queue::NextJob;
use crate::offload::stats::PoolStats;
use crate::offload::work::JobEnd;
use crate::time::Time;

/// The outcome of a job, to be counted when the lock is held anyway.
pub(super) struct RunRecord {
    pub(super) end: Result<JobEnd, Panicked>,
    pub(super) started: Time,
    pub(super) ended: Time,
}

impl RunRecord {
    /// Returns whether the job waits for something, and will begin again.
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.end, Ok(JobEnd::Waits))
    }
}

pub(super) fn record_start(stats: &mut PoolStats, next: &NextJob, started: Time) {
    stats.running += 1;
    // Only once for each job: a job that waits for a permit begins twice.
    if !next.was_started {
        stats.begun += 1;
        stats.queue_time.note(started - next.queued.since);
    }
}

pub(super) fn record_end(stats: &mut PoolStats, ran: RunRecord) {
    stats.running -= 1;
    match ran.end {
        Ok(JobEnd::Done) => stats.done += 1,
        Ok(JobEnd::Late) => stats.late += 1,
        Ok(JobEnd::Cancelled) => stats.cancelled += 1,
        // The job will begin again, and is counted when it ends then.
        Ok(JobEnd::Waits) => return,
        Err(_) => stats.panicked += 1,
    }
    stats.run_time.note(ran.ended - ran.started);
}
