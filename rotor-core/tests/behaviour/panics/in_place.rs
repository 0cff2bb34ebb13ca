//! Panics of machines that are called in place, and of what the loop calls along the way: the
//! machine's name, and the clock that times its handlers.

use std::time::Duration;

use rotor_core::{
    Event, EventSet, Future, FutureError, InPlace, Infallible, Lock, Machine, Outcome, Response,
    Scope,
};

use super::dropped::PanicsOnDrop;
use super::{FailureLog, Log};
use crate::manual::{Manual, settle};

/// Its `type_name` panics.
struct PanickingName;

impl Machine for PanickingName {
    type Context = Log;
    type Seed = Infallible;

    fn type_name(&self) -> &'static str {
        panic!("in type_name")
    }
}

#[test]
fn a_machine_whose_name_panics_is_removed_and_its_slot_freed() {
    let (manual, seen) = (Manual::new(), FailureLog::default());
    let config = seen.config().machines_max(2);
    let mut instance = manual.start(&config, Log::new(), |_| Response::ok(PanickingName));
    let token =
        instance.add_machine_with(|_| Response::ok(PanickingName)).expect("there is room for two");
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!((instance.machines().len(), instance.stats().read().panicked), (1, 1));
    assert_eq!(seen.take().len(), 1);
    instance.handle().drain(Duration::ZERO);
    settle(&mut instance);
    assert_eq!(instance.machines().len(), 0);
    let made = instance.add_machine_with(|_| Response::ok(PanickingName));
    assert!(made.is_ok(), "no slot was lost");
}

/// Panics in its handler, which is called in place; and perhaps in its name.
struct PanicsInPlace<T> {
    _kept: T,
    name: fn() -> &'static str,
}

impl<T> Machine for PanicsInPlace<T> {
    type Context = ();
    type Seed = Infallible;

    fn handle_in_place(
        &mut self,
        _: Event<Infallible>,
        _: &mut Scope<'_, ()>,
    ) -> InPlace<Infallible> {
        panic!("in a handler")
    }

    fn type_name(&self) -> &'static str {
        (self.name)()
    }
}

/// The machine is dropped while the panic unwinds: that is how the lock and the port that it held
/// notice the panic.
#[test]
fn locks_and_ports_of_a_machine_report_its_panic_in_place() {
    let (manual, seen, lock) = (Manual::new(), FailureLog::default(), Lock::new(1));
    let held = lock.try_take().expect("nobody holds it");
    let mut future: Option<Future<u32>> = None;
    let mut instance = manual.start(&seen.config(), (), |scope| {
        let (port, answer) = scope.create_future();
        future = Some(answer);
        Response::again(PanicsInPlace { _kept: (held, port), name: || "owes" })
    });
    settle(&mut instance);
    assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
    let answer = future.expect("the closure ran").take();
    assert!(matches!(answer, Outcome::Lost(FutureError::Panicked)), "{answer:?}");
    assert!(lock.try_take().expect("it is back").was_panicked());
}

/// If the panic of the drop escaped while the first panic unwinds, the process would abort.
#[test]
fn a_panic_in_place_and_again_in_drop_affects_only_that_machine() {
    type Twice = PanicsInPlace<PanicsOnDrop>;
    let by_name: fn() -> &'static str = || panic!("in type_name");
    for (name, reported) in [(by_name, std::any::type_name::<Twice>()), (|| "twice", "twice")] {
        let twice = || Twice { _kept: PanicsOnDrop("in drop"), name };
        let (manual, seen) = (Manual::new(), FailureLog::default());
        let mut instance =
            manual.start(&seen.config().machines_max(1), (), |_| Response::again(twice()));
        settle(&mut instance);
        assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
        // In its handler or in its name: a loop that may be handed over asks for the name first.
        let failures = seen.take();
        assert!(failures[0].starts_with(&format!("{reported}: panic in ")), "{failures:?}");
        assert_eq!(failures.len(), 1);
        let made = instance.add_machine_with(|_| Response::ok(twice()));
        assert!(made.is_ok(), "no slot was lost");
    }
}

/// Breaks the clock that times its handler: before the handler, in `type_name`, or in the handler.
struct ClockBreaker {
    manual: Manual,
    by_name: bool,
}

impl Machine for ClockBreaker {
    type Context = ();
    type Seed = Infallible;

    fn handle_in_place(
        &mut self,
        _: Event<Infallible>,
        _: &mut Scope<'_, ()>,
    ) -> InPlace<Infallible> {
        self.manual.break_clock();
        InPlace::Handled(Response::keep(()))
    }

    fn type_name(&self) -> &'static str {
        if self.by_name {
            self.manual.break_clock();
        }
        "breaks the clock"
    }
}

#[test]
fn a_clock_panic_around_a_handler_ends_the_machine_and_frees_its_slot() {
    for by_name in [true, false] {
        let (manual, seen) = (Manual::new(), FailureLog::default());
        let config = seen.config().machines_max(1).time_handlers(true);
        let breaks = || ClockBreaker { manual: manual.clone(), by_name };
        let mut instance = manual.start(&config, (), |_| Response::again(breaks()));
        settle(&mut instance);
        assert_eq!((instance.machines().len(), instance.stats().read().panicked), (0, 1));
        assert_eq!(seen.take(), ["breaks the clock: panic a broken clock"]);
        let made = instance.add_machine_with(|_| Response::ok(breaks()));
        assert!(made.is_ok(), "no slot was lost");
    }
}
