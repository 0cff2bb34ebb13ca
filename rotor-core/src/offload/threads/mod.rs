//! The threads of a pool: how jobs reach them (here), how they wait for jobs (`waiting`), how they
//! run a job (`running`), and what is recorded about it (`recording`).
//!
//! ```text
//!   offer ─▶ a place? ─no─▶ WhenFull
//!              │yes
//!              ▼                  wakes two more, while jobs wait
//!            queue ◀─ takes ─ thread ─▶ runs ─▶ spins ───▶ sleeps ─▶ ends (keep_idle)
//!              │                 ▲                            │
//!              └── may wake one ─┴────────────────────────────┘
//! ```
//!
//! A thread that offers a job wakes a thread of the pool only if more jobs wait than the threads
//! that are awake can be expected to take. Each thread that takes a job wakes two more while jobs
//! wait. So a loop that offers a hundred jobs in a turn pays for one or two wake-ups, or for none.

mod recording;
mod running;
mod waiting;

use std::io;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};

use self::recording::{record_end, record_start};
use super::queue::{IdleThread, NextJob, Queue, QueuedJob, WakeAction};
use super::settings::{Settings, ThreadHook, WhenFull};
use super::stats::PoolStats;
use super::work::OffloadJob;
use crate::clock::Clock;
use crate::guard::{drop_guarded, guard, log_guarded};
use crate::log_limit::LogLimit;
use crate::sync::atomic::AtomicUsize;
use crate::sync::thread::Builder;
use crate::sync::{Mutex, MutexGuard};

/// The state that the threads of a pool share.
pub(super) struct Shared {
    queue: Mutex<Queue>,
    /// Jobs that were accepted and that no thread has begun. Read without the lock when a job is
    /// offered, and by threads that spin.
    places: AtomicUsize,
    /// The number of threads. Read without the lock when a job is offered.
    threads: AtomicUsize,
    pub(super) settings: Settings,
    clock: Clock,
    /// Of the message that no thread can be started, which each job may repeat.
    start_failures: LogLimit,
}

impl Shared {
    pub(super) fn new(settings: Settings) -> Shared {
        Shared {
            queue: Mutex::new(Queue::default()),
            places: AtomicUsize::new(0),
            threads: AtomicUsize::new(0),
            settings,
            clock: Clock::new(),
            start_failures: LogLimit::default(),
        }
    }

    /// Starts the threads that are always kept.
    ///
    /// # Errors
    ///
    /// Returns the system's error if a thread cannot be started. The threads started before remain.
    pub(super) fn start_min_threads(self: &Arc<Self>) -> io::Result<()> {
        (0..self.settings.threads_min).try_for_each(|_| {
            let number = {
                let mut queue = self.lock();
                // The thread will find jobs that are queued before it looks.
                queue.waking += 1;
                queue.add_thread()
            };
            self.start_thread(number)
        })
    }

    pub(super) fn stats(&self) -> PoolStats {
        self.lock().stats()
    }

    /// Takes the job that `make` creates, or makes room by running one here. Returns `false` if the
    /// job was refused.
    pub(super) fn offer(
        self: &Arc<Self>,
        is_urgent: bool,
        make: &mut dyn FnMut() -> OffloadJob,
    ) -> bool {
        if !self.reserve_place() {
            return self.offer_to_full(is_urgent, make);
        }
        // Before the job is made, which cannot be undone. If the threads end meanwhile, a new one
        // is started.
        let place = PlaceGuard(&self.places);
        if self.threads.load(Relaxed) == 0 && !self.ensure_thread() {
            self.lock().stats.refused += 1;
            return false;
        }
        // Without the lock, because it allocates.
        let job = make();
        std::mem::forget(place);
        self.push(QueuedJob { job, since: self.clock.now() }, is_urgent);
        true
    }

