//! The functions that each thread of a pool calls first and last.

use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

use super::BlockedJob;
use crate::offload::OffloadPool;

/// A pool whose threads end as soon as they are idle. They report the numbers of their hooks, and
/// the stop hook lasts until the returned sender is dropped.
fn pool_with_long_stop_hook(threads_max: usize) -> (OffloadPool, Hooks) {
    let ((started, starts), (stopping, stops)) = (mpsc::channel(), mpsc::channel());
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let pool = OffloadPool::builder()
        .threads_max(threads_max)
        .keep_idle(Duration::ZERO)
        .on_thread_start(move |number| started.send(number).expect("the test waits"))
        .on_thread_stop(move |number| {
            let _test_over = stopping.send(number);
            let _ = released.lock().expect("nobody panics").recv();
        })
        .build();
    (pool.expect("no thread yet"), Hooks { starts, stops, release })
}

struct Hooks {
    starts: mpsc::Receiver<usize>,
    stops: mpsc::Receiver<usize>,
    release: mpsc::Sender<()>,
}

#[test]
fn a_thread_number_is_not_reused_before_the_end_of_the_stop_hook() {
    let (pool, hooks) = pool_with_long_stop_hook(2);
    BlockedJob::start_on(&pool).wait();
    assert_eq!(hooks.stops.recv(), Ok(0));
    BlockedJob::start_on(&pool).wait();
    assert_eq!([hooks.starts.recv(), hooks.starts.recv()], [Ok(0), Ok(1)]);
    drop(hooks.release);
}

#[test]
fn a_job_offered_during_the_stop_hook_of_the_last_thread_is_run() {
    let (pool, hooks) = pool_with_long_stop_hook(1);
    BlockedJob::start_on(&pool).wait();
    assert_eq!(hooks.stops.recv(), Ok(0));
    let job = BlockedJob::start_on(&pool);
    assert_eq!((pool.stats().threads, pool.stats().queued), (1, 1), "there may be one thread");
    drop(hooks.release);
    job.wait();
    assert_eq!([hooks.starts.recv(), hooks.starts.recv()], [Ok(0), Ok(0)]);
}
