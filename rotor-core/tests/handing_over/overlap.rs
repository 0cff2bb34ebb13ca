//! Sections that block, and the handlers of other machines in the meantime.

use std::panic::resume_unwind;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc;
use std::sync::{Arc, Barrier};
use std::thread::{self, ThreadId};
use std::time::Instant;

use rotor_core::{Config, Exit, Response};

use crate::rig::{Call, Log, Rig, Seed, actor, config, gate, section};

#[test]
fn sections_of_several_machines_overlap() {
    const MACHINES: usize = 20;
    let mut rig = Rig::new(&config());
    // Nobody passes the barrier unless all are in the section at the same time.
    let barrier = Arc::new(Barrier::new(MACHINES));
    for number in 0..MACHINES {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            assert!(scope.hands_over());
            scope.blocking(|| barrier.wait());
            scope.entries.push(format!("{number}"));
            Response::done()
        });
    }
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log.len()), (Exit::Empty, MACHINES));
    assert_eq!((stats.handed_over, stats.no_thread, stats.ended), (20, 0, 20));
    assert!(stats.threads_most >= 20, "{stats:?}");
}

#[test]
fn handlers_never_overlap_outside_of_sections() {
    let mut rig = Rig::new(&config());
    for _ in 0..8 {
        let mut left = 50;
        rig.add(move |_, scope| {
            let is_busy = scope.is_busy.clone();
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            let mine = thread::current().id();
            is_busy.store(false, SeqCst);
            let there: ThreadId = scope.blocking(|| {
                thread::yield_now();
                thread::current().id()
            });
            assert!(!is_busy.swap(true, SeqCst), "two handlers at a time");
            assert_eq!(mine, there);
            assert_eq!(mine, thread::current().id(), "a handler goes on where it began");
            left -= 1;
            scope.entries.push("done".into());
            scope.wake_self();
            is_busy.store(false, SeqCst);
            if left == 0 { Response::done() } else { Response::keep(()) }
        });
    }
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log.len(), stats.panicked), (Exit::Empty, 400, 0));
}

#[test]
fn a_loop_without_hand_over_blocks_and_counts_it() {
    let mut rig = Rig::new(&Config::new());
    rig.add(|_, scope| {
        assert!(!scope.hands_over());
        scope.blocking(|| {});
        Response::done()
    });
    let mut instance = rig.creator.instantiate(Log::default());
    instance.run().expect("it waits");
    let stats = instance.stats().read();
    assert_eq!((stats.blocked_inline, stats.handed_over, stats.threads_most), (1, 0, 0));
}

#[test]
fn a_panic_in_an_inline_section_leaves_it_counted_and_the_time_current() {
    let mut rig = Rig::new(&Config::new());
    rig.add(|_, scope| {
        let before = scope.now();
        let panicked = scope.guard(|scope| {
            scope.blocking(|| {
                let begun = Instant::now();
                while begun.elapsed().is_zero() {}
                resume_unwind(Box::new("as told"));
            });
        });
        assert!(panicked.is_err() && scope.now() > before);
        Response::done()
    });
    let mut instance = rig.creator.instantiate(Log::default());
    instance.run().expect("it waits");
    let stats = instance.stats().read();
    assert_eq!((stats.blocked_inline, stats.panicked), (1, 0));
}

#[test]
fn a_handler_that_returns_from_its_section_wakes_a_sleeping_loop() {
    let mut rig = Rig::new(&config());
    let ((began, begins), (end, ends)) = (gate(), gate());
    rig.add(move |_, scope| {
        scope.blocking(|| section(&began, &ends));
        scope.entries.push("back".into());
        Response::done()
    });
    let running = thread::spawn(move || rig.run());
    begins.recv().expect("the section begins");
    drop(end);
    let (exit, log, stats) = running.join().expect("no panic");
    assert_eq!((exit, log, stats.handed_over), (Exit::Empty, vec!["back".to_owned()], 1));
}

