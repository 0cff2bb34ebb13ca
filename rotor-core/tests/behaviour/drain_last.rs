//! Machines that others depend on: in a drain they wait for those others.

use std::time::Duration;

use rotor_core::{Config, EventSet, Exit, LoopInstance, OnPanic, Response, Scope, Token};

use crate::actor::{Actor, Call, Seed, actor};
use crate::manual::Manual;

type Log = Vec<String>;
type Instance = LoopInstance<Actor<Log>, Manual>;

const SECOND: Duration = Duration::from_secs(1);

fn empty(manual: &Manual) -> Instance {
    manual.creator(&Config::new()).instantiate(Log::new())
}

fn add(instance: &mut Instance, machine: Actor<Log>) -> Token {
    instance.add_machine_with(|_| Response::ok(machine)).expect("there is room")
}

/// Waits for the others, then ends.
fn service(name: &'static str) -> Actor<Log> {
    actor(move |call, scope: &mut Scope<'_, Log>| match call {
        Call::Draining(_) if scope.wait_for_others() => {
            scope.push(format!("{name} waits"));
            Response::keep(())
        }
        Call::Draining(_) => {
            scope.push(format!("{name} ends"));
            Response::done()
        }
        _ => Response::keep(()),
    })
}

/// Ends `takes` after it was notified of the drain.
fn client(name: &'static str, takes: Duration) -> Actor<Log> {
    actor(move |call, scope: &mut Scope<'_, Log>| match call {
        Call::Draining(_) => Response::ok(()).deadline(scope.now() + takes),
        Call::Timeout => {
            scope.push(format!("{name} ends"));
            Response::done()
        }
        _ => Response::keep(()),
    })
}

fn drain(manual: &Manual, instance: &mut Instance) -> (Exit, Duration) {
    let started = manual.now();
    instance.handle().drain(SECOND);
    (instance.run().expect("it can wait"), manual.now() - started)
}

/// The panic of the last other machine cut the turn short before any machine was notified.
#[test]
fn machines_that_drain_last_are_notified_after_a_panic_stopped_the_loop() {
    let manual = Manual::new();
    let config = Config::new().on_panic(OnPanic::StopLoop);
    let mut instance: Instance = manual.creator(&config).instantiate(Log::new());
    add(&mut instance, service("a"));
    let other = add(
        &mut instance,
        actor(|call, _: &mut Scope<'_, Log>| match call {
            Call::Ready(_) => panic!("in the drain"),
            _ => Response::keep(()),
        }),
    );
    instance.handle().drain(SECOND);
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(*instance.context(), ["a waits"]);
    let begun = manual.now();
    manual.feed(other, EventSet::READABLE);
    assert_eq!(instance.run().expect("it can wait"), Exit::Panicked { token: other });
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    assert_eq!(*instance.context(), ["a waits", "a ends"]);
    assert_eq!(manual.now(), begun);
}

#[test]
fn a_machine_that_waits_for_others_is_notified_again_when_they_have_ended() {
    for services_first in [true, false] {
        let manual = Manual::new();
        let mut instance = empty(&manual);
        let add_services =
            |instance: &mut Instance| ["a", "b"].map(|name| add(instance, service(name)));
        if services_first {
            add_services(&mut instance);
        }
        add(&mut instance, client("x", SECOND / 4));
        add(&mut instance, client("y", SECOND / 2));
        if !services_first {
            add_services(&mut instance);
        }
        let (exit, took) = drain(&manual, &mut instance);
        assert_eq!(
            (exit, took),
            (Exit::Drained { dropped: 0 }, SECOND / 2),
            "with the last client, at once"
        );
        assert_eq!(
            *instance.context(),
            ["a waits", "b waits", "x ends", "y ends", "a ends", "b ends"]
        );
    }
}

#[test]
fn a_machine_without_others_to_wait_for_ends_at_once() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    add(&mut instance, service("a"));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 0 }, Duration::ZERO));
    assert_eq!(*instance.context(), ["a ends"]);
}

