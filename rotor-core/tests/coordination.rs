//! Permits and locks between loops and threads, on the default backend.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_core::{
    Config, Exit, Future, FutureError, Infallible, Job, Lock, LockGuard, Loop, Machine, Measured,
    OffloadPool, Outcome, Permit, Permits, Place, Response, RunAtResult, Scope, Time, WhenFull,
};

const LOOPS: usize = 3;
const MACHINES: usize = 8;
const ROUNDS: usize = 200;

/// How many machines are inside at a time, and the maximum.
#[derive(Default)]
struct Occupancy {
    now: AtomicUsize,
    most: AtomicUsize,
}

impl Occupancy {
    fn enter(&self) {
        let now = self.now.fetch_add(1, SeqCst) + 1;
        self.most.fetch_max(now, SeqCst);
    }

    fn leave(&self) {
        self.now.fetch_sub(1, SeqCst);
    }
}

/// What all loops share.
#[derive(Clone)]
struct Shared {
    permits: Permits,
    inside: Arc<Occupancy>,
    sum: Lock<usize>,
}

/// Holds a permit from one event to the next, then adds to the sum, repeatedly.
enum Worker {
    Waits(Future<Permit>, usize),
    Inside(Permit, usize),
    Adds(Future<LockGuard<usize>>, usize),
}

impl Machine for Worker {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        match self {
            Worker::Waits(future, left) => match future.take() {
                Outcome::Value(mut permit) => {
                    permit.run(|| scope.inside.enter());
                    scope.notifier().wakeup();
                    Response::keep(Worker::Inside(permit, left))
                }
                Outcome::Pending(future) => Response::keep(Worker::Waits(future, left)),
                Outcome::Lost(lost) => Response::error(lost),
            },
            Worker::Inside(permit, left) => {
                scope.inside.leave();
                drop(permit);
                Response::keep(Worker::Adds(scope.sum.ask(scope), left))
            }
            Worker::Adds(future, left) => match future.take() {
                Outcome::Value(mut held) => {
                    *held += 1;
                    drop(held);
                    match left {
                        0 => Response::done(),
                        left => Response::keep(Worker::Waits(scope.permits.ask(scope), left - 1)),
                    }
                }
                Outcome::Pending(future) => Response::keep(Worker::Adds(future, left)),
                Outcome::Lost(lost) => Response::error(lost),
            },
        }
    }
}

#[test]
fn machines_of_several_loops_share_permits_and_a_lock() {
    let shared = Shared { permits: Permits::new(2), inside: Arc::default(), sum: Lock::new(0) };
    let loops: Vec<_> = (0..LOOPS)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || {
                let mut creator = Loop::new(&Config::new()).expect("a loop");
                for _ in 0..MACHINES {
                    let added = creator.add_machine_with(|scope| {
                        Response::ok(Worker::Waits(shared.permits.ask(scope), ROUNDS - 1))
                    });
                    added.expect("there is room");
                }
                creator.instantiate(shared).run().expect("it runs")
            })
        })
        .collect();
    for ended in loops {
        assert_eq!(ended.join().expect("it does not panic"), Exit::Empty);
    }
    assert!((1..=2).contains(&shared.inside.most.load(SeqCst)));
    assert_eq!(shared.inside.now.load(SeqCst), 0);
    let stats = shared.permits.stats();
    assert_eq!((stats.available, stats.waiting, stats.unused, stats.left), (2, 0, 0, 0));
    assert_eq!(*shared.sum.try_take().expect("nobody holds it"), LOOPS * MACHINES * ROUNDS);
}

/// Waits for jobs, and records the outcome of each.
struct JobWaiter(Vec<Future<usize>>);

impl Machine for JobWaiter {
    type Context = Vec<Result<usize, FutureError>>;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Infallible> {
        let mut left = Vec::new();
        for future in self.0 {
            match future.take() {
                Outcome::Value(value) => scope.push(Ok(value)),
                Outcome::Lost(lost) => scope.push(Err(lost)),
                Outcome::Pending(future) => left.push(future),
            }
        }
        if left.is_empty() { Response::done() } else { Response::keep(JobWaiter(left)) }
    }
}

fn run(
    start: impl FnOnce(&Scope<'_, rotor_core::NoContext>) -> Vec<Future<usize>>,
) -> Vec<Result<usize, FutureError>> {
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| Response::ok(JobWaiter(start(scope))));
    added.expect("there is room");
    let mut instance = creator.instantiate(Vec::new());
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    instance.into_context()
}

