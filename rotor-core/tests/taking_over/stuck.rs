//! Stuck handlers, and their answers once they are no longer stuck.

use std::sync::{Arc, Barrier, Mutex, mpsc};
use std::time::Duration;

use rotor_core::{Config, Exit, Response, StuckOutcome};

use crate::rig::{Call, Rig, Seed, actor, blocking, config, trap};

#[test]
fn a_loop_is_taken_from_each_of_several_stuck_handlers() {
    const MACHINES: usize = 20;
    let mut rig = Rig::new(&config());
    // Nobody passes the barrier unless all wait at it at the same time.
    let barrier = Arc::new(Barrier::new(MACHINES));
    for number in 0..MACHINES {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            assert!(scope.hands_over());
            barrier.wait();
            scope.record(format!("{number}"));
            Response::done()
        });
    }
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log.len()), (Exit::Empty, MACHINES));
    assert!(stats.taken_over >= 19 && stats.threads_most >= 20, "{stats:?}");
    assert_eq!((stats.taken_over, stats.ended, stats.panicked), (stats.late_answers, 20, 0));
}

#[test]
fn a_machine_continues_normally_after_its_late_answer() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    let mut calls = 0;
    let first = rig.add(move |_, scope| {
        calls += 1;
        scope.record(format!("first {calls}"));
        match calls {
            1 => stuck.block(),
            3 => return Response::done(),
            _ => {}
        }
        scope.wake_self();
        Response::keep(())
    });
    rig.add(move |_, scope| {
        key.begins.recv().expect("the first runs");
        scope.record("second");
        first.wakeup();
        let _ = key.end.send(());
        Response::done()
    });
    let (exit, log, stats) = rig.run();
    assert_eq!(
        (exit, log),
        (Exit::Empty, ["first 1", "second", "first 2", "first 3"].map(String::from).to_vec())
    );
    assert!(stats.taken_over >= 1, "{stats:?}");
}

#[test]
fn a_self_wakeup_of_a_stuck_handler_reaches_its_own_machine() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.record(format!("first {calls}"));
        if calls > 1 {
            return Response::done();
        }
        scope.wake_self();
        stuck.block();
        // One wake-up, although it wakes itself twice.
        scope.wake_self();
        Response::keep(())
    });
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.record(format!("second {calls}"));
        key.begins.recv().expect("the first runs");
        let _ = key.end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!(log, ["first 1", "second 1", "first 2"]);
    assert_eq!(stats.wakeups, 3);
}

#[test]
fn a_split_scope_of_a_stuck_handler_wakes_its_machine() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        if calls == 1 {
            stuck.block();
            let (log, early) = scope.split();
            log.record("split");
            assert!(!early.hands_over());
            early.wake_self();
            return Response::keep(());
        }
        scope.record("woken");
        Response::done()
    });
    rig.add(move |_, _| {
        key.begins.recv().expect("the first runs");
        let _ = key.end.send(());
        Response::done()
    });
    assert_eq!(rig.run().1, ["split", "woken"]);
}

#[test]
fn a_panic_of_a_stuck_handler_ends_its_machine() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    rig.add(move |_, scope| {
        scope.wake_self();
        stuck.block();
        panic!("on purpose");
    });
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        if calls == 1 {
            key.begins.recv().expect("the first runs");
            let _ = key.end.send(());
            scope.wake_self();
            return Response::keep(());
        }
        scope.record("goes on");
        Response::done()
    });
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log), (Exit::Empty, vec!["goes on".to_owned()]));
    assert_eq!((stats.panicked, stats.ended, stats.late_answers), (1, 1, stats.taken_over));
}

#[test]
fn a_panic_of_a_stuck_handler_stops_the_loop_if_configured() {
    let mut rig = Rig::new(&config().on_panic(rotor_core::OnPanic::StopLoop));
    let (stuck, key) = trap();
    let first = rig.add(move |_, _| {
        stuck.block();
        panic!("on purpose");
    });
    rig.add(move |_, _| {
        key.begins.recv().expect("the first runs");
        let _ = key.end.send(());
        Response::keep(())
    });
    let (exit, _, stats) = rig.run();
    assert_eq!(exit, Exit::Panicked { token: first.token() });
    assert_eq!(stats.panicked, 1);
}

#[test]
fn a_stuck_handler_may_spawn_and_receives_the_result() {
    let mut rig = Rig::new(&config());
    let (stuck, key) = trap();
    rig.add(move |call, scope| {
        scope.record(format!("{call:?}"));
        if call == Call::Spawned {
            return Response::done();
        }
        stuck.block();
        let child = |scope: &mut rotor_core::Scope<'_, crate::rig::Log>| {
            scope.wake_self();
            Response::ok(actor(|_, scope| {
                scope.record("child");
                Response::done()
            }))
        };
        Response::spawn((), Seed(Box::new(child)))
    });
    rig.add(move |_, _| {
        key.begins.recv().expect("the first runs");
        let _ = key.end.send(());
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert_eq!(log, ["Wakeup", "Spawned", "child"]);
    assert_eq!((stats.spawned, stats.ended), (3, 3));
}

#[test]
fn a_takeover_of_the_loop_is_reported() {
    let (reports, reported) = mpsc::channel();
    let reports = Arc::new(Mutex::new(reports));
    let hook = move |stuck: &rotor_core::StuckReport<'_>| {
        if stuck.outcome == StuckOutcome::TakenOver {
            let _ = reports.lock().expect("no panic").send((stuck.token, stuck.to_string()));
        }
    };
    let blocking = blocking().on_stuck(hook.clone()).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    rig.add(move |_, scope| {
        let (token, text) = reported.recv().expect("the watchdog looks");
        assert_eq!(token, Some(scope.token()));
        scope.record(text);
        Response::done()
    });
    let (_, log, stats) = rig.run();
    assert!(log[0].contains("(actor)") && log[0].ends_with("taken over"), "{log:?}");
    assert!(stats.stuck > 0 && stats.taken_over > 0);
}

#[test]
fn a_loop_returns_to_one_thread_when_no_handler_is_stuck_any_more() {
    let blocking = blocking().keep_idle(Duration::ZERO);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let barrier = Arc::new(Barrier::new(3));
    for _ in 0..3 {
        let barrier = barrier.clone();
        rig.add(move |_, _| {
            barrier.wait();
            Response::keep(())
        });
    }
    let running = rig.start();
    while running.stats.read().late_answers < 2 || running.stats.read().threads > 1 {
        std::thread::yield_now();
    }
    assert!(running.stats.read().threads_most >= 3);
    running.handle.stop();
    drop(running.thread.join().expect("no panic"));
}
