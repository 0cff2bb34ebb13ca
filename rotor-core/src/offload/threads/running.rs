//! Running a job: its outcome, and its place while it waits for something other than a thread.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use super::Shared;
use super::noting::Ran;
use crate::guard::{guard, log_guarded};
use crate::offload::queue::Waiting;
use crate::offload::settings::OnJobPanic;
use crate::offload::work::{Again, Begun, QueueAgain};
use crate::time::Time;

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

/// Queues a job again that cannot go on yet.
struct RunAgain<'a> {
    shared: &'a Arc<Shared>,
    since: Time,
}

impl Again for RunAgain<'_> {
    fn queue_again(&self) -> QueueAgain {
        self.shared.places.fetch_add(1, Relaxed);
        let (mut kept, since) = (KeptPlace(Some(self.shared.clone())), self.since);
        Box::new(move |job| {
            // Once queued, the job keeps the place.
            if let Some(shared) = kept.0.take() {
                shared.push_again(Waiting { job, since });
            }
        })
    }
}

/// The place of a job that waits for something other than a thread.
struct KeptPlace(Option<Arc<Shared>>);

impl Drop for KeptPlace {
    fn drop(&mut self) {
        if let Some(shared) = &self.0 {
            shared.places.fetch_sub(1, Relaxed);
        }
    }
}
