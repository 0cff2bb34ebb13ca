//! Calls that come for a machine while it is in a section.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_core::{Exit, Response};

use crate::rig::{Call, Rig, TEST_TIMEOUT, config, gate, section};

#[test]
fn calls_during_a_section_are_merged_and_delivered_afterwards() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut first = true;
    let away = rig.add(move |call, scope| {
        scope.entries.push(format!("{call:?}"));
        if std::mem::take(&mut first) {
            scope.wake_self();
            scope.blocking(|| section(&began, &ends));
            scope.entries.push("back".into());
            // The deadline passed during the section.
            return Response::keep(());
        }
        if scope.entries.iter().any(|entry| entry == "Timeout")
            && scope.entries.iter().filter(|entry| *entry == "Wakeup").count() > 1
        {
            return Response::done();
        }
        Response::keep(())
    });
    let mut deadlines = 0;
    rig.add(move |call, scope| {
        if let Call::Wakeup = call {
            begins.recv().expect("it is away");
            for _ in 0..3 {
                away.wakeup();
            }
            return Response::ok(()).deadline(scope.now());
        }
        // Several turns, in which calls for the other machine could be lost.
        deadlines += 1;
        away.wakeup();
        if deadlines < 5 {
            return Response::ok(()).deadline(scope.now());
        }
        let _ = end.send(());
        Response::done()
    });
    let mut instance = rig.instance();
    instance.every(Duration::from_millis(1), |_, _| {});
    // Expires the first machine while it is in its section.
    assert_eq!(instance.machines().len(), 2);
    instance.broadcast();
    let mut cursor = rotor_core::Cursor::START;
    let mut is_first = true;
    while let Some(next) = instance.machines().scan(cursor, |_, _| {
        if std::mem::take(&mut is_first) {
            rotor_core::Verdict::Expire
        } else {
            rotor_core::Verdict::Keep
        }
    }) {
        cursor = next;
    }
    instance.run().expect("it waits");
    let log = instance.into_context().entries;
    let (back, calls) = (log.iter().position(|entry| entry == "back"), log.len());
    assert_eq!(back, Some(1), "nothing was called while it was away: {log:?}");
    assert_eq!(calls, 4, "the wake-ups were merged: {log:?}");
}

#[test]
fn a_self_wakeup_before_a_section_reaches_its_own_machine() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.entries.push(format!("first {calls}"));
        if calls == 1 {
            scope.wake_self();
            scope.blocking(|| section(&began, &ends));
            // The deadline ends the test if the wake-up never comes.
            return Response::ok(()).deadline(scope.now() + TEST_TIMEOUT);
        }
        Response::done()
    });
    let mut calls = 0;
    rig.add(move |call, scope| {
        calls += 1;
        scope.entries.push(format!("second {calls} {call:?}"));
        begins.recv().expect("the first is away");
        let _ = end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!(log[..3], ["first 1", "second 1 Wakeup", "first 2"]);
    assert_eq!((stats.wakeups, stats.timeouts), (3, 0));
}

#[test]
fn a_machine_ended_during_its_section_is_dropped_when_it_answers() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        Response::keep(())
    });
    let mut instance = rig.instance();
    let broadcast = instance.broadcast();
    let running = thread::spawn(move || {
        let exit = instance.run().expect("it waits");
        (instance, exit)
    });
    begins.recv().expect("the section begins");
    let (seen, sees) = mpsc::channel();
    let posted = broadcast.post(move |mut machines, _| {
        machines.scan(rotor_core::Cursor::START, |_, machine| {
            let _ = seen.send(matches!(machine, rotor_core::MachineView::Busy));
            rotor_core::Verdict::End
        });
    });
    assert!(posted.is_ok());
    assert_eq!(sees.recv(), Ok(true));
    drop(end);
    let (instance, exit) = running.join().expect("no panic");
    assert_eq!((exit, instance.context().entries.len()), (Exit::Empty, 1));
    assert_eq!(instance.stats().read().ended, 1);
}

#[test]
fn a_slot_granted_during_a_section_is_kept_for_its_machine() {
    let mut rig = Rig::new(&config().machines_max(4));
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        if calls == 1 {
            scope.wake_on_free_slot();
            scope.blocking(|| section(&began, &ends));
            return Response::keep(());
        }
        let has_slot = scope.has_free_slot();
        scope.entries.push(format!("the first in the queue has a slot: {has_slot}"));
        Response::done()
    });
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        if calls == 1 {
            begins.recv().expect("the first is in its section");
            scope.wake_on_free_slot();
            return Response::keep(());
        }
        scope.entries.push("the second in the queue is woken".into());
        scope.stop_loop();
        Response::done()
    });
    // A slot is free at the end of this turn, and is granted.
    rig.add(|_, _| Response::done());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        match calls {
            1 => scope.wake_self(),
            _ => drop(end.send(())),
        }
        Response::keep(())
    });
    let (_, log, _) = rig.run();
    assert_eq!(
        log,
        ["the first in the queue has a slot: true", "the second in the queue is woken"]
    );
}
