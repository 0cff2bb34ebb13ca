//! Spawning: what the parent is told, what happens to the seed, and how many spawns in a row.

use std::time::Duration;

use rotor_core::{Config, EventSet, LoopInstance, Response, Scope, SpawnCause, SpawnError, Token};

use crate::actor::{Actor, Call, Reply, Seed, actor, idle};
use crate::manual::{Manual, settle};

type Log = Vec<String>;
type Instance = LoopInstance<Actor<Log>, Manual>;

/// A loop with a parent that spawns `seed` on an event, and records its calls.
fn parent(manual: &Manual, config: &Config, seed: fn() -> Seed<Log>) -> (Instance, Token) {
    parent_with(manual, config, move |call, scope| {
        scope.push(describe(&call));
        match call {
            Call::Ready(_) => Response::spawn((), seed()),
            _ => Response::keep(()),
        }
    })
}

fn parent_with(
    manual: &Manual,
    config: &Config,
    handler: impl FnMut(Call<Log>, &mut Scope<'_, Log>) -> Reply<Log> + Send + 'static,
) -> (Instance, Token) {
    let mut token = None;
    let instance = manual.start(config, Log::new(), |scope| {
        token = Some(scope.token());
        Response::ok(actor(handler))
    });
    (instance, token.expect("the closure ran"))
}

fn describe(call: &Call<Log>) -> String {
    match call {
        Call::SpawnError(SpawnError { cause, seed }) => format!("{cause:?}, {seed:?}"),
        other => other.name().to_string(),
    }
}

fn feed_and_settle(manual: &Manual, instance: &mut Instance, token: Token) {
    manual.feed(token, EventSet::READABLE);
    settle(instance);
}

#[test]
fn a_created_machine_is_reported_by_spawned() {
    let manual = Manual::new();
    let (mut instance, token) = parent(&manual, &Config::new(), || Seed::idle("child"));
    feed_and_settle(&manual, &mut instance, token);
    assert_eq!(*instance.context(), ["ready", "spawned"]);
    assert_eq!((instance.machines().len(), instance.stats().read().spawned), (2, 2));
}

#[test]
fn a_full_slab_returns_the_seed() {
    let manual = Manual::new();
    let config = Config::new().machines_max(1);
    let (mut instance, token) = parent(&manual, &config, || Seed::idle("child"));
    feed_and_settle(&manual, &mut instance, token);
    assert_eq!(*instance.context(), ["ready", "SlabFull, Some(child)"]);
    let error = instance.spawn(Seed::idle("from outside")).expect_err("there is no room");
    assert!(matches!(error.cause, SpawnCause::SlabFull));
    assert_eq!(error.seed.map(|seed| seed.name), Some("from outside"));
    let error = instance.add_machine_with(|_| Response::ok(idle())).expect_err("there is no room");
    assert_eq!(error.to_string(), "no slot is free (Config::machines_max)");
}

#[test]
fn a_machine_that_ends_in_create_is_reported_and_frees_its_slot() {
    type MakeSeed = fn() -> Seed<Log>;
    let cases: [(MakeSeed, &str); 4] = [
        (|| Seed::new("child", |_| Response::done()), "Ended, None"),
        (|| Seed::new("child", |_| Response::error("no luck")), "Failed(\"no luck\"), None"),
        (|| Seed::new("child", |_| panic!("a bug")), "Panicked(Panicked(\"a bug\")), None"),
        (
            || {
                Seed::new("child", |scope: &mut Scope<'_, Log>| {
                    // Even with its own wake-up pending.
                    scope.notifier().wakeup();
                    Response::done()
                })
            },
            "Ended, None",
        ),
    ];
    for (seed, expected) in cases {
        let manual = Manual::new();
        let config = Config::new().machines_max(2);
        let (mut instance, token) = parent(&manual, &config, seed);
        for _ in 0..3 {
            instance.context_mut().clear();
            feed_and_settle(&manual, &mut instance, token);
            assert_eq!(*instance.context(), ["ready", expected]);
        }
        let stats = instance.stats().read();
        assert_eq!((stats.alive, stats.spawned), (1, 1), "{expected}");
        assert!(instance.spawn(Seed::idle("later")).is_ok(), "the slot is free: {expected}");
    }
}

