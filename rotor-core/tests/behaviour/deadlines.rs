//! Deadlines: never early, in order to the tick; and deadlines that have already passed when they
//! are set.

mod slow_turns;

use std::collections::BTreeMap;
use std::time::Duration;

use rotor_core::{
    Config, Deadline, EventSet, ExitPolicy, LoopInstance, Response, Scope, TICK, Time, Token,
};

use crate::actor::{Actor, Call, Reply, Seed, actor, idle};
use crate::manual::{Manual, settle};

const MS: Duration = Duration::from_millis(1);

fn tick_of(time: Time) -> u64 {
    time.as_nanos().div_ceil(TICK.as_nanos() as u64)
}

/// A loop that was set up and is then embedded by a program that takes ten seconds for each step.
#[test]
fn deadlines_set_between_turns_count_from_the_current_time() {
    const BUSY: Duration = Duration::from_secs(10);
    let manual = Manual::new();
    let in_a_second = |scope: &Scope<'_, ()>| scope.now() + 1_000 * MS;
    let mut creator = manual.creator::<Actor<()>>(&Config::new().exit(ExitPolicy::OnRequest));
    manual.advance(BUSY);
    let mut at = Vec::new();
    creator
        .add_machine_with(|scope| {
            at.push(scope.now());
            Response::ok(idle())
        })
        .expect("there is room");
    let mut instance = creator.instantiate(());
    assert_eq!(at, [manual.now()]);

    manual.advance(BUSY);
    instance
        .add_machine_with(|scope| Response::ok(idle()).deadline(in_a_second(scope)))
        .expect("there is room");
    assert_eq!(instance.next_deadline(), Some(manual.now() + 1_000 * MS));
    manual.advance(BUSY);
    settle(&mut instance);

    manual.advance(BUSY);
    let seed = Seed::new("spawned", move |scope| Response::ok(idle()).deadline(in_a_second(scope)));
    instance.spawn(seed).expect("there is room");
    assert_eq!(instance.next_deadline(), Some(manual.now() + 1_000 * MS));
    manual.advance(BUSY);
    settle(&mut instance);

    manual.advance(BUSY);
    instance.every(1_000 * MS, |_, _| {});
    assert_eq!(instance.next_deadline(), Some(manual.now() + 1_000 * MS));
}

struct World {
    random: fastrand::Rng,
    /// The deadline that each machine waits for.
    model: BTreeMap<usize, Time>,
    fired: u32,
    last_tick: u64,
}

/// 10⁵ deadlines, checked against a map. The machines set new deadlines, earlier and later ones, or
/// none.
#[test]
fn deadlines_fire_in_tick_order_and_never_early() {
    const MACHINES: usize = 1_000;
    const FIRED: u32 = 100_000;
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut creator = manual.creator::<Actor<World>>(&config);
    let mut tokens = Vec::new();
    for index in 0..MACHINES {
        let made = creator.add_machine_with(|_| {
            Response::ok(actor(move |call, scope: &mut Scope<'_, World>| {
                on_call(index, &call, scope)
            }))
        });
        tokens.push(made.expect("there is room"));
    }
    let random = fastrand::Rng::with_seed(11);
    let mut instance =
        creator.instantiate(World { random, model: BTreeMap::new(), fired: 0, last_tick: 0 });
    let mut random = fastrand::Rng::with_seed(12);
    while instance.context().fired < FIRED {
        for _ in 0..random.usize(0..40) {
            manual.feed(tokens[random.usize(0..MACHINES)], EventSet::READABLE);
        }
        // The clock stops at arbitrary times, not only at ticks.
        manual.advance(Duration::from_nanos(random.u64(0..5_000_000)));
        instance.context_mut().last_tick = 0;
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        let now = instance.now();
        let missed =
            instance.context().model.values().filter(|deadline| **deadline + MS <= now).count();
        assert_eq!(missed, 0, "deadlines more than a tick ago");
        let next = instance.context().model.values().min().copied();
        if let Some(next) = next {
            let wake = instance.next_deadline().expect("there is a deadline");
            assert!(tick_of(wake) <= tick_of(next), "it would oversleep");
        }
    }
}