    fn reserve_place(&self) -> bool {
        let mut places = self.places.load(Relaxed);
        while places < self.settings.jobs_max {
            match self.places.compare_exchange_weak(places, places + 1, Relaxed, Relaxed) {
                Ok(_) => return true,
                Err(now) => places = now,
            }
        }
        false
    }

    /// Returns whether a job would be refused now.
    fn is_full(&self) -> bool {
        self.places.load(Relaxed) >= self.settings.jobs_max
    }

    /// Runs the oldest job here and takes the new one in its place, if so configured.
    #[cold]
    fn offer_to_full(
        self: &Arc<Self>,
        is_urgent: bool,
        make: &mut dyn FnMut() -> OffloadJob,
    ) -> bool {
        // Jobs that were run here and now wait for a permit can exceed the limit.
        let has_too_many = self.places.load(Relaxed) > self.settings.jobs_max;
        if self.settings.when_full == WhenFull::Refuse || has_too_many {
            self.lock().stats.refused += 1;
            return false;
        }
        let new = QueuedJob { job: make(), since: self.clock.now() };
        let oldest = {
            let mut queue = self.lock();
            let oldest = queue.pop();
            match oldest {
                // It leaves its place to the new job.
                Some(oldest) => {
                    queue.push(new, is_urgent);
                    oldest
                }
                // Threads have taken all jobs meanwhile.
                None if self.reserve_place() => {
                    drop(queue);
                    self.push(new, is_urgent);
                    return true;
                }
                // No jobs may wait at all, or all places are occupied by jobs that wait for
                // permits.
                None => NextJob { queued: new, was_started: false },
            }
        };
        self.run_here(oldest);
        true
    }

    /// Queues a job that has a place, and wakes a thread for it.
    fn push(self: &Arc<Self>, queued: QueuedJob, is_urgent: bool) {
        let wake = {
            let mut queue = self.lock();
            queue.push(queued, is_urgent);
            queue.wake_for_offer(self.settings.threads_max, self.is_full())
        };
        self.perform(wake);
    }

    /// Queues a job that had begun before, and does not wait elsewhere any more, as the next one.
    fn push_resumed(self: &Arc<Self>, queued: QueuedJob, wait: Option<u64>) {
        let wake = {
            let mut queue = self.lock();
            queue.remove_wait(wait);
            if queue.is_closed {
                drop(queue);
                self.places.fetch_sub(1, Relaxed);
                return drop_guarded(queued.job, "a job of a pool that is gone");
            }
            queue.push_resumed(queued);
            queue.wake_for_offer(self.settings.threads_max, self.is_full())
        };
        self.perform(wake);
    }

    fn perform(self: &Arc<Self>, wake: WakeAction) {
        match wake {
            WakeAction::Nobody => {}
            WakeAction::Wake(idle_thread) => idle_thread.wakeup.notify_one(),
            WakeAction::Start(number) => {
                let Err(error) = self.start_thread(number) else { return };
                // The threads that exist will do the work.
                self.handle_start_failure(&error);
            }
        }
    }

    /// Takes care of jobs that came meanwhile. No thread was woken for them, because this thread
    /// was about to start and would have looked for jobs.
    #[cold]
    fn handle_start_failure(self: &Arc<Self>, error: &io::Error) {
        if let Some(suppressed) = self.start_failures.try_pass(self.clock.now()) {
            log_guarded!(
                warn,
                "no thread for work that was offloaded: {error} ({suppressed} such messages were \
                 suppressed)"
            );
        }
        let wake = {
            let mut queue = self.lock();
            // Under the lock, because the last other thread may be about to end.
            if queue.threads == 0 {
                drop(queue);
                return self.run_all_here();
            }
            queue.next_wake(0)
        };
        self.perform(wake);
    }

    /// Runs all jobs here: the last thread has ended since they were accepted, and no other can be
    /// started. This is better than never running them.
    #[cold]
    fn run_all_here(self: &Arc<Self>) {
        while let Some(next) = self.take_next() {
            self.run_here(next);
        }
    }

