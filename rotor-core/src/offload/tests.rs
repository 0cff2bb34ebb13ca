//! Pools on their own, without a loop.

mod hooks;

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use super::work::{JobEnd, JobStart, KeptPlace, OffloadJob, OffloadWork};
use super::*;

fn offer(pool: &OffloadPool, job: impl FnOnce() + Send + 'static) -> bool {
    let mut job = Some(job);
    pool.offer(&mut || Box::new(job.take().expect("called once")))
}

#[test]
fn a_full_pool_makes_no_job_until_another_starts() {
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
fn a_panic_loses_only_its_own_job() {
    let pool = OffloadPool::new(1, 8);
    let (done, is_done) = mpsc::channel();
    assert!(offer(&pool, || std::panic::resume_unwind(Box::new("a bug in a job"))));
    assert!(offer(&pool, move || done.send(7).expect("the test waits")));
    assert_eq!(is_done.recv(), Ok(7));
    assert_eq!(pool.stats().threads, 1, "the thread went on");
}

/// Keeps one thread of the pool busy until the returned sender is dropped.
fn occupy(pool: &OffloadPool) -> mpsc::Sender<()> {
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    offer(pool, move || {
        begun.send(()).expect("the test waits");
        let _ = released.recv();
    });
    has_begun.recv().expect("the thread runs it");
    release
}

#[test]
fn waiting_jobs_are_dropped_with_the_pool() {
    let pool = OffloadPool::new(1, 8);
    let release = occupy(&pool);
    let (kept, is_dropped) = mpsc::channel::<()>();
    offer(&pool, move || drop(kept));
    drop(pool);
    assert_eq!(is_dropped.recv(), Err(mpsc::RecvError));
    drop(release);
}

#[test]
fn a_panic_in_the_drop_of_a_job_does_not_affect_other_jobs() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            panic!("in drop");
        }
    }

    let pool = OffloadPool::new(1, 8);
    let release = occupy(&pool);
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
fn threads_are_started_only_as_needed() {
    let pool = OffloadPool::default();
    assert_eq!(pool.stats().threads, 0);
    let (done, is_done) = mpsc::channel();
    for _ in 0..3 {
        let done = done.clone();
        offer(&pool, move || done.send(()).expect("the test waits"));
        is_done.recv().expect("it was run");
        while pool.stats().running > 0 {
            std::thread::yield_now();
        }
    }
    assert_eq!(pool.stats().threads, 1);
    assert_eq!(format!("{pool:?}"), "OffloadPool(4 threads, 1024 jobs)");
}

/// A job that reports that it has begun, and then waits.
struct BlockedJob {
    has_begun: mpsc::Receiver<()>,
    release: mpsc::Sender<()>,
}

impl BlockedJob {
    fn start_on(pool: &OffloadPool) -> BlockedJob {
        let (begun, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        assert!(offer(pool, move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
        }));
        BlockedJob { has_begun, release }
    }

    fn wait(&self) {
        self.has_begun.recv().expect("the thread runs it");
    }
}

fn wait_until_idle(pool: &OffloadPool) -> PoolStats {
    loop {
        let stats = pool.stats();
        if stats.running == 0 && stats.queued == 0 {
            return stats;
        }
        thread::yield_now();
    }
}

#[test]
fn contradicting_settings_are_rejected_with_a_message() {
    let builder = OffloadPool::builder;
    for (built, text) in [
        (builder().threads_max(0), "a pool needs at least one thread (threads_max)"),
        (
            builder().threads_max(2).threads_min(3),
            "a pool of at most 2 threads cannot keep 3 (threads_min, threads_max)",
        ),
        (builder().name("a\0b"), "the name of a pool's threads has a zero byte in it"),
    ] {
        assert_eq!(built.build().expect_err("it is wrong").to_string(), text);
    }
    let huge = builder().threads_min(1).stack_bytes(usize::MAX / 4).build();
    assert!(matches!(huge, Err(PoolError::Thread(_))), "{huge:?}");
}

