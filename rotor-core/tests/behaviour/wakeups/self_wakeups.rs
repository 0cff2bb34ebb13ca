//! A machine wakes itself: in its handlers, in `create`, through a part.

use std::time::Duration;

use rotor_core::{Config, EventSet, Response, Scope};

use super::{Log, recording_machine};
use crate::actor::{Actor, Call, Seed, actor};
use crate::manual::{Manual, settle};

/// The two ways in which a machine wakes itself.
const SELF_WAKEUPS: [fn(&mut Scope<'_, Log>); 2] =
    [|scope| assert!(scope.notifier().wakeup()), |scope| scope.wake_self()];

#[test]
fn a_self_wakeup_is_delivered_in_the_next_turn() {
    for wake in SELF_WAKEUPS {
        let manual = Manual::new();
        let mut kept = None;
        let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
            kept = Some(scope.notifier());
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
                if let Call::Wakeup(parts) = call {
                    scope.push(parts);
                    wake(scope);
                }
                Response::keep(())
            }))
        });
        kept.expect("the closure ran").wakeup();
        for turn in 1..=600 {
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
            instance.check_invariants().expect("the books agree");
            assert_eq!(instance.context().len(), turn);
            assert!(
                instance.next_deadline().is_some_and(|next| next <= instance.now()),
                "it does not sleep"
            );
        }
    }
}

#[test]
fn a_self_wakeup_in_create_is_delivered_in_order_in_the_same_turn() {
    for wake in SELF_WAKEUPS {
        let manual = Manual::new();
        let (mut instance, notifiers) = recording_machine(&manual);
        let mut kept = None;
        let added = instance.add_machine_with(|scope| {
            kept = Some(scope.notifier());
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| match call {
                Call::Wakeup(_) => {
                    notifiers[0].wakeup();
                    Response::spawn((), seed_woken_in_create(wake))
                }
                other => {
                    assert_eq!(other.name(), "spawned");
                    scope.push(vec![9]);
                    Response::keep(())
                }
            }))
        });
        added.expect("there is room");
        kept.expect("the closure ran").wakeup();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        // Its parent's call comes first, then the machine that was woken before.
        assert_eq!(*instance.context(), [[9], [0], [100]]);
        settle(&mut instance);
        assert_eq!((instance.context().len(), instance.stats().read().wakeups), (3, 3));
    }
}

/// The seed of a machine that `wake` wakes in `create`. The machine records which parts were woken,
/// plus 100.
fn seed_woken_in_create(wake: fn(&mut Scope<'_, Log>)) -> Seed<Log> {
    Seed::new("child", move |scope| {
        wake(scope);
        Response::ok(wakeup_recorder())
    })
}

fn wakeup_recorder() -> Actor<Log> {
    actor(|call, scope: &mut Scope<'_, Log>| {
        assert_eq!(call.name(), "wakeup");
        let parts = scope.woken_parts().map(|part| part + 100).collect();
        scope.push(parts);
        Response::keep(())
    })
}

/// Whichever handler it is, and whatever else wakes the machine in the meantime: one call, in the
/// next turn.
#[test]
fn self_wakeups_in_every_handler_coalesce_with_other_wakeups() {
    for handler in ["ready", "timeout", "wakeup", "draining", "spawned", "spawn_error"] {
        for wake in SELF_WAKEUPS {
            let manual = Manual::new();
            let config = Config::new().machines_max(if handler == "spawn_error" { 1 } else { 2 });
            let mut kept = None;
            let mut instance = manual.start(&config, Log::new(), |scope| {
                kept = Some(scope.notifier());
                let machine = actor(move |call, scope: &mut Scope<'_, Log>| {
                    if call.name() == handler && scope.is_empty() {
                        wake(scope);
                        scope.notifier().wakeup();
                        wake(scope);
                        scope.push(vec![]);
                    } else if let Call::Wakeup(parts) = call {
                        scope.push(parts);
                    } else if matches!(call, Call::Ready(_)) && handler.starts_with("spawn") {
                        return Response::spawn((), Seed::idle("child"));
                    }
                    Response::keep(())
                });
                match handler {
                    "timeout" => Response::ok(machine).deadline(scope.now()),
                    _ => Response::ok(machine),
                }
            });
            let notifier = kept.expect("the closure ran");
            match handler {
                "timeout" => {}
                "wakeup" => drop(notifier.wakeup()),
                "draining" => instance.handle().drain(Duration::from_secs(9)),
                _ => manual.feed(notifier.token(), EventSet::READABLE),
            }
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
            assert_eq!(*instance.context(), [[0; 0]], "{handler}");
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
            instance.check_invariants().expect("the books agree");
            assert_eq!(*instance.context(), [vec![], vec![0]], "{handler}");
            settle(&mut instance);
            assert_eq!(instance.context().len(), 2, "{handler}");
        }
    }
}

