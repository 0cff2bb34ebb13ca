//! Work for other threads: a bounded pool that the loops of a group share, and what a machine gives
//! to it.
//!
//! ```text
//!   scope.offload(f) ─▶ room? ──no──▶ OffloadFull(f)
//!                        │yes
//!                        ▼
//!                      queue ─▶ a thread runs f ─▶ Port::set ─▶ the machine's `wakeup`
//! ```
//!
//! Threads are started as jobs come, up to the pool's number, and end with the pool. A job is run
//! at most once: one whose future was dropped, or whose machine has ended, before a thread got to
//! it is not run at all.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, PoisonError};

use crate::backend::OffloadJob;
use crate::future::Port;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::queue_memory::give_back;
use crate::sync::atomic::AtomicUsize;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::thread::Builder;
use crate::sync::{Condvar, Mutex, MutexGuard, hint, spins};

/// Threads for work that would hold up a loop: computations, files, libraries that block.
///
/// Clones are the same pool. Every [`Config`](crate::Config) carries one, so that the loops made
/// from clones of one `Config` share it. Without jobs it has no threads. When the last clone is
/// dropped, what still waits is dropped, and each thread ends after the job that it runs.
#[doc(alias = "thread pool")]
#[doc(alias = "spawn_blocking")]
#[doc(alias = "executor")]
#[derive(Clone)]
pub struct OffloadPool {
    owner: Arc<Owner>,
}

/// The pool has no room for another job; the closure comes back.
///
/// Nobody's fault: do without, answer "busy", or try again later. There is room when a job begins
/// to run.
#[doc(alias = "backpressure")]
pub struct OffloadFull<F>(pub F);

impl OffloadPool {
    /// Makes a pool of up to `threads` threads (at least 1) in which up to `jobs` jobs (at least 1)
    /// wait for one.
    pub fn new(threads: usize, jobs: usize) -> OffloadPool {
        let shared = Arc::new(Shared {
            queue: Mutex::new(Queue::default()),
            waiting: AtomicUsize::new(0),
            arrived: Condvar::new(),
            threads_max: threads.max(1),
            jobs_max: jobs.max(1),
        });
        OffloadPool { owner: Arc::new(Owner { shared }) }
    }

    /// Takes the job that `make` makes, which is called only if there is room. Returns whether it
    /// was.
    ///
    /// For those who implement a backend; machines use [`Scope::offload`](crate::Scope::offload).
    pub fn offer(&self, make: &mut dyn FnMut() -> OffloadJob) -> bool {
        let shared = &self.owner.shared;
        let mut queue = shared.lock();
        if queue.jobs.len() >= shared.jobs_max || !shared.has_thread(&mut queue) {
            return false;
        }
        queue.jobs.push_back(make());
        shared.waiting.store(queue.jobs.len(), Relaxed);
        // The thread that watches takes one job by itself; for a second one another must be woken.
        let is_seen = queue.is_watched && queue.jobs.len() == 1;
        let wakes = queue.idle > 0 && !is_seen;
        if wakes {
            // Here and not by the thread as it wakes: until then it would be woken for each job
            // anew.
            queue.idle -= 1;
            queue.woken += 1;
        }
        drop(queue);
        if wakes {
            shared.arrived.notify_one();
        }
        true
    }
}

impl Default for OffloadPool {
    /// 4 threads and 1,024 jobs: enough to look names up and read small files, few enough to be no
    /// load by themselves.
    fn default() -> OffloadPool {
        OffloadPool::new(4, 1_024)
    }
}

impl fmt::Debug for OffloadPool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { threads_max, jobs_max, .. } = &*self.owner.shared;
        write!(f, "OffloadPool({threads_max} threads, {jobs_max} jobs)")
    }
}

impl<F> OffloadFull<F> {
    /// Returns the closure that was not taken.
    pub fn into_job(self) -> F {
        self.0
    }
}

impl<F> fmt::Debug for OffloadFull<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OffloadFull(..)")
    }
}

impl<F> fmt::Display for OffloadFull<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no thread has room for another job (Config::offload_pool)")
    }
}

impl<F> std::error::Error for OffloadFull<F> {}

/// Makes the job of a closure: it runs it, hands the result over, and counts it when nobody is
/// there to take it.
pub(crate) fn job<T, F>(work: F, port: Port<T>, unclaimed: Arc<AtomicU64>) -> OffloadJob
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Box::new(move || {
        // Nobody waits any more: work that has not begun need not be done.
        if port.is_cancelled() {
            unclaimed.fetch_add(1, Relaxed);
            return;
        }
        // A panic in here drops the port while the thread unwinds, which tells the future.
        if port.set(work()).is_err() {
            unclaimed.fetch_add(1, Relaxed);
        }
    })
}

/// What the clones of a pool share, and the threads do not: its end is the end of the pool.
struct Owner {
    shared: Arc<Shared>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        let waiting = {
            let mut queue = self.shared.lock();
            queue.closed = true;
            std::mem::take(&mut queue.jobs)
        };
        self.shared.arrived.notify_all();
        waiting.into_iter().for_each(|job| drop_guarded(job, "a job of a pool that is gone"));
    }
}

