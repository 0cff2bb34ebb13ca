//! The waiting jobs of a pool, its waiting threads, and which thread to wake.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};

use super::stats::PoolStats;
use super::work::OffloadJob;
use crate::queue_memory::shrink_empty;
use crate::sync::Condvar;
use crate::time::Time;
use crate::waiter_queue::WaiterQueue;

/// A job that waits for a thread.
pub(super) struct QueuedJob {
    pub(super) job: OffloadJob,
    pub(super) since: Time,
}

/// The job that begins next.
pub(super) struct NextJob {
    pub(super) queued: QueuedJob,
    /// The job was counted as begun, and timed, when it first began.
    pub(super) was_started: bool,
}

/// The place where one thread sleeps, so that this very thread can be woken.
#[derive(Default)]
pub(super) struct IdleThread {
    pub(super) wakeup: Condvar,
    /// Whether the thread was taken off the stack of idle threads. Accessed only under the lock.
    pub(super) is_woken: AtomicBool,
}

/// Everything in a pool that its lock guards.
#[derive(Default)]
pub(super) struct Queue {
    /// Jobs that had begun before, and then waited for something other than a thread.
    resumed: VecDeque<QueuedJob>,
    urgent: VecDeque<QueuedJob>,
    jobs: VecDeque<QueuedJob>,
    /// Sleeping threads. The last one to fall asleep is on top, because its memory is still in the
    /// caches.
    pub(super) idle: Vec<Arc<IdleThread>>,
    /// The number of threads that have just run out of jobs and spin for the next one before they
    /// sleep.
    pub(super) spinning: usize,
    /// The number of threads that were woken or started and have not looked for a job yet. Each
    /// wakes two more when it takes a job, so offering many jobs requires only a few wake-ups.
    pub(super) waking: usize,
    /// The number of threads that were started and are in their start hook, which may take long.
    in_start_hook: usize,
    /// The number of threads, including those that are ending.
    pub(super) threads: usize,
    /// The number of threads that will take no more jobs, and may be in their stop hook.
    pub(super) ending: usize,
    /// Where jobs wait for something other than a thread: for each, the queue and its place there.
    waits: BTreeMap<u64, (Weak<dyn WaiterQueue>, u64)>,
    last_wait: u64,
    /// The numbers of threads that have ended.
    pub(super) free_numbers: Vec<usize>,
    pub(super) is_closed: bool,
    pub(super) stats: PoolStats,
}

/// The maximum number of threads that are on their way at a time. With one, it would take so long
/// to wake forty that the first jobs would be done before. With many, a loop that offers short jobs
/// would wake all threads for work that one could do (`benches/peers/dispatch`).
const WAKING_MAX: usize = 4;

/// How many waiting jobs an offering thread leaves to each thread that is awake, which will take
/// one and wake others. Waking a thread costs as much as offering ten jobs
/// (`doc/decisions/0129-pool-wake-ups.md`).
const JOBS_PER_THREAD: usize = 16;

