//! Wake-ups: coalesced, never lost, no system call while the loop is awake; and the parts of a
//! machine.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;
use std::time::Duration;

use rotor_core::{Config, EventSet, Exit, ExitPolicy, Loop, Notifier, Response, Scope};

use crate::actor::{Actor, Call, Seed, actor};
use crate::manual::{Manual, settle};

type Log = Vec<Vec<u32>>;

/// A machine that notes which of its parts were woken, each time; with notifiers of the parts 0, 1,
/// 2, 3.
fn noting(manual: &Manual) -> (rotor_core::LoopInstance<Actor<Log>, Manual>, Vec<Notifier>) {
    let mut notifiers = Vec::new();
    let instance = manual.start(&Config::new(), Log::new(), |scope| {
        notifiers = (0..4).map(|part| scope.part(part).notifier()).collect();
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            if let Call::Wakeup(parts) = call {
                scope.push(parts);
            }
            Response::keep(())
        }))
    });
    (instance, notifiers)
}

#[test]
fn wake_ups_before_the_handler_coalesce_into_one_call() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    for _ in 0..100 {
        assert!(notifiers[0].wakeup());
    }
    settle(&mut instance);
    assert!(notifiers[0].wakeup());
    settle(&mut instance);
    assert_eq!(*instance.context(), [[0], [0]]);
    assert_eq!(instance.stats().read().wakeups, 2);
}

#[test]
fn woken_parts_are_exact_ascending_and_each_once() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    for part in [3, 1, 3, 1, 1] {
        assert!(notifiers[part].wakeup());
        assert_eq!(notifiers[part].part(), part as u32);
    }
    settle(&mut instance);
    notifiers[2].wakeup();
    notifiers[0].wakeup();
    notifiers[2].clone().wakeup();
    settle(&mut instance);
    notifiers[1].wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), [vec![1, 3], vec![0, 2], vec![1]]);
}

#[test]
fn parts_of_two_machines_do_not_mix() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    let mut other = None;
    let added = instance.add_machine_with(|scope| {
        other = Some(scope.part(9).notifier());
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            if let Call::Wakeup(parts) = call {
                assert_eq!(parts, [9]);
                scope.push(parts);
            }
            Response::keep(())
        }))
    });
    added.expect("there is room");
    other.expect("the closure ran").wakeup();
    notifiers[3].wakeup();
    settle(&mut instance);
    let mut log = instance.into_context();
    log.sort();
    assert_eq!(log, [[3], [9]]);
}

#[test]
fn woken_parts_are_empty_outside_of_wakeup_and_the_part_of_a_scope_is_its_own() {
    let manual = Manual::new();
    let mut kept = None;
    let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
        kept = Some((scope.token(), scope.part(7).notifier()));
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            let woken: Vec<u32> = scope.woken_parts().collect();
            if !matches!(call, Call::Wakeup(_)) {
                assert_eq!(woken, []);
                let mut part = scope.part(7);
                assert_eq!(part.notifier().part(), 7);
                let (_, early) = part.split();
                assert_eq!(early.notifier().part(), 7);
            }
            scope.push(woken);
            Response::keep(())
        }))
    });
    let (token, notifier) = kept.expect("the closure ran");
    manual.feed(token, EventSet::READABLE);
    notifier.wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), [vec![], vec![7]]);
}

