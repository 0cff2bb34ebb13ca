//! Declared sections in a loop that is taken from undeclared ones.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use rotor_core::{Blocking, Config, Exit, Response};

use crate::rig::{Rig, blocking, config, trap};

#[test]
fn declared_sections_overlap_and_handlers_do_not() {
    // No handler is stuck for this long.
    let blocking = Blocking::new().patience_declared(Duration::ZERO);
    let blocking = blocking.patience(Duration::from_secs(1_000));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let (barrier, is_busy) = (Arc::new(Barrier::new(8)), Arc::new(AtomicBool::new(false)));
    for _ in 0..8 {
        let (barrier, is_busy) = (barrier.clone(), is_busy.clone());
        let mut left = 5;
        rig.add(move |_, scope| {
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            is_busy.store(false, SeqCst);
            scope.blocking(|| barrier.wait());
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            left -= 1;
            scope.wake_self();
            is_busy.store(false, SeqCst);
            if left == 0 { Response::done() } else { Response::keep(()) }
        });
    }
    let (exit, _, stats) = rig.run();
    assert_eq!((exit, stats.handed_over, stats.taken_over), (Exit::Empty, 40, 0));
}

#[test]
fn short_declared_sections_cost_no_hand_over() {
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let mut left = 10;
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        left -= 1;
        scope.wake_self();
        if left == 0 { Response::done() } else { Response::keep(()) }
    });
    let (_, _, stats) = rig.run();
    // A thread that gets no CPU may have been slow.
    assert_eq!(stats.handed_over + stats.handed_quick, 10);
}

#[test]
fn a_section_of_a_handler_stuck_before_holds_up_no_other_machine() {
    let mut rig = Rig::new(&config());
    let ((stuck, key), (section, other)) = (trap(), trap());
    rig.add(move |_, scope| {
        stuck.block();
        scope.blocking(|| section.block());
        scope.record("back");
        Response::done()
    });
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        if calls == 1 {
            key.begins.recv().expect("the first runs");
            let _ = key.end.send(());
        } else if other.begins.try_recv().is_ok() {
            let _ = other.end.send(());
            return Response::done();
        }
        scope.wake_self();
        Response::keep(())
    });
    let (_, log, stats) = rig.run();
    assert_eq!((log, stats.blocked_inline), (vec!["back".to_owned()], 0));
}

#[test]
fn a_loop_is_taken_from_a_handler_stuck_after_its_section() {
    let mut rig = Rig::new(&Config::new().blocking(blocking()));
    let (stuck, key) = trap();
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        stuck.block();
        scope.record("back");
        Response::done()
    });
    let mut waits = true;
    rig.add(move |_, scope| {
        scope.wake_self();
        if std::mem::take(&mut waits) || key.begins.try_recv().is_err() {
            return Response::keep(());
        }
        let _ = key.end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!((log, stats.handed_over), (vec!["back".to_owned()], 1));
    assert!(stats.taken_over >= 1);
}

/// The second handler's second section is expected to be short. So it lends the loop, and the first
/// handler takes that, long before the watchdog would.
#[test]
fn a_loop_is_taken_from_a_handler_that_returned_to_it_while_it_was_lent() {
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000));
    let blocking = blocking.patience(Duration::from_millis(100));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((section, of_section), (stuck, of_stuck)) = (trap(), trap());
    rig.add(move |_, scope| {
        scope.blocking(|| section.block());
        let is_released = stuck.block_for(Duration::from_secs(100));
        scope.record(if is_released { "released" } else { "never taken" });
        Response::done()
    });
    let (back, is_back) = mpsc::channel();
    rig.add(move |_, scope| {
        of_section.begins.recv().expect("the other section begins");
        scope.blocking(|| {});
        scope.blocking(|| {
            let _ = of_section.end.send(());
            let _ = is_back.recv();
        });
        Response::done()
    });
    rig.add(move |_, scope| {
        if of_stuck.begins.try_recv().is_ok() {
            let _ = of_stuck.end.send(());
            let _ = back.send(());
            return Response::done();
        }
        scope.wake_self();
        Response::keep(())
    });
    let (_, log, _) = rig.run();
    assert_eq!(log, ["released"]);
}

#[test]
fn a_panic_in_a_section_unwinds_its_handler() {
    let mut rig = Rig::new(&config());
    rig.add(|_, scope| {
        let caught = scope.guard(|scope| scope.blocking(|| panic!("on purpose")));
        assert_eq!(caught.expect_err("it panicked").message(), "on purpose");
        scope.record("guarded");
        Response::done()
    });
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log.len(), stats.panicked), (Exit::Empty, 1, 0));
}
