//! Detecting from outside whether loops still run turns.

use std::time::Duration;

use rotor_core::{Config, ExitPolicy, LoopInstance, Pulses, Response};

use crate::actor::{Actor, idle};
use crate::manual::{Manual, settle};

type Instance = LoopInstance<Actor<()>, Manual>;

const SECOND: Duration = Duration::from_secs(1);

fn watched_loop(manual: &Manual, pulses: &Pulses) -> Instance {
    let config = Config::new().exit(ExitPolicy::OnRequest);
    let mut instance = manual.creator(&config).instantiate(());
    pulses.watch(&mut instance);
    instance.add_machine_with(|_| Response::ok(idle())).expect("there is room");
    instance
}

#[test]
fn a_loop_without_turns_is_held_up_until_it_makes_one() {
    let manual = Manual::new();
    let pulses = Pulses::new();
    let (mut one, mut other) = (watched_loop(&manual, &pulses), watched_loop(&manual, &pulses));
    assert_eq!((pulses.len(), pulses.is_empty()), (2, false));
    for second in 1..=5 {
        manual.advance(SECOND);
        settle(&mut one);
        let held_up = pulses.stalled_loops(manual.now(), 3 * SECOND);
        assert_eq!(held_up.len(), usize::from(second > 3), "after {second} s: {held_up:?}");
    }
    let held_up = pulses.stalled_loops(manual.now(), 3 * SECOND)[0];
    assert_eq!((held_up.index, held_up.since, held_up.has_ended), (1, 5 * SECOND, false));
    settle(&mut other);
    assert_eq!(pulses.stalled_loops(manual.now(), 3 * SECOND), []);
}

#[test]
fn a_dropped_loop_is_held_up_unless_it_was_asked_to_end() {
    let manual = Manual::new();
    let pulses = Pulses::new();
    let one = watched_loop(&manual, &pulses);
    let other = watched_loop(&manual, &pulses);
    assert!(!pulses.is_ending());
    one.handle().drain(SECOND);
    assert!(pulses.is_ending() && one.handle().is_ending() && !other.handle().is_ending());
    drop(one);
    assert_eq!(pulses.stalled_loops(manual.now(), SECOND), []);
    drop(other);
    let held_up = pulses.stalled_loops(manual.now(), SECOND);
    assert!(held_up.len() == 1 && held_up[0].index == 1 && held_up[0].has_ended);
}

#[test]
fn a_loop_that_has_ended_as_asked_is_forgotten_once_another_is_watched() {
    let manual = Manual::new();
    let pulses = Pulses::new();
    let first = watched_loop(&manual, &pulses);
    first.handle().stop();
    let _second = watched_loop(&manual, &pulses);
    assert_eq!((pulses.len(), pulses.is_ending()), (2, true), "it has not ended yet");
    drop(first);
    assert_eq!((pulses.len(), pulses.is_ending()), (2, true), "nothing follows yet");
    let _third = watched_loop(&manual, &pulses);
    assert_eq!((pulses.len(), pulses.is_ending()), (2, false));
}

#[test]
fn a_loop_that_was_asked_to_stop_is_ending() {
    let manual = Manual::new();
    let pulses = Pulses::new();
    let instance = watched_loop(&manual, &pulses);
    instance.handle().stop();
    assert!(pulses.is_ending());
}