/// The two ways in which a machine wakes itself.
const WAYS: [fn(&mut Scope<'_, Log>); 2] =
    [|scope| assert!(scope.notifier().wakeup()), |scope| scope.wake_self()];

#[test]
fn a_self_wake_up_is_heard_in_the_next_turn() {
    for wake in WAYS {
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
fn a_machine_that_wakes_itself_in_create_hears_of_it_in_the_same_turn_in_line() {
    for wake in WAYS {
        let manual = Manual::new();
        let (mut instance, notifiers) = noting(&manual);
        let mut kept = None;
        let added = instance.add_machine_with(|scope| {
            kept = Some(scope.notifier());
            Response::ok(actor(move |call, scope: &mut Scope<'_, Log>| match call {
                Call::Wakeup(_) => {
                    notifiers[0].wakeup();
                    Response::spawn((), woken_in_create(wake))
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
        // Its parent hears of it first, and who was woken before.
        assert_eq!(*instance.context(), [[9], [0], [100]]);
        settle(&mut instance);
        assert_eq!((instance.context().len(), instance.stats().read().wakeups), (3, 3));
    }
}

/// The seed of a machine that is woken in `create`, as the closure says, and notes by whom, plus
/// 100.
fn woken_in_create(wake: fn(&mut Scope<'_, Log>)) -> Seed<Log> {
    Seed::new("child", move |scope| {
        wake(scope);
        Response::ok(hears_a_wake_up())
    })
}

fn hears_a_wake_up() -> Actor<Log> {
    actor(|call, scope: &mut Scope<'_, Log>| {
        assert_eq!(call.name(), "wakeup");
        let parts = scope.woken_parts().map(|part| part + 100).collect();
        scope.push(parts);
        Response::keep(())
    })
}

/// Whatever the handler, and whoever else wakes it meanwhile: one call, in the next turn.
#[test]
fn a_machine_wakes_itself_in_every_handler_and_coalesces_with_others_that_wake_it() {
    for handler in ["ready", "timeout", "wakeup", "draining", "spawned", "spawn_error"] {
        for wake in WAYS {
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
fn who_wakes_itself_and_spawns_is_woken_and_not_its_child_when_it_has_heard_of_its_spawn() {
    // The second spawn is deferred where the budget is one.
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
                    Response::spawn((), Seed::new("child", |_| Response::ok(hears_a_wake_up())))
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
fn a_wake_up_of_itself_goes_with_the_machine_and_is_nobody_elses() {
    type Ending = fn(&mut Scope<'_, Log>) -> Response<(), Seed<Log>>;
    let endings: [Ending; 3] = [
        |_| panic!("after it has woken itself"),
        |_| Response::done(),
        |_| Response::error("it is done"),
    ];
    for ending in endings {
        let manual = Manual::new();
        let (mut instance, _) = noting(&manual);
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
        // In `create` as well, with nobody who has heard of the machine.
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
fn a_part_and_a_guarded_part_of_a_handler_wake_the_machine_as_well() {
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

#[test]
fn a_machine_that_another_one_wakes_hears_of_it_in_the_same_turn() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    let woken = notifiers[0].clone();
    let mut kept = None;
    let added = instance.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        Response::ok(actor(move |_, _: &mut Scope<'_, Log>| {
            woken.wakeup();
            Response::keep(())
        }))
    });
    added.expect("there is room");
    kept.expect("the closure ran").wakeup();
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    assert_eq!(*instance.context(), [[0]]);
}

#[test]
fn the_backend_is_woken_only_while_the_loop_may_sleep_and_once() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    notifiers[0].wakeup();
    notifiers[1].wakeup();
    assert_eq!(manual.wakes(), 0, "the loop has not slept yet");
    settle(&mut instance);
    notifiers[0].wakeup();
    notifiers[1].wakeup();
    notifiers[0].wakeup();
    assert_eq!(manual.wakes(), 1);
}

#[test]
fn a_wake_up_while_handlers_run_needs_no_system_call() {
    let manual = Manual::new();
    let (mut instance, notifiers) = noting(&manual);
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |_, _: &mut Scope<'_, Log>| {
            assert!(notifiers[0].wakeup());
            Response::keep(())
        }))
    });
    for round in 1..5 {
        manual.feed(made.as_ref().copied().expect("there is room"), EventSet::READABLE);
        // It is ready to sleep when it waits, and there is an event.
        instance.turn(None).expect("there is an event");
        assert_eq!((instance.context().len(), manual.wakes()), (round, 0));
    }
}

#[test]
fn a_notifier_of_a_loop_that_is_gone_answers_false() {
    let manual = Manual::new();
    let (instance, notifiers) = noting(&manual);
    assert!(notifiers.iter().all(Notifier::wakeup));
    drop(instance);
    assert!(!notifiers.iter().any(Notifier::wakeup));
    assert!(!notifiers.iter().any(Notifier::is_alive));
}

/// The default backend: a count that each thread stores before its wake-up is what the handler sees
/// after it. The loop goes to sleep whenever it finds nothing, so threads meet it in every state;
/// and it ends only when it has seen all.
#[test]
fn no_wake_up_of_eight_threads_is_lost_by_a_loop_that_sleeps_and_wakes() {
    const THREADS: u64 = 8;
    const EACH: u64 = 125_000;
    const MACHINES: usize = 64;

    struct Counts {
        stored: Vec<AtomicU64>,
        total: AtomicU64,
        calls: AtomicUsize,
    }
    let counts = Arc::new(Counts {
        stored: (0..MACHINES).map(|_| AtomicU64::new(0)).collect(),
        total: AtomicU64::new(0),
        calls: AtomicUsize::new(0),
    });
    let mut creator = Loop::new(&Config::new()).expect("the system has descriptors");
    let mut notifiers = Vec::new();
    for index in 0..MACHINES {
        let counts = counts.clone();
        let mut seen = 0;
        let made = creator.add_machine_with(|scope| {
            // One machine in four is woken by a part, which takes the other way through the queue.
            notifiers.push(scope.part(u32::from(index % 4 == 0)).notifier());
            Response::ok(actor(move |call, scope: &mut Scope<'_, ()>| {
                if matches!(call, Call::Wakeup(_)) {
                    counts.calls.fetch_add(1, Relaxed);
                    let stored = counts.stored[index].load(Relaxed);
                    let new = stored - seen;
                    seen = stored;
                    if counts.total.fetch_add(new, SeqCst) + new == THREADS * EACH {
                        scope.stop_loop();
                    }
                }
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(());
    thread::scope(|threads| {
        for seed in 0..THREADS {
            let (counts, notifiers) = (counts.clone(), notifiers.clone());
            threads.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..EACH {
                    let index = random.usize(0..MACHINES);
                    counts.stored[index].fetch_add(1, Relaxed);
                    assert!(notifiers[index].wakeup());
                }
            });
        }
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    let all: u64 = counts.stored.iter().map(|count| count.load(Relaxed)).sum();
    assert_eq!(all, THREADS * EACH);
    assert_eq!(instance.stats().read().wakeups, counts.calls.load(Relaxed) as u64);
}

/// Ping-pong over a sleeping loop: each wake-up finds it asleep, or about to be.
#[test]
fn a_loop_that_sleeps_is_woken_each_time() {
    const ROUNDS: u32 = 10_000;
    let mut creator =
        Loop::new(&Config::new().exit(ExitPolicy::OnRequest)).expect("there are descriptors");
    let (answer, answers) = std::sync::mpsc::channel();
    let mut kept = None;
    let made = creator.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        let mut left = ROUNDS;
        Response::ok(actor(move |call, scope: &mut Scope<'_, ()>| {
            if matches!(call, Call::Wakeup(_)) {
                left -= 1;
                if left == 0 {
                    scope.stop_loop();
                }
                answer.send(()).expect("the test waits");
            }
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let notifier = kept.expect("the closure ran");
    let mut instance = creator.instantiate(());
    thread::scope(|threads| {
        threads.spawn(move || {
            for _ in 0..ROUNDS {
                notifier.wakeup();
                answers.recv().expect("the handler answers each wake-up");
            }
        });
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    assert_eq!(instance.stats().read().wakeups, u64::from(ROUNDS));
}

/// A notifier of a part that is being used by a thread while the loop takes parts: every call of
/// `wakeup` has a reason.
#[test]
fn a_machine_is_never_woken_for_nothing() {
    const ROUNDS: u64 = 50_000;
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let stored: Arc<[AtomicU64; 3]> = Arc::default();
    let mut notifiers = Vec::new();
    let seen_by_loop = stored.clone();
    let made = creator.add_machine_with(|scope| {
        notifiers = (1..3).map(|part| scope.part(part).notifier()).collect();
        let mut seen = [0; 3];
        Response::ok(actor(move |call, scope: &mut Scope<'_, u64>| {
            if let Call::Wakeup(parts) = call {
                **scope += u64::from(parts.is_empty());
                for part in parts {
                    seen[part as usize] = seen_by_loop[part as usize].load(Relaxed);
                }
                if seen[1] == ROUNDS && seen[2] == ROUNDS {
                    scope.stop_loop();
                }
            }
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(0);
    thread::scope(|threads| {
        for notifier in notifiers {
            let stored = stored.clone();
            threads.spawn(move || {
                for _ in 0..ROUNDS {
                    stored[notifier.part() as usize].fetch_add(1, Relaxed);
                    notifier.wakeup();
                }
            });
        }
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    assert_eq!(*instance.context(), 0, "calls that named no part");
}
