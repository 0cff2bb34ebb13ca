//! Loops that are drained: which machines are notified, when, and what is left at the deadline.

use std::time::Duration;

use rotor_core::{Config, EventSet, Exit, ExitPolicy, Response, Scope, Token, Verdict};

use super::{Log, SECOND, add, empty};
use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

/// Records the drain and its remaining time under a name, and never ends.
fn stubborn(name: &'static str) -> Actor<Log> {
    actor(move |call, scope: &mut Scope<'_, Log>| {
        if let Call::Draining(until) = call {
            let left = until - scope.now();
            let drain_until = scope.draining_until();
            assert_eq!(drain_until, Some(until));
            scope.push(format!("{name} {left:?}"));
        }
        Response::keep(())
    })
}

#[test]
fn a_drain_notifies_every_machine_once_and_ends_listeners_at_once() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let listener = add(&mut instance, idle());
    for name in ["a", "b"] {
        add(
            &mut instance,
            actor(move |call, scope: &mut Scope<'_, Log>| match call {
                Call::Draining(until) => {
                    assert_eq!(until, scope.now() + SECOND);
                    scope.push(name.to_string());
                    Response::ok(()).deadline(scope.now() + SECOND / 2)
                }
                Call::Timeout => Response::done(),
                _ => Response::keep(()),
            }),
        );
    }
    instance.handle().drain(SECOND);
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("polling never fails"), None);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert!(instance.machines().get(listener).is_none(), "the listener is closed already");
    assert_eq!(*instance.context(), ["a", "b"]);
    let started = manual.now();
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    assert_eq!(manual.now() - started, SECOND / 2, "it does not wait for the deadline");
    assert_eq!(*instance.context(), ["a", "b"]);
}

#[test]
fn events_before_a_drain_are_delivered_before_its_notification() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let busy = add(
        &mut instance,
        actor(|call, scope: &mut Scope<'_, Log>| {
            scope.push(call.name().to_string());
            if matches!(call, Call::Draining(_)) { Response::done() } else { Response::keep(()) }
        }),
    );
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    // The loop has just polled, and has work that needs no poll.
    instance.handle().drain(SECOND);
    manual.feed(busy, EventSet::READABLE);
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    assert_eq!(*instance.context(), ["ready", "draining"]);
}

/// The machine has not yet processed all input that came before the drain.
#[test]
fn a_drain_notification_follows_pending_again_calls() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let mut looks = 0;
    let token = add(
        &mut instance,
        actor(move |call, scope: &mut Scope<'_, Log>| match call {
            Call::Ready(_) => {
                looks += 1;
                scope.push(format!("look {looks}"));
                if looks < 3 { Response::again(()) } else { Response::keep(()) }
            }
            Call::Draining(_) => {
                scope.push("draining".into());
                Response::done()
            }
            _ => Response::keep(()),
        }),
    );
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(SECOND);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["look 1", "look 2", "look 3", "draining"]);
}

/// Even if it would answer `again` forever.
#[test]
fn a_machine_that_always_answers_again_is_still_notified_of_a_drain() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let token = add(
        &mut instance,
        actor(|call, scope: &mut Scope<'_, Log>| match call {
            Call::Draining(_) => {
                scope.push("draining".into());
                Response::done()
            }
            _ => Response::again(()),
        }),
    );
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(SECOND);
    for _ in 0..4 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(*instance.context(), ["draining"]);
}

/// Even if the drain has no time at all.
#[test]
fn a_zero_length_drain_notifies_machines_with_pending_calls() {
    for budget in [1, 10_000] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().scan_budget(budget));
        for name in ["a", "b"] {
            let token = add(
                &mut instance,
                actor(move |call, scope: &mut Scope<'_, Log>| match call {
                    Call::Draining(_) => {
                        scope.push(name.into());
                        Response::keep(())
                    }
                    _ => Response::again(()),
                }),
            );
            manual.feed(token, EventSet::READABLE);
        }
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        instance.handle().drain(Duration::ZERO);
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 2 });
        assert_eq!(*instance.context(), ["a", "b"], "budget {budget}");
    }
}

