//! A loop that ends while handlers are in sections.

use std::sync::mpsc::{self, Sender};
use std::time::Duration;

use rotor_core::{Exit, ExitPolicy, LoopInstance, Response};

use crate::rig::{Actor, Call, Rig, TEST_TIMEOUT, actor, config, gate, section, start};

#[test]
fn a_drain_counts_a_machine_still_in_its_section_as_dropped() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let (dropped, is_dropped) = gate();
    rig.add(move |_, scope| {
        let _tells = &dropped;
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.drain(Duration::from_millis(1));
    // `run` returns although the section has not ended.
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 1 });
    instance.check_invariants().expect("the books agree");
    assert_eq!(instance.machines().len(), 0);
    // Dropped together with its machine, once the section ends.
    assert!(is_dropped.try_recv() == Err(mpsc::TryRecvError::Empty));
    drop(instance);
    drop(end);
    assert!(is_dropped.recv().is_err(), "the machine is gone");
    assert_eq!(running.stats.read().panicked, 0);
}

#[test]
fn a_machine_dropped_by_a_drain_ends_quietly_when_the_loop_runs_again() {
    let mut rig = Rig::new(&config().exit(ExitPolicy::OnRequest));
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.wake_self();
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        scope.stop_loop();
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.drain(Duration::ZERO);
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 1 });
    // Another machine uses the slot now.
    let other = instance.add_machine_with(|_| Response::ok(actor(|_, _| Response::keep(()))));
    drop(end);
    assert_eq!(instance.run().expect("it waits"), Exit::Stopped);
    instance.check_invariants().expect("the books agree");
    assert_eq!(instance.context().entries, ["back"]);
    assert_eq!((other.is_ok(), instance.machines().len()), (true, 1));
}

#[test]
fn a_machine_in_a_section_keeps_its_free_slot_while_the_loop_is_stopped() {
    let mut rig = Rig::new(&config().machines_max(2));
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut is_granted = false;
    rig.add(move |_, scope| {
        if !std::mem::replace(&mut is_granted, true) {
            scope.wake_on_free_slot();
            return Response::keep(());
        }
        scope.blocking(|| section(&began, &ends));
        let has_free_slot = scope.has_free_slot();
        scope.entries.push(has_free_slot.to_string());
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    instance.check_invariants().expect("the books agree");
    instance
        .add_machine_with(|_| Response::ok(actor(|_, _| Response::keep(()))))
        .expect_err("the slot is reserved");
    drop(end);
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().entries, ["true"]);
}

#[test]
fn a_machine_in_a_section_is_notified_of_a_drain_afterwards() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |call, scope| {
        scope.entries.push(format!("{call:?}"));
        if call == Call::Draining {
            scope.blocking(|| {});
            return Response::done();
        }
        scope.blocking(|| section(&began, &ends));
        Response::keep(())
    });
    let (notified, notifications) = gate();
    rig.add(move |call, _| {
        if call == Call::Draining {
            let _ = notified.send(());
            return Response::done();
        }
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.drain(TEST_TIMEOUT);
    notifications.recv().expect("the other one is told meanwhile");
    drop(end);
    let (instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Drained { dropped: 0 });
    assert_eq!(instance.context().entries, ["Wakeup", "Draining"]);
    assert_eq!(running.stats.read().handed_over, 2);
}

/// A loop that was stopped in a section, which lasts until the second part is dropped. Then its
/// machine records that it is back.
fn stopped_in_a_section() -> (LoopInstance<Actor>, Sender<()>) {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    let (instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    (instance, end)
}

#[test]
fn a_stopped_loop_resumes_machines_that_were_in_sections() {
    let (mut instance, end) = stopped_in_a_section();
    instance.check_invariants().expect("the books agree");
    // Turns of an embedded loop do not wait for the section.
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("it waits"), None);
    drop(end);
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().entries, ["back"]);
}

#[test]
fn turns_of_a_stopped_loop_can_wait_though_a_section_has_ended() {
    let (mut instance, end) = stopped_in_a_section();
    assert_eq!(instance.turn(Some(Duration::ZERO)).expect("it waits"), None);
    drop(end);
    // Woken by the handler that returned from its section.
    assert_eq!(instance.turn(None).expect("it waits"), None);
    assert_eq!(instance.next_deadline(), None);
    // It is the same loop, and keeps its threads.
    let mut instance = instance.handing_over();
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().entries, ["back"]);
}

#[test]
fn a_section_that_outlives_its_loop_unwinds_the_handler() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    let (dropped, is_dropped) = mpsc::channel::<&str>();
    rig.add(move |_, scope| {
        let _tells = &dropped;
        let unwound = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            // A layer's guard does not stop the unwinding.
            let _ = scope.guard(|scope| scope.blocking(|| section(&began, &ends)));
            let _ = dropped.send("not reached");
        }));
        assert!(unwound.is_err() && !scope.hands_over());
        let _ = dropped.send("unwound");
        Response::keep(())
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    running.handle.stop();
    drop(running.thread.join().expect("no panic"));
    drop(end);
    assert_eq!(is_dropped.recv(), Ok("unwound"));
    assert!(is_dropped.recv().is_err(), "the machine is gone");
}