fn on_call(index: usize, call: &Call<World>, scope: &mut Scope<'_, World>) -> Reply<World> {
    let now = scope.now();
    if matches!(call, Call::Timeout) {
        let deadline = scope.model.remove(&index).expect("only what was set fires");
        assert!(deadline <= now, "early by {:?}", deadline - now);
        assert!(tick_of(deadline) >= scope.last_tick, "out of order");
        scope.last_tick = tick_of(deadline);
        scope.fired += 1;
    }
    let kind = scope.random.u8(0..10);
    // At least one nanosecond ahead: deadlines that have passed follow another rule.
    let ahead = match kind {
        0 => scope.random.u64(1..1_000_000),
        1 => scope.random.u64(1..100_000_000),
        _ => scope.random.u64(1..20_000_000),
    };
    match kind {
        8 => {
            scope.model.remove(&index);
            Response::ok(())
        }
        9 => Response::keep(()),
        _ => {
            let deadline = now + Duration::from_nanos(ahead);
            scope.model.insert(index, deadline);
            Response::ok(()).deadline(deadline)
        }
    }
}

type Log = Vec<(&'static str, u32)>;

type Instance = LoopInstance<Actor<Log>, Manual>;

/// Adds a machine that records its calls under a name, and responds to events and deadlines with
/// `answer`.
fn add(
    instance: &mut Instance,
    name: &'static str,
    mut answer: impl FnMut(&Call<Log>, Time) -> Reply<Log> + Send + 'static,
) -> Token {
    let made = instance.add_machine_with(|_| {
        let mut calls = 0;
        Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| {
            calls += 1;
            let entry = (name, calls);
            scope.push(entry);
            answer(&call, scope.now())
        }))
    });
    made.expect("there is room")
}

fn empty(manual: &Manual) -> Instance {
    manual.creator(&Config::new().exit(ExitPolicy::OnRequest)).instantiate(Log::new())
}

fn turn(instance: &mut Instance) -> Log {
    instance.context_mut().clear();
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    instance.context().clone()
}

fn is_due(instance: &Instance) -> bool {
    instance.next_deadline().is_some_and(|next| next <= instance.now())
}

#[test]
fn a_past_deadline_fires_once_in_the_same_turn() {
    for past in [Duration::ZERO, Duration::from_nanos(1), MS / 2, MS, 7 * MS] {
        let manual = Manual::new();
        manual.advance(Duration::from_nanos(300_000));
        let mut instance = empty(&manual);
        let token = add(&mut instance, "a", move |call, now| match call {
            Call::Ready(_) => Response::ok(()).deadline(now - past),
            _ => Response::ok(()),
        });
        manual.feed(token, EventSet::READABLE);
        assert_eq!(turn(&mut instance), [("a", 1), ("a", 2)], "past by {past:?}");
        assert!(!is_due(&instance));
        assert_eq!(instance.stats().read().timeouts, 1);
    }
}

#[test]
fn a_repeated_past_deadline_fires_once_a_turn_after_other_calls() {
    for past in [Duration::ZERO, Duration::from_nanos(1), MS / 2, MS, 7 * MS] {
        let manual = Manual::new();
        manual.advance(Duration::from_nanos(300_000));
        let mut instance = empty(&manual);
        let token = add(&mut instance, "a", move |_, now| Response::ok(()).deadline(now - past));
        let other = add(&mut instance, "b", |_, _| Response::keep(()));
        manual.feed(token, EventSet::READABLE);
        assert_eq!(turn(&mut instance), [("a", 1), ("a", 2)], "past by {past:?}");
        for round in 1..50 {
            assert!(is_due(&instance), "the loop does not wait for a tick");
            manual.feed(other, EventSet::READABLE);
            assert_eq!(turn(&mut instance), [("b", round), ("a", round + 2)], "past by {past:?}");
            manual.advance(Duration::from_micros(u64::from(round) * 10));
        }
    }
}

#[test]
fn machines_with_past_deadlines_take_turns() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let tokens = ["a", "b", "c"]
        .map(|name| add(&mut instance, name, |_, now| Response::ok(()).deadline(now - MS)));
    for token in tokens {
        manual.feed(token, EventSet::READABLE);
    }
    turn(&mut instance);
    for round in 3..20 {
        assert_eq!(turn(&mut instance), [("a", round), ("b", round), ("c", round)]);
    }
}