/// A late drain waits one turn for notifications. It makes no promise to a machine whose spawns
/// leave no chance to notify it.
#[test]
fn a_zero_length_drain_does_not_wait_for_an_endless_spawner() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new().spawns_per_event(1));
    let token = add(
        &mut instance,
        actor(|call, _| match call {
            Call::Ready(_) | Call::Spawned => {
                Response::spawn((), Seed::new("child", |_| Response::done()))
            }
            Call::SpawnError(_) => Response::spawn((), Seed::new("child", |_| Response::done())),
            _ => Response::keep(()),
        }),
    );
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(Duration::ZERO);
    let mut turns = 0;
    while instance.turn(Some(Duration::ZERO)).expect("polling never fails").is_none() {
        turns += 1;
        assert!(turns < 5, "it ends");
    }
}

/// A backend may return fewer events per poll than the loop would accept.
#[test]
fn a_drain_polls_again_while_the_backend_has_more_events() {
    let manual = Manual::new();
    manual.limit_events(1);
    let mut instance = empty(&manual, &Config::new().events_max(3));
    let tokens: Vec<Token> = (0..7)
        .map(|_| {
            add(
                &mut instance,
                actor(|call, scope: &mut Scope<'_, Log>| {
                    scope.push(call.name().to_string());
                    match call {
                        Call::Draining(_) => Response::done(),
                        _ => Response::keep(()),
                    }
                }),
            )
        })
        .collect();
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(SECOND);
    tokens[..3].iter().for_each(|token| manual.feed(*token, EventSet::READABLE));
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    let log = instance.context();
    assert_eq!(log[..3], ["ready", "ready", "ready"]);
    assert_eq!(log[3..], ["draining"; 7]);
}

#[test]
fn a_drain_polls_as_often_as_its_machines_or_the_backend_need_and_no_more() {
    for (machines, full_waits, looks) in
        [(1, 1, 1), (7, 1, 2), (70, 1, 11), (1, 5, 5), (70, 10, 11), (70, 12, 12)]
    {
        let manual = Manual::new();
        manual.limit_events(7);
        manual.set_full_waits(full_waits);
        let mut instance = empty(&manual, &Config::new().events_max(7));
        let tokens: Vec<Token> =
            (0..machines).map(|_| add(&mut instance, stubborn("told"))).collect();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        instance.handle().drain(SECOND);
        let mut turns = 0;
        while instance.context().is_empty() {
            // Every poll returns the maximum and leaves something, forever.
            (0..8).for_each(|_| manual.feed(tokens[0], EventSet::READABLE));
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
            turns += 1;
        }
        assert_eq!(turns, looks, "{machines} machines, {full_waits} full waits");
    }
}

#[test]
fn a_drain_waits_for_unsent_bytes_but_not_beyond_its_deadline() {
    for (sent_after, drained_after) in [(SECOND / 2, SECOND / 2), (3 * SECOND, SECOND)] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new());
        add(&mut instance, idle());
        manual.send_for(sent_after);
        instance.handle().drain(SECOND);
        let started = manual.now();
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
        assert_eq!(manual.now() - started, drained_after);
    }
}

#[test]
fn machines_left_at_the_drain_deadline_are_dropped_and_counted() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    let stats = instance.stats();
    add(&mut instance, idle());
    for name in ["a", "b", "c"] {
        add(&mut instance, stubborn(name));
    }
    instance.handle().drain(SECOND);
    let started = manual.now();
    assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 3 });
    assert_eq!(manual.now() - started, SECOND);
    assert_eq!(*instance.context(), ["a 1s", "b 1s", "c 1s"]);
    let stats = stats.read();
    assert_eq!((stats.alive, stats.ended), (0, 4), "the last figures are published");
    assert_eq!(instance.machines().len(), 0);
}

#[test]
fn a_zero_length_drain_notifies_every_machine() {
    for budget in [1, 2, 3, 10_000] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().scan_budget(budget));
        for name in ["a", "b", "c", "d", "e"] {
            add(&mut instance, stubborn(name));
        }
        instance.handle().drain(Duration::ZERO);
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 5 });
        assert_eq!(instance.context().len(), 5, "budget {budget}");
    }
}