#[test]
fn the_drain_deadline_applies_to_machines_that_wait_for_others() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    add(&mut instance, service("a"));
    add(&mut instance, client("x", 2 * SECOND));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 2 }, SECOND));
    assert_eq!(*instance.context(), ["a waits"]);
}

#[test]
fn the_last_notification_of_a_drain_is_given_once() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    add(
        &mut instance,
        actor(|call, scope: &mut Scope<'_, Log>| {
            if let Call::Draining(_) = call {
                let is_last = scope.is_last_in_drain();
                let waits = scope.wait_for_others();
                scope.push(format!("{is_last} {waits}"));
            }
            Response::keep(())
        }),
    );
    add(&mut instance, client("x", SECOND / 4));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 1 }, SECOND));
    assert_eq!(*instance.context(), ["false true", "x ends", "true false"]);
}

/// A connection pool does this when a request during the drain needs a new connection.
#[test]
fn a_machine_that_spawns_in_its_last_call_is_notified_again_afterwards() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let mut made = false;
    add(
        &mut instance,
        actor(move |call, scope: &mut Scope<'_, Log>| match call {
            Call::Draining(_) if scope.wait_for_others() => Response::keep(()),
            Call::Draining(_) if !made => {
                made = true;
                let make = |_: &mut Scope<'_, Log>| Response::ok(client("made", SECOND / 4));
                Response::spawn((), Seed::new("made", make))
            }
            Call::Draining(_) => {
                scope.push("ends".into());
                Response::done()
            }
            _ => Response::keep(()),
        }),
    );
    add(&mut instance, client("x", SECOND / 4));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 0 }, SECOND / 2));
    assert_eq!(*instance.context(), ["x ends", "made ends", "ends"]);
}

/// A connection pool whose new connection fails immediately does this.
#[test]
fn a_spawn_that_ends_within_the_turn_leads_to_another_notification() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let mut made = false;
    add(
        &mut instance,
        actor(move |call, scope: &mut Scope<'_, Log>| match call {
            Call::Draining(_) if scope.wait_for_others() => Response::keep(()),
            Call::Draining(_) if !made => {
                made = true;
                let make = |scope: &mut Scope<'_, Log>| {
                    Response::ok(actor(|_, _| Response::done())).deadline(scope.now())
                };
                Response::spawn((), Seed::new("made", make))
            }
            Call::Draining(_) => Response::done(),
            _ => Response::keep(()),
        }),
    );
    add(&mut instance, client("x", SECOND / 4));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 0 }, SECOND / 4));
}

#[test]
fn an_ended_machine_no_longer_counts_as_waiting() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let fails = actor(|call, scope: &mut Scope<'_, Log>| match call {
        Call::Draining(_) => {
            let waits = scope.wait_for_others();
            scope.push(format!("waits: {waits}"));
            Response::ok(()).deadline(scope.now() + SECOND / 8)
        }
        _ => Response::error("it fails"),
    });
    add(&mut instance, fails);
    add(&mut instance, service("a"));
    add(&mut instance, client("x", SECOND / 4));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 0 }, SECOND / 4));
    assert_eq!(*instance.context(), ["waits: true", "a waits", "x ends", "a ends"]);
}

/// In the next drain, another machine occupies the slot of the machine that waited.
#[test]
fn waiting_for_others_in_one_drain_does_not_carry_over_to_the_next() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    add(&mut instance, service("a"));
    add(&mut instance, client("x", 2 * SECOND));
    drain(&manual, &mut instance);
    instance.context_mut().clear();
    add(&mut instance, service("b"));
    add(&mut instance, client("y", SECOND / 4));
    assert_eq!(drain(&manual, &mut instance), (Exit::Drained { dropped: 0 }, SECOND / 4));
    assert_eq!(*instance.context(), ["b waits", "y ends", "b ends"]);
}

#[test]
fn waiting_for_others_has_no_effect_outside_of_a_drain() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let asks = actor(|_, scope: &mut Scope<'_, Log>| {
        let waits = (scope.wait_for_others(), scope.is_last_in_drain());
        scope.push(format!("{waits:?}"));
        Response::keep(())
    });
    let token = add(&mut instance, asks);
    add(&mut instance, client("x", SECOND));
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["(false, false)"]);
}
