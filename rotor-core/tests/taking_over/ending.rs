//! A loop that ends while handlers are stuck.

use std::sync::mpsc;
use std::time::Duration;

use rotor_core::{Config, Exit, ExitPolicy, Response, ReturnOnDrop};

use crate::rig::{BackendReport, Log, ReportingBackend, Rig, blocking, config, trap};

/// Returns once the loop has been taken from a stuck handler.
fn wait_until_taken(stats: &rotor_core::StatsHandle) {
    while stats.read().taken_over == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn a_stopped_loop_applies_late_answers_when_it_runs_again() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.record(format!("{calls}"));
        if calls == 2 {
            return Response::done();
        }
        scope.wake_self();
        stuck.block();
        Response::keep(())
    });
    let running = rig.start();
    key.begins.recv().expect("it is stuck");
    running.handle.stop();
    let (mut instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    instance.check_invariants().expect("the books agree");
    drop(key);
    while running.stats.read().late_answers == 0 {
        std::thread::yield_now();
    }
    // Turns of an embedded loop do not apply the late answer, and it does not keep them from
    // sleeping.
    assert_eq!(instance.turn(Some(std::time::Duration::ZERO)).expect("it waits"), None);
    assert_eq!(instance.next_deadline(), None);
    assert_eq!(instance.run().expect("it waits"), Exit::Empty);
    assert_eq!(instance.context().entries(), ["1", "2"]);
}

#[test]
fn a_stop_request_from_a_stuck_handler_wakes_the_sleeping_loop() {
    let (backend, reports) = ReportingBackend::new();
    let mut rig = Rig::on(backend, &config().exit(ExitPolicy::OnRequest));
    let (stuck, key) = trap();
    let (asked, asks) = mpsc::channel();
    rig.add(move |_, scope| {
        stuck.block();
        scope.stop_loop();
        let _ = asked.send(());
        // Not released before the loop has ended.
        stuck.block();
        Response::done()
    });
    let running = rig.start();
    key.begins.recv().expect("it is stuck");
    // It was taken over, and has checked for a stop request for the last time before it sleeps.
    assert_eq!(reports.recv(), Ok(BackendReport::Sleeping));
    key.end.send(()).expect("it waits");
    asks.recv().expect("it asks");
    assert!(reports.try_iter().any(|report| report == BackendReport::Woken), "the loop sleeps on");
    let (instance, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Stopped);
    drop((key, instance));
}

#[test]
fn a_machine_that_answers_after_its_loop_was_dropped_is_dropped() {
    for is_before in [true, false] {
        let mut rig = Rig::new(&config());
        let (stuck, key) = trap();
        let (dropped, is_dropped) = mpsc::channel::<&str>();
        rig.add(move |_, _| {
            stuck.block();
            let _ = dropped.send("answers");
            Response::keep(())
        });
        let running = rig.start();
        key.begins.recv().expect("it is stuck");
        wait_until_taken(&running.stats);
        running.handle.stop();
        let (instance, exit) = running.thread.join().expect("no panic");
        assert_eq!(exit, Exit::Stopped);
        if is_before {
            drop(key);
            while running.stats.read().late_answers == 0 {
                std::thread::yield_now();
            }
            drop(instance);
        } else {
            drop(instance);
            drop(key);
        }
        assert_eq!(is_dropped.recv(), Ok("answers"));
        assert!(is_dropped.recv().is_err(), "the machine is gone");
        assert_eq!(running.stats.read().panicked, 0);
    }
}

#[test]
fn at_end_values_of_a_late_machine_are_passed_to_the_context() {
    let mut rig = Rig::new(&Config::new().blocking(blocking().keep_idle(Duration::ZERO)));
    let (stuck, key) = trap();
    let mut kept: Vec<ReturnOnDrop<&str, Log>> = Vec::new();
    rig.add(move |_, scope| {
        kept.push(scope.at_end("left", |log, why| log.record(why)));
        stuck.block();
        Response::keep(())
    });
    let running = rig.start();
    key.begins.recv().expect("it is stuck");
    wait_until_taken(&running.stats);
    running.handle.stop();
    let (instance, _) = running.thread.join().expect("no panic");
    drop(key);
    // The stuck handler's thread ends after it has left its answer.
    while running.stats.read().threads > 0 {
        std::thread::yield_now();
    }
    assert_eq!(instance.into_context().entries(), ["left"]);
}
