//! No machine holds up another, whatever it does.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::{Config, EventSet, ExitPolicy, LoopInstance, Response, Scope, Token};

use crate::actor::{Actor, Call, Reply, Seed, actor};
use crate::manual::{Manual, settle};

type Counts = std::collections::BTreeMap<&'static str, u32>;
type Instance = LoopInstance<Actor<Counts>, Manual>;

fn add(
    instance: &mut Instance,
    name: &'static str,
    mut handler: impl FnMut(&Call<Counts>, &mut Scope<'_, Counts>) -> Reply<Counts> + Send + 'static,
) -> Token {
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |call, scope: &mut Scope<'_, Counts>| {
            *scope.entry(name).or_default() += 1;
            handler(&call, scope)
        }))
    });
    made.expect("there is room")
}

fn greedy(instance: &mut Instance) -> Vec<Token> {
    vec![
        add(instance, "wakes itself", |_, scope| {
            scope.notifier().wakeup();
            Response::keep(())
        }),
        // Its children end in `create`, so that it never runs out of slots.
        add(instance, "spawns", |_, _| {
            Response::spawn((), Seed::new("child", |_| Response::done()))
        }),
        // Each of its children lives until its first event.
        add(instance, "spawns living", |_, _| {
            Response::spawn(
                (),
                Seed::new("child", |scope: &mut Scope<'_, Counts>| {
                    scope.notifier().wakeup();
                    Response::ok(actor(|_, _| Response::done()))
                }),
            )
        }),
        add(instance, "past deadline", |_, scope| {
            Response::ok(()).deadline(scope.now() - Duration::from_secs(1))
        }),
        add(instance, "deadline now", |_, scope| Response::ok(()).deadline(scope.now())),
        add(instance, "again", |_, _| Response::again(())),
    ]
}

#[test]
fn greedy_machines_leave_the_others_an_event_a_turn() {
    const TURNS: u32 = 500;
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).spawns_per_event(64);
    let mut instance = manual.creator::<Actor<Counts>>(&config).instantiate(Counts::new());
    for token in greedy(&mut instance) {
        manual.feed(token, EventSet::READABLE);
    }
    let modest = add(&mut instance, "modest", |_, _| Response::keep(()));
    let patient = add(&mut instance, "patient", |call, scope| {
        assert!(scope["patient"] == 1 || matches!(call, Call::Timeout));
        Response::ok(()).deadline(scope.now() + Duration::from_millis(1))
    });
    manual.feed(patient, EventSet::READABLE);
    for turn in 1..=TURNS {
        manual.feed(modest, EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.context()["modest"], turn);
        assert_eq!(instance.context()["patient"], turn, "its deadlines come as well");
        manual.advance(Duration::from_millis(1));
    }
    let counts = instance.context();
    for name in ["wakes itself", "past deadline", "deadline now", "again"] {
        let calls = counts[name];
        assert!((TURNS..=TURNS + 1).contains(&calls), "{name}: {calls} calls in {TURNS} turns");
    }
    for name in ["spawns", "spawns living"] {
        let calls = counts[name];
        assert!((TURNS..=65 * TURNS).contains(&calls), "{name}: {calls} calls in {TURNS} turns");
    }
}

