//! Work that machines offload, on the default backend: results, panics, refusals, cancellation,
//! late results.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_core::{
    Config, EarlyScope, Exit, Future, FutureError, Infallible, Job, Loop, Machine, OffloadPool,
    Outcome, Permits, PoolStats, Response, Scope,
};

/// Waits for one result, and records its outcome in the context.
struct ResultWaiter(Future<u32>);

#[derive(Default)]
struct Results(Vec<Result<u32, FutureError>>);

impl Machine for ResultWaiter {
    type Context = Results;
    type Seed = Infallible;
    fn wakeup(self, scope: &mut Scope<'_, Results>) -> Response<Self, Infallible> {
        match self.0.take() {
            Outcome::Pending(future) => return Response::keep(ResultWaiter(future)),
            Outcome::Value(value) => scope.0.push(Ok(value)),
            Outcome::Lost(lost) => scope.0.push(Err(lost)),
        }
        Response::done()
    }
}

fn run(
    config: &Config,
    jobs: Vec<Box<dyn FnOnce() -> u32 + Send>>,
) -> Vec<Result<u32, FutureError>> {
    let mut creator = Loop::new(config).expect("a loop");
    for job in jobs {
        let added = creator.add_machine_with(|scope| match scope.offload(job) {
            Ok(future) => Response::ok(ResultWaiter(future)),
            Err(full) => Response::error(full.to_string()),
        });
        added.expect("there is room");
    }
    let mut instance = creator.instantiate(Results::default());
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    let mut seen = instance.into_context().0;
    seen.sort_by_key(|result| result.unwrap_or(u32::MAX));
    seen
}

#[test]
fn results_and_panics_reach_the_future() {
    let panics = || std::panic::resume_unwind(Box::new("a bug in a job"));
    let seen = run(&Config::new(), vec![Box::new(|| 2), Box::new(|| 1), Box::new(panics)]);
    assert_eq!(seen, [Ok(1), Ok(2), Err(FutureError::Panicked)]);
}

#[test]
fn loops_of_cloned_configs_share_the_pool() {
    let config = Config::new().offload_pool(OffloadPool::new(1, 4));
    let name = || std::thread::current().name().map_or(0, |name| u32::from(name == "offload-0"));
    assert_eq!(run(&config.clone(), vec![Box::new(name)]), [Ok(1)]);
    assert_eq!(run(&config, vec![Box::new(name)]), [Ok(1)]);
}

#[test]
fn a_full_pool_returns_the_closure_and_wakes_nobody() {
    let config = Config::new().offload_pool(OffloadPool::new(1, 1));
    let mut creator = Loop::new(&config).expect("a loop");
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let added = creator.add_machine_with(|scope| {
        let block = move || {
            let _ = begun.send(());
            let _ = released.recv();
            1
        };
        let first = scope.offload(block).expect("the pool is empty");
        has_begun.recv().expect("the thread runs it");
        let _second = scope.offload(|| 2).expect("one may wait");
        let refused = scope.offload(|| 3).expect_err("no more");
        let text =
            "the pool has no room for another job (PoolBuilder::jobs_max), or no thread for it";
        assert_eq!(refused.to_string(), text);
        assert_eq!(refused.into_job()(), 3);
        Response::ok(ResultWaiter(first))
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(Results::default());
    instance.turn(Some(std::time::Duration::ZERO)).expect("it turns");
    let stats = instance.stats();
    assert_eq!(stats.read().wakeups, 0, "nothing has come yet");
    drop(release);
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    assert_eq!(instance.context().0, [Ok(1)]);
    // The second job's future was dropped before the job began.
    while stats.read().unclaimed == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_result_for_a_machine_that_has_ended_is_dropped_and_counted() {
    let (release, released) = mpsc::channel::<()>();
    let (begun, has_begun) = mpsc::channel();
    let mut creator = Loop::new(&Config::new()).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let work = move || {
            let _ = begun.send(());
            let _ = released.recv();
            1
        };
        let future = scope.offload(work).expect("the pool is empty");
        has_begun.recv().expect("the thread runs it");
        scope.notifier().wakeup();
        drop(future);
        let (_port, lost) = scope.create_future();
        Response::ok(ResultWaiter(lost))
    });
    added.expect("there is room");
    let mut instance = creator.instantiate(Results::default());
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    let stats = instance.stats();
    assert_eq!(stats.read().unclaimed, 0);
    drop(release);
    while stats.read().unclaimed == 0 {
        std::thread::yield_now();
    }
}

/// A value whose drop panics.
struct PanicsOnDrop;

impl Drop for PanicsOnDrop {
    fn drop(&mut self) {
        std::panic::resume_unwind(Box::new("in drop"));
    }
}

#[test]
fn an_unwanted_result_is_counted_even_if_its_drop_panics() {
    let pool = OffloadPool::new(1, 1);
    let mut creator = Loop::<ResultWaiter>::new(&Config::new()).expect("a loop");
    let made = creator.add_machine_with(|scope| {
        let (begun, has_begun) = mpsc::channel();
        let unwanted = move |job: &Job<'_>| {
            begun.send(()).expect("the test waits");
            while !job.is_cancelled() {
                thread::yield_now();
            }
            PanicsOnDrop
        };
        let future = scope.job(unwanted).on(&pool).start().expect("the pool is empty");
        has_begun.recv().expect("the thread runs it");
        drop(future);
        Response::done()
    });
    made.expect_err("it has ended");
    let counted = settled(&pool);
    assert_eq!((counted.done, counted.panicked), (0, 1));
    assert_eq!(creator.stats().read().unclaimed, 1);
}

