//! Panics of handlers that have left and reacquired the loop.

use std::sync::mpsc::Receiver;

use rotor_core::{Exit, OnPanic, Response};

use crate::rig::{BackendReport, Call, ReportingBackend, Rig, Seed, config, gate, section, start};

#[test]
fn a_panic_in_a_section_ends_its_machine_after_the_loop_is_reacquired() {
    let mut rig = Rig::new(&config());
    rig.add(|_, scope| {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            scope.blocking(|| panic!("on purpose"))
        }));
        assert!(caught.is_err());
        scope.entries.push("the context is there".into());
        scope.blocking(|| panic!("on purpose, again"));
        Response::done()
    });
    rig.add(|_, scope| {
        let caught = scope.guard(|scope| scope.blocking(|| panic!("on purpose")));
        assert_eq!(caught.expect_err("it panicked").message(), "on purpose");
        scope.entries.push("guarded".into());
        Response::done()
    });
    let (exit, mut log, stats) = rig.run();
    log.sort();
    assert_eq!((exit, stats.panicked, stats.ended), (Exit::Empty, 1, 1));
    assert_eq!(log, ["guarded", "the context is there"]);
}

/// A loop that a panic ends; its backend reports when it sleeps.
fn rig_stopped_by_panic() -> (Rig<ReportingBackend>, Receiver<BackendReport>) {
    let (backend, reports) = ReportingBackend::new();
    (Rig::on(backend, &config().on_panic(OnPanic::StopLoop)), reports)
}

#[test]
fn a_panic_after_a_section_stops_the_loop_if_configured() {
    let (mut rig, reports) = rig_stopped_by_panic();
    let ((began, begins), (end, ends)) = (gate(), gate());
    let panics = rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        panic!("on purpose");
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    // So the handler returns between two turns.
    assert_eq!(reports.recv(), Ok(BackendReport::Sleeping));
    drop(end);
    let (_, exit) = running.thread.join().expect("no panic");
    assert_eq!(exit, Exit::Panicked { token: panics.token() });
}

#[test]
fn a_panic_in_create_after_a_section_stops_the_loop_if_configured() {
    let (mut rig, reports) = rig_stopped_by_panic();
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |call, scope| {
        if let Call::SpawnError = call {
            // If the loop goes on, this ends the test.
            return Response::done();
        }
        scope.blocking(|| section(&began, &ends));
        Response::spawn((), Seed(Box::new(|_| panic!("on purpose"))))
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    // So the machine is made between two turns.
    assert_eq!(reports.recv(), Ok(BackendReport::Sleeping));
    drop(end);
    let (_, exit) = running.thread.join().expect("no panic");
    assert!(matches!(exit, Exit::Panicked { .. }), "{exit:?}");
}
