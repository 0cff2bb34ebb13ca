//! Checks of each handler of a machine, made with events that no correct loop would deliver.

use std::time::Duration;

use rotor_core::{Event, EventSet, Infallible, Machine, Response, Scope, Time};
use rotor_sim::property::{DRAINED_ONCE, NO_DEADLINE_EARLY, SPAWN_IS_ANSWERED};
use rotor_sim::{Failure, Sim, Watched};

use crate::failure;

/// A machine driven by hand inside the test's own loop: its handlers are called as a broken loop
/// would call them.
fn drive_by_hand(
    calls: impl Fn(Watched<Spawner>, &mut Scope<'_, ()>) + 'static,
) -> Result<Failure, Failure> {
    let mut sim = Sim::new(1);
    let host = sim.host("host", |boot| Ok(boot.new_loop::<Driver>()?.instantiate(())))?;
    sim.with(host, move |instance| {
        let added = instance.add_machine_with(|scope| {
            let at = scope.now() + Duration::from_secs(5);
            let made = Watched::make(scope, |_| Response::ok(Spawner).deadline(at));
            calls(made.expect_machine(), scope);
            scope.notifier().wakeup();
            Response::ok(Driver)
        });
        added.expect("there is room");
    });
    Ok(failure(sim.run_for(Duration::from_secs(1))))
}

struct Driver;

impl Machine for Driver {
    type Context = ();
    type Seed = Infallible;
}

/// Responds to events with a spawn.
struct Spawner;

impl Machine for Spawner {
    type Context = ();
    type Seed = ();
    fn create((): (), _: &mut Scope<'_, ()>) -> Response<Self> {
        Response::ok(Spawner)
    }
    fn ready(self, _: EventSet, _: &mut Scope<'_, ()>) -> Response<Self, ()> {
        Response::spawn(self, ())
    }
}

#[test]
fn an_early_timeout_is_detected() -> Result<(), Failure> {
    let failure = drive_by_hand(|machine, scope| drop(machine.handle(Event::Timeout, scope)))?;
    assert_eq!(failure.property(), NO_DEADLINE_EARLY);
    Ok(())
}

#[test]
fn a_spawn_without_an_immediate_result_is_detected() -> Result<(), Failure> {
    let failure = drive_by_hand(|machine, scope| {
        let (machine, ()) = machine.handle(Event::Ready(EventSet::EMPTY), scope).expect_spawn();
        drop(machine.handle(Event::Wakeup, scope));
    })?;
    assert_eq!(failure.property(), SPAWN_IS_ANSWERED);
    let failure = drive_by_hand(|machine, scope| drop(machine.handle(Event::Spawned, scope)))?;
    assert_eq!(failure.property(), SPAWN_IS_ANSWERED);
    Ok(())
}

#[test]
fn a_second_drain_notification_is_detected() -> Result<(), Failure> {
    // A second notification is an error only while the loop drains, so a machine of a draining loop
    // drives this one.
    struct DrainedTwice(Option<Watched<Spawner>>);
    impl Machine for DrainedTwice {
        type Context = ();
        type Seed = Infallible;
        fn draining(self, until: Time, scope: &mut Scope<'_, ()>) -> Response<Self, Infallible> {
            let machine = self
                .0
                .map(|machine| machine.handle(Event::Draining(until), scope).expect_machine());
            let machine = machine
                .map(|machine| machine.handle(Event::Draining(until), scope).expect_machine());
            Response::ok(DrainedTwice(machine))
        }
    }
    let mut sim = Sim::new(1);
    let host = sim.host("host", |boot| {
        let mut creator = boot.new_loop()?;
        creator.add_machine_with(|scope| {
            let made = Watched::make(scope, |_| Response::ok(Spawner));
            Response::ok(DrainedTwice(Some(made.expect_machine())))
        })?;
        Ok(creator.instantiate(()))
    })?;
    let failure = sim.drain(host, Duration::from_secs(1)).expect_err("it is told twice");
    assert_eq!(failure.property(), DRAINED_ONCE);
    Ok(())
}
