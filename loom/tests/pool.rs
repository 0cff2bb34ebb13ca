//! Jobs that loops give to other threads: each is run by one of them, or dropped with the pool.
mod waiting;

use std::sync::Arc;

use loom::sync::{Condvar, Mutex};
use rotor_core::{OffloadPool, Outcome};

use waiting::{Until, Waiting, loop_on, model};

/// How many jobs have been run, for those who wait for some number of them.
#[derive(Clone, Default)]
struct Ran(Arc<(Mutex<usize>, Condvar)>);

impl Ran {
    fn one_more(&self) {
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
fn each_job_is_run_though_no_other_is_offered() {
    model(2, || {
        let (pool, ran) = (OffloadPool::new(1, 2), Ran::default());
        for jobs in 1..=2 {
            let done = ran.clone();
            offer(&pool, move || done.one_more());
            if jobs == 1 {
                ran.wait_for(1);
            }
        }
        ran.wait_for(2);
    });
}

/// The first job waits for the second: each needs a thread of its own. One of the two threads may
/// be watching for jobs while the other sleeps; so both have had a job before. There is room for a
/// third one: who offers the last that there is room for calls a thread in any case.
#[test]
fn two_jobs_are_run_at_a_time_by_two_threads() {
    model(2, || {
        let (pool, ran) = (OffloadPool::new(2, 3), Ran::default());
        for _ in 0..2 {
            let ran = ran.clone();
            offer(&pool, move || ran.one_more());
        }
        ran.wait_for(2);
        let first = ran.clone();
        offer(&pool, move || {
            first.wait_for(3);
            first.one_more();
        });
        let second = ran.clone();
        offer(&pool, move || second.one_more());
        ran.wait_for(4);
    });
}

/// Threads that do not end, or jobs that neither are run nor dropped, leave the count too high.
#[test]
fn two_jobs_that_come_while_a_thread_is_idle_are_run_at_a_time() {
    model(1, || {
        let (pool, ran) = (OffloadPool::new(2, 3), Ran::default());
        let first = ran.clone();
        offer(&pool, move || first.one_more());
        ran.wait_for(1);
        let held_up = ran.clone();
        offer(&pool, move || {
            held_up.wait_for(2);
            held_up.one_more();
        });
        let last = ran.clone();
        offer(&pool, move || last.one_more());
        ran.wait_for(3);
    });
}

#[test]
fn what_waits_is_dropped_with_the_pool_and_its_threads_end() {
    model(2, || {
        let (pool, job) = (OffloadPool::new(1, 2), Arc::new(()));
        for _ in 0..2 {
            let job = job.clone();
            offer(&pool, move || drop(job));
        }
        drop(pool);
    });
}

#[test]
fn the_result_of_a_job_comes_to_the_machine_that_gave_it_away() {
    model(2, || {
        let pool = Some(OffloadPool::new(1, 1));
        let mut creator = loop_on(Waiting { pool, ..Waiting::default() }, 1);
        let add = creator.add_machine_with(|scope| {
            let mut future = Some(scope.offload(|| 7).unwrap());
            Until::new(move |_| match future.take().unwrap().take() {
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
