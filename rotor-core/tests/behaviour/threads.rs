//! Several loops on several threads.

use std::io;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use rotor_core::threads::LoopGroup;
use rotor_core::{BoxError, Config, Exit, Loop, LoopInstance, Response, Scope};

use crate::actor::{Actor, Call, actor};

type Instance = LoopInstance<Actor<Gone>>;

/// A context that tells when it is dropped, with the loop that owns it.
struct Gone(mpsc::Sender<usize>, usize);

impl Drop for Gone {
    fn drop(&mut self) {
        let _ = self.0.send(self.1);
    }
}

/// A loop with a machine that ends when it is drained, unless it is stubborn.
fn make(gone: mpsc::Sender<usize>, index: usize, stubborn: bool) -> Result<Instance, BoxError> {
    let mut creator = Loop::new(&Config::new())?;
    creator.add_machine_with(|_| {
        Response::ok(actor(move |call, _: &mut Scope<'_, Gone>| match call {
            Call::Draining(_) if !stubborn => Response::done(),
            _ => Response::keep(()),
        }))
    })?;
    Ok(creator.instantiate(Gone(gone, index)))
}

#[test]
fn each_loop_gets_its_part_and_all_stop_together() {
    let (sender, gone) = mpsc::channel();
    let started = Arc::new(AtomicUsize::new(0));
    let count = started.clone();
    let group = LoopGroup::start(["a", "b", "c"], move |part, index| {
        assert_eq!(part, ["a", "b", "c"][index]);
        count.fetch_add(1, SeqCst);
        make(sender.clone(), index, true)
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
fn loops_drain_together_and_join_says_how_each_ended_in_order() {
    let (sender, _gone) = mpsc::channel();
    let group =
        LoopGroup::start([true, false, true], move |stubborn, index| make(sender.clone(), index, stubborn));
    let group = group.expect("they can be made");
    group.handle().drain(Duration::ZERO);
    let ends: Vec<Exit> = group.join().into_iter().map(|end| end.expect("they can wait")).collect();
    let dropped = [1, 0, 1].map(|dropped| Exit::Drained { dropped });
    assert_eq!(ends, dropped);
}

#[test]
fn dropping_the_group_stops_its_loops() {
    let (sender, gone) = mpsc::channel();
    let group = LoopGroup::start(0..2, move |_, index| make(sender.clone(), index, true));
    drop(group.expect("they can be made"));
    assert_eq!(gone.iter().count(), 2, "both ended, and the last sender with them");
}

#[test]
fn a_group_of_none_is_over_at_once() {
    let nobody = LoopGroup::start([0u8; 0], |_, _| -> Result<Instance, BoxError> {
        Err(io::Error::other("never called").into())
    });
    let nobody = nobody.expect("there is nothing to make");
    assert!(nobody.is_empty());
    assert!(nobody.join().is_empty());
}