#[test]
fn a_job_is_refused_when_no_thread_can_be_started() {
    let pool = OffloadPool::builder().stack_bytes(usize::MAX / 4).build().expect("no thread yet");
    for refused in 1..=2 {
        assert!(!pool.offer(&mut || panic!("there is no thread")));
        let stats = pool.stats();
        assert_eq!((stats.refused, stats.threads, stats.queued), (refused, 0, 0));
    }
}

#[test]
fn kept_threads_start_at_once_with_names_and_call_their_hooks() {
    let started_threads = Arc::new(Mutex::new(Vec::new()));
    let (ended, has_ended) = mpsc::channel();
    let recorded = started_threads.clone();
    let pool = OffloadPool::builder()
        .name("disk")
        .threads_max(2)
        .threads_min(2)
        .stack_bytes(256 * 1024)
        .on_thread_start(move |number| {
            let name = thread::current().name().map(str::to_owned);
            recorded.lock().expect("nobody panics").push((number, name));
        })
        .on_thread_stop(move |number| ended.send(number).expect("the test waits"))
        .build()
        .expect("two threads");
    assert_eq!(pool.stats().threads, 2);
    let both: Vec<BlockedJob> = (0..2).map(|_| BlockedJob::start_on(&pool)).collect();
    both.iter().for_each(BlockedJob::wait);
    let mut names = started_threads.lock().expect("nobody panics").clone();
    names.sort();
    assert_eq!(names, [(0, Some("disk-0".into())), (1, Some("disk-1".into()))]);
    drop((both, pool));
    let mut ended: Vec<usize> = has_ended.iter().take(2).collect();
    ended.sort();
    assert_eq!(ended, [0, 1]);
}

#[test]
fn each_thread_that_takes_a_job_wakes_others_until_all_jobs_run() {
    const JOBS: usize = 12;
    let may_look = Arc::new(Mutex::new(()));
    let (begun, has_begun) = mpsc::channel();
    let held = may_look.lock().expect("nobody panics");
    let may = may_look.clone();
    let pool = OffloadPool::builder()
        .threads_max(JOBS)
        .on_thread_start(move |_| drop(may.lock()))
        .build()
        .expect("no thread yet");
    let releases: Vec<_> = (0..JOBS)
        .map(|_| {
            let (release, released) = mpsc::channel::<()>();
            let begun = begun.clone();
            assert!(offer(&pool, move || {
                begun.send(()).expect("the test waits");
                let _ = released.recv();
            }));
            release
        })
        .collect();
    assert!(pool.stats().threads < JOBS, "whoever offers them calls a few only");
    drop(held);
    for job in 0..JOBS {
        has_begun.recv_timeout(Duration::from_secs(60)).unwrap_or_else(|_| panic!("job {job}"));
    }
    assert_eq!(pool.stats().running, JOBS);
    drop(releases);
    assert_eq!(wait_until_idle(&pool).threads_most, JOBS);
}

#[test]
fn a_full_pool_does_not_rely_on_a_thread_without_cpu() {
    let may_look = Arc::new(Mutex::new(()));
    let held = may_look.lock().expect("nobody panics");
    let may = may_look.clone();
    let builder = OffloadPool::builder().threads_max(2).jobs_max(2);
    // As if other programs occupied the first thread's CPU.
    let builder = builder.on_thread_start(move |number| drop((number == 0).then(|| may.lock())));
    let pool = builder.build().expect("no thread yet");
    let (done, is_done) = mpsc::channel();
    for _ in 0..2 {
        let done = done.clone();
        assert!(offer(&pool, move || done.send(()).expect("the test waits")));
    }
    // The second thread may leave the last job to the first thread.
    let first = is_done.recv_timeout(Duration::from_secs(60));
    drop(held);
    assert_eq!(first, Ok(()));
}

#[test]
fn panics_in_hooks_do_not_stop_the_pool() {
    let pool = OffloadPool::builder()
        .on_thread_start(|_| std::panic::resume_unwind(Box::new("in a hook")))
        .on_thread_stop(|_| std::panic::resume_unwind(Box::new("in a hook")))
        .build()
        .expect("no thread yet");
    let held = BlockedJob::start_on(&pool);
    held.wait();
    drop(held.release);
    assert_eq!(wait_until_idle(&pool).done, 1);
}

