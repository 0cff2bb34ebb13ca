//! body-image-futio's client, set up as in its own bench (`benches/client.rs`): two tokio threads,
//! and two more for blocking work.
#![forbid(unsafe_code)]

use std::error::Error;
use std::fmt::Debug;
use std::time::{Duration, Instant};

use blocking_permit::{
    deregister_dispatch_pool, register_dispatch_pool, DispatchPool, Semaphore, Semaphorish,
};
use bodies_work::{Figures, Lateness, Run, Summary, Task, BATCH, BEAT};
use body_image::{Recorded, Tuner};
use body_image_futio::*;
use bytes::Bytes;
use futures_core::stream::Stream;
use futures_util::stream::{FuturesUnordered, StreamExt};
use hyper::client::{Client, HttpConnector};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

type BoxError = Box<dyn Error + Send + Sync>;

const CORE_THREADS: usize = 2;
const EXTRA_THREADS: usize = 2;

/// More than the length of a body, in buffers of 8 KiB.
const RAM_MAX: u64 = 0x2000 * 1025;

fn main() -> Result<(), BoxError> {
    let task = Task::parse(std::env::args().skip(2)).ok_or("run WAY ADDRESS DIRECTORY BATCHES")?;
    let (ram, mut files) = (images(&task, RAM_MAX), images(&task, 0));
    let threads = CORE_THREADS + EXTRA_THREADS;
    let figures = match task.way.as_str() {
        "ram" => {
            run::<AsyncBodyImage<Bytes>, _, _>(runtime(threads, 1, None), ram, Op::AsIs, &task)
        }
        "gather" => {
            run::<AsyncBodyImage<Bytes>, _, _>(runtime(threads, 1, None), ram, Op::Gather, &task)
        }
        "file-direct" => {
            let tune = files.set_blocking_policy(BlockingPolicy::Direct).finish();
            run_with::<AsyncBodyImage<Bytes>, _, _>(
                runtime(threads, 1, None),
                tune,
                Op::AsIs,
                &task,
            )
        }
        "file-permit" => {
            let permits: &'static Semaphore =
                Box::leak(Box::new(Semaphore::default_new(EXTRA_THREADS)));
            let tune = files.set_blocking_policy(BlockingPolicy::Permit(permits)).finish();
            let runtime = runtime(CORE_THREADS, EXTRA_THREADS, None);
            run_with::<PermitBodyImage<Bytes>, _, _>(runtime, tune, Op::AsIs, &task)
        }
        "file-dispatch" => {
            let mut pool = DispatchPool::builder();
            let pool = pool.pool_size(EXTRA_THREADS).queue_length(EXTRA_THREADS).create();
            let tune = files.set_blocking_policy(BlockingPolicy::Dispatch).finish();
            let runtime = runtime(CORE_THREADS, 1, Some(pool));
            run_with::<DispatchBodyImage<Bytes>, _, _>(runtime, tune, Op::AsIs, &task)
        }
        "mapped" => {
            let tune = files.set_blocking_policy(BlockingPolicy::Direct).finish();
            run_with::<AsyncBodyImage<UniBodyBuf>, _, _>(
                runtime(threads, 1, None),
                tune,
                Op::Map,
                &task,
            )
        }
        "mapped-copy" => {
            let tune = files.set_blocking_policy(BlockingPolicy::Direct).finish();
            run_with::<AsyncBodyImage<Bytes>, _, _>(runtime(threads, 1, None), tune, Op::Map, &task)
        }
        other => return Err(format!("no way: {other}").into()),
    };
    println!("{}", figures?);
    Ok(())
}

fn images(task: &Task, ram_max: u64) -> FutioTuner {
    let tuner = Tuner::new().set_temp_dir(&task.directory).set_max_body_ram(ram_max).finish();
    let mut futio = FutioTuner::new();
    futio.set_image(tuner);
    futio
}

fn runtime(core: usize, blocking: usize, pool: Option<DispatchPool>) -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(core).max_blocking_threads(blocking).enable_io().enable_time();
    if let Some(pool) = pool {
        builder.on_thread_start(move || {
            register_dispatch_pool(pool.clone());
        });
        builder.on_thread_stop(|| {
            deregister_dispatch_pool();
        });
    }
    builder.build().expect("a runtime")
}

#[derive(Copy, Clone)]
enum Op {
    AsIs,
    Gather,
    Map,
}

fn run<I, T, E>(
    runtime: Runtime,
    tune: FutioTuner,
    op: Op,
    task: &Task,
) -> Result<Figures, BoxError>
where
    I: StreamWrapper + Stream<Item = Result<T, E>> + Unpin + Send + 'static,
    T: AsRef<[u8]> + Send + 'static,
    E: Debug + Send + 'static,
{
    run_with::<I, T, E>(runtime, tune.finish(), op, task)
}

fn run_with<I, T, E>(
    runtime: Runtime,
    tune: FutioTunables,
    op: Op,
    task: &Task,
) -> Result<Figures, BoxError>
where
    I: StreamWrapper + Stream<Item = Result<T, E>> + Unpin + Send + 'static,
    T: AsRef<[u8]> + Send + 'static,
    E: Debug + Send + 'static,
{
    let (url, batches) = (format!("http://{}/", task.address), task.batches);
    let job = async move {
        let client = Client::builder().build(HttpConnector::new());
        let mut measured = None;
        for number in 0..=batches {
            if number == 1 {
                measured = Some((Run::begin(), heart()));
            }
            let under_way: FuturesUnordered<_> = (0..BATCH)
                .map(|_| {
                    let request: RequestRecord<AsyncBodyImage<Bytes>> =
                        http::Request::get(&url).record().expect("it is a request");
                    let dialog = request_dialog(&client, request, tune.clone());
                    let tune = tune.clone();
                    tokio::spawn(async move {
                        let mut body = dialog.await.expect("the server is well").res_body().clone();
                        match op {
                            Op::AsIs => {}
                            Op::Gather => {
                                body.gather();
                            }
                            Op::Map => {
                                body.mem_map().expect("it can be mapped");
                            }
                        }
                        summarize(I::new(body, tune)).await;
                    })
                })
                .collect();
            let ended: Vec<_> = under_way.collect().await;
            assert!(ended.iter().all(Result::is_ok));
        }
        let (run, (stop, beats)) = measured.expect("a batch");
        let _ = stop.send(());
        run.end(batches, beats.await.expect("it beats"))
    };
    let figures = runtime.block_on(runtime.spawn(job))?;
    runtime.shutdown_timeout(Duration::from_secs(1));
    Ok(figures)
}

async fn summarize<S, T, E>(mut stream: S)
where
    S: Stream<Item = Result<T, E>> + Unpin,
    T: AsRef<[u8]>,
    E: Debug,
{
    let mut summary = Summary::default();
    while let Some(item) = stream.next().await {
        summary.add(item.expect("it can be read").as_ref());
    }
    summary.check();
}

/// Ticks once a millisecond.
fn heart() -> (oneshot::Sender<()>, tokio::task::JoinHandle<Lateness>) {
    let (stop, mut stopped) = oneshot::channel();
    let beats = tokio::spawn(async move {
        let mut lateness = Lateness::default();
        while stopped.try_recv().is_err() {
            let due = Instant::now() + BEAT;
            tokio::time::sleep(BEAT).await;
            lateness.note(due);
        }
        lateness
    });
    (stop, beats)
}
