//! A loop that is handed over while its handlers block: it is with one thread at a time, each who
//! blocked takes it back, and none of those who could go on with it is missed.
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use loom::sync::atomic::AtomicBool;
use loom::thread;
use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, LoopInstance, Machine, Response, Scope,
};

use waiting::{Waiting, model};

/// Blocks so many times, and ends.
struct Blocks(u32);

/// What no two handlers may have at a time.
#[derive(Default)]
struct Shared {
    sections: u32,
    is_busy: Arc<Busy>,
}

struct Busy(AtomicBool);

impl Default for Busy {
    fn default() -> Busy {
        Busy(AtomicBool::new(false))
    }
}

impl Machine for Blocks {
    type Context = Shared;
    type Seed = Infallible;

    fn wakeup(self, scope: &mut Scope<'_, Shared>) -> Response<Self, Infallible> {
        let is_busy = scope.is_busy.clone();
        assert!(!is_busy.0.swap(true, Relaxed), "two handlers at a time");
        is_busy.0.store(false, Relaxed);
        scope.blocking(thread::yield_now);
        assert!(!is_busy.0.swap(true, Relaxed), "two handlers at a time");
        scope.sections += 1;
        is_busy.0.store(false, Relaxed);
        if self.0 == 1 {
            return Response::done();
        }
        scope.wake_self();
        Response::ok(Blocks(self.0 - 1))
    }
}

/// A loop of machines that block at once, each so many times.
fn blocking_loop(threads_max: usize, times: &[u32]) -> LoopInstance<Blocks, Waiting> {
    loop_with(Blocking::new().patience_declared(Duration::ZERO).threads_max(threads_max), times)
}

fn loop_with(blocking: Blocking, times: &[u32]) -> LoopInstance<Blocks, Waiting> {
    let config = Config::new().machines_max(times.len()).blocking(blocking);
    let mut creator = Loop::with_backend(Waiting::default(), &config).unwrap();
    for times in times {
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(Blocks(*times))
        });
        made.unwrap();
    }
    creator.instantiate(Shared::default()).handing_over()
}

#[test]
fn one_that_blocks_takes_a_loop_back_that_falls_asleep() {
    model(3, || {
        let mut instance = blocking_loop(1, &[1]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 1);
    });
}

#[test]
fn who_has_given_the_loop_back_is_there_to_go_on_with_it_again() {
    model(2, || {
        let mut instance = blocking_loop(1, &[2]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 2);
    });
}

#[test]
fn two_that_block_take_the_loop_back_one_after_the_other() {
    model(1, || {
        let mut instance = blocking_loop(2, &[1, 1]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 2);
    });
}

#[test]
fn a_loop_that_is_stopped_and_dropped_keeps_nobody() {
    model(2, || {
        let mut instance = blocking_loop(1, &[1]);
        instance.handle().stop();
        assert_eq!(instance.run().unwrap(), Exit::Stopped);
        drop(instance);
    });
}

#[test]
fn a_loop_that_is_stopped_while_one_is_away_goes_on_with_it() {
    model(2, || {
        let mut instance = blocking_loop(1, &[1]);
        let handle = instance.handle();
        let other = thread::spawn(move || handle.stop());
        let first = instance.run().unwrap();
        if first == Exit::Stopped {
            assert_eq!(instance.run().unwrap(), Exit::Empty);
        }
        assert_eq!(instance.context().sections, 1);
        other.join().unwrap();
    });
}

#[test]
fn what_nobody_watches_is_not_lent_however_short_it_was() {
    model(1, || {
        // No time passes in a model, and none has a watchdog, which would take it.
        let mut instance = loop_with(Blocking::new().threads_max(1), &[2]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.stats().read().handed_quick, 0);
    });
}
