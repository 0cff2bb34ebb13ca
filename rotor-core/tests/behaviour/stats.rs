//! The loop's counters.

use std::time::Duration;

use rotor_core::{Config, EventSet, ExitPolicy, Response, Scope, Verdict};

use crate::actor::{Actor, Call, Seed, actor, idle};
use crate::manual::{Manual, settle};

#[test]
fn each_counter_counts_what_its_name_says() {
    let manual = Manual::new();
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let creator = manual.creator::<Actor<()>>(&config);
    let stats = creator.stats();
    let mut instance = creator.instantiate(());
    let mut notifier = None;
    let made = instance.add_machine_with(|scope| {
        notifier = Some(scope.notifier());
        Response::ok(actor(|call, scope: &mut Scope<'_, ()>| match call {
            Call::Ready(events) if events.is_readable() => Response::spawn((), Seed::idle("child")),
            Call::Ready(_) => Response::ok(()).deadline(scope.now() + Duration::from_millis(1)),
            _ => Response::keep(()),
        }))
    });
    let (token, notifier) = (made.expect("there is room"), notifier.expect("the closure ran"));
    for ending in ["done", "error", "panic"] {
        let made = instance.add_machine_with(|_| {
            Response::ok(actor(move |_, _: &mut Scope<'_, ()>| match ending {
                "done" => Response::done(),
                "error" => Response::error("failed"),
                _ => panic!("a bug"),
            }))
        });
        let token = made.expect("there is room");
        manual.feed(token, EventSet::READABLE);
        manual.feed(token, EventSet::READABLE);
    }
    manual.feed(token, EventSet::READABLE);
    manual.feed(token, EventSet::WRITABLE);
    notifier.wakeup();
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    manual.advance(Duration::from_millis(1));
    instance.turn(Some(Duration::ZERO)).expect("polling never fails");
    let read = stats.read();
    assert_eq!((read.turns, read.events, read.wakeups, read.timeouts), (2, 5, 1, 1));
    assert_eq!((read.spawned, read.ended, read.failed, read.panicked), (5, 1, 1, 1));
    assert_eq!((read.alive, read.stale), (2, 3));
    let _ = instance.machines().scan(rotor_core::Cursor::START, |_, _| Verdict::End);
    settle(&mut instance);
    let read = stats.read();
    assert_eq!((read.alive, read.ended), (0, 3));
    assert_eq!(read.spawned, read.alive + read.ended + read.failed + read.panicked);
    drop(instance);
    let mut after = stats.read();
    // The loop's threads, if it has any, notice its end on their own.
    after.threads = read.threads;
    assert_eq!(after, read, "they can be read after the end");
}

#[test]
fn the_longest_turn_excludes_the_time_spent_waiting() {
    let manual = Manual::new();
    let mut instance = manual.start(&Config::new(), (), |scope| {
        let manual = manual.clone();
        let deadline = scope.now() + Duration::from_secs(60);
        Response::ok(actor(move |_, _: &mut Scope<'_, ()>| {
            manual.advance(Duration::from_millis(7));
            Response::keep(())
        }))
        .deadline(deadline)
    });
    instance.turn(None).expect("there is a deadline");
    assert_eq!(instance.stats().read().longest_turn, Duration::from_millis(7));
}

#[test]
fn the_longest_turn_includes_closures_called_between_handlers() {
    for repeated in [false, true] {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), manual.clone(), |_| Response::ok(idle()));
        if repeated {
            instance
                .every(Duration::from_secs(1), |_, scope| scope.advance(Duration::from_millis(7)));
        } else {
            let posted =
                instance.broadcast().post(|_, scope| scope.advance(Duration::from_millis(7)));
            assert!(posted.is_ok());
        }
        instance.turn(None).expect("there is something to do");
        assert_eq!(instance.stats().read().longest_turn, Duration::from_millis(7));
    }
}

#[test]
fn handlers_are_timed_only_if_configured() {
    for wanted in [false, true] {
        let manual = Manual::new();
        let config = Config::new().exit(ExitPolicy::OnRequest).time_handlers(wanted);
        let mut instance = manual.creator::<Actor<()>>(&config).instantiate(());
        for ms in [1, 30, 4] {
            let slow = manual.clone();
            let made = instance.add_machine_with(|_| {
                Response::ok(actor(move |_, _: &mut Scope<'_, ()>| {
                    slow.advance(Duration::from_millis(ms));
                    Response::keep(())
                }))
            });
            manual.feed(made.expect("there is room"), EventSet::READABLE);
        }
        settle(&mut instance);
        let longest = instance.stats().read().longest_handler;
        let longest = longest.map(|longest| (longest.time, longest.machine));
        assert_eq!(longest, wanted.then_some((Duration::from_millis(30), "actor")));
    }
}

#[test]
fn events_do_not_read_the_clock() {
    let readings = [1, 100].map(|events| {
        let manual = Manual::new();
        let mut instance = manual.start(&Config::new(), (), |_| Response::ok(idle()));
        let token = instance.machines().iter().next().expect("there is one").0;
        for _ in 0..events {
            manual.feed(token, EventSet::READABLE);
        }
        let before = manual.readings();
        instance.turn(Some(Duration::ZERO)).expect("polling never fails");
        assert_eq!(instance.stats().read().events, events);
        manual.readings() - before
    });
    assert_eq!(readings[0], readings[1]);
    assert!(readings[0] <= 2, "{} readings a turn", readings[0]);
}

#[test]
fn loop_time_is_constant_in_a_handler_and_advances_after_blocking() {
    let manual = Manual::new();
    manual.advance_at_each_reading(Duration::from_micros(10));
    let mut instance =
        manual.start(&Config::new().exit(ExitPolicy::OnRequest), (), |_| Response::ok(idle()));
    let slow = manual.clone();
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |_, scope: &mut Scope<'_, ()>| {
            let before = scope.now();
            assert_eq!(scope.now(), before);
            assert!(scope.wall_time() > std::time::SystemTime::UNIX_EPOCH);
            let blocked = slow.clone();
            assert_eq!(scope.blocking(move || blocked.advance(Duration::from_secs(1))), ());
            assert!(scope.now() - before >= Duration::from_secs(1));
            Response::done()
        }))
    });
    let token = made.expect("there is room");
    manual.feed(token, EventSet::READABLE);
    settle(&mut instance);
    assert_eq!(instance.stats().read().ended, 1, "the handler's assertions held");
}
