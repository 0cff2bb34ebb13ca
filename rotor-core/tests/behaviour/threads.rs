//! Several loops on several threads.

use std::io;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Barrier, mpsc};
use std::thread;
use std::time::Duration;

use rotor_core::threads::{LoopGroup, StartError};
use rotor_core::{
    BoxError, Config, Exit, ExitPolicy, Loop, LoopInstance, OnPanic, Response, Scope,
};

use crate::actor::{Actor, Call, actor};

type Instance = LoopInstance<Actor<DropNotice>>;

/// A context that reports its drop, with the number of the loop that owns it.
struct DropNotice(mpsc::Sender<usize>, usize);

impl Drop for DropNotice {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// A loop with a machine that ends on a drain, unless it is stubborn.
fn make_loop(
    gone: mpsc::Sender<usize>,
    index: usize,
    stubborn: bool,
) -> Result<Instance, BoxError> {
    let mut creator = Loop::new(&Config::new())?;
    creator.add_machine_with(|_| {
        Response::ok(actor(move |call, _: &mut Scope<'_, DropNotice>| match call {
            Call::Draining(_) if !stubborn => Response::done(),
            _ => Response::keep(()),
        }))
    })?;
    Ok(creator.instantiate(DropNotice(gone, index)))
}

#[test]
fn each_loop_gets_its_part_and_all_stop_together() {
    let (sender, gone) = mpsc::channel();
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let group = LoopGroup::start(["a", "b", "c"], move |part, index| {
        assert_eq!(part, ["a", "b", "c"][index]);
        count.fetch_add(1, SeqCst);
        make_loop(sender.clone(), index, true)
    });
    let group = group.expect("they can be made");
    assert_eq!((group.len(), started.load(SeqCst)), (3, 3), "they are made when `start` returns");
    group.handle().stop();
    let ends: Vec<Exit> = group.join().into_iter().map(|end| end.expect("they can wait")).collect();
    assert_eq!(ends, [Exit::Stopped, Exit::Stopped, Exit::Stopped]);
    let mut gone: Vec<usize> = gone.iter().collect();
    gone.sort_unstable();
    assert_eq!(gone, [0, 1, 2]);
}

#[test]
fn loops_drain_together_and_join_returns_each_exit_in_order() {
    let (sender, _gone) = mpsc::channel();
    let group = LoopGroup::start([true, false, true], move |stubborn, index| {
        make_loop(sender.clone(), index, stubborn)
    });
    let group = group.expect("they can be made");
    group.handle().drain(Duration::ZERO);
    let ends: Vec<Exit> = group.join().into_iter().map(|end| end.expect("they can wait")).collect();
    let dropped = [1, 0, 1].map(|dropped| Exit::Drained { dropped });
    assert_eq!(ends, dropped);
}

#[test]
fn dropping_the_group_stops_its_loops() {
    let (sender, gone) = mpsc::channel();
    let group = LoopGroup::start(0..2, move |_, index| make_loop(sender.clone(), index, true));
    drop(group.expect("they can be made"));
    assert_eq!(gone.iter().count(), 2, "both ended, and the last sender with them");
}

/// All loops end, whichever loop fails and whether the others are made before or after the failure.
#[test]
fn the_others_are_dropped_if_a_loop_cannot_be_made() {
    for failing in 0..4 {
        for fails_first in [false, true] {
            let (sender, gone) = mpsc::channel();
            // The barrier decides whether the others are made after the failure was reported or
            // before it.
            let barrier = Arc::new(Barrier::new(4));
            let made = LoopGroup::start(0..4, move |_: usize, index| {
                if index == failing {
                    if !fails_first {
                        barrier.wait();
                    }
                    return Err("no luck".into());
                }
                let made = make_loop(sender.clone(), index, true);
                if !fails_first {
                    barrier.wait();
                }
                made
            });
            let error = made.expect_err("one of them is not made");
            assert_eq!(error.index, failing);
            assert_eq!(error.to_string(), format!("loop {failing} was not made"));
            assert_eq!(source(&error), "no luck");
            assert_eq!(gone.try_iter().count(), 3, "the others have ended");
        }
    }
}

#[test]
fn no_loop_runs_before_all_are_made() {
    let has_run = Arc::new(AtomicBool::new(false));
    let started = LoopGroup::start(0..2, {
        let has_run = has_run.clone();
        move |_: usize, index| {
            if index == 1 {
                // Long enough for the other loop, if it were to run.
                (0..10_000).take_while(|_| !has_run.load(SeqCst)).for_each(|_| thread::yield_now());
                return Err("no luck".into());
            }
            let has_run = has_run.clone();
            let mut creator = Loop::<Actor<()>>::new(&Config::new())?;
            creator.add_machine_with(|_| {
                Response::again(actor(move |_, _| {
                    has_run.store(true, SeqCst);
                    Response::done()
                }))
            })?;
            Ok(creator.instantiate(()))
        }
    });
    assert_eq!(started.expect_err("one of them is not made").index, 1);
    assert!(!has_run.load(SeqCst), "what it did is lost");
}

