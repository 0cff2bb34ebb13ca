//! The waiting jobs of a pool, its waiting threads, and which thread to wake.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;

use super::stats::PoolStats;
use super::work::OffloadJob;
use crate::queue_memory::give_back;
use crate::sync::Condvar;
use crate::time::Time;

/// A job that waits for a thread.
pub(super) struct Waiting {
    pub(super) job: OffloadJob,
    pub(super) since: Time,
}

/// The job that begins next.
pub(super) struct Next {
    pub(super) waiting: Waiting,
    /// The job was counted as begun, and timed, when it first began.
    pub(super) had_begun: bool,
}

/// The place where one thread sleeps, so that this very thread can be woken.
#[derive(Default)]
pub(super) struct Seat {
    pub(super) called: Condvar,
    /// Whether the seat was taken off the stack of idle threads. Accessed only under the lock.
    pub(super) is_called: AtomicBool,
}

/// Everything in a pool that its lock guards.
#[derive(Default)]
pub(super) struct Queue {
    /// Jobs that had begun before, and then waited for something other than a thread.
    again: VecDeque<Waiting>,
    urgent: VecDeque<Waiting>,
    jobs: VecDeque<Waiting>,
    /// Sleeping threads. The last one to fall asleep is on top, because its memory is still in the
    /// caches.
    pub(super) idle: Vec<Arc<Seat>>,
    /// The number of threads that have just run out of jobs and watch for the next one before they
    /// sleep.
    pub(super) watching: usize,
    /// The number of threads that were woken or started and have not looked for a job yet. Each
    /// wakes two more when it takes a job, so offering many jobs requires only a few wake-ups.
    pub(super) called: usize,
    pub(super) threads: usize,
    /// The numbers of threads that have ended.
    pub(super) numbers: Vec<usize>,
    pub(super) is_closed: bool,
    pub(super) stats: PoolStats,
}

/// The maximum number of threads that are on their way at a time. With one, it would take so long
/// to wake forty that the first jobs would be done before. With many, a loop that offers short jobs
/// would wake all threads for work that one could do (`benches/peers/dispatch`).
const CALLED_MAX: usize = 4;

/// How many waiting jobs an offering thread leaves to each thread that is awake, which will take
/// one and call others. Waking a thread costs as much as offering ten jobs
/// (`doc/decisions/0129-who-offers-a-job-wakes-nobody-while-a-thread-is-awake.md`).
const JOBS_EACH: usize = 16;

/// The thread to call for waiting jobs, once the lock is released.
#[must_use]
pub(super) enum Call {
    Nobody,
    Wake(Arc<Seat>),
    /// Start a new thread with this number.
    Start(usize),
}

impl Queue {
    pub(super) fn len(&self) -> usize {
        self.again.len() + self.urgent.len() + self.jobs.len()
    }

    pub(super) fn push(&mut self, waiting: Waiting, is_urgent: bool) {
        if is_urgent { &mut self.urgent } else { &mut self.jobs }.push_back(waiting);
        self.stats.queued_most = self.stats.queued_most.max(self.len());
    }

    /// Puts back a job that had begun, as the first one.
    pub(super) fn push_again(&mut self, waiting: Waiting) {
        self.again.push_front(waiting);
    }

    /// Takes the job that begins next.
    pub(super) fn pop(&mut self) -> Option<Next> {
        if let Some(waiting) = self.again.pop_front() {
            give_back(&mut self.again);
            return Some(Next { waiting, had_begun: true });
        }
        self.pop_new().map(|waiting| Next { waiting, had_begun: false })
    }

    fn pop_new(&mut self) -> Option<Waiting> {
        if let Some(urgent) = self.urgent.pop_front() {
            give_back(&mut self.urgent);
            return Some(urgent);
        }
        let next = self.jobs.pop_front();
        give_back(&mut self.jobs);
        next
    }

    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Waiting> + use<> {
        let queues = [&mut self.again, &mut self.urgent, &mut self.jobs].map(std::mem::take);
        queues.into_iter().flatten()
    }

    /// Returns which thread to call when a job is offered: none as long as the threads that are
    /// awake can be expected to take the waiting jobs. More jobs than that mean that these threads
    /// do not get to run. If there is no room for another job, a thread is called without waiting
    /// for that sign: otherwise the next job would be refused although a thread sleeps.
    pub(super) fn call_for_offered(&mut self, threads_max: usize, is_full: bool) -> Call {
        if !is_full && self.len() <= JOBS_EACH * (self.watching + self.called) {
            return Call::Nobody;
        }
        self.next_call(threads_max)
    }

    /// Returns which threads to call when a thread takes a job: two, so that the number of threads
    /// doubles with each wake-up latency.
    pub(super) fn calls_of_taker(&mut self, threads_max: usize) -> [Call; 2] {
        [(); 2].map(|()| self.next_call(threads_max))
    }

    /// Returns which thread to call for the waiting jobs: none if the threads that watch or are on
    /// their way are enough for them, or if [`CALLED_MAX`] are on their way already.
    pub(super) fn next_call(&mut self, threads_max: usize) -> Call {
        if self.called >= CALLED_MAX || self.len() <= self.watching + self.called {
            return Call::Nobody;
        }
        if let Some(seat) = self.idle.pop() {
            seat.is_called.store(true, Relaxed);
            self.called += 1;
            return Call::Wake(seat);
        }
        if self.threads < threads_max {
            self.called += 1;
            return Call::Start(self.add_thread());
        }
        Call::Nobody
    }

