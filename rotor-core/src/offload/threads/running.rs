//! Running a job: its outcome, and its place while it waits for something other than a thread.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Shared;
use super::recording::RunRecord;
use crate::guard::{guard, log_guarded};
use crate::offload::queue::QueuedJob;
use crate::offload::settings::OnJobPanic;
use crate::offload::work::{JobStart, Requeue, RequeueFn};
use crate::time::Time;

impl Shared {
    pub(super) fn run(self: &Arc<Self>, queued: QueuedJob, started: Time) -> RunRecord {
        let QueuedJob { job, since } = queued;
        let requeuer = Requeuer { shared: self, since };
        let end =
            guard(|| job.run(&JobStart::after(started - since).on_thread(self.clock, &requeuer)));
        if let Err(panicked) = &end {
            log_guarded!(error, "work that was offloaded {panicked}");
            if self.settings.on_panic == OnJobPanic::Abort {
                std::process::abort();
            }
        }
        RunRecord { end, started, ended: self.clock.now() }
    }
}

/// Queues a job again that cannot go on yet.
struct Requeuer<'a> {
    shared: &'a Arc<Shared>,
    since: Time,
}

impl Requeue for Requeuer<'_> {
    fn requeue_fn(&self) -> RequeueFn {
        self.shared.places.fetch_add(1, Relaxed);
        let (mut place, since) = (OwnedPlaceGuard(Some(self.shared.clone())), self.since);
        Box::new(move |job| {
            // Once queued, the job keeps the place.
            if let Some(shared) = place.0.take() {
                shared.push_resumed(QueuedJob { job, since });
            }
        })
    }
}

/// The place of a job that waits for something other than a thread.
struct OwnedPlaceGuard(Option<Arc<Shared>>);

impl Drop for OwnedPlaceGuard {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.places.fetch_sub(1, Relaxed);
        }
    }
}
