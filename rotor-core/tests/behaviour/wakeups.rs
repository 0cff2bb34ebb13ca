//! Wake-ups: coalesced, never lost, and without a system call while the loop is awake; and the
//! parts of a machine.

mod by_threads;
mod self_wakeups;

use std::time::Duration;

use rotor_core::{Config, EventSet, Notifier, Response, Scope};

use crate::actor::{Actor, Call, Seed, actor};
use crate::manual::{Manual, settle};

type Log = Vec<Vec<u32>>;

/// A machine that records at each wake-up which of its parts were woken; returned with notifiers
/// for the parts 0, 1, 2, 3.
fn recording_machine(
    manual: &Manual,
) -> (rotor_core::LoopInstance<Actor<Log>, Manual>, Vec<Notifier>) {
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
fn wakeups_before_the_handler_coalesce_into_one_call() {
    let manual = Manual::new();
    let (mut instance, notifiers) = recording_machine(&manual);
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
fn woken_parts_are_exact_ascending_and_unique() {
    let manual = Manual::new();
    let (mut instance, notifiers) = recording_machine(&manual);
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
    let (mut instance, notifiers) = recording_machine(&manual);
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
fn woken_parts_are_empty_outside_of_the_wakeup_handler() {
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

#[test]
fn the_result_of_a_spawn_in_wakeup_comes_without_woken_parts() {
    let manual = Manual::new();
    let mut notifier = None;
    let mut instance = manual.start(&Config::new(), Log::new(), |scope| {
        notifier = Some(scope.part(7).notifier());
        Response::ok(actor(|call, scope: &mut Scope<'_, Log>| {
            let woken = scope.woken_parts().collect();
            scope.push(woken);
            match call {
                Call::Wakeup(_) => Response::spawn((), Seed::idle("child")),
                _ => Response::keep(()),
            }
        }))
    });
    notifier.expect("the closure ran").wakeup();
    settle(&mut instance);
    assert_eq!(*instance.context(), [vec![7], vec![]]);
}

#[test]
fn a_wakeup_by_another_machine_is_delivered_in_the_same_turn() {
    let manual = Manual::new();
    let (mut instance, notifiers) = recording_machine(&manual);
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
fn the_backend_is_woken_once_and_only_while_the_loop_may_sleep() {
    let manual = Manual::new();
    let (mut instance, notifiers) = recording_machine(&manual);
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
fn a_wakeup_while_handlers_run_needs_no_system_call() {
    let manual = Manual::new();
    let (mut instance, notifiers) = recording_machine(&manual);
    let made = instance.add_machine_with(|_| {
        Response::ok(actor(move |_, _: &mut Scope<'_, Log>| {
            assert!(notifiers[0].wakeup());
            Response::keep(())
        }))
    });
    for round in 1..5 {
        manual.feed(made.as_ref().copied().expect("there is room"), EventSet::READABLE);
        // The loop may sleep in this wait, but there is an event.
        instance.turn(None).expect("there is an event");
        assert_eq!((instance.context().len(), manual.wakes()), (round, 0));
    }
}

#[test]
fn a_notifier_of_a_dropped_loop_returns_false() {
    let manual = Manual::new();
    let (instance, notifiers) = recording_machine(&manual);
    assert!(notifiers.iter().all(Notifier::wakeup));
    drop(instance);
    assert!(!notifiers.iter().any(Notifier::wakeup));
    assert!(!notifiers.iter().any(Notifier::is_alive));
}
