//! Jobs that loops offload to other threads: each is run by one of them, or dropped with the pool.
mod waiting;

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};
use rotor_core::{FutureError, Job, OffloadPool, Outcome, Permits};

use waiting::{WaitUntil, WakeOnlyBackend, loop_on, model, small_loop};

/// How many jobs have run; threads can wait for a number.
#[derive(Clone, Default)]
struct JobCounter(Arc<(Mutex<usize>, Condvar)>);

impl JobCounter {
    fn increment(&self) {
        *self.0.0.lock().unwrap() += 1;
        self.0.1.notify_all();
    }

    fn wait_for(&self, jobs: usize) {
        let mut count = self.0.0.lock().unwrap();
        while *count < jobs {
            count = self.0.1.wait(count).unwrap();
        }
    }
}

fn offer(pool: &OffloadPool, job: impl FnOnce() + Send + 'static) {
    let mut job = Some(job);
    assert!(pool.offer(&mut || Box::new(job.take().unwrap())));
}

#[test]
fn each_job_is_run_without_a_further_offer() {
    model(2, || {
        let (pool, ran) = (OffloadPool::new(1, 2), JobCounter::default());
        for jobs in 1..=2 {
            let done = ran.clone();
            offer(&pool, move || done.increment());
            if jobs == 1 {
                ran.wait_for(1);
            }
        }
        ran.wait_for(2);
    });
}

/// The first job waits for the second, so each needs its own thread. One of the two threads may be
/// spinning for jobs while the other sleeps, so both have run a job before. There is room for a
/// third job: offering the last one that fits wakes a thread in any case.
#[test]
fn two_threads_run_two_jobs_at_the_same_time() {
    model(2, || {
        let (pool, ran) = (OffloadPool::new(2, 3), JobCounter::default());
        for _ in 0..2 {
            let ran = ran.clone();
            offer(&pool, move || ran.increment());
        }
        ran.wait_for(2);
        let first = ran.clone();
        offer(&pool, move || {
            first.wait_for(3);
            first.increment();
        });
        let second = ran.clone();
        offer(&pool, move || second.increment());
        ran.wait_for(4);
    });
}

/// The first of the two jobs waits for the second, so each needs its own thread. Only one thread is
/// running at that time.
#[test]
fn two_jobs_offered_to_an_idle_thread_run_at_the_same_time() {
    model(1, || {
        let (pool, ran) = (OffloadPool::new(2, 3), JobCounter::default());
        let first = ran.clone();
        offer(&pool, move || first.increment());
        ran.wait_for(1);
        let held_up = ran.clone();
        offer(&pool, move || {
            held_up.wait_for(2);
            held_up.increment();
        });
        let last = ran.clone();
        offer(&pool, move || last.increment());
        ran.wait_for(3);
    });
}

#[test]
fn dropping_the_pool_drops_its_waiting_jobs_and_ends_its_threads() {
    model(2, || {
        let (pool, job) = (OffloadPool::new(1, 2), Arc::new(()));
        for _ in 0..2 {
            let job = job.clone();
            offer(&pool, move || drop(job));
        }
        drop(pool);
    });
}

/// The pool ends while its thread has not begun the job, finds no permit for it, or has left it in
/// the queue for one.
#[test]
fn a_job_that_waits_for_a_permit_is_lost_with_its_pool() {
    model(2, || {
        let (pool, permits) = (OffloadPool::new(1, 1), Permits::new(0));
        let mut creator = small_loop(1);
        let add = creator.add_machine_with(|scope| {
            let job = scope.job(|_: &Job<'_>| ()).on(&pool).permits(&permits);
            let mut future = Some(job.start().ok().unwrap());
            WaitUntil::new(move |_| match future.take().unwrap().take() {
                Outcome::Pending(pending) => {
                    future = Some(pending);
                    false
                }
                Outcome::Value(()) => false,
                Outcome::Lost(lost) => lost == FutureError::Dropped,
            })
        });
        add.unwrap();
        drop(pool);
        creator.instantiate(()).run().unwrap();
        assert_eq!(permits.waiting(), 0);
    });
}

#[test]
fn the_result_of_a_job_reaches_its_machine() {
    model(2, || {
        let pool = Some(OffloadPool::new(1, 1));
        let mut creator = loop_on(WakeOnlyBackend { pool, ..WakeOnlyBackend::default() }, 1);
        let add = creator.add_machine_with(|scope| {
            let mut future = Some(scope.offload(|| 7).unwrap());
            WaitUntil::new(move |_| match future.take().unwrap().take() {
                Outcome::Pending(pending) => {
                    future = Some(pending);
                    false
                }
                Outcome::Value(value) => value == 7,
                Outcome::Lost(_) => false,
            })
        });
        add.unwrap();
        creator.instantiate(()).run().unwrap();
    });
}