#[test]
fn a_past_deadline_cleared_before_its_call_does_not_fire() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let token = add(&mut instance, "a", |call, now| match call {
        Call::Ready(events) if events.is_readable() => Response::ok(()).deadline(now - MS),
        Call::Ready(_) => Response::ok(()),
        _ => Response::keep(()),
    });
    manual.feed(token, EventSet::READABLE);
    manual.feed(token, EventSet::WRITABLE);
    assert_eq!(turn(&mut instance), [("a", 1), ("a", 2)]);
    assert!(!is_due(&instance));
    manual.advance(10 * MS);
    assert_eq!(turn(&mut instance), []);
}

#[test]
fn a_repeatedly_extended_deadline_fires_once_at_its_last_time() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let token = add(&mut instance, "a", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + 10 * MS),
        _ => Response::ok(()),
    });
    for _ in 0..100 {
        manual.feed(token, EventSet::READABLE);
        turn(&mut instance);
        manual.advance(9 * MS);
    }
    assert_eq!(turn(&mut instance), [], "at 9 ms after the last event");
    manual.advance(MS);
    assert_eq!(turn(&mut instance), [("a", 101)]);
    manual.advance(100 * MS);
    assert_eq!(turn(&mut instance), []);
}

#[test]
fn deadlines_in_one_tick_fire_in_the_order_of_the_backend() {
    let orders = [false, true].map(|is_reversed| {
        let manual = Manual::new();
        if is_reversed {
            manual.reverse_ticks();
        }
        let mut instance = empty(&manual);
        for name in ["a", "b", "c"] {
            let token = add(&mut instance, name, |call, now| match call {
                Call::Ready(_) => Response::ok(()).deadline(now + 10 * MS),
                _ => Response::ok(()),
            });
            manual.feed(token, EventSet::READABLE);
        }
        turn(&mut instance);
        manual.advance(10 * MS);
        turn(&mut instance)
    });
    let [mut plain, reversed] = orders;
    assert_eq!(plain.len(), 3);
    plain.reverse();
    assert_eq!(plain, reversed);
}

#[test]
fn keep_in_a_timeout_leaves_no_deadline() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let token = add(&mut instance, "a", |call, now| match call {
        Call::Ready(_) => Response::ok(()).deadline(now + MS),
        _ => Response::keep(()),
    });
    manual.feed(token, EventSet::READABLE);
    turn(&mut instance);
    manual.advance(MS);
    assert_eq!(turn(&mut instance), [("a", 2)]);
    assert_eq!(instance.next_deadline(), None);
}

#[test]
fn the_loop_sleeps_until_its_earliest_deadline_and_no_longer() {
    let manual = Manual::new();
    let started = manual.now();
    let mut instance = empty(&manual);
    for (name, ms) in [("late", 5_000), ("early", 20), ("never", 0)] {
        let token = add(&mut instance, name, move |call, now| match call {
            Call::Ready(_) if ms > 0 => Response::ok(()).deadline(now + ms * MS),
            _ => Response::ok(()),
        });
        manual.feed(token, EventSet::READABLE);
    }
    turn(&mut instance);
    assert_eq!(instance.next_deadline(), Some(started + 20 * MS));
    instance.context_mut().clear();
    manual.take_waits();
    instance.turn(None).expect("there is a deadline");
    assert_eq!(manual.take_waits(), [Some(started + 20 * MS)]);
    assert_eq!(*instance.context(), [("early", 2)]);
    instance.turn(Some(MS)).expect("there is a deadline");
    assert_eq!(
        manual.take_waits(),
        [Some(started + 21 * MS)],
        "an embedding loop's limit comes first"
    );
}

#[test]
fn ending_a_machine_clears_its_deadline() {
    let manual = Manual::new();
    let mut instance = empty(&manual);
    let token = add(&mut instance, "a", |call, now| match call {
        Call::Ready(events) if events.is_readable() => Response::ok(()).deadline(now + MS),
        _ => Response::done().with(Deadline::At(now + MS)),
    });
    manual.feed(token, EventSet::READABLE);
    turn(&mut instance);
    manual.feed(token, EventSet::WRITABLE);
    turn(&mut instance);
    settle(&mut instance);
    assert_eq!(instance.next_deadline(), None);
}
