//! A loop that is handed over while its handlers block: one thread at a time has it, each blocked
//! thread takes it back, and no thread that could continue it is missed.
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use loom::sync::atomic::AtomicBool;
use loom::thread;
use rotor_core::{
    Blocking, Config, Exit, Infallible, Loop, LoopInstance, Machine, Response, Scope,
};

use waiting::{WakeOnlyBackend, model};

/// Blocks this many times, and ends.
struct BlockingMachine(u32);

/// The context: counts sections, and its flag detects two handlers that run at the same time.
#[derive(Default)]
struct Shared {
    sections: u32,
    is_busy: Arc<BusyFlag>,
}

struct BusyFlag(AtomicBool);

impl Default for BusyFlag {
    fn default() -> BusyFlag {
        BusyFlag(AtomicBool::new(false))
    }
}

impl Machine for BlockingMachine {
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
        Response::ok(BlockingMachine(self.0 - 1))
    }
}

/// A loop of machines that block immediately, each as many times as given.
fn blocking_loop(
    threads_max: usize,
    times: &[u32],
) -> LoopInstance<BlockingMachine, WakeOnlyBackend> {
    loop_with(Blocking::new().patience_declared(Duration::ZERO).threads_max(threads_max), times)
}

fn loop_with(blocking: Blocking, times: &[u32]) -> LoopInstance<BlockingMachine, WakeOnlyBackend> {
    let config = Config::new().machines_max(times.len()).blocking(blocking);
    let mut creator = Loop::with_backend(WakeOnlyBackend::default(), &config).unwrap();
    for times in times {
        let made = creator.add_machine_with(|scope| {
            scope.wake_self();
            Response::ok(BlockingMachine(*times))
        });
        made.unwrap();
    }
    creator.instantiate(Shared::default()).handing_over()
}

#[test]
fn a_blocked_handler_reclaims_a_loop_that_falls_asleep() {
    model(3, || {
        let mut instance = blocking_loop(1, &[1]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 1);
    });
}

#[test]
fn a_thread_that_returned_the_loop_can_run_it_again() {
    model(2, || {
        let mut instance = blocking_loop(1, &[2]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 2);
    });
}

#[test]
fn two_blocked_handlers_reclaim_the_loop_one_after_the_other() {
    model(1, || {
        let mut instance = blocking_loop(2, &[1, 1]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 2);
    });
}

#[test]
fn a_stopped_and_dropped_loop_leaves_no_thread_waiting() {
    model(2, || {
        let mut instance = blocking_loop(1, &[1]);
        instance.handle().stop();
        assert_eq!(instance.run().unwrap(), Exit::Stopped);
        drop(instance);
    });
}

#[test]
fn a_loop_stopped_during_a_section_can_run_again() {
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
fn a_loop_without_a_watchdog_is_never_lent() {
    model(1, || {
        // No time passes in a model, and there is no watchdog to take the loop.
        let mut instance = loop_with(Blocking::new().threads_max(1), &[2]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.stats().read().handed_quick, 0);
    });
}

/// A thread that is not needed ends at once, perhaps just as it is given the loop again.
#[test]
fn a_thread_that_ends_is_given_nothing_or_runs_the_loop() {
    model(3, || {
        let blocking = Blocking::new().patience_declared(Duration::ZERO).keep_idle(Duration::ZERO);
        let mut instance = loop_with(blocking.threads_max(1), &[2]);
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        assert_eq!(instance.context().sections, 2);
    });
}

/// The first section of the type is handed over, and the second one is lent. The watchdog checks
/// twice, and takes the loop if it is lent at both checks.
#[test]
fn a_lent_loop_is_reclaimed_whether_or_not_the_watchdog_takes_it() {
    model(2, || {
        let mut instance = loop_with(Blocking::new().threads_max(1), &[2]);
        let mut check = instance.rescuer();
        let watchdog = thread::spawn(move || {
            check();
            check();
        });
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        watchdog.join().unwrap();
        let stats = instance.stats().read();
        assert_eq!(instance.context().sections, 2);
        assert_eq!(stats.handed_over + stats.handed_quick + stats.blocked_inline, 2);
    });
}

/// The section of the one may end while the other has lent the loop.
#[test]
fn a_loop_lent_by_one_handler_can_be_reclaimed_by_another() {
    model(1, || {
        let mut instance = loop_with(Blocking::new().threads_max(2), &[2, 1]);
        let _no_check = instance.rescuer();
        assert_eq!(instance.run().unwrap(), Exit::Empty);
        let stats = instance.stats().read();
        assert_eq!(instance.context().sections, 3);
        assert_eq!(stats.handed_over + stats.handed_quick, 3);
    });
}
