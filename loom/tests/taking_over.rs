//! A loop that is taken from its handlers at any moment: one thread at a time has it, each answer
//! is applied once, and nobody waits forever.
mod waiting;

use std::sync::Arc;
use std::time::Duration;

use loom::sync::atomic::AtomicU32;
use loom::sync::atomic::Ordering::Relaxed;
use loom::thread;
use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, LoopInstance, Machine, Response, Scope,
    SharedContext, StatsHandle,
};

use waiting::{WakeOnlyBackend, model};

/// Is called this many times, during each of which the loop may be taken; then ends.
struct CountedCalls(u32);

/// Counts the calls.
struct Shared(Arc<AtomicU32>);

impl Clone for Shared {
    fn clone(&self) -> Shared {
        Shared(self.0.clone())
    }
}

impl SharedContext for Shared {}

impl Machine for CountedCalls {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        scope.0.fetch_add(1, Relaxed);
        thread::yield_now();
        if self.0 == 1 {
            return Response::done();
        }
        scope.wake_self();
        Response::ok(CountedCalls(self.0 - 1))
    }
}

/// A loop of machines, each of which is called as many times as given.
fn taken_loop(threads_max: usize, times: &[u32]) -> LoopInstance<CountedCalls, WakeOnlyBackend> {
    let blocking = Blocking::new().patience_declared(Duration::ZERO).threads_max(threads_max);
    let config = Config::new().machines_max(times.len()).blocking(blocking);
    let mut creator = Loop::with_backend(WakeOnlyBackend::default(), &config).unwrap();
    for times in times {
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(CountedCalls(*times))
        });
        made.unwrap();
    }
    creator.instantiate(Shared(Arc::new(AtomicU32::new(0)))).taking_over()
}

#[test]
fn a_loop_taken_over_once_applies_all_answers() {
    model(2, || {
        let mut instance = taken_loop(1, &[1]);
        let take = instance.taker();
        let other = thread::spawn(take);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        let taken = u64::from(other.join().unwrap());
        let stats = instance.stats().read();
        assert_eq!(instance.context().0.load(Relaxed), 1);
        assert_eq!((stats.taken_over, stats.late_answers, stats.ended), (taken, taken, 1));
    });
}

/// Checks in its handler that the loop was not counted as taken.
struct ReadsStats;

/// The statistics of the loop.
#[derive(Clone)]
struct OwnStats(StatsHandle);

impl SharedContext for OwnStats {}

impl Machine for ReadsStats {
    type Context = OwnStats;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, OwnStats>) -> Response<Self, Infallible> {
        thread::yield_now();
        assert_eq!(scope.0.read().taken_over, 0);
        Response::done()
    }
}

#[test]
fn a_takeover_without_a_thread_is_never_counted() {
    model(2, || {
        let blocking = Blocking::new().patience_declared(Duration::ZERO).threads_max(0);
        let config = Config::new().machines_max(1).blocking(blocking);
        let mut creator = Loop::with_backend(WakeOnlyBackend::default(), &config).unwrap();
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(ReadsStats)
        });
        made.unwrap();
        let stats = OwnStats(creator.stats());
        let mut instance = creator.instantiate(stats).taking_over();
        let take = instance.taker();
        let other = thread::spawn(take);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert!(!other.join().unwrap());
        assert_eq!(instance.stats().read().panicked, 0);
    });
}

#[test]
fn a_self_wakeup_survives_a_takeover() {
    model(1, || {
        let mut instance = taken_loop(1, &[2]);
        let take = instance.taker();
        let other = thread::spawn(take);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        other.join().unwrap();
        assert_eq!(instance.context().0.load(Relaxed), 2);
    });
}

/// If the loop was taken from the first machine, the second one is called by a thread of its own.
#[test]
fn a_detached_call_answers_once() {
    model(1, || {
        let mut instance = taken_loop(2, &[1, 1]);
        let take = instance.taker();
        let other = thread::spawn(take);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        let taken = u64::from(other.join().unwrap());
        let stats = instance.stats().read();
        assert_eq!(instance.context().0.load(Relaxed), 2);
        assert!(stats.taken_over >= taken);
        assert_eq!((stats.late_answers, stats.ended), (stats.taken_over, 2));
    });
}

#[test]
fn a_loop_dropped_during_a_takeover_leaves_no_thread_waiting() {
    model(1, || {
        let mut instance = taken_loop(1, &[1]);
        let take = instance.taker();
        let handle = instance.handle();
        let other = thread::spawn(move || {
            take();
            handle.stop();
        });
        instance.run().unwrap();
        drop(instance);
        other.join().unwrap();
    });
}