#[test]
fn a_spawn_error_prints_its_cause_and_keeps_the_source() {
    let manual = Manual::new();
    let (mut instance, _) = parent(&manual, &Config::new(), || Seed::idle("child"));
    let texts = [
        (Seed::new("x", |_| Response::done()), "the machine ended while it was made", None),
        (Seed::new("x", |_| Response::error("why")), "the machine could not be made", Some("why")),
        (Seed::new("x", |_| panic!("a {}", "bug")), "making the machine panicked: a bug", None),
    ];
    for (seed, text, source) in texts {
        let error = instance.spawn(seed).expect_err("it is not made");
        assert_eq!(error.to_string(), text);
        assert_eq!(std::error::Error::source(&error).map(ToString::to_string).as_deref(), source);
        assert!(format!("{error:?}").starts_with(text));
    }
}

#[test]
fn adding_a_machine_reports_why_it_was_not_created() {
    let manual = Manual::new();
    let mut creator = manual.creator::<Actor<Log>>(&Config::new().machines_max(1));
    let causes = [
        creator.add_machine_with(|_| Response::done()),
        creator.add_machine_with(|_| Response::error("no")),
        creator.add_machine_with(|_| panic!("bug")),
    ];
    let causes = causes.map(|made| format!("{:?}", made.expect_err("it is not made").cause));
    assert_eq!(causes, ["Ended", "Failed(\"no\")", "Panicked(Panicked(\"bug\"))"]);
    assert!(creator.add_machine_with(|_| Response::ok(idle())).is_ok(), "no slot was lost");
}

#[test]
fn a_deadline_survives_a_spawn_until_its_result_is_answered() {
    for (keep, fires) in [(true, 1), (false, 0)] {
        let manual = Manual::new();
        let (mut instance, token) = parent_with(&manual, &Config::new(), move |call, scope| {
            scope.push(call.name().to_string());
            match call {
                Call::Ready(events) if events.is_writable() => {
                    Response::ok(()).deadline(scope.now() + Duration::from_secs(1))
                }
                Call::Ready(_) => Response::spawn((), Seed::idle("child")),
                Call::Spawned if !keep => Response::ok(()),
                _ => Response::keep(()),
            }
        });
        manual.feed(token, EventSet::WRITABLE);
        feed_and_settle(&manual, &mut instance, token);
        manual.advance(Duration::from_secs(2));
        settle(&mut instance);
        assert_eq!(instance.stats().read().timeouts, fires);
    }
}

/// A listener with a backlog: it spawns until the backlog is empty.
fn parent_with_backlog(manual: &Manual, config: &Config, mut backlog: u32) -> (Instance, Token) {
    parent_with(manual, config, move |call, _| match call {
        Call::Ready(_) | Call::Spawned if backlog > 0 => {
            backlog -= 1;
            Response::spawn((), Seed::idle("child"))
        }
        _ => Response::keep(()),
    })
}

#[test]
fn one_event_spawns_up_to_the_budget_and_the_next_turn_continues() {
    let manual = Manual::new();
    let (mut instance, token) =
        parent_with_backlog(&manual, &Config::new().spawns_per_event(64), 200);
    manual.feed(token, EventSet::READABLE);
    let mut made = Vec::new();
    for _ in 0..6 {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        made.push(instance.stats().read().spawned - 1);
    }
    assert_eq!(made, [64, 128, 192, 200, 200, 200]);
}

#[test]
fn the_budget_of_spawns_is_exact_at_its_edges() {
    for (budget, backlog, turns) in
        [(1, 1, 1), (1, 2, 2), (5, 4, 1), (5, 5, 1), (5, 6, 2), (5, 10, 2)]
    {
        let manual = Manual::new();
        let config = Config::new().spawns_per_event(budget);
        let (mut instance, token) = parent_with_backlog(&manual, &config, backlog);
        manual.feed(token, EventSet::READABLE);
        for turn in 1..=turns {
            assert!(
                instance.stats().read().spawned < u64::from(backlog) + 1,
                "too early, turn {turn}"
            );
            instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        }
        assert_eq!(instance.stats().read().spawned, u64::from(backlog) + 1, "{budget} {backlog}");
    }
}

