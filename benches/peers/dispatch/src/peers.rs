//! tokio, a pool on crossbeam's channel, and the crate `blocking`.

use std::sync::Arc;

use crossbeam_channel::Sender;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, block_in_place, spawn_blocking};

use crate::work::Work;
use crate::{Contender, Run};

/// The number of threads of tokio's scheduler.
const WORKERS: usize = 4;

pub(crate) fn contenders(work: Work) -> Vec<Contender> {
    vec![
        way("tokio ct", move || {
            let runtime = current(work);
            move |batches| runtime.block_on(blocking(work, batches))
        }),
        way("tokio mt", move || {
            let runtime = many(work);
            move |batches| runtime.block_on(blocking(work, batches))
        }),
        way("tokio mt permit", move || {
            let runtime = many(work);
            move |batches| runtime.block_on(permit(work, batches))
        }),
        way("tokio mt direct", move || {
            let runtime = many(work);
            move |batches| runtime.block_on(direct(work, batches))
        }),
        way("crossbeam pool", move || {
            let pool = Pool::new(work.threads());
            move |batches| pool.run(work, batches)
        }),
        way("blocking", move || move |batches| unblock(work, batches)),
    ]
}

fn way<R: Fn(usize) -> u64 + 'static>(
    name: &'static str,
    set_up: impl FnOnce() -> R + 'static,
) -> Contender {
    (name, Box::new(move || -> Run { Box::new(set_up()) }))
}

fn current(work: Work) -> Runtime {
    built(Builder::new_current_thread().max_blocking_threads(work.threads()))
}

fn many(work: Work) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    built(builder.worker_threads(WORKERS).max_blocking_threads(work.threads()))
}

/// Builds a runtime with its I/O driver, as programs with sockets have it: rotor's loop waits for
/// sockets too.
fn built(builder: &mut Builder) -> Runtime {
    builder.enable_all().build().expect("a runtime")
}

async fn sum(jobs: Vec<JoinHandle<u64>>) -> u64 {
    let mut sum = 0;
    for job in jobs {
        sum += job.await.expect("it does not panic");
    }
    sum
}

async fn blocking(work: Work, batches: usize) -> u64 {
    let mut all = 0;
    for _ in 0..batches {
        all += sum((0..work.jobs()).map(|_| spawn_blocking(move || work.run())).collect()).await;
    }
    all
}

async fn permit(work: Work, batches: usize) -> u64 {
    let permits = Arc::new(Semaphore::new(work.threads()));
    let mut all = 0;
    for _ in 0..batches {
        let job = |_| {
            let permits = permits.clone();
            tokio::spawn(async move {
                let _permit = permits.acquire().await.expect("it is never closed");
                block_in_place(|| work.run())
            })
        };
        all += sum((0..work.jobs()).map(job).collect()).await;
    }
    all
}

async fn direct(work: Work, batches: usize) -> u64 {
    let mut all = 0;
    for _ in 0..batches {
        all +=
            sum((0..work.jobs()).map(|_| tokio::spawn(async move { work.run() })).collect()).await;
    }
    all
}

fn unblock(work: Work, batches: usize) -> u64 {
    futures_lite::future::block_on(async {
        let mut all = 0;
        for _ in 0..batches {
            let jobs: Vec<_> =
                (0..work.jobs()).map(|_| blocking::unblock(move || work.run())).collect();
            for job in jobs {
                all += job.await;
            }
        }
        all
    })
}

type Job = Box<dyn FnOnce() + Send>;

/// A minimal pool: threads that wait on one channel. Results are sent through another channel.
struct Pool {
    jobs: Sender<Job>,
}

impl Pool {
    fn new(threads: usize) -> Pool {
        let (jobs, taken) = crossbeam_channel::unbounded::<Job>();
        for _ in 0..threads {
            let taken = taken.clone();
            std::thread::spawn(move || taken.into_iter().for_each(|job| job()));
        }
        Pool { jobs }
    }

    fn run(&self, work: Work, batches: usize) -> u64 {
        let (result, results) = crossbeam_channel::unbounded();
        let mut all = 0;
        for _ in 0..batches {
            for _ in 0..work.jobs() {
                let result = result.clone();
                let job = move || result.send(work.run()).expect("the results are waited for");
                self.jobs.send(Box::new(job)).expect("the pool is there");
            }
            all += results.iter().take(work.jobs()).sum::<u64>();
        }
        all
    }
}
