//! Calls that come for a machine while its handler is stuck.

use std::sync::mpsc;
use std::time::Duration;

use rotor_core::{Cursor, Exit, MachineView, Response, Verdict};

use crate::rig::{Call, Rig, config, trap};

#[test]
fn calls_for_a_stuck_machine_are_merged_and_delivered_afterwards() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    let mut calls = Vec::new();
    let away = rig.add(move |call, scope| {
        if calls.is_empty() {
            calls.push(call);
            // The first call's handler is stuck while calls come for its machine.
            stuck.block();
            scope.record("back");
            return Response::ok(()).deadline(scope.now());
        }
        scope.record(format!("{call:?}"));
        calls.push(call);
        if calls.len() == 3 { Response::done() } else { Response::keep(()) }
    });
    rig.add(move |_, _| {
        key.begins.recv().expect("it is stuck");
        for _ in 0..3 {
            away.wakeup();
        }
        let _ = key.end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!(log[0], "back");
    assert_eq!(log.iter().filter(|entry| *entry == "Wakeup").count(), 1, "{log:?}");
    assert_eq!((stats.timeouts, stats.ended), (1, 2));
}

#[test]
fn a_stuck_machine_that_is_ended_is_dropped_when_it_answers() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    rig.add(move |_, scope| {
        stuck.block();
        scope.record("back");
        Response::keep(())
    });
    let mut instance = rig.instance();
    let broadcast = instance.broadcast();
    let running = std::thread::spawn(move || {
        let exit = instance.run().expect("it waits");
        (instance, exit)
    });
    key.begins.recv().expect("it is stuck");
    let (seen, sees) = mpsc::channel();
    let posted = broadcast.post(move |mut machines, _| {
        machines.scan(Cursor::START, |_, machine| {
            let _ = seen.send(matches!(machine, MachineView::Busy));
            Verdict::End
        });
    });
    assert!(posted.is_ok());
    assert_eq!(sees.recv(), Ok(true));
    drop(key);
    let (instance, exit) = running.join().expect("no panic");
    assert_eq!((exit, instance.context().entries()), (Exit::Empty, vec!["back".to_owned()]));
    assert_eq!(instance.stats().read().ended, 1);
}

#[test]
fn a_drain_counts_a_machine_still_stuck_at_its_end_as_dropped() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    rig.add(move |_, scope| {
        stuck.block();
        scope.record("back");
        Response::keep(())
    });
    let running = rig.start();
    key.begins.recv().expect("it is stuck");
    running.handle.drain(Duration::ZERO);
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 1 });
    instance.check_invariants().expect("the books agree");
    drop(key);
    while running.stats.read().late_answers == 0 {
        std::thread::yield_now();
    }
    // Its answer finds no machine.
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    instance.check_invariants().expect("the books agree");
    assert_eq!((instance.stats().read().ended, instance.machines().len()), (1, 0));
}

#[test]
fn a_stuck_machine_is_notified_of_a_drain_afterwards() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    rig.add(move |call, scope| {
        scope.record(format!("{call:?}"));
        if call == Call::Draining {
            return Response::done();
        }
        stuck.block();
        Response::keep(())
    });
    let (notified, notifications) = mpsc::channel();
    rig.add(move |call, _| {
        if call == Call::Draining {
            let _ = notified.send(());
            return Response::done();
        }
        Response::keep(())
    });
    let running = rig.start();
    key.begins.recv().expect("it is stuck");
    running.handle.drain(Duration::from_secs(1_000));
    notifications.recv().expect("the other is told, so the loop was taken");
    drop(key);
    let (instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 0 });
    assert_eq!(instance.context().entries(), ["Wakeup", "Draining"]);
}