#[test]
fn an_idle_thread_ends_and_the_next_job_starts_another() {
    let pool = OffloadPool::builder().keep_idle(Duration::ZERO).build().expect("no thread yet");
    for _ in 0..3 {
        let held = BlockedJob::start_on(&pool);
        held.wait();
        drop(held.release);
        while pool.stats().threads > 0 {
            thread::yield_now();
        }
    }
    let kept = OffloadPool::builder().keep_idle(Duration::ZERO).threads_min(1).build();
    let kept = kept.expect("one thread");
    let held = BlockedJob::start_on(&kept);
    held.wait();
    drop(held.release);
    assert_eq!(wait_until_idle(&kept).threads, 1);
}

/// A job that waits once, until it is given the value that it needs.
struct WaitingJob {
    requeue: mpsc::Sender<(Box<dyn KeptPlace>, OffloadJob)>,
}

impl OffloadWork for WaitingJob {
    fn run(self: Box<Self>, begun: &JobStart<'_>) -> JobEnd {
        let kept_place = begun.keep_place().expect("a pool has a queue");
        let job: OffloadJob = Box::new(|| {});
        self.requeue.send((kept_place, job)).expect("the test waits");
        JobEnd::Waits
    }
}

#[test]
fn a_job_that_only_waited_on_the_calling_thread_was_not_run_here() {
    let builder = OffloadPool::builder().threads_max(1).jobs_max(1);
    let pool = builder.when_full(WhenFull::RunOldestHere).build().expect("no thread yet");
    let held = BlockedJob::start_on(&pool);
    held.wait();
    let (requeue, requeued) = mpsc::channel();
    assert!(pool.offer(&mut || Box::new(WaitingJob { requeue: requeue.clone() })));
    assert!(offer(&pool, || {}), "the first job takes its turn here");
    let (kept_place, job) = requeued.recv().expect("it has begun");
    assert_eq!((pool.stats().begun, pool.stats().run_here), (2, 0), "it waits");
    kept_place.requeue(job);
    drop(held.release);
    let stats = wait_until_idle(&pool);
    assert_eq!((stats.begun, stats.done, stats.run_here), (3, 3, 0), "the pool's thread ran all");
}

/// The state of a thread, and its CPU time in ticks: see proc_pid_stat(5).
#[cfg(target_os = "linux")]
fn sample(thread: &std::path::Path) -> Vec<String> {
    let stat = std::fs::read_to_string(thread.join("stat")).expect("the thread is there");
    let fields = stat.rsplit(')').next().expect("its name ends").split_whitespace();
    let fields: Vec<&str> = fields.collect();
    [fields[0], fields[11], fields[12]].map(str::to_owned).to_vec()
}

#[cfg(target_os = "linux")]
#[test]
fn a_kept_thread_sleeps_even_if_keep_idle_is_zero() {
    let (started, has_started) = mpsc::channel();
    let pool = OffloadPool::builder()
        .keep_idle(Duration::ZERO)
        .threads_min(1)
        .on_thread_start(move |_| {
            let folder = std::fs::read_link("/proc/thread-self").expect("it is Linux");
            started.send(folder).expect("the test waits");
        })
        .build()
        .expect("one thread");
    let held = BlockedJob::start_on(&pool);
    held.wait();
    drop(held.release);
    let thread = std::path::Path::new("/proc").join(has_started.recv().expect("it has started"));
    let clock = crate::clock::Clock::new();
    let end = clock.now() + Duration::from_secs(60);
    let (mut before, mut since) = (sample(&thread), clock.now());
    while clock.now() - since < Duration::from_millis(200) {
        assert!(clock.now() < end, "it runs, though there is nothing to do: {before:?}");
        let now = sample(&thread);
        if now != before || now[0] != "S" {
            (before, since) = (now, clock.now());
        }
        std::thread::yield_now();
    }
    assert_eq!(pool.stats().threads, 1);
}