#[test]
fn jobs_run_at_most_as_many_at_a_time_as_there_are_permits() {
    let (pool, permits) = (OffloadPool::new(4, 256), Permits::new(2));
    let inside = Arc::new(Occupancy::default());
    let seen = run(|scope| {
        let job = |number| {
            let inside = inside.clone();
            let work = move |_: &Job<'_>| {
                inside.enter();
                thread::yield_now();
                inside.leave();
                assert_ne!(number, 7, "one of them panics");
                number
            };
            scope.job(work).on(&pool).permits(&permits).start().expect("there is room")
        };
        (0..200).map(job).collect()
    });
    assert_eq!(seen.iter().filter(|result| result.is_ok()).count(), 199);
    assert!(seen.contains(&Err(FutureError::Panicked)));
    assert!((1..=2).contains(&inside.most.load(SeqCst)));
    while pool.stats().running > 0 {
        thread::yield_now();
    }
    let (stats, pool) = (permits.stats(), pool.stats());
    assert_eq!((stats.available, stats.waiting, stats.unused), (2, 0, 0));
    assert_eq!((pool.begun, pool.done, pool.panicked, pool.queued), (200, 199, 1, 0));
    assert_eq!((pool.queue_time.count(), pool.run_time.count()), (200, 200));
}

#[test]
fn a_job_that_waits_for_a_permit_blocks_no_thread_and_keeps_its_place() {
    let pool = OffloadPool::builder().threads_max(1).jobs_max(2).build().expect("no thread yet");
    let permits = Permits::new(1);
    let held = permits.try_take().expect("it is free");
    let (ran, has_run) = mpsc::channel();
    let seen = run(|scope| {
        let waits = scope.job(|_: &Job<'_>| 1).on(&pool).permits(&permits);
        let waits = waits.start().expect("there is room");
        while permits.waiting() == 0 || pool.stats().running > 0 {
            thread::yield_now();
        }
        assert_eq!((pool.stats().begun, pool.stats().queue_time.count()), (1, 1));
        let other = move |_: &Job<'_>| {
            ran.send(()).expect("the test waits");
            2
        };
        let other = scope.job(other).on(&pool).start().expect("there is a second place");
        has_run.recv().expect("the thread is free");
        let (block, blocks) = mpsc::channel::<()>();
        let (begun, has_begun) = mpsc::channel();
        let holds = move |_: &Job<'_>| {
            begun.send(()).expect("the test waits");
            let _ = blocks.recv();
            3
        };
        let holds = scope.job(holds).on(&pool).start().expect("there is a second place");
        has_begun.recv().expect("it runs");
        let fills = scope.job(|_: &Job<'_>| 4).on(&pool).start().expect("there is a second place");
        scope.job(|_: &Job<'_>| 5).on(&pool).start().expect_err("the first place is taken");
        drop((held, block));
        vec![waits, other, holds, fills]
    });
    let mut seen: Vec<usize> = seen.into_iter().flatten().collect();
    seen.sort();
    assert_eq!(seen, [1, 2, 3, 4]);
}

#[test]
fn waiting_jobs_are_lost_when_permits_close_or_the_pool_ends() {
    for closes in [true, false] {
        let (pool, permits) = (OffloadPool::new(1, 4), Permits::new(1));
        let held = permits.try_take().expect("it is free");
        let seen = run(|scope| {
            let waits = scope.job(|_: &Job<'_>| 1).on(&pool).permits(&permits);
            let waits = waits.start().expect("there is room");
            while permits.waiting() == 0 {
                thread::yield_now();
            }
            if closes {
                permits.close();
            } else {
                drop(pool);
            }
            assert_eq!(permits.waiting(), 0, "it waits no longer, although the permit is held");
            vec![waits]
        });
        drop(held);
        assert_eq!(seen, [Err(if closes { FutureError::Cancelled } else { FutureError::Dropped })]);
    }
}

/// Yields until this many jobs are queued.
fn wait_until_queued(permits: &Permits, jobs: usize) {
    while permits.waiting() < jobs {
        thread::yield_now();
    }
}

#[test]
fn queued_jobs_that_panic_in_drop_do_not_affect_others() {
    struct Bomb;

    impl Drop for Bomb {
        fn drop(&mut self) {
            std::panic::resume_unwind(Box::new("in drop"));
        }
    }

    for closes in [true, false] {
        let (pool, permits) = (OffloadPool::new(1, 8), Permits::new(0));
        let seen = run(|scope| {
            let job = |_| {
                let bomb = Bomb;
                let work = move |_: &Job<'_>| {
                    std::mem::forget(bomb);
                    1
                };
                scope.job(work).on(&pool).permits(&permits).start().expect("there is room")
            };
            let jobs = (0..3).map(job).collect();
            wait_until_queued(&permits, 3);
            if closes {
                permits.close()
            } else {
                drop(permits)
            }
            jobs
        });
        assert_eq!(
            seen,
            [Err(if closes { FutureError::Cancelled } else { FutureError::Dropped }); 3]
        );
    }
}

#[test]
fn dropping_a_long_queue_of_jobs_does_not_recurse() {
    const JOBS: usize = 20_000;
    let (pool, permits) = (OffloadPool::new(1, JOBS), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let seen = run(|scope| {
        let job = |_| scope.job(|_: &Job<'_>| 1).on(&pool).permits(&permits).start();
        let jobs = (0..JOBS).map(|number| job(number).expect("there is room")).collect();
        wait_until_queued(&permits, JOBS);
        drop((pool, held));
        jobs
    });
    assert_eq!(seen, vec![Err(FutureError::Dropped); JOBS]);
    assert_eq!((permits.available(), permits.waiting()), (1, 0));
}

#[test]
fn a_full_pool_that_runs_jobs_here_refuses_jobs_that_need_a_permit() {
    for jobs_max in [0, 2] {
        let pool = OffloadPool::builder().threads_max(1).jobs_max(jobs_max);
        let pool = pool.when_full(WhenFull::RunOldestHere).build().expect("no thread yet");
        let permits = Permits::new(1);
        let held = permits.try_take().expect("it is free");
        let seen = run(|scope| {
            let job = |number| {
                let job = scope.job(move |_: &Job<'_>| number).on(&pool).permits(&permits);
                let job = job.start().ok()?;
                wait_until_queued(&permits, number + 1);
                Some(job)
            };
            let jobs: Vec<_> = (0..10).map_while(job).collect();
            assert_eq!((jobs.len(), pool.stats().refused), (jobs_max + 1, 1));
            drop(held);
            jobs
        });
        assert_eq!(seen.len(), jobs_max + 1);
        assert!(seen.iter().all(Result::is_ok), "{seen:?}");
    }
}

#[test]
fn a_job_cancelled_while_it_waits_for_a_permit_frees_its_place() {
    let (pool, permits) = (OffloadPool::new(1, 1), Permits::new(1));
    let held = permits.try_take().expect("it is free");
    let seen = run(|scope| {
        for cancelled in 1..=3 {
            let waits = scope.job(|_: &Job<'_>| 1).on(&pool).permits(&permits);
            let waits = waits.start().expect("the place is free");
            wait_until_queued(&permits, 1);
            drop(waits);
            assert_eq!((permits.waiting(), permits.stats().left), (0, cancelled));
            while pool.stats().cancelled < cancelled {
                thread::yield_now();
            }
        }
        vec![scope.job(|_: &Job<'_>| 2).on(&pool).start().expect("the place is free")]
    });
    drop(held);
    assert_eq!((seen, permits.stats().unused), (vec![Ok(2)], 1));
}

/// Runs a closure at a place; returns the name of the thread that ran it, or `None` if it did not
/// run.
fn run_at(place: &Place) -> Option<String> {
    struct PlacedWork(Option<Future<String>>);

    impl Machine for PlacedWork {
        type Context = Option<String>;
        type Seed = Infallible;

        fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Infallible> {
            match self.0.map(Future::take) {
                Some(Outcome::Pending(future)) => Response::keep(PlacedWork(Some(future))),
                Some(Outcome::Value(name)) => {
                    **scope = Some(name);
                    Response::done()
                }
                Some(Outcome::Lost(lost)) => Response::error(lost),
                None => Response::done(),
            }
        }
    }

    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let mut now = None;
    let added = creator.add_machine_with(|scope| {
        let name = || thread::current().name().unwrap_or("none").to_owned();
        match scope.run_at(place, name) {
            RunAtResult::Now(name) => now = Some(name),
            RunAtResult::Later(future) => return Response::ok(PlacedWork(Some(future))),
            RunAtResult::Refused(work) => assert!(!work().is_empty(), "the work comes back"),
        }
        scope.notifier().wakeup();
        Response::ok(PlacedWork(None))
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(None);
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    now.or(instance.into_context())
}

#[test]
fn work_runs_where_its_place_says() {
    let here = thread::current().name().map(str::to_owned);
    // One thread: a second one would be started if the first has not yet recorded what it ran.
    let pool = OffloadPool::builder().name("pool").threads_max(1).build().expect("no thread yet");
    assert_eq!(run_at(&Place::Here), here);
    assert_eq!(run_at(&Place::Pool(pool.clone())).as_deref(), Some("pool-0"));
    let none = OffloadPool::builder().jobs_max(0).build().expect("no thread");
    assert_eq!(run_at(&Place::Pool(none)), None);

    let permits = Permits::new(1);
    assert_eq!(run_at(&Place::Handed(permits.clone())), here);
    assert_eq!((permits.available(), permits.stats().unused), (1, 0));
    let held = permits.try_take();
    assert_eq!(run_at(&Place::Handed(permits.clone())), None);
    drop(held);

    let short = Measured::new(pool.clone()).inline_below(Duration::from_secs(60));
    assert_eq!(run_at(&Place::Measured(short.clone())).as_deref(), Some("pool-0"));
    assert!(short.average().is_some());
    assert_eq!(run_at(&Place::Measured(short)), here);
    let never = Measured::new(pool).inline_below(Duration::ZERO);
    for _ in 0..2 {
        assert_eq!(run_at(&Place::Measured(never.clone())).as_deref(), Some("pool-0"));
    }
}

/// Counts its wake-ups until all of its jobs are done.
struct WakeupCounter(Vec<Future<usize>>);

impl Machine for WakeupCounter {
    type Context = (usize, Vec<Result<usize, FutureError>>);
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Self::Context>) -> Response<Self, Infallible> {
        scope.0 += 1;
        for future in self.0 {
            match future.take() {
                Outcome::Value(value) => scope.1.push(Ok(value)),
                Outcome::Lost(lost) => scope.1.push(Err(lost)),
                Outcome::Pending(_) => panic!("it is woken when all are done"),
            }
        }
        Response::done()
    }

    fn timeout(self, _: &mut Scope<'_, Self::Context>) -> Response<Self, Infallible> {
        Response::error("it is not woken")
    }
}

#[test]
fn a_batch_wakes_its_machine_once_however_its_jobs_end() {
    let (permits, refuses) = (Permits::new(1), OffloadPool::builder().jobs_max(0).build());
    let refuses = refuses.expect("no thread");
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let batch = scope.create_batch();
        let job = |number: usize| {
            let work = move |_: &Job<'_>| {
                assert_ne!(number, 1, "one of them panics");
                number
            };
            let job = scope.job(work).of(&batch);
            match number {
                2 => job.begin_before(Time::ZERO).start(),
                3 => job.permits(&permits).start(),
                _ => job.start(),
            }
        };
        let mut kept: Vec<_> = (0..50).map(|number| job(number).expect("there is room")).collect();
        // One job that nobody waits for any more, and one that is refused.
        drop(kept.pop());
        scope.job(|_: &Job<'_>| 0).of(&batch).on(&refuses).start().expect_err("there is no room");
        Response::ok(WakeupCounter(kept)).deadline(scope.now() + Duration::from_secs(100))
    });
    added.expect("there is room");
    let mut instance = creator.instantiate((0, Vec::new()));
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    let (wakeups, seen) = instance.into_context();
    assert_eq!((wakeups, seen.len()), (1, 49));
    assert_eq!(seen[..3], [Ok(0), Err(FutureError::Panicked), Err(FutureError::Late)]);
    assert!(seen[3..].iter().enumerate().all(|(at, result)| *result == Ok(at + 3)));
}

#[test]
fn an_empty_batch_is_done_when_it_is_dropped() {
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        drop(scope.create_batch());
        Response::ok(WakeupCounter(Vec::new()))
    });
    added.expect("there is room");
    let mut instance = creator.instantiate((0, Vec::new()));
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    assert_eq!(instance.context().0, 1);
}
