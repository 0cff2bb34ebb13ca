//! Limits on threads and sections, and which sections are worth a thread.

use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::{Blocking, Config, Permits, Response, StuckReport};

use crate::rig::{Rig, TEST_TIMEOUT, config, gate, section, start};

#[test]
fn sections_run_inline_when_no_threads_are_left() {
    let blocking = Blocking::new().patience_declared(Duration::ZERO).threads_max(0);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    for _ in 0..3 {
        rig.add(|_, scope| {
            scope.wake_self();
            scope.blocking(|| {});
            scope.entries.push("inline".into());
            Response::done()
        });
    }
    let (_, log, stats) = rig.run();
    assert_eq!((log.len(), stats.handed_over), (3, 0));
    assert_eq!((stats.no_thread, stats.blocked_inline, stats.threads_most), (3, 3, 1));
}

#[test]
fn threads_of_all_loops_share_one_budget_and_return_to_it() {
    let blocking = Blocking::new().patience_declared(Duration::ZERO);
    let blocking = blocking.threads_max(1).keep_idle(Duration::ZERO);
    let config = Config::new().blocking(blocking);
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut rig = Rig::new(&config);
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        Response::done()
    });
    let running = start(rig);
    begins.recv().expect("the section begins");
    let other = |handed| {
        let mut rig = Rig::new(&config);
        rig.add(|_, scope| {
            scope.blocking(|| {});
            Response::done()
        });
        let (_, _, stats) = rig.run();
        (stats.handed_over == 1) == handed
    };
    assert!(other(false), "the one thread is the other loop's");
    drop(end);
    drop(running.thread.join().expect("no panic"));
    while !other(true) {
        thread::yield_now();
    }
    while running.stats.read().threads > 0 {
        thread::yield_now();
    }
}

#[test]
fn permits_bound_sections_and_refuse_at_once() {
    let permits = Permits::new(1);
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add({
        let permits = permits.clone();
        move |_, scope| {
            let done = scope.blocking_with(&permits, || section(&began, &ends));
            assert!(done.is_ok());
            Response::done()
        }
    });
    rig.add({
        let permits = permits.clone();
        move |_, scope| {
            begins.recv().expect("the other has it");
            let refused = scope.blocking_with(&permits, || 7).expect_err("none is free");
            assert_eq!((refused.into_closure())(), 7);
            let _ = end.send(());
            Response::done()
        }
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.panicked, stats.handed_over), (0, 1));
    assert_eq!((permits.available(), permits.stats().unused), (1, 0));
}

#[test]
fn a_permit_is_free_when_its_section_ends_and_another_handler_has_the_loop() {
    let permits = Permits::new(1);
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add({
        let permits = permits.clone();
        move |_, scope| {
            assert!(scope.blocking_with(&permits, || section(&began, &ends)).is_ok());
            Response::done()
        }
    });
    rig.add(move |_, _| {
        begins.recv().expect("the section begins");
        let _ = end.send(());
        // The first machine cannot go on before this handler returns.
        let waiting_since = Instant::now();
        while permits.available() == 0 {
            assert!(waiting_since.elapsed() < TEST_TIMEOUT, "the permit is held without need");
            thread::yield_now();
        }
        Response::done()
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.panicked, stats.handed_over), (0, 1));
}

#[test]
fn sections_of_a_quick_type_cost_no_hand_over() {
    // The watchdog rarely looks, so it does not hand over for a thread that got no CPU in its
    // section.
    let long = Duration::from_secs(1_000);
    let blocking = Blocking::new().patience_declared(long).patience(long);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let mut left = 10;
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        left -= 1;
        scope.wake_self();
        if left == 0 { Response::done() } else { Response::keep(()) }
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.handed_over, stats.handed_quick), (1, 9));
}

#[test]
fn a_long_section_of_a_quick_type_is_still_handed_over() {
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000));
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends)) = (gate(), gate());
    let mut calls = 0;
    rig.add(move |_, scope| {
        calls += 1;
        scope.wake_self();
        if calls < 3 {
            scope.blocking(|| {});
            return Response::keep(());
        }
        // Lasts until the other machine ends it, so another thread has to continue the loop.
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
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
    assert_eq!(log, ["back"]);
    // The second section may count as either: it is slow too if its thread got no CPU.
    assert!(stats.handed_over >= 2, "{stats:?}");
    assert_eq!(stats.handed_over + stats.handed_quick, 3);
}

/// The sections of a type that has had none are handed over, later ones are lent. The watchdog never
/// looks, so the only one who takes the lent loop is the handler whose section began first.
#[test]
fn a_handler_that_returns_to_a_loop_lent_by_another_was_handed_over() {
    let long = Duration::from_secs(1_000);
    let blocking = Blocking::new().patience_declared(long).patience(long);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((began, begins), (end, ends), (back, is_back)) = (gate(), gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        let _ = back.send(());
        Response::done()
    });
    rig.add(move |_, scope| {
        begins.recv().expect("the other section begins");
        scope.blocking(|| {});
        scope.blocking(|| {
            let _ = end.send(());
            let _ = is_back.recv();
        });
        Response::done()
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.handed_over, stats.handed_quick), (3, 0));
}

#[test]
fn a_lent_loop_for_which_no_thread_is_left_counts_as_blocked() {
    let is_last_section = Arc::new(AtomicBool::new(false));
    let (end, ends) = gate();
    let hook = {
        let (is_last_section, end) = (is_last_section.clone(), Mutex::new(Some(end)));
        move |_: &StuckReport<'_>| {
            // By the second report, the watchdog has tried several times to hand the loop over.
            if is_last_section.load(SeqCst) {
                drop(end.lock().expect("no panic").take());
            }
        }
    };
    let blocking = Blocking::new().patience_declared(Duration::from_secs(1_000)).threads_max(1);
    let blocking = blocking.patience(Duration::from_millis(1)).on_still_stuck(hook);
    let mut rig = Rig::new(&Config::new().blocking(blocking));
    let ((other_began, other_begins), (end_other, other_ends)) = (gate(), gate());
    let (go, may_go) = gate();
    let mut calls = 0;
    rig.add(move |_, scope| {
        scope.wake_self();
        calls += 1;
        if calls < 3 {
            // From now on, sections of this type are expected to be short.
            scope.blocking(|| {});
            return Response::keep(());
        }
        let _ = go.send(());
        if other_begins.try_recv().is_err() {
            return Response::keep(());
        }
        // The other thread is in the other section.
        scope.blocking(|| {
            is_last_section.store(true, SeqCst);
            let _ = ends.recv();
        });
        let _ = end_other.send(());
        Response::done()
    });
    rig.add(move |_, scope| {
        scope.wake_self();
        if may_go.try_recv().is_err() {
            return Response::keep(());
        }
        scope.blocking(|| section(&other_began, &other_ends));
        Response::done()
    });
    let (_, _, stats) = rig.run();
    assert_eq!((stats.no_thread, stats.blocked_inline), (1, 1), "{stats:?}");
    assert_eq!(stats.handed_over + stats.handed_quick, 3, "{stats:?}");
}