#[test]
fn a_full_pool_can_run_the_oldest_job_on_the_calling_thread() {
    let pool = OffloadPool::builder()
        .threads_max(1)
        .jobs_max(2)
        .when_full(WhenFull::RunOldestHere)
        .build()
        .expect("no thread yet");
    let held = BlockedJob::start_on(&pool);
    held.wait();
    let (ran, order) = mpsc::channel();
    let here = thread::current().id();
    for number in 0..4 {
        let ran = ran.clone();
        assert!(offer(&pool, move || {
            ran.send((number, thread::current().id() == here)).expect("the test waits");
        }));
    }
    assert_eq!(order.try_iter().collect::<Vec<_>>(), [(0, true), (1, true)]);
    assert_eq!((pool.stats().queued, pool.stats().run_here), (2, 2));
    drop(held.release);
    assert_eq!(order.iter().take(2).collect::<Vec<_>>(), [(2, false), (3, false)]);
    assert_eq!(wait_until_idle(&pool).done, 5);
}

#[test]
fn without_room_each_job_is_run_by_the_caller_or_refused() {
    let here = thread::current().id();
    let builder = OffloadPool::builder().jobs_max(0);
    let pool = builder.clone().when_full(WhenFull::RunOldestHere).build().expect("no thread");
    let (ran, place) = mpsc::channel();
    assert!(offer(&pool, move || ran.send(thread::current().id()).expect("the test waits")));
    assert_eq!(place.recv(), Ok(here));
    assert_eq!((pool.stats().threads, pool.stats().run_here, pool.stats().done), (0, 1, 1));
    let refuses = builder.build().expect("no thread");
    assert!(!refuses.offer(&mut || panic!("there is no room")));
    assert_eq!(refuses.stats().refused, 1);
}

#[test]
fn an_urgent_job_starts_before_earlier_jobs() {
    let pool = OffloadPool::new(1, 8);
    let held = BlockedJob::start_on(&pool);
    held.wait();
    let (ran, order) = mpsc::channel();
    for number in 0..3 {
        let ran = ran.clone();
        let mut job = Some(move || ran.send(number).expect("the test waits"));
        let make = &mut || -> OffloadJob { Box::new(job.take().expect("called once")) };
        assert!(if number == 2 { pool.offer_urgent(make) } else { pool.offer(make) });
    }
    drop(held.release);
    assert_eq!(order.iter().take(3).collect::<Vec<_>>(), [2, 0, 1]);
}

#[test]
fn statistics_count_jobs_and_their_queue_and_run_times() {
    let pool = OffloadPool::new(1, 2);
    let held = BlockedJob::start_on(&pool);
    held.wait();
    assert!(offer(&pool, || {}) && offer(&pool, || std::panic::resume_unwind(Box::new("a bug"))));
    assert!(!pool.offer(&mut || panic!("there is no room")));
    let stats = pool.stats();
    assert_eq!((stats.running, stats.queued, stats.queued_most), (1, 2, 2));
    assert_eq!((stats.begun, stats.refused, stats.threads_most), (1, 1, 1));
    drop(held.release);
    let stats = wait_until_idle(&pool);
    assert_eq!((stats.begun, stats.done, stats.panicked), (3, 2, 1));
    assert_eq!((stats.queue_time.count(), stats.run_time.count()), (3, 3));
}

#[test]
fn a_job_may_offer_another_and_drop_the_last_handle_of_its_pool() {
    let pool = OffloadPool::new(1, 8);
    let (done, is_done) = mpsc::channel();
    let within = pool.clone();
    assert!(offer(&pool, move || {
        assert!(offer(&within, move || done.send(()).expect("the test waits")));
    }));
    is_done.recv().expect("it was run");
    let owner = pool.clone();
    let (dropped, is_dropped) = mpsc::channel();
    let held = BlockedJob::start_on(&pool);
    held.wait();
    assert!(offer(&pool, move || {
        drop(owner);
        dropped.send(()).expect("the test waits");
    }));
    // The last handle but that of the job.
    drop(pool);
    drop(held.release);
    is_dropped.recv().expect("it was run");
}