#[test]
fn machines_spawned_during_a_drain_are_notified_exactly_once() {
    for budget in [1, 2, 3, 10_000] {
        for holes in [0, 1] {
            let manual = Manual::new();
            let mut instance = empty(&manual, &Config::new().scan_budget(budget));
            let hole = add(&mut instance, actor(|_, _| Response::done()));
            let mut spawned = 0;
            add(
                &mut instance,
                actor(move |call, scope: &mut Scope<'_, Log>| match call {
                    Call::Draining(_) | Call::Spawned if spawned < 3 => {
                        spawned += 1;
                        let name = ["x", "y", "z"][spawned - 1];
                        Response::spawn((), Seed::new(name, move |_| Response::ok(stubborn(name))))
                    }
                    Call::Draining(_) => {
                        scope.push("told twice".into());
                        Response::keep(())
                    }
                    _ => Response::keep(()),
                }),
            );
            add(&mut instance, stubborn("last"));
            if holes == 1 {
                // A slot that the walk over the machines has already passed when it is reused.
                manual.feed(hole, EventSet::READABLE);
                settle(&mut instance);
            }
            instance.handle().drain(SECOND);
            let exit = instance.run().expect("it can wait");
            assert!(matches!(exit, Exit::Drained { .. }), "{exit:?}");
            let mut notified = instance.context().clone();
            notified.sort();
            assert_eq!(
                notified,
                ["last 1s", "x 1s", "y 1s", "z 1s"],
                "budget {budget}, {holes} holes"
            );
        }
    }
}

#[test]
fn a_second_drain_can_only_shorten_the_first_and_notifies_nobody_again() {
    for (second, end) in [(SECOND / 4, SECOND / 4), (8 * SECOND, SECOND)] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new());
        add(&mut instance, stubborn("a"));
        instance.handle().drain(SECOND);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        instance.handle().drain(second);
        let started = manual.now();
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 1 });
        assert_eq!(manual.now() - started, end);
        assert_eq!(instance.context().len(), 1);
    }
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    add(&mut instance, stubborn("a"));
    instance.handle().drain(8 * SECOND);
    instance.handle().drain(SECOND);
    instance.handle().drain(9 * SECOND);
    instance.run().expect("it can wait");
    assert_eq!(*instance.context(), ["a 1s"], "the shortest of those that came together");
}

#[test]
fn an_empty_loop_is_drained_at_once() {
    for policy in [ExitPolicy::WhenEmpty, ExitPolicy::OnRequest, ExitPolicy::Never] {
        let manual = Manual::new();
        let mut instance = empty(&manual, &Config::new().exit(policy));
        instance.handle().drain(SECOND);
        assert_eq!(instance.run().expect("it can wait"), Exit::Drained { dropped: 0 });
    }
}

#[test]
fn a_drained_loop_can_be_used_again() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    add(&mut instance, stubborn("a"));
    instance.handle().drain(Duration::ZERO);
    instance.run().expect("it can wait");
    let token = add(
        &mut instance,
        actor(|_, scope: &mut Scope<'_, Log>| {
            assert_eq!(scope.draining_until(), None);
            scope.push("later".into());
            Response::done()
        }),
    );
    manual.feed(token, EventSet::READABLE);
    assert_eq!(instance.run().expect("it can wait"), Exit::Empty);
    assert_eq!(*instance.context(), ["a 0ns", "later"]);
}

#[test]
fn a_parent_with_a_pending_spawn_at_the_end_of_a_drain_is_dropped() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new().spawns_per_event(1));
    let token = add(
        &mut instance,
        actor(|call, _| match call {
            Call::Ready(_) | Call::Spawned => Response::spawn((), Seed::idle("child")),
            _ => Response::keep(()),
        }),
    );
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.handle().drain(Duration::ZERO);
    assert!(matches!(instance.run().expect("it can wait"), Exit::Drained { dropped: 1.. }));
    assert_eq!(instance.machines().len(), 0);
}

#[test]
fn a_drain_verdict_notifies_one_machine_without_draining_the_loop() {
    let manual = Manual::new();
    let mut instance = empty(&manual, &Config::new());
    add(
        &mut instance,
        actor(|call, scope: &mut Scope<'_, Log>| {
            if let Call::Draining(until) = call {
                assert_eq!((until, scope.draining_until()), (scope.now(), None));
                scope.push("told".into());
            }
            Response::keep(())
        }),
    );
    let _ = instance.machines().scan(rotor_core::Cursor::START, |_, _| Verdict::Drain);
    settle(&mut instance);
    assert_eq!(*instance.context(), ["told"]);
    assert_eq!(instance.machines().len(), 1);
}