/// What to do for waiting jobs, once the lock is released.
#[must_use]
pub(super) enum WakeAction {
    Nobody,
    Wake(Arc<IdleThread>),
    /// Start a new thread with this number.
    Start(usize),
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.resumed.len() + self.urgent.len() + self.jobs.len()
    }

    pub(super) fn push(&mut self, queued: QueuedJob, is_urgent: bool) {
        if is_urgent { &mut self.urgent } else { &mut self.jobs }.push_back(queued);
        self.stats.queued_most = self.stats.queued_most.max(self.len());
    }

    /// Puts back a job that had begun, as the first one.
    pub(super) fn push_resumed(&mut self, queued: QueuedJob) {
        self.resumed.push_front(queued);
    }

    /// Takes the job that begins next.
    pub(super) fn pop(&mut self) -> Option<NextJob> {
        if let Some(queued) = self.resumed.pop_front() {
            shrink_empty(&mut self.resumed);
            return Some(NextJob { queued, was_started: true });
        }
        self.pop_new().map(|queued| NextJob { queued, was_started: false })
    }

    fn pop_new(&mut self) -> Option<QueuedJob> {
        if let Some(urgent) = self.urgent.pop_front() {
            shrink_empty(&mut self.urgent);
            return Some(urgent);
        }
        let next = self.jobs.pop_front();
        shrink_empty(&mut self.jobs);
        next
    }

    /// Notes where a job waits for something other than a thread. Returns the number of the note.
    pub(super) fn add_wait(&mut self, queue: Weak<dyn WaiterQueue>, place: u64) -> u64 {
        self.last_wait += 1;
        self.waits.insert(self.last_wait, (queue, place));
        self.last_wait
    }

    pub(super) fn remove_wait(&mut self, wait: Option<u64>) {
        if let Some(wait) = wait {
            self.waits.remove(&wait);
        }
    }

    /// Takes the notes of [`add_wait`](Queue::add_wait).
    pub(super) fn take_waits(
        &mut self,
    ) -> impl Iterator<Item = (Weak<dyn WaiterQueue>, u64)> + use<> {
        std::mem::take(&mut self.waits).into_values()
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = QueuedJob> + use<> {
        let queues = [&mut self.resumed, &mut self.urgent, &mut self.jobs].map(std::mem::take);
        queues.into_iter().flatten()
    }

    /// Returns which thread to wake when a job is offered: none as long as the threads that are
    /// awake can be expected to take the waiting jobs. More jobs than that mean that these threads
    /// do not get to run. If there is no room for another job, a thread is woken without waiting
    /// for that sign: otherwise the next job would be refused although a thread sleeps.
    pub(super) fn wake_for_offer(&mut self, threads_max: usize, is_full: bool) -> WakeAction {
        if !is_full && self.len() <= JOBS_PER_THREAD * self.awake_count() {
            return WakeAction::Nobody;
        }
        self.next_wake(threads_max)
    }

    /// Returns which threads to wake when a thread takes a job: two, so that the number of threads
    /// doubles with each wake-up latency.
    pub(super) fn wakes_for_taker(&mut self, threads_max: usize) -> [WakeAction; 2] {
        [(); 2].map(|()| self.next_wake(threads_max))
    }

    /// Returns which thread to wake for the waiting jobs: none if the threads that spin or are on
    /// their way are enough for them, or if [`WAKING_MAX`] are on their way already.
    pub(super) fn next_wake(&mut self, threads_max: usize) -> WakeAction {
        let awake = self.awake_count();
        if awake - self.spinning >= WAKING_MAX || self.len() <= awake {
            return WakeAction::Nobody;
        }
        if let Some(idle_thread) = self.idle.pop() {
            idle_thread.is_woken.store(true, Relaxed);
            self.waking += 1;
            return WakeAction::Wake(idle_thread);
        }
        if self.threads < threads_max {
            self.waking += 1;
            return WakeAction::Start(self.add_thread());
        }
        WakeAction::Nobody
    }

    /// Returns how many threads can be expected to look for a job: those that spin, and those that
    /// are on their way. Threads in their start hook are, too, but only if no thread is idle: an
    /// idle one need not wait for them.
    fn awake_count(&self) -> usize {
        let starting = if self.idle.is_empty() { self.in_start_hook } else { 0 };
        self.spinning + self.waking + starting
    }

    pub(super) fn enter_start_hook(&mut self) {
        self.waking -= 1;
        self.in_start_hook += 1;
    }

    pub(super) fn leave_start_hook(&mut self) {
        self.in_start_hook -= 1;
        self.waking += 1;
    }

    /// Counts a thread that is about to be started, and gives it a number.
    pub(super) fn add_thread(&mut self) -> usize {
        let number = self.free_numbers.pop().unwrap_or(self.threads);
        self.threads += 1;
        self.stats.threads_most = self.stats.threads_most.max(self.threads);
        number
    }

    /// Removes a thread that does not exist any more, or could not be started.
    pub(super) fn remove_thread(&mut self, number: usize) {
        self.threads -= 1;
        self.free_numbers.push(number);
        // The lowest number is reused first, so all numbers are below the most threads at a time.
        self.free_numbers.sort_unstable_by(|a, b| b.cmp(a));
    }

    /// Does the same for a thread that counts as ending.
    pub(super) fn remove_ending_thread(&mut self, number: usize) {
        self.ending -= 1;
        self.remove_thread(number);
    }

    pub(super) fn stats(&self) -> PoolStats {
        PoolStats { threads: self.threads, queued: self.len(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::work::OffloadJob;

    fn queued(at: u64) -> QueuedJob {
        let job: OffloadJob = Box::new(|| {});
        QueuedJob { job, since: Time::from_nanos(at) }
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|next| next.queued.since.as_nanos()).collect()
    }

    #[test]
    fn jobs_start_in_order_after_resumed_and_urgent_ones() {
        let mut queue = Queue::default();
        for (at, is_urgent) in [(1, false), (2, true), (3, false), (4, true)] {
            queue.push(queued(at), is_urgent);
        }
        let first = queue.pop().expect("there are four");
        assert!(!first.was_started);
        queue.push_resumed(first.queued);
        let resumed = queue.pop().expect("there are four");
        assert!(resumed.was_started);
        queue.push_resumed(resumed.queued);
        assert_eq!(queue.stats().queued, 4);
        assert_eq!(order(&mut queue), [2, 4, 1, 3]);
        assert_eq!(queue.stats().queued_most, 4);
    }

    #[test]
    fn a_few_threads_are_woken_at_a_time_before_new_ones_are_started() {
        let mut queue = Queue { threads: 2, ..Queue::default() };
        let idle_threads = [Arc::new(IdleThread::default()), Arc::new(IdleThread::default())];
        queue.idle.extend(idle_threads.clone());
        assert!(matches!(queue.next_wake(9), WakeAction::Nobody), "there are no jobs");
        for (at, idle_thread) in idle_threads.iter().rev().enumerate() {
            queue.push(queued(at as u64), false);
            let WakeAction::Wake(waking) = queue.next_wake(9) else { panic!("two are idle") };
            assert!(Arc::ptr_eq(&waking, idle_thread) && idle_thread.is_woken.load(Relaxed));
            assert!(matches!(queue.next_wake(9), WakeAction::Nobody), "there is one for each job");
        }
        queue.push(queued(2), false);
        assert!(
            matches!(queue.next_wake(2), WakeAction::Nobody),
            "there are as many as there may be"
        );
        assert!(matches!(queue.next_wake(9), WakeAction::Start(2)));
        for at in 3..20 {
            queue.push(queued(at), false);
            assert_eq!(matches!(queue.next_wake(9), WakeAction::Start(_)), at == 3, "{WAKING_MAX}");
        }
        queue.waking -= 1;
        assert!(matches!(queue.next_wake(9), WakeAction::Start(4)), "one of them has looked");
    }

    #[test]
    fn an_offer_leaves_sixteen_jobs_to_each_awake_thread() {
        let mut queue = Queue::default();
        for awake in 0..3 {
            for at in 0..JOBS_PER_THREAD {
                queue.push(queued(at as u64), false);
                let wakes = matches!(queue.wake_for_offer(9, false), WakeAction::Start(_));
                assert_eq!(wakes, at == 0, "{awake} are on their way, {} jobs", queue.len());
            }
        }
        queue.waking -= 2;
        queue.spinning += 2;
        assert!(matches!(queue.wake_for_offer(9, false), WakeAction::Nobody), "those spin");
        let wakes = queue.wakes_for_taker(9);
        assert!(
            matches!(wakes, [WakeAction::Start(3), WakeAction::Start(4)]),
            "a thread that takes one wakes two"
        );
    }

    #[test]
    fn no_thread_is_woken_for_jobs_that_spinning_threads_will_take() {
        let mut queue = Queue { spinning: 1, ..Queue::default() };
        queue.push(queued(1), false);
        assert!(matches!(queue.next_wake(4), WakeAction::Nobody));
        queue.push(queued(2), false);
        assert!(matches!(queue.next_wake(4), WakeAction::Start(0)), "one spins, two wait");
        queue.push(queued(3), false);
        queue.waking = 2;
        assert!(matches!(queue.next_wake(4), WakeAction::Nobody), "one spins, two are on the way");
    }

    #[test]
    fn a_new_thread_gets_the_lowest_free_number() {
        let mut queue = Queue::default();
        assert_eq!([queue.add_thread(), queue.add_thread(), queue.add_thread()], [0, 1, 2]);
        queue.remove_thread(0);
        queue.remove_thread(2);
        assert_eq!([queue.add_thread(), queue.add_thread(), queue.add_thread()], [0, 2, 3]);
        assert_eq!(queue.stats().threads_most, 4);
    }
}