#[test]
fn handlers_that_return_from_sections_wait_for_the_running_handler() {
    let mut rig = Rig::new(&config());
    let (order, ordered) = mpsc::channel();
    // The first three block; the fourth keeps the loop until their sections have ended.
    let mut ends = Vec::new();
    let (began, begins) = gate();
    for number in 0..3 {
        let (end, ended) = gate();
        ends.push(end);
        let (began, order) = (began.clone(), order.clone());
        rig.add(move |_, scope| {
            scope.blocking(|| {
                let _ = began.send(());
                let _ = ended.recv();
                let _ = order.send(number);
            });
            scope.entries.push(format!("{number}"));
            Response::done()
        });
    }
    rig.add(move |_, scope| {
        for _ in 0..3 {
            begins.recv().expect("all three are away");
        }
        for number in [2, 0, 1] {
            let _ = ends[number].send(());
            assert_eq!(ordered.recv(), Ok(number));
        }
        scope.entries.push("keeps".into());
        Response::done()
    });
    let (_, mut log, _) = rig.run();
    // The order depends on thread scheduling. The tests of `thread_queue` check that it is FIFO.
    log[1..].sort();
    assert_eq!(log, ["keeps", "0", "1", "2"]);
}

#[test]
fn parts_and_guarded_closures_hand_over_and_create_does_not() {
    let mut rig = Rig::new(&config());
    let barrier = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            let inner = scope.guard(|scope| {
                let mut part = scope.part(7);
                part.blocking(|| barrier.wait());
                part.entries.push("part".into());
            });
            assert!(inner.is_ok());
            let (_, early) = scope.split();
            assert!(!early.hands_over());
            Response::done()
        });
    }
    rig.add(|call, _| match call {
        Call::Wakeup => Response::spawn(
            (),
            Seed(Box::new(|scope| {
                assert!(!scope.hands_over());
                scope.blocking(|| {});
                scope.wake_self();
                Response::ok(actor(|_, scope| {
                    scope.blocking(|| {});
                    Response::done()
                }))
            })),
        ),
        call => {
            assert!(matches!(call, Call::Spawned), "{call:?}");
            Response::done()
        }
    });
    let (_, log, stats) = rig.run();
    assert_eq!((log.len(), stats.handed_over, stats.blocked_inline), (2, 3, 1));
    assert_eq!(stats.panicked, 0);
}

#[test]
fn the_spawned_handler_may_block_and_spawn_again() {
    let mut rig = Rig::new(&config().spawns_per_event(2));
    let mut left = 5;
    rig.add(move |_, scope| {
        scope.blocking(|| {});
        scope.entries.push("parent".into());
        left -= 1;
        if left == 0 {
            return Response::done();
        }
        Response::spawn((), Seed(Box::new(|_| Response::done())))
    });
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, log.len(), stats.handed_over), (Exit::Empty, 5, 5));
}

#[test]
fn a_section_may_run_another_loop_that_has_sections_of_its_own() {
    let mut rig = Rig::new(&config());
    let barrier = Arc::new(Barrier::new(2));
    for _ in 0..2 {
        let barrier = barrier.clone();
        rig.add(move |_, scope| {
            let barrier = barrier.clone();
            let (exit, log, stats) = scope.blocking(|| {
                let mut inner = Rig::new(&config());
                inner.add(move |_, scope| {
                    // Passed once the sections of both inner loops have begun.
                    scope.blocking(|| barrier.wait());
                    scope.entries.push("inner".into());
                    Response::done()
                });
                inner.run()
            });
            scope.entries.push(format!("{exit:?} {log:?} {}", stats.handed_over));
            Response::done()
        });
    }
    let (exit, log, stats) = rig.run();
    assert_eq!((exit, stats.handed_over), (Exit::Empty, 2));
    assert_eq!(log, ["Empty [\"inner\"] 1"; 2]);
}
