//! Reports about sections and about handlers that return from them; and how their time is counted.

use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rotor_core::{Blocking, Config, Exit, Response, StuckOutcome, StuckReport, Token};

use crate::rig::{Rig, TEST_TIMEOUT, config, gate, section, start};

#[test]
fn a_section_that_does_not_end_is_reported() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        if stuck.outcome == rotor_core::StuckOutcome::HandedOver {
            let _ = reports.lock().expect("no panic").send(stuck.to_string());
        }
    };
    let blocking = Blocking::new()
        .patience(Duration::from_millis(1))
        .on_stuck(hook.clone())
        .on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    rig.add(move |_, scope| {
        let report = scope.blocking(|| reported.recv().expect("the watchdog looks"));
        scope.entries.push(report);
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert!(log[0].contains("a section has blocked for"), "{log:?}");
    assert!(log[0].contains("(actor)"), "{log:?}");
    assert!(stats.stuck > 0);
}

#[test]
fn a_handler_that_waits_for_the_loop_is_not_reported_as_blocking() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send((stuck.token, stuck.time, stuck.outcome));
    };
    let patience = Duration::from_millis(1);
    let blocking = Blocking::new().patience_declared(Duration::ZERO).patience(patience);
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends), (over, is_over)) = (gate(), gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| {
            section(&began, &ends);
            let _ = over.send(());
        });
        Response::done()
    });
    rig.add(move |_, scope| {
        begins.recv().expect("the section begins");
        let _ = end.send(());
        is_over.recv().expect("the section ends");
        // The other handler has waited for the loop since this one was called.
        let mut seen = Vec::new();
        while seen
            .last()
            .is_none_or(|(token, time, _)| *token != Some(scope.token()) || *time < patience * 100)
        {
            seen.extend(reported.recv_timeout(TEST_TIMEOUT));
        }
        let is_handed = |(.., outcome): &(_, _, _)| *outcome == StuckOutcome::HandedOver;
        scope.entries.push(format!("{:?}", seen.iter().find(|report| is_handed(report))));
        Response::done()
    });
    assert_eq!(rig.run().1, ["None"]);
}

#[test]
fn a_handler_stuck_after_its_section_is_named_in_the_report() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let blocking = Blocking::new().patience_declared(Duration::ZERO);
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.token);
    };
    let blocking =
        blocking.patience(Duration::from_millis(1)).on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        let me = scope.token();
        scope.blocking(|| section(&began, &ends));
        // Earlier reports, of a handler that got no CPU, do not matter.
        while reported.try_recv().is_ok() {}
        // There are three reports for a loop that does not poll, whichever machine they name.
        let mut reports = (0..3).map_while(|_| reported.recv_timeout(TEST_TIMEOUT).ok());
        let is_named = reports.any(|token| token == Some(me));
        scope.entries.push(is_named.to_string());
        Response::done()
    });
    rig.add(move |_, scope| {
        scope.wake_self();
        if begins.try_recv().is_err() {
            return Response::keep(());
        }
        let _ = end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!((log, stats.handed_over), (vec!["true".to_owned()], 1));
}

/// Waits until a report names the machine, and says whether one did.
struct BlockingDrop {
    reported: mpsc::Receiver<Option<Token>>,
    is_named: mpsc::Sender<bool>,
    token: Option<Token>,
}

impl Drop for BlockingDrop {
    fn drop(&mut self) {
        while self.reported.try_recv().is_ok() {}
        let mut reports = (0..3).map_while(|_| self.reported.recv_timeout(TEST_TIMEOUT).ok());
        let _ = self.is_named.send(reports.any(|token| token == self.token));
    }
}

#[test]
fn a_machine_that_blocks_in_its_drop_is_named_in_the_report() {
    let ((reports, reported), (named, is_named)) = (mpsc::channel(), mpsc::channel());
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &StuckReport<'_>| {
        let _ = reports.lock().expect("no panic").send(stuck.token);
    };
    let blocking = Blocking::new().patience(Duration::from_millis(1));
    let blocking = blocking.on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let mut dropped = BlockingDrop { reported, is_named: named, token: None };
    rig.add(move |_, scope| {
        // All of it, not only the token, moves into the machine.
        let dropped = &mut dropped;
        dropped.token = Some(scope.token());
        Response::keep(())
    });
    // Called last, before the end of the drain drops both.
    rig.add(|_, _| Response::keep(()));
    let mut instance = rig.instance();
    instance.handle().drain(Duration::ZERO);
    assert_eq!(instance.run().expect("it waits"), Exit::Drained { dropped: 2 });
    assert_eq!(is_named.recv(), Ok(true));
}

#[test]
fn the_time_of_a_handed_over_section_is_not_counted_for_its_handler() {
    // A handler that gets no CPU takes long too, but not longer than any section.
    let is_without = (0..10).any(|doubled| {
        let section = SECTION * (1 << doubled);
        let mut rig = Rig::new(&config().time_handlers(true));
        rig.add(move |_, scope| {
            let began = Instant::now();
            scope.blocking(|| while began.elapsed() < section {});
            Response::done()
        });
        let (_, _, stats) = rig.run();
        assert_eq!(stats.handed_over, 1);
        stats.longest_handler.expect("they are timed").time < section
    });
    assert!(is_without);
}

#[test]
fn a_handler_that_returns_between_turns_counts_as_busy_time() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        let back = Instant::now();
        while back.elapsed() < SECTION {}
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    // None of the following turns has anything to do.
    while running.stats.read().turns == 0 {
        std::thread::yield_now();
    }
    drop(end);
    drop(running.thread.join().expect("no panic"));
    let times = running.stats.times();
    assert!(times.busy >= SECTION, "{times:?}");
    assert_eq!(times.in_turn_since, None);
}

const SECTION: Duration = Duration::from_millis(10);
