//! What a thread of a pool does between jobs: it takes the next one, watches for it, sleeps, or
//! ends.

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Shared;
use super::noting::{Ran, note_begun, note_ran};
use crate::offload::queue::{Queue, Seat, Waiting};
use crate::sync::{MutexGuard, hint, spins, thread};
use crate::time::Time;

impl Shared {
    /// Waits for a job. Returns `None` when the thread should end.
    pub(super) fn next(
        self: &Arc<Self>,
        number: usize,
        seat: &Arc<Seat>,
        is_called: bool,
        ran: Option<Ran>,
    ) -> Option<(Waiting, Time)> {
        let mut begun = ran.as_ref().map(|ran| ran.ended);
        let mut has_watched = false;
        let mut queue = self.lock();
        queue.called -= usize::from(is_called);
        if let Some(ran) = ran {
            note_ran(&mut queue.stats, ran);
        }
        loop {
            if let Some(next) = queue.pop() {
                self.places.fetch_sub(1, Relaxed);
                let begun = begun.unwrap_or_else(|| self.clock.now());
                note_begun(&mut queue.stats, &next, begun);
                let calls = queue.calls_of_taker(self.settings.threads_max);
                drop(queue);
                calls.into_iter().for_each(|call| self.call(call));
                return Some((next.waiting, begun));
            }
            if queue.is_closed {
                self.leave(&mut queue, number);
                return None;
            }
            begun = None;
            // Once after each job, by every thread that runs out of jobs. Otherwise a loop with
            // short jobs for forty threads would wake all forty for each batch of them.
            if !has_watched {
                has_watched = true;
                queue.watching += 1;
                drop(queue);
                self.watch();
                queue = self.lock();
                queue.watching -= 1;
                continue;
            }
            queue.idle.push(seat.clone());
            queue = match self.sleep(queue, seat) {
                (queue, true) => queue,
                (mut queue, false) => {
                    self.leave(&mut queue, number);
                    return None;
                }
            };
        }
    }

    /// Sleeps until the thread is called or the pool ends. Returns `false` if the thread has been
    /// idle for so long that it should end.
    fn sleep<'q>(
        &'q self,
        mut queue: MutexGuard<'q, Queue>,
        seat: &Arc<Seat>,
    ) -> (MutexGuard<'q, Queue>, bool) {
        loop {
            if seat.is_called.swap(false, Relaxed) {
                queue.called -= 1;
                return (queue, true);
            }
            if queue.is_closed {
                return (queue, true);
            }
            let Some(keep_idle) = self.keep_idle(&queue) else {
                queue = seat.called.wait(queue).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let waited = seat.called.wait_timeout(queue, keep_idle);
            let (locked, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            queue = locked;
            let is_called = seat.is_called.load(Relaxed);
            if timeout.timed_out() && !is_called && self.keep_idle(&queue).is_some() {
                queue.idle.retain(|idle| !Arc::ptr_eq(idle, seat));
                return (queue, false);
            }
        }
    }

    /// Returns how long an idle thread is kept. `None` means that it is always kept, so that it
    /// need not wake up again and again for nothing. A thread is started only if none is idle, so
    /// never more threads sleep without a limit than are always kept.
    fn keep_idle(&self, queue: &Queue) -> Option<Duration> {
        (queue.threads > self.settings.threads_min).then_some(self.settings.keep_idle)
    }

    fn leave(&self, queue: &mut Queue, number: usize) {
        queue.remove_thread(number);
        self.threads.fetch_sub(1, Relaxed);
    }

    /// Waits for a job without sleeping, for less time than a sleep and a wake-up take: first by
    /// spinning, then by yielding the CPU.
    fn watch(&self) {
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