#[test]
fn events_for_a_machine_with_a_pending_spawn_come_after_its_result() {
    let manual = Manual::new();
    let config = Config::new().spawns_per_event(1);
    let mut left = 3;
    let mut kept = None;
    let mut instance = manual.start(&config, Log::new(), |scope| {
        kept = Some((scope.token(), scope.notifier()));
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            scope.push(match &call {
                Call::Ready(events) => format!("{events:?}"),
                other => other.name().to_string(),
            });
            match call {
                Call::Ready(_) | Call::Spawned if left > 0 => {
                    left -= 1;
                    Response::spawn((), Seed::idle("child"))
                }
                Call::Ready(_) => Response::ok(()).deadline(scope.now() + Duration::from_secs(9)),
                _ => Response::keep(()),
            }
        }))
    });
    let (token, notifier) = kept.expect("the closure ran");
    instance.handle();
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), ["{READABLE}", "spawned"]);
    // Its second spawn is pending now.
    manual.feed(token, EventSet::WRITABLE);
    manual.feed(token, EventSet::READ_CLOSED);
    notifier.wakeup();
    settle(&mut instance);
    let log = instance.context();
    assert_eq!(log[2..4], ["spawned", "spawned"]);
    let mut after = log[4..].to_vec();
    after.sort();
    assert_eq!(after, ["wakeup", "{WRITABLE, READ_CLOSED}"]);
}

#[test]
fn a_deadline_reached_during_a_pending_spawn_fires_after_its_result() {
    let manual = Manual::new();
    let config = Config::new().spawns_per_event(1);
    let mut left = 3;
    let mut token = None;
    let mut instance = manual.start(&config, Log::new(), |scope| {
        token = Some(scope.token());
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            scope.push(call.name().to_string());
            match call {
                Call::Ready(_) | Call::Spawned if left > 0 => {
                    left -= 1;
                    Response::spawn((), Seed::idle("child"))
                        .deadline(scope.now() + Duration::from_millis(5))
                }
                _ => Response::keep(()),
            }
        }))
    });
    manual.feed(token.expect("the closure ran"), EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    for _ in 0..4 {
        manual.advance(Duration::from_millis(50));
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    let log = instance.context();
    assert_eq!(log.iter().filter(|call| *call == "timeout").count(), 1, "{log:?}");
    assert_eq!(log.iter().position(|call| call == "timeout"), Some(4), "{log:?}");
}

#[test]
fn a_deadline_passed_between_spawns_fires_after_the_last_result() {
    let manual = Manual::new();
    let mut left = 4;
    let (mut instance, token) =
        parent_with(&manual, &Config::new().spawns_per_event(1), move |call, scope| {
            scope.push(call.name().to_string());
            let spawn = Response::spawn((), Seed::idle("child"));
            match call {
                Call::Ready(_) => spawn.deadline(scope.now() + Duration::from_millis(5)),
                Call::Spawned if left > 1 => {
                    left -= 1;
                    spawn
                }
                _ => Response::keep(()),
            }
        });
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    manual.advance(Duration::from_millis(50));
    settle(&mut instance);
    assert_eq!(
        *instance.context(),
        ["ready", "spawned", "spawned", "spawned", "spawned", "timeout"]
    );
}

#[test]
fn a_machine_spawned_from_outside_is_created_like_any_other() {
    let manual = Manual::new();
    let (mut instance, _) = parent(&manual, &Config::new(), || Seed::idle("child"));
    let token = instance
        .spawn(Seed::new("outside", |scope: &mut Scope<'_, Log>| {
            scope.push("created".into());
            Response::again(actor(|call, scope: &mut Scope<'_, Log>| {
                scope.push(describe(&call));
                Response::keep(())
            }))
        }))
        .expect("there is room");
    assert!(instance.machines().get(token).is_some());
    settle(&mut instance);
    assert_eq!(*instance.context(), ["created", "ready"]);
}

#[test]
fn again_calls_ready_with_gathered_events_and_keeps_the_deadline() {
    let manual = Manual::new();
    let mut calls = 0;
    let (mut instance, token) = parent_with(&manual, &Config::new(), move |call, scope| {
        calls += 1;
        scope.push(match &call {
            Call::Ready(events) => format!("{events:?}"),
            other => other.name().to_string(),
        });
        match calls {
            1 => Response::again(()).deadline(scope.now() + Duration::from_millis(3)),
            2 => Response::again(()),
            _ => Response::keep(()),
        }
    });
    manual.feed(token, EventSet::READABLE);
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    manual.feed(token, EventSet::WRITABLE);
    manual.feed(token, EventSet::READ_CLOSED);
    settle(&mut instance);
    manual.advance(Duration::from_millis(3));
    settle(&mut instance);
    let all = "{READABLE, WRITABLE, READ_CLOSED}";
    assert_eq!(*instance.context(), ["{READABLE}", all, all, "timeout"]);
}