struct Shared {
    queue: Mutex<Queue>,
    /// How many jobs wait, for the thread that watches without the lock.
    waiting: AtomicUsize,
    arrived: Condvar,
    threads_max: usize,
    jobs_max: usize,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<OffloadJob>,
    threads: usize,
    /// Threads that wait for a job, and none has been woken for.
    idle: usize,
    /// Threads that were woken for a job, and have not taken one yet.
    woken: usize,
    /// A thread that has just run a job watches for the next one, and need not be woken.
    is_watched: bool,
    closed: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether some thread will take one more job; starts one if all have enough to do and
    /// there may be more.
    fn has_thread(self: &Arc<Self>, queue: &mut Queue) -> bool {
        // All are busy: a thread more, rather than a job that waits while there may be one.
        if queue.idle == 0 && queue.threads < self.threads_max {
            match self.start(queue.threads) {
                Ok(()) => queue.threads += 1,
                // The threads that there are do the work; without any it is refused.
                Err(error) => log_guarded!(warn, "no thread for work that was offloaded: {error}"),
            }
        }
        queue.threads > 0
    }

    fn start(self: &Arc<Self>, number: usize) -> io::Result<()> {
        let shared = self.clone();
        Builder::new().name(format!("offload-{number}")).spawn(move || shared.work()).map(drop)
    }

    fn work(&self) {
        while let Some(job) = self.next() {
            if let Err(panicked) = guard(job) {
                log_guarded!(error, "work that was offloaded {panicked}");
            }
        }
    }

    fn next(&self) -> Option<OffloadJob> {
        let mut queue = self.lock();
        let mut has_watched = false;
        loop {
            if let Some(job) = queue.jobs.pop_front() {
                self.waiting.store(queue.jobs.len(), Relaxed);
                give_back(&mut queue.jobs);
                return Some(job);
            }
            if queue.closed {
                return None;
            }
            // Once behind each job, and one thread at a time: more of them would watch for the same
            // job.
            if !has_watched && !queue.is_watched {
                has_watched = true;
                queue.is_watched = true;
                drop(queue);
                self.watch();
                queue = self.lock();
                queue.is_watched = false;
                continue;
            }
            queue.idle += 1;
            // Not by the length of the queue: a thread that never slept may have taken the job by
            // now, and a condition variable may wake for no reason.
            while queue.woken == 0 && !queue.closed {
                queue = self.arrived.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            queue.woken = queue.woken.saturating_sub(1);
        }
    }

    /// Waits for a job without sleeping, for less time than a sleep and a wake-up take. One thread
    /// does at a time.
    fn watch(&self) {
        for _ in 0..spins(WATCHES) {
            if self.waiting.load(Relaxed) > 0 {
                return;
            }
            hint::spin_loop();
        }
    }
}

/// How often a thread looks for the next job before it sleeps: one or two microseconds. Longer
/// watching makes many jobs at a time cheaper and one at a time dearer (`benches/peers/offload`).
const WATCHES: u32 = 30;

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn offer(pool: &OffloadPool, job: impl FnOnce() + Send + 'static) -> bool {
        let mut job = Some(job);
        pool.offer(&mut || Box::new(job.take().expect("called once")))
    }

    #[test]
    fn a_full_pool_never_makes_the_job_and_room_comes_when_one_begins() {
        let pool = OffloadPool::new(1, 2);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        assert!(offer(&pool, move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        }));
        has_begun.recv().expect("the thread runs it");
        assert!(offer(&pool, || {}) && offer(&pool, || {}), "two may wait");
        assert!(!pool.offer(&mut || panic!("there is no room")));
        drop(release);
        let (done, is_done) = mpsc::channel();
        while !offer(&pool, {
            let done = done.clone();
            move || done.send(()).expect("the test waits")
        }) {
            std::thread::yield_now();
        }
        is_done.recv().expect("it was run");
    }

    #[test]
    fn a_panic_costs_its_job_only() {
        let pool = OffloadPool::new(1, 8);
        let (done, is_done) = mpsc::channel();
        assert!(offer(&pool, || std::panic::resume_unwind(Box::new("a bug in a job"))));
        assert!(offer(&pool, move || done.send(7).expect("the test waits")));
        assert_eq!(is_done.recv(), Ok(7));
        assert_eq!(pool.owner.shared.lock().threads, 1, "the thread went on");
    }

    #[test]
    fn what_waits_is_dropped_with_the_pool() {
        let pool = OffloadPool::new(1, 8);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        offer(&pool, move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        });
        has_begun.recv().expect("the thread runs it");
        let (kept, is_dropped) = mpsc::channel::<()>();
        offer(&pool, move || drop(kept));
        drop(pool);
        assert_eq!(is_dropped.recv(), Err(mpsc::RecvError));
        drop(release);
    }

    #[test]
    fn jobs_that_panic_as_they_are_dropped_with_the_pool_cost_nobody_else() {
        struct Bomb;

        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in drop");
            }
        }

        let pool = OffloadPool::new(1, 8);
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        offer(&pool, move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        });
        has_begun.recv().expect("the thread runs it");
        for _ in 0..2 {
            let bomb = Bomb;
            offer(&pool, move || std::mem::forget(bomb));
        }
        let (kept, is_dropped) = mpsc::channel::<()>();
        offer(&pool, move || drop(kept));
        drop(pool);
        assert_eq!(is_dropped.recv(), Err(mpsc::RecvError));
        drop(release);
    }

    #[test]
    fn jobs_start_threads_only_as_they_are_needed() {
        let pool = OffloadPool::default();
        assert_eq!(pool.owner.shared.lock().threads, 0);
        let (done, is_done) = mpsc::channel();
        for _ in 0..3 {
            let done = done.clone();
            offer(&pool, move || done.send(()).expect("the test waits"));
            is_done.recv().expect("it was run");
            while pool.owner.shared.lock().idle == 0 {
                std::thread::yield_now();
            }
        }
        assert_eq!(pool.owner.shared.lock().threads, 1);
        assert_eq!(format!("{pool:?}"), "OffloadPool(4 threads, 1024 jobs)");
    }
}