    /// Counts a thread that is about to be started, and gives it a number.
    pub(super) fn add_thread(&mut self) -> usize {
        let number = self.numbers.pop().unwrap_or(self.threads);
        self.threads += 1;
        self.stats.threads_most = self.stats.threads_most.max(self.threads);
        number
    }

    pub(super) fn remove_thread(&mut self, number: usize) {
        self.threads -= 1;
        self.numbers.push(number);
        // The lowest number is reused first, so all numbers are below the most threads at a time.
        self.numbers.sort_unstable_by(|a, b| b.cmp(a));
    }

    pub(super) fn stats(&self) -> PoolStats {
        PoolStats { threads: self.threads, queued: self.len(), ..self.stats }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offload::work::OffloadJob;

    fn waiting(at: u64) -> Waiting {
        let job: OffloadJob = Box::new(|| {});
        Waiting { job, since: Time::from_nanos(at) }
    }

    fn order(queue: &mut Queue) -> Vec<u64> {
        std::iter::from_fn(|| queue.pop()).map(|next| next.waiting.since.as_nanos()).collect()
    }

    #[test]
    fn jobs_are_begun_in_order_and_urgent_ones_before_the_others() {
        let mut queue = Queue::default();
        for (at, is_urgent) in [(1, false), (2, true), (3, false), (4, true)] {
            queue.push(waiting(at), is_urgent);
        }
        let first = queue.pop().expect("there are four");
        assert!(!first.had_begun);
        queue.push_again(first.waiting);
        let again = queue.pop().expect("there are four");
        assert!(again.had_begun);
        queue.push_again(again.waiting);
        assert_eq!(queue.stats().queued, 4);
        assert_eq!(order(&mut queue), [2, 4, 1, 3]);
        assert_eq!(queue.stats().queued_most, 4);
    }

    #[test]
    fn a_few_threads_are_called_at_a_time_the_warmest_first_and_new_ones_last() {
        let mut queue = Queue { threads: 2, ..Queue::default() };
        let seats = [Arc::new(Seat::default()), Arc::new(Seat::default())];
        queue.idle.extend(seats.clone());
        assert!(matches!(queue.next_call(9), Call::Nobody), "there are no jobs");
        for (at, seat) in seats.iter().rev().enumerate() {
            queue.push(waiting(at as u64), false);
            let Call::Wake(called) = queue.next_call(9) else { panic!("two are idle") };
            assert!(Arc::ptr_eq(&called, seat) && seat.is_called.load(Relaxed));
            assert!(matches!(queue.next_call(9), Call::Nobody), "there is one for each job");
        }
        queue.push(waiting(2), false);
        assert!(matches!(queue.next_call(2), Call::Nobody), "there are as many as there may be");
        assert!(matches!(queue.next_call(9), Call::Start(2)));
        for at in 3..20 {
            queue.push(waiting(at), false);
            assert_eq!(matches!(queue.next_call(9), Call::Start(_)), at == 3, "{CALLED_MAX}");
        }
        queue.called -= 1;
        assert!(matches!(queue.next_call(9), Call::Start(4)), "one of them has looked");
    }

    #[test]
    fn who_offers_jobs_leaves_sixteen_to_each_thread_that_is_awake() {
        let mut queue = Queue::default();
        for awake in 0..3 {
            for at in 0..JOBS_EACH {
                queue.push(waiting(at as u64), false);
                let calls = matches!(queue.call_for_offered(9, false), Call::Start(_));
                assert_eq!(calls, at == 0, "{awake} are on their way, {} jobs", queue.len());
            }
        }
        queue.called -= 2;
        queue.watching += 2;
        assert!(matches!(queue.call_for_offered(9, false), Call::Nobody), "those watch");
        let calls = queue.calls_of_taker(9);
        assert!(matches!(calls, [Call::Start(3), Call::Start(4)]), "whoever takes one calls two");
    }

    #[test]
    fn nobody_is_called_for_jobs_that_those_who_watch_will_take() {
        let mut queue = Queue { watching: 1, ..Queue::default() };
        queue.push(waiting(1), false);
        assert!(matches!(queue.next_call(4), Call::Nobody));
        queue.push(waiting(2), false);
        assert!(matches!(queue.next_call(4), Call::Start(0)), "one watches, two wait");
        queue.push(waiting(3), false);
        queue.called = 2;
        assert!(matches!(queue.next_call(4), Call::Nobody), "one watches, two are on the way");
    }

    #[test]
    fn a_new_thread_has_the_lowest_number_that_is_free() {
        let mut queue = Queue::default();
        assert_eq!([queue.add_thread(), queue.add_thread(), queue.add_thread()], [0, 1, 2]);
        queue.remove_thread(0);
        queue.remove_thread(2);
        assert_eq!([queue.add_thread(), queue.add_thread(), queue.add_thread()], [0, 2, 3]);
        assert_eq!(queue.stats().threads_most, 4);
    }
}