/// Runs one job, begun by `start`, on its own loop.
fn run_one(
    config: &Config,
    start: impl FnOnce(&EarlyScope<'_>) -> Future<u32>,
) -> Result<u32, FutureError> {
    let mut creator = Loop::new(config).expect("a loop");
    let added = creator.add_machine_with(|scope| Response::ok(ResultWaiter(start(scope))));
    added.expect("there is room");
    let mut instance = creator.instantiate(Results::default());
    assert_eq!(instance.run().expect("it runs"), Exit::Empty);
    instance.into_context().0.pop().expect("one was started")
}

/// The counters of a pool once its threads have recorded what they ran. The result of a job is
/// available before that.
fn settled(pool: &OffloadPool) -> PoolStats {
    while pool.stats().running > 0 {
        thread::yield_now();
    }
    pool.stats()
}

#[test]
fn a_job_runs_on_its_named_pool_and_can_query_its_own_state() {
    let named = OffloadPool::builder().name("named").build().expect("no thread yet");
    let seen = run_one(&Config::new(), |scope| {
        let deadline = scope.now() + Duration::from_secs(60);
        let job = move |job: &Job<'_>| {
            let is_there = thread::current().name() == Some("named-0");
            assert!(!job.is_cancelled() && job.begin_before() == deadline);
            u32::from(is_there && job.queued_for() < Duration::from_secs(60))
        };
        scope.job(job).on(&named).begin_before(deadline).urgent().start().expect("there is room")
    });
    assert_eq!(seen, Ok(1));
    assert_eq!(settled(&named).done, 1);
}

#[test]
fn a_job_not_started_in_time_is_dropped_and_reported_as_late() {
    let pool = OffloadPool::new(1, 4);
    let config = Config::new().offload_pool(pool.clone());
    let (begun, has_begun) = mpsc::channel();
    let seen = run_one(&config, |scope| {
        let hold = move |job: &Job<'_>| {
            begun.send(()).expect("the test waits");
            while !job.is_cancelled() {
                thread::yield_now();
            }
            1
        };
        let held = scope.job(hold).start().expect("there is room");
        has_begun.recv().expect("it runs");
        let late = |_: &Job<'_>| panic!("it is too late");
        let late = scope.job(late).begin_before(scope.now()).start().expect("one may wait");
        drop(held);
        late
    });
    assert_eq!(seen, Err(FutureError::Late));
    assert_eq!(FutureError::Late.to_string(), "it was too late");
    let stats = settled(&pool);
    assert_eq!((stats.late, stats.begun), (1, 2));
}