    fn take_next(&self) -> Option<NextJob> {
        let next = self.lock().pop()?;
        self.places.fetch_sub(1, Relaxed);
        Some(next)
    }

    fn run_here(self: &Arc<Self>, next: NextJob) {
        let started = self.clock.now();
        record_start(&mut self.lock().stats, &next, started);
        let ran = self.run(next.queued, started);
        let mut queue = self.lock();
        // A job that only began to wait for a permit may run elsewhere.
        queue.stats.run_here += u64::from(!ran.is_waiting());
        record_end(&mut queue.stats, ran);
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starting and ending threads.
impl Shared {
    /// Starts a first thread. Returns whether there is one.
    #[cold]
    fn ensure_thread(self: &Arc<Self>) -> bool {
        let number = {
            let mut queue = self.lock();
            if queue.threads > 0 {
                return true;
            }
            queue.waking += 1;
            queue.add_thread()
        };
        match self.start_thread(number) {
            Ok(()) => true,
            Err(error) => {
                self.handle_start_failure(&error);
                false
            }
        }
    }

    /// Starts a thread that is counted already. It counts as waking until it has looked for a job.
    fn start_thread(self: &Arc<Self>, number: usize) -> io::Result<()> {
        self.threads.fetch_add(1, Relaxed);
        let mut builder = Builder::new().name(format!("{}-{number}", self.settings.name));
        if let Some(bytes) = self.settings.stack_bytes {
            builder = builder.stack_size(bytes);
        }
        let shared = self.clone();
        let started = builder.spawn(move || shared.run_thread(number)).map(drop);
        if started.is_err() {
            let mut queue = self.lock();
            queue.remove_thread(number);
            queue.waking -= 1;
            drop(queue);
            self.threads.fetch_sub(1, Relaxed);
        }
        started
    }

    fn run_thread(self: Arc<Self>, number: usize) {
        if self.settings.on_thread_start.is_some() {
            self.lock().enter_start_hook();
            call_hook(&self.settings.on_thread_start, number);
            self.lock().leave_start_hook();
        }
        let idle_thread = Arc::new(IdleThread::default());
        let mut ran = None;
        let mut is_woken = true;
        while let Some((queued, started)) = self.next_job(&idle_thread, is_woken, ran) {
            is_woken = false;
            ran = Some(self.run(queued, started));
        }
        call_hook(&self.settings.on_thread_stop, number);
        self.retire(number);
    }

    /// Counts a thread as ended, and sees to the jobs that were queued while it called its stop
    /// hook, for which there may have been no room for another thread.
    fn retire(self: &Arc<Self>, number: usize) {
        let wake = {
            let mut queue = self.lock();
            queue.remove_ending_thread(number);
            self.threads.fetch_sub(1, Relaxed);
            queue.next_wake(self.settings.threads_max)
        };
        self.perform(wake);
    }

    /// Ends the pool. Waiting jobs are dropped, also those that wait for a permit, and each thread
    /// ends after its job.
    pub(super) fn close(&self) {
        let (queued, idle, waits) = {
            let mut queue = self.lock();
            queue.is_closed = true;
            (queue.take_all(), std::mem::take(&mut queue.idle), queue.take_waits())
        };
        idle.iter().for_each(|idle_thread| idle_thread.wakeup.notify_one());
        queued.for_each(|queued| drop_guarded(queued.job, "a job of a pool that is gone"));
        waits
            .filter_map(|(queue, place)| Some((queue.upgrade()?, place)))
            .for_each(|(queue, place)| queue.remove(place));
    }
}

/// A place that is freed on drop, unless a job takes it.
struct PlaceGuard<'a>(&'a AtomicUsize);

impl Drop for PlaceGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

fn call_hook(hook: &Option<ThreadHook>, number: usize) {
    if let Some(hook) = hook
        && let Err(panicked) = guard(|| hook(number))
    {
        log_guarded!(error, "a hook of a pool's thread {panicked}");
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;
    use crate::offload::OffloadPool;

    /// A pool that can start no thread, with a queued job.
    fn pool_without_threads() -> (OffloadPool, Arc<Shared>, mpsc::Receiver<()>) {
        let pool = OffloadPool::builder().stack_bytes(usize::MAX / 4).build();
        let pool = pool.expect("no thread yet");
        let shared = pool.shared();
        assert!(shared.reserve_place());
        let (ran, has_run) = mpsc::channel();
        let job: OffloadJob = Box::new(move || ran.send(()).expect("the test waits"));
        shared.lock().push(QueuedJob { job, since: shared.clock.now() }, false);
        (pool, shared, has_run)
    }

    #[test]
    fn a_job_queued_while_the_first_thread_failed_to_start_is_run() {
        let (_pool, shared, has_run) = pool_without_threads();
        assert!(!shared.ensure_thread());
        assert_eq!(has_run.try_recv(), Ok(()), "it had counted on that thread");
        assert_eq!((shared.stats().queued, shared.places.load(Relaxed)), (0, 0));
    }

    #[test]
    fn a_job_is_run_when_a_start_fails_and_the_last_thread_has_ended() {
        let (_pool, shared, has_run) = pool_without_threads();
        // As when the count is read without the lock, just before the other thread ends.
        shared.threads.fetch_add(1, Relaxed);
        let number = {
            let mut queue = shared.lock();
            queue.waking += 1;
            queue.add_thread()
        };
        shared.perform(WakeAction::Start(number));
        assert_eq!(has_run.try_recv(), Ok(()), "nobody else is left");
    }

    #[test]
    fn a_failed_start_wakes_a_sleeping_thread_for_the_queued_job() {
        let (_pool, shared, has_run) = pool_without_threads();
        let idle_thread = Arc::new(IdleThread::default());
        shared.threads.fetch_add(1, Relaxed);
        let number = {
            let mut queue = shared.lock();
            queue.add_thread();
            queue.idle.push(idle_thread.clone());
            queue.waking += 1;
            queue.add_thread()
        };
        shared.perform(WakeAction::Start(number));
        assert!(idle_thread.is_woken.load(Relaxed), "it had counted on the one that failed");
        assert_eq!((has_run.try_recv().is_ok(), shared.lock().waking), (false, 1));
    }

    #[test]
    fn an_idle_thread_is_woken_while_another_one_is_in_its_start_hook() {
        let ((entered, has_entered), (release, released)) = (mpsc::channel(), mpsc::channel());
        let released = std::sync::Mutex::new(released);
        let builder = OffloadPool::builder().threads_max(2).on_thread_start(move |number| {
            if number == 1 {
                entered.send(()).expect("the test waits");
                let _: Result<(), _> = released.lock().expect("nobody panics").recv();
            }
        });
        let pool = builder.build().expect("no thread yet");
        let shared = pool.shared();
        let (end_first, first_ends) = mpsc::channel::<()>();
        let (end_last, last_ends) = mpsc::channel::<()>();
        let wait = |end: mpsc::Receiver<()>| move || _ = end.recv();
        let mut jobs: Vec<OffloadJob> =
            vec![Box::new(wait(last_ends)), Box::new(|| {}), Box::new(wait(first_ends))];
        // The second job starts the second thread, and is run by the first one.
        assert!(pool.offer(&mut || jobs.pop().expect("there are three")));
        while shared.stats().running == 0 {
            std::thread::yield_now();
        }
        assert!(pool.offer(&mut || jobs.pop().expect("there are three")));
        has_entered.recv().expect("it is started");
        drop(end_first);
        while shared.lock().idle.is_empty() {
            std::thread::yield_now();
        }
        assert_eq!((shared.stats().done, shared.stats().threads), (2, 2));
        assert!(pool.offer(&mut || jobs.pop().expect("there are three")));
        assert!(shared.lock().idle.is_empty(), "it does not wait for the other one");
        drop((release, end_last));
    }
}
