//! What a thread of a pool does between jobs: it takes the next one, spins for it, sleeps, or
//! ends.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Shared;
use super::recording::{RunRecord, record_end, record_start};
use crate::offload::queue::{IdleThread, Queue, QueuedJob};
use crate::sync::{MutexGuard, hint, spins, thread};
use crate::time::Time;

impl Shared {
    /// Waits for a job. Returns `None` when the thread should end; it then counts as ending.
    pub(super) fn next_job(
        self: &Arc<Self>,
        idle_thread: &Arc<IdleThread>,
        is_woken: bool,
        ran: Option<RunRecord>,
    ) -> Option<(QueuedJob, Time)> {
        let mut started = ran.as_ref().map(|ran| ran.ended);
        let mut has_spun = false;
        let mut queue = self.lock();
        queue.waking -= usize::from(is_woken);
        if let Some(ran) = ran {
            record_end(&mut queue.stats, ran);
        }
        loop {
            if let Some(next) = queue.pop() {
                self.places.fetch_sub(1, Relaxed);
                let started = started.unwrap_or_else(|| self.clock.now());
                record_start(&mut queue.stats, &next, started);
                let wakes = queue.wakes_for_taker(self.settings.threads_max);
                drop(queue);
                wakes.into_iter().for_each(|wake| self.perform(wake));
                return Some((next.queued, started));
            }
            if queue.is_closed {
                queue.ending += 1;
                return None;
            }
            started = None;
            // Once after each job, by every thread that runs out of jobs. Otherwise a loop with
            // short jobs for forty threads would wake all forty for each batch of them.
            if !has_spun {
                has_spun = true;
                queue.spinning += 1;
                drop(queue);
                self.spin_for_job();
                queue = self.lock();
                queue.spinning -= 1;
                continue;
            }
            queue.idle.push(idle_thread.clone());
            queue = match self.sleep(queue, idle_thread) {
                (queue, true) => queue,
                (mut queue, false) => {
                    queue.ending += 1;
                    return None;
                }
            };
        }
    }

    /// Sleeps until the thread is woken or the pool ends. Returns `false` if the thread has been
    /// idle for so long that it should end.
    fn sleep<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        idle_thread: &Arc<IdleThread>,
    ) -> (MutexGuard<'q, Queue>, bool) {
        loop {
            if idle_thread.is_woken.swap(false, Relaxed) {
                queue.waking -= 1;
                return (queue, true);
            }
            if queue.is_closed {
                return (queue, true);
            }
            let Some(keep_idle) = self.idle_limit(&queue) else {
                queue = idle_thread.wakeup.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = idle_thread.wakeup.wait_timeout(queue, keep_idle);
            let (locked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            let is_woken = idle_thread.is_woken.load(Relaxed);
            if timeout.timed_out() && !is_woken && self.idle_limit(&queue).is_some() {
                queue.idle.retain(|idle| !Arc::ptr_eq(idle, idle_thread));
                return (queue, false);
            }
        }
    }

    /// Returns how long an idle thread is kept. `None` means that it is always kept, so that it
    /// need not wake up again and again for nothing. A thread is started only if none is idle, so
    /// never more threads sleep without a limit than are always kept. Threads that are ending do
    /// not count.
    fn idle_limit(&self, queue: &Queue) -> Option<Duration> {
        let kept = queue.threads - queue.ending;
        (kept > self.settings.threads_min).then_some(self.settings.keep_idle)
    }

    /// Waits for a job without sleeping, for less time than a sleep and a wake-up take: first by
    /// spinning, then by yielding the CPU.
    fn spin_for_job(&self) {
        for _ in 0..spins(SPINS) {
            if self.places.load(Relaxed) > 0 {
                return;
            }
            hint::spin_loop();
        }
        for _ in 0..spins(YIELDS) {
            thread::yield_now();
            if self.places.load(Relaxed) > 0 {
                return;
            }
        }
    }
}

/// How often a thread looks for the next job before it yields the CPU: for one or two microseconds.
/// A longer time would make many concurrent jobs cheaper, and single jobs more expensive
/// (`benches/peers/offload`).
const SPINS: u32 = 30;

/// How often it then yields the CPU before it sleeps. A yield takes a third of a microsecond, a
/// sleep and a wake-up about five (`benches/peers/dispatch`).
const YIELDS: u32 = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::OffloadPool;

    #[test]
    fn an_ending_thread_is_none_of_those_that_are_always_kept() {
        let builder = OffloadPool::builder().threads_max(2).threads_min(1);
        let shared = builder.build().expect("one thread").shared();
        let mut queue = Queue::default();
        for (threads, ending, is_kept) in [(1, 0, true), (2, 0, false), (2, 1, true)] {
            (queue.threads, queue.ending) = (threads, ending);
            assert_eq!(shared.idle_limit(&queue).is_none(), is_kept, "{threads} {ending}");
        }
    }
}
