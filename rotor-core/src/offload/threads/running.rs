//! Running a job: what came of it, and its place while it waits for something else.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Shared;
use crate::guard::{Panicked, guard, log_guarded};
use crate::offload::queue::{Next, Waiting};
use crate::offload::settings::OnJobPanic;
use crate::offload::stats::PoolStats;
use crate::offload::work::{Again, Begun, JobEnd, QueueAgain};
use crate::time::Time;

/// What became of a job, to be counted when the lock is held anyway.
pub(super) struct Ran {
    end: Result<JobEnd, Panicked>,
    begun: Time,
    pub(super) ended: Time,
}

impl Shared {
    pub(super) fn run(self: &Arc<Self>, waiting: Waiting, begun: Time) -> Ran {
        let Waiting { job, since } = waiting;
        let again = RunAgain { shared: self, since };
        let end = guard(|| job.run(&Begun::after(begun - since).on_thread(self.clock, &again)));
        if let Err(panicked) = &end {
            log_guarded!(error, "work that was offloaded {panicked}");
            if self.settings.on_panic == OnJobPanic::Abort {
                std::process::abort();
            }
        }
        Ran { end, begun, ended: self.clock.now() }
    }
}

/// What a job that cannot go on yet is queued again by.
struct RunAgain<'a> {
    shared: &'a Arc<Shared>,
    since: Time,
}

impl Again for RunAgain<'_> {
    fn queue_again(&self) -> QueueAgain {
        self.shared.places.fetch_add(1, Relaxed);
        let (mut kept, since) = (KeptPlace(Some(self.shared.clone())), self.since);
        Box::new(move |job| {
            // Queued, it has the place still.
            if let Some(shared) = kept.0.take() {
                shared.push_again(Waiting { job, since });
            }
        })
    }
}

/// The place of a job that waits for something else than a thread.
struct KeptPlace(Option<Arc<Shared>>);

impl Drop for KeptPlace {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.places.fetch_sub(1, Relaxed);
        }
    }
}

pub(super) fn note_begun(stats: &mut PoolStats, next: &Next, begun: Time) {
    stats.running += 1;
    // Once for each job: one that waits for a permit begins twice.
    if !next.had_begun {
        stats.begun += 1;
        stats.queue_time.note(begun - next.waiting.since);
    }
}

pub(super) fn note_ran(stats: &mut PoolStats, ran: Ran) {
    stats.running -= 1;
    match ran.end {
        Ok(JobEnd::Done) => stats.done += 1,
        Ok(JobEnd::Late) => stats.late += 1,
        Ok(JobEnd::Cancelled) => stats.cancelled += 1,
        // It begins anew, and ends then.
        Ok(JobEnd::Waits) => return,
        Err(_) => stats.panicked += 1,
    }
    stats.run_time.note(ran.ended - ran.begun);
}