#[test]
fn machines_that_wake_each_other_forever_are_limited_by_the_budget() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).wakeups_per_turn(100);
    let mut instance = manual.creator::<Actor<Counts>>(&config).instantiate(Counts::new());
    let mut notifiers = Vec::new();
    let slot = Arc::new(Mutex::new(Vec::<rotor_core::Notifier>::new()));
    for (index, name) in ["ping", "pong"].into_iter().enumerate() {
        let others = slot.clone();
        let made = instance.add_machine_with(|scope| {
            notifiers.push(scope.notifier());
            Response::ok(actor(move |_, scope: &mut Scope<'_, Counts>| {
                *scope.entry(name).or_default() += 1;
                others.lock().expect("nobody panics with it")[1 - index].wakeup();
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    slot.lock().expect("nobody panics with it").extend(notifiers.iter().cloned());
    let modest = add(&mut instance, "modest", |_, _| Response::keep(()));
    notifiers[0].wakeup();
    for turn in 1..=50 {
        manual.feed(modest, EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.context()["modest"], turn);
        let wakeups = instance.context()["ping"] + instance.context()["pong"];
        assert_eq!(wakeups, 100 * turn, "back and forth in one turn, up to the budget");
    }
}

/// Each machine wakes itself in `create`, and spawns the next one when it gets that wake-up: all in
/// one turn, up to the budget.
#[test]
fn an_endless_chain_of_spawns_and_wakeups_is_limited_by_the_budget() {
    fn link(scope: &mut Scope<'_, Counts>) -> Response<Actor<Counts>> {
        scope.notifier().wakeup();
        Response::ok(actor(|call, scope: &mut Scope<'_, Counts>| match call {
            Call::Wakeup(_) => {
                *scope.entry("links").or_default() += 1;
                Response::spawn((), Seed::new("link", link))
            }
            _ => Response::done(),
        }))
    }
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).wakeups_per_turn(100);
    let mut instance = manual.creator::<Actor<Counts>>(&config).instantiate(Counts::new());
    instance.spawn(Seed::new("link", link)).expect("there is room");
    let modest = add(&mut instance, "modest", |_, _| Response::keep(()));
    for turn in 1..=50 {
        manual.feed(modest, EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.context()["modest"], turn);
        assert_eq!(instance.context()["links"], 100 * turn);
        assert_eq!(instance.stats().read().alive, 2, "one link at a time, and the modest one");
    }
}

#[test]
fn wakeups_beyond_the_budget_of_a_turn_come_in_order_in_the_next() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest).wakeups_per_turn(3);
    let mut instance = manual.creator::<Actor<Vec<usize>>>(&config).instantiate(Vec::new());
    let mut notifiers = Vec::new();
    for index in 0..8 {
        let made = instance.add_machine_with(|scope| {
            notifiers.push(scope.notifier());
            Response::ok(actor(move |_, scope: &mut Scope<'_, Vec<usize>>| {
                scope.push(index);
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    notifiers.iter().rev().for_each(|notifier| assert!(notifier.wakeup()));
    for done in [3, 6, 8, 8] {
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.context().len(), done);
    }
    assert_eq!(*instance.context(), [7, 6, 5, 4, 3, 2, 1, 0]);
    settle(&mut instance);
}

#[test]
fn an_again_call_comes_after_the_events_of_the_next_turn() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator(&config).instantiate(Vec::<&'static str>::new());
    let mut tokens = Vec::new();
    for name in ["a", "b"] {
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(move |_, scope: &mut Scope<'_, Vec<&'static str>>| {
                scope.push(name);
                if name == "a" { Response::again(()) } else { Response::keep(()) }
            }))
        });
        tokens.push(made.expect("there is room"));
    }
    for _ in 0..3 {
        manual.feed(tokens[0], EventSet::READABLE);
        manual.feed(tokens[1], EventSet::READABLE);
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    }
    assert_eq!(*instance.context(), ["a", "b", "b", "a", "b", "a"]);
}

/// Runs a loop whose only machine answers this many calls with `answer`; returns how often the
/// backend was polled.
fn count_polls(
    manual: &Manual,
    calls: u32,
    mut answer: impl FnMut(&mut Scope<'_, Counts>) -> Reply<Counts> + Send + 'static,
) -> usize {
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator::<Actor<Counts>>(&config).instantiate(Counts::new());
    let token = add(&mut instance, "busy", move |_, scope| {
        if scope["busy"] == calls {
            scope.stop_loop();
        }
        answer(scope)
    });
    manual.feed(token, EventSet::READABLE);
    instance.run().expect("it never sleeps");
    assert_eq!(instance.context()["busy"], calls);
    manual.take_waits().len()
}

fn wakes_itself(scope: &mut Scope<'_, Counts>) -> Reply<Counts> {
    scope.notifier().wakeup();
    Response::keep(())
}

#[test]
fn a_loop_with_short_turns_polls_the_backend_every_64th_turn() {
    for (calls, polls) in [(1, 1), (63, 1), (64, 1), (65, 2), (128, 2), (129, 3)] {
        assert_eq!(count_polls(&Manual::new(), calls, wakes_itself), polls, "{calls} calls");
    }
    let overdue = |scope: &mut Scope<'_, Counts>| Response::ok(()).deadline(scope.now());
    assert_eq!(count_polls(&Manual::new(), 128, overdue), 2);
}

#[test]
fn a_loop_with_longer_turns_polls_the_backend_after_a_tenth_of_a_tick() {
    for (micros, polls) in [(1, 2), (10, 10), (49, 34), (99, 50), (100, 100), (5_000, 100)] {
        let manual = Manual::new();
        let clock = manual.clone();
        let polled = count_polls(&manual, 100, move |scope| {
            clock.advance(Duration::from_micros(micros));
            wakes_itself(scope)
        });
        assert_eq!(polled, polls, "{micros} microseconds a turn");
    }
}

#[test]
fn an_again_call_comes_after_a_poll_of_the_backend() {
    assert_eq!(count_polls(&Manual::new(), 100, |_| Response::again(())), 100);
}

#[test]
fn a_turn_of_an_embedded_loop_always_polls_the_backend() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator::<Actor<Counts>>(&config).instantiate(Counts::new());
    let token = add(&mut instance, "busy", |_, scope| wakes_itself(scope));
    manual.feed(token, EventSet::READABLE);
    for max_wait in [None, Some(Duration::ZERO), Some(Duration::from_secs(1))] {
        instance.turn(max_wait).expect("it never sleeps");
        assert_eq!(manual.take_waits().len(), 1, "{max_wait:?}");
    }
}