fn source(error: &StartError) -> String {
    std::error::Error::source(error).map(ToString::to_string).unwrap_or_default()
}

#[test]
fn a_panic_while_creating_a_loop_is_a_start_error_of_that_loop() {
    for panicking in 0..3 {
        let (sender, gone) = mpsc::channel();
        let made = LoopGroup::start(0..3, move |_: usize, index| {
            assert_ne!(index, panicking, "a bug");
            make_loop(sender.clone(), index, true)
        });
        let error = made.expect_err("one of them is not made");
        assert_eq!(
            (error.index, source(&error).as_str()),
            (panicking, "the thread that makes it panicked")
        );
        assert_eq!(gone.try_iter().count(), 2, "the others have ended");
    }
}

#[test]
fn an_empty_group_ends_at_once() {
    let nobody = LoopGroup::start([0u8; 0], |_, _| -> Result<Instance, BoxError> {
        Err(io::Error::other("never called").into())
    });
    let nobody = nobody.expect("there is nothing to make");
    assert!(nobody.is_empty());
    assert!(nobody.join().is_empty());
}

/// Three loops; the second one ends because its machine panics.
fn group_with_failing_loop() -> LoopGroup {
    let (sender, _) = mpsc::channel();
    let group = LoopGroup::start(0..3, move |_: usize, index| {
        if index != 1 {
            return make_loop(sender.clone(), index, false);
        }
        let mut creator = Loop::new(&Config::new().on_panic(OnPanic::StopLoop))?;
        creator.add_machine_with(|_| Response::again(actor(|_, _| panic!("a bug"))))?;
        Ok(creator.instantiate(DropNotice(sender.clone(), index)))
    });
    group.expect("they can be made")
}

#[test]
fn joining_stops_the_other_loops_when_one_fails() {
    let ends: Vec<Exit> = group_with_failing_loop()
        .join()
        .into_iter()
        .map(|end| end.expect("they can wait"))
        .collect();
    assert!(matches!(ends[..], [Exit::Stopped, Exit::Panicked { .. }, Exit::Stopped]), "{ends:?}");
}

#[test]
fn wait_for_one_reports_a_failed_loop_while_the_others_run_on() {
    let mut group = group_with_failing_loop();
    let failed = group.wait_for_one().expect("one has failed");
    assert_eq!((failed.index, failed.is_failure()), (1, true));
    assert!(matches!(failed.exit, Ok(Exit::Panicked { .. })), "{failed:?}");
    // They are still running, otherwise they could not be drained.
    group.handle().drain(Duration::from_secs(60));
    let mut others = Vec::new();
    while let Some(ended) = group.wait_for_one() {
        assert!(!ended.is_failure(), "{ended:?}");
        assert_eq!(ended.exit.expect("it can wait"), Exit::Drained { dropped: 0 });
        others.push(ended.index);
    }
    others.sort_unstable();
    assert_eq!(others, [0, 2]);
    assert!(group.join().is_empty(), "all have been told of");
}

#[test]
fn a_panic_of_the_thread_of_a_loop_is_a_failure_with_its_message() {
    struct Bomb(bool);

    impl Drop for Bomb {
        fn drop(&mut self) {
            assert!(!self.0, "in the drop of a context");
        }
    }

    let start = || {
        let group = LoopGroup::start([true, false], |panics, _| {
            let exit = if panics { ExitPolicy::WhenEmpty } else { ExitPolicy::OnRequest };
            Ok(Loop::<Actor<Bomb>>::new(&Config::new().exit(exit))?.instantiate(Bomb(panics)))
        });
        group.expect("they can be made")
    };
    let mut group = start();
    let failed = group.wait_for_one().expect("one has failed");
    assert_eq!((failed.index, failed.is_failure()), (0, true));
    let error = failed.exit.expect_err("its thread panicked").to_string();
    assert!(error.contains("in the drop of a context"), "{error}");
    let joined = std::panic::catch_unwind(|| start().join());
    assert!(joined.is_err(), "the panic goes on, once the other loop was stopped");
}

#[test]
fn no_loop_runs_if_the_iterator_of_parts_panics() {
    let (sender, made) = mpsc::channel();
    let started = std::panic::catch_unwind(|| {
        let parts = (0..2).inspect(|part| assert_eq!(*part, 0, "as asked"));
        LoopGroup::start(parts, move |_, index| {
            // If a loop ran, nothing could stop it.
            let _is_heard = sender.send(index);
            Ok(Loop::<Actor<()>>::new(&Config::new())?.instantiate(()))
        })
    });
    assert!(started.is_err());
    assert_eq!(made.recv(), Err(mpsc::RecvError), "a loop was made");
}
