//! Wake-ups by other threads, on the default backend: the loop constantly falls asleep and wakes.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;

use rotor_core::{Config, Exit, ExitPolicy, Loop, Response, Scope};

use crate::actor::{Call, actor};

/// The handler must see the count that each thread stored before its wake-up. The loop sleeps
/// whenever it finds nothing, so threads meet it in every state; it ends only when it has seen
/// everything.
#[test]
fn no_wakeup_from_eight_threads_is_lost_as_the_loop_sleeps_and_wakes() {
    const THREADS: u64 = 8;
    const EACH: u64 = 125_000;
    const MACHINES: usize = 64;

    struct Counts {
        stored: Vec<AtomicU64>,
        total: AtomicU64,
        calls: AtomicUsize,
    }
    let counts = Arc::new(Counts {
        stored: (0..MACHINES).map(|_| AtomicU64::new(0)).collect(),
        total: AtomicU64::new(0),
        calls: AtomicUsize::new(0),
    });
    let mut creator = Loop::new(&Config::new()).expect("the system has descriptors");
    let mut notifiers = Vec::new();
    for index in 0..MACHINES {
        let counts = counts.clone();
        let mut seen = 0;
        let made = creator.add_machine_with(|scope| {
            // One machine in four is woken through a part, which takes a different path through the
            // queue.
            notifiers.push(scope.part(u32::from(index % 4 == 0)).notifier());
            Response::ok(actor(move |call, scope: &mut Scope<'_, ()>| {
                if matches!(call, Call::Wakeup(_)) {
                    counts.calls.fetch_add(1, Relaxed);
                    let stored = counts.stored[index].load(Relaxed);
                    let new = stored - seen;
                    seen = stored;
                    if counts.total.fetch_add(new, SeqCst) + new == THREADS * EACH {
                        scope.stop_loop();
                    }
                }
                Response::keep(())
            }))
        });
        made.expect("there is room");
    }
    let mut instance = creator.instantiate(());
    thread::scope(|threads| {
        for seed in 0..THREADS {
            let (counts, notifiers) = (counts.clone(), notifiers.clone());
            threads.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed);
                for _ in 0..EACH {
                    let index = random.usize(0..MACHINES);
                    counts.stored[index].fetch_add(1, Relaxed);
                    assert!(notifiers[index].wakeup());
                }
            });
        }
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    let all: u64 = counts.stored.iter().map(|count| count.load(Relaxed)).sum();
    assert_eq!(all, THREADS * EACH);
    assert_eq!(instance.stats().read().wakeups, counts.calls.load(Relaxed) as u64);
}

/// Ping-pong with a sleeping loop: each wake-up finds it asleep, or about to sleep.
#[test]
fn a_sleeping_loop_is_woken_each_time() {
    const ROUNDS: u32 = 10_000;
    let mut creator =
        Loop::new(&Config::new().exit(ExitPolicy::OnRequest)).expect("there are descriptors");
    let (answer, answers) = std::sync::mpsc::channel();
    let mut kept = None;
    let made = creator.add_machine_with(|scope| {
        kept = Some(scope.notifier());
        let mut left = ROUNDS;
        Response::ok(actor(move |call, scope: &mut Scope<'_, ()>| {
            if matches!(call, Call::Wakeup(_)) {
                left -= 1;
                if left == 0 {
                    scope.stop_loop();
                }
                answer.send(()).expect("the test waits");
            }
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let notifier = kept.expect("the closure ran");
    let mut instance = creator.instantiate(());
    thread::scope(|threads| {
        threads.spawn(move || {
            for _ in 0..ROUNDS {
                notifier.wakeup();
                answers.recv().expect("the handler answers each wake-up");
            }
        });
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    assert_eq!(instance.stats().read().wakeups, u64::from(ROUNDS));
}

/// A thread uses the notifier of a part while the loop takes parts: every call of `wakeup` has a
/// reason.
#[test]
fn a_machine_is_never_woken_spuriously() {
    const ROUNDS: u64 = 50_000;
    let mut creator = Loop::new(&Config::new()).expect("there are descriptors");
    let stored: Arc<[AtomicU64; 3]> = Arc::default();
    let mut notifiers = Vec::new();
    let seen_by_loop = stored.clone();
    let made = creator.add_machine_with(|scope| {
        notifiers = (1..3).map(|part| scope.part(part).notifier()).collect();
        let mut seen = [0; 3];
        Response::ok(actor(move |call, scope: &mut Scope<'_, u64>| {
            if let Call::Wakeup(parts) = call {
                **scope += u64::from(parts.is_empty());
                for part in parts {
                    seen[part as usize] = seen_by_loop[part as usize].load(Relaxed);
                }
                if seen[1] == ROUNDS && seen[2] == ROUNDS {
                    scope.stop_loop();
                }
            }
            Response::keep(())
        }))
    });
    made.expect("there is room");
    let mut instance = creator.instantiate(0);
    thread::scope(|threads| {
        for notifier in notifiers {
            let stored = stored.clone();
            threads.spawn(move || {
                for _ in 0..ROUNDS {
                    stored[notifier.part() as usize].fetch_add(1, Relaxed);
                    notifier.wakeup();
                }
            });
        }
        assert_eq!(instance.run().expect("the backend can wait"), Exit::Stopped);
    });
    assert_eq!(*instance.context(), 0, "calls that named no part");
}