#[test]
fn a_job_is_late_if_its_handler_took_until_the_time_limit() {
    let seen = run_one(&Config::new(), |scope| {
        let limit = scope.now() + Duration::from_millis(50);
        // The loop's own time stands still meanwhile.
        while scope.backend().now() < limit {
            thread::yield_now();
        }
        assert!(scope.now() < limit);
        let late = |_: &Job<'_>| panic!("it is too late");
        scope.job(late).begin_before(limit).start().expect("there is room")
    });
    assert_eq!(seen, Err(FutureError::Late));
}

#[test]
fn a_job_whose_future_was_dropped_is_not_started() {
    let pool = OffloadPool::new(1, 4);
    let config = Config::new().offload_pool(pool.clone());
    let (release, released) = mpsc::channel::<()>();
    let seen = run_one(&config, |scope| {
        let hold = move |_: &Job<'_>| {
            let _ = released.recv();
            1
        };
        let held = scope.job(hold).start().expect("there is room");
        drop(scope.job(|_: &Job<'_>| panic!("nobody waits")).start::<u32>());
        drop(release);
        held
    });
    assert_eq!(seen, Ok(1));
    while pool.stats().cancelled == 0 {
        assert_eq!(pool.stats().panicked, 0, "it was begun");
        thread::yield_now();
    }
}

#[test]
fn a_detached_job_runs_although_its_machine_has_ended() {
    let (pool, permits) = (OffloadPool::new(1, 4), Permits::new(1));
    let config = Config::new().offload_pool(pool.clone());
    let (release, released) = mpsc::channel::<()>();
    let (done, has_done) = mpsc::channel();
    let mut creator = Loop::<ResultWaiter>::new(&config).expect("a loop");
    // Its only thread is held, and then its permit.
    let blocked = creator.add_machine_with(|scope| {
        let hold = move |_: &Job<'_>| released.recv().is_err();
        scope.job(hold).start_detached().expect("there is room");
        for permits in [None, Some(&permits)] {
            let done = done.clone();
            let job = scope.job(move |job: &Job<'_>| done.send(job.is_cancelled()));
            let job = permits.into_iter().fold(job, |job, permits| job.permits(permits));
            job.start_detached().expect("some may wait");
        }
        Response::done()
    });
    assert!(blocked.is_err(), "the machine has ended at once");
    let stats = creator.stats();
    drop(creator);
    let held = permits.try_take().expect("it is free");
    drop((release, done));
    assert_eq!(has_done.recv(), Ok(false));
    while permits.waiting() == 0 {
        thread::yield_now();
    }
    drop(held);
    assert_eq!(has_done.recv(), Ok(false));
    assert_eq!((settled(&pool).cancelled, stats.read().unclaimed), (0, 0));
}

#[test]
fn jobs_of_a_dropped_pool_are_lost_and_of_a_dropped_loop_not_started() {
    let (release, released) = mpsc::channel::<()>();
    let pool = OffloadPool::new(1, 4);
    let seen = run_one(&Config::new(), |scope| {
        let hold = move |_: &Job<'_>| {
            let _ = released.recv();
            1
        };
        let _held = scope.job(hold).on(&pool).start().expect("there is room");
        let waits = scope.job(|_: &Job<'_>| 2).on(&pool).start().expect("one may wait");
        drop(pool);
        waits
    });
    assert_eq!(seen, Err(FutureError::Dropped));
    drop(release);

    let pool = OffloadPool::new(1, 4);
    let config = Config::new().offload_pool(pool.clone());
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let mut creator = Loop::<ResultWaiter>::new(&config).expect("a loop");
    let added = creator.add_machine_with(|scope| {
        let hold = move || {
            begun.send(()).expect("the test waits");
            let _ = released.recv();
            1
        };
        let held = scope.offload(hold).expect("there is room");
        let _kept = has_begun.recv();
        std::mem::forget(
            scope.offload(|| -> u32 { panic!("its loop is gone") }).expect("one waits"),
        );
        Response::ok(ResultWaiter(held))
    });
    added.expect("there is room");
    drop(creator);
    drop(release);
    while pool.stats().cancelled == 0 {
        assert_eq!(pool.stats().panicked, 0, "it was begun");
        thread::yield_now();
    }
    assert_eq!(pool.stats().panicked, 0);
}