#[test]
fn a_self_wakeup_with_a_spawn_reaches_the_parent_after_the_spawn() {
    // With a budget of one, the second spawn is deferred.
    for spawns_per_event in [1, 2] {
        let manual = Manual::new();
        let config = Config::new().spawns_per_event(spawns_per_event);
        let mut token = None;
        let mut instance = manual.start(&config, Log::new(), |scope| {
            token = Some(scope.token());
            let mut spawned = 0;
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| match call {
                Call::Wakeup(parts) => {
                    assert!(spawned >= 2);
                    scope.push(parts);
                    Response::keep(())
                }
                _ if spawned < 2 => {
                    spawned += 1;
                    scope.wake_self();
                    Response::spawn((), Seed::new("child", |_| Response::ok(wakeup_recorder())))
                }
                _ => Response::keep(()),
            }))
        });
        manual.feed(token.expect("the closure ran"), EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(*instance.context(), Log::new());
        settle(&mut instance);
        assert_eq!(*instance.context(), [[0]], "no child was woken");
    }
}

#[test]
fn a_self_wakeup_of_an_ended_machine_reaches_nobody() {
    type Ending = fn(&mut Scope<'_, Log>) -> Response<(), Seed<Log>>;
    let endings: [Ending; 3] = [
        |_| panic!("after it has woken itself"),
        |_| Response::done(),
        |_| Response::error("it is done"),
    ];
    for ending in endings {
        let manual = Manual::new();
        let (mut instance, _) = recording_machine(&manual);
        let mut tokens = Vec::new();
        for _ in 0..2 {
            let made = instance.add_machine_with(|_| {
                Response::ok(actor(move |_, scope: &mut Scope<'_, Log>| {
                    scope.wake_self();
                    ending(scope)
                }))
            });
            tokens.push(made.expect("there is room"));
        }
        let first = instance.machines().iter().map(|(token, _)| token).next();
        let others = [tokens[0], first.expect("it notes"), tokens[1]];
        others.iter().for_each(|token| manual.feed(*token, EventSet::READABLE));
        // In `create` as well, for a machine that is never made.
        for panics in [false, true] {
            let made = instance.add_machine_with(|scope| {
                scope.wake_self();
                assert!(!panics, "in `create`");
                Response::done()
            });
            assert!(made.is_err());
        }
        settle(&mut instance);
        assert_eq!((instance.context().len(), instance.stats().read().wakeups), (0, 0));
        assert_eq!(instance.stats().read().alive, 1);
    }
}

#[test]
fn parts_and_guarded_closures_can_wake_their_machine() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
        scope.wake_self();
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            let Call::Wakeup(parts) = call else { return Response::keep(()) };
            match scope.len() {
                0 => scope.part(7).wake_self(),
                1 => scope.part(3).split().1.wake_self(),
                2 => scope.split().1.wake_self(),
                3 => {
                    let guarded = scope.guard(|scope| {
                        scope.wake_self();
                        panic!("that wake-up stands");
                    });
                    assert!(guarded.is_err());
                }
                4 => {
                    scope.part(5).wake_self();
                    scope.part(0).wake_self();
                }
                _ => {}
            }
            scope.push(parts);
            Response::keep(())
        }))
    });
    settle(&mut instance);
    assert_eq!(*instance.context(), [vec![0], vec![7], vec![3], vec![0], vec![0], vec![0, 5]]);
}
