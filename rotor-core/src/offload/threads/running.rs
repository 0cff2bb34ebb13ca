//! Running a job: its outcome, and its place while it waits for something other than a thread.

use std::cell::Cell;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::Shared;
use super::recording::RunRecord;
use crate::guard::{guard, log_guarded};
use crate::offload::queue::QueuedJob;
use crate::offload::settings::OnJobPanic;
use crate::offload::work::{JobStart, KeptPlace, OffloadJob, Requeue};
use crate::time::Time;
use crate::waiter_queue::WaiterQueue;

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
    fn keep_place(&self) -> Box<dyn KeptPlace> {
        self.shared.places.fetch_add(1, Relaxed);
        let (shared, wait) = (Some(self.shared.clone()), Cell::new(None));
        Box::new(WaitingJobPlace { shared, since: self.since, wait })
    }
}

/// The place of a job that waits for something other than a thread.
struct WaitingJobPlace {
    /// `None` once the job is queued again, and keeps the place.
    shared: Option<Arc<Shared>>,
    since: Time,
    /// The number under which the pool knows where the job waits.
    wait: Cell<Option<u64>>,
}

impl KeptPlace for WaitingJobPlace {
    fn leave_queue_on_close(&self, queue: Weak<dyn WaiterQueue>, place: u64) -> bool {
        let Some(shared) = &self.shared else { return false };
        let mut pool_queue = shared.lock();
        if !pool_queue.is_closed {
            self.wait.set(Some(pool_queue.add_wait(queue, place)));
        }
        !pool_queue.is_closed
    }

    fn is_pool_closed(&self) -> bool {
        self.shared.as_ref().is_none_or(|shared| shared.lock().is_closed)
    }

    fn requeue(mut self: Box<Self>, job: OffloadJob) {
        if let Some(shared) = self.shared.take() {
            shared.push_resumed(QueuedJob { job, since: self.since }, self.wait.get());
        }
    }
}

impl Drop for WaitingJobPlace {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.places.fetch_sub(1, Relaxed);
            shared.lock().remove_wait(self.wait.get());
        }
    }
}
