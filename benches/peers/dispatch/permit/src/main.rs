//! The crate blocking-permit, set up as in its own bench (`benches/dispatch.rs`): four tokio
//! threads, and more for blocking work.
//!
//! `dispatch-permit WAY WORK` reads numbers of batches, runs that many, and prints how long one of
//! them took: microseconds of wall-clock time and of CPU time.
#![forbid(unsafe_code)]

#[path = "../../src/measure.rs"]
mod measure;
#[allow(dead_code, reason = "the module of the other program; a part of it is used")]
#[path = "../../src/work.rs"]
mod work;

use std::env;
use std::io::{self, BufRead};

use blocking_permit::{
    DispatchPool, Semaphore, Semaphorish, blocking_permit_future, deregister_dispatch_pool,
    dispatch_rx, register_dispatch_pool,
};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::work::Work;

/// The number of threads of tokio's scheduler.
const WORKERS: usize = 4;

fn main() {
    let mut words = env::args().skip(1);
    let (way, work) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let work = Work::named(&work).expect("noop, expensive or sleep");
    let run: Box<dyn Fn(usize) -> u64> = match way.as_str() {
        "dispatch_rx" => dispatches(work),
        "permit" => permits(work),
        other => panic!("no way: {other}"),
    };
    for line in io::stdin().lock().lines() {
        let batches = line.expect("it can be read").parse().expect("a number of batches");
        let (clock, cpu) = measure::batches(&way, work, batches, &run);
        println!("{clock} {cpu}");
    }
}

fn dispatches(work: Work) -> Box<dyn Fn(usize) -> u64> {
    let pool = DispatchPool::builder().pool_size(work.threads()).create();
    let mut builder = Builder::new_multi_thread();
    builder.on_thread_start(move || {
        register_dispatch_pool(pool.clone());
    });
    builder.on_thread_stop(|| {
        deregister_dispatch_pool();
    });
    let runtime = builder.worker_threads(WORKERS).build().expect("a runtime");
    Box::new(move |batches| {
        run(&runtime, work, batches, || {
            tokio::spawn(async move {
                dispatch_rx(move || work.run()).unwrap().await.expect("it does not panic")
            })
        })
    })
}

fn permits(work: Work) -> Box<dyn Fn(usize) -> u64> {
    let permits: &'static Semaphore = Box::leak(Box::new(Semaphore::default_new(work.threads())));
    let mut builder = Builder::new_multi_thread();
    let builder = builder.worker_threads(WORKERS).max_blocking_threads(work.threads());
    let runtime = builder.build().expect("a runtime");
    Box::new(move |batches| {
        run(&runtime, work, batches, || {
            tokio::spawn(async move {
                let permit = blocking_permit_future(permits).make_sync().await;
                permit.expect("it is never closed").run(move || work.run())
            })
        })
    })
}

fn run(runtime: &Runtime, work: Work, batches: usize, job: impl Fn() -> JoinHandle<u64>) -> u64 {
    runtime.block_on(async {
        let mut all = 0;
        for _ in 0..batches {
            let jobs: Vec<_> = (0..work.jobs()).map(|_| job()).collect();
            for job in jobs {
                all += job.await.expect("it does not panic");
            }
        }
        all
    })
}
