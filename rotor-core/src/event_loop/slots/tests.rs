//! Slots that are lent, taken and given back, compared with a model, and in edge cases.

use std::collections::BTreeMap;

use super::*;
use crate::backend::NoWaker;
use crate::event_loop::run_queue::Pending;
use crate::event_set::EventSet;

fn slots(capacity: usize) -> (Slots<u32>, Arc<WakeQueue>) {
    let wakes = Arc::new(WakeQueue::new(capacity, Arc::new(NoWaker)).expect("memory").0);
    (Slots::new(capacity, wakes.clone(), Time::ZERO).expect("memory"), wakes)
}

#[test]
fn a_slot_costs_at_most_a_word_beside_its_machine() {
    assert_eq!(size_of::<Slot<[u64; 8]>>(), 64 + 8);
    assert!(size_of::<Slot<Box<u8>>>() <= 16);
}

#[test]
fn a_stale_token_finds_no_machine() {
    let (mut slots, _) = slots(1);
    let first = slots.reserve().expect("a slot");
    assert!(slots.reserve().is_none(), "there is one only");
    slots.put(first, 1);
    assert_eq!(slots.take(first), Some(1));
    assert_eq!(slots.take(first), None);
    slots.end(first);
    let second = slots.reserve().expect("the slot is free again");
    assert_eq!(second.index(), first.index());
    slots.put(second, 2);
    assert_eq!(slots.take(first), None);
    assert!(slots.state(first).is_none() && slots.state(second).is_some());
    assert_eq!(slots.len(), 1);
}

#[test]
fn a_slot_with_a_queued_wakeup_is_not_reused_until_it_is_taken() {
    let (mut slots, wakes) = slots(1);
    let token = slots.reserve().expect("a slot");
    wakes.wake(token);
    slots.end(token);
    assert_eq!((slots.len(), slots.vacant()), (0, 0));
    assert!(slots.reserve().is_none());
    let mut batch = Vec::new();
    wakes.take_all(&mut batch);
    assert_eq!(batch, [0]);
    wakes.take_flags(0);
    assert!(slots.reclaim(0) && !slots.reclaim(0));
    assert!(slots.reserve().is_some());
}

#[test]
fn calls_for_a_running_machine_stay_pending() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    slots.state(token).expect("it is running").pending.add(Pending::ready(EventSet::READABLE));
    let state = slots.put(token, 1);
    assert!(state.pending.has(Pending::READY));
    assert_eq!(state.pending.events(), EventSet::READABLE);
    let lifted = slots.take(token).expect("it is in its slot");
    slots.state(token).expect("it is running").pending.add(Pending::WAKEUP);
    let state = slots.put(token, lifted);
    assert!(state.pending.has(Pending::READY) && state.pending.has(Pending::WAKEUP));
    assert_eq!(slots.state(token).expect("it is there").pending, state.pending);
}

#[test]
fn a_machine_can_be_called_in_its_slot_unless_it_waits_for_its_spawn() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    slots.put(token, 1);
    slots.state(token).expect("it is there").pending.add(Pending::READY);
    let state = slots.callable(token).expect("it is in its slot");
    assert!(state.pending.has(Pending::READY) && !state.pending.has(Pending::WAKEUP));
    assert!(slots.can_be_called(token));
    let lifted = slots.take(token).expect("it is in its slot");
    assert!(slots.take(token).is_none() && slots.machine_at(token.index()).is_none());
    assert!(!slots.can_be_called(token) && slots.lend_for_call(token, |_| ()).is_none());
    slots.put(token, lifted);
    slots.state(token).expect("it is there").awaits_spawn = true;
    assert!(!slots.can_be_called(token), "it waits for its spawn");
    assert_eq!(slots.take(token), Some(1), "to be dropped, whatever is pending");
}

#[test]
fn a_deadline_ends_with_its_machine() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    let (at, now) = (Time::from_nanos(5_000_000), Time::from_nanos(1));
    assert!(!slots.set_deadline(token, Deadline::At(at), now));
    assert!(!slots.set_deadline(token, Deadline::Keep, now));
    assert_eq!(slots.deadline(token.index()), Some(at));
    assert!(slots.set_deadline(token, Deadline::At(now), now), "it has passed already");
    assert!(!slots.set_deadline(token, Deadline::Never, now));
    assert_eq!(slots.deadline(token.index()), None);
    slots.set_deadline(token, Deadline::At(at), now);
    slots.end(token);
    assert_eq!(slots.deadline(token.index()), None);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "was put into a slot that is not its own")]
fn a_put_into_an_occupied_slot_panics_in_a_debug_build() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    slots.put(token, 1);
    slots.put(token, 2);
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "which was not with a handler")]
fn a_second_end_of_a_machine_panics_in_a_debug_build() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    slots.end(token);
    slots.end(token);
}

#[test]
#[cfg(not(debug_assertions))]
fn a_misplaced_machine_in_a_release_build_leaves_the_slot_unchanged() {
    let (mut slots, _) = slots(1);
    let token = slots.reserve().expect("a slot");
    slots.put(token, 1);
    slots.put(token, 2);
    assert_eq!((slots.take(token), slots.len()), (Some(1), 1));
    slots.end(token);
    slots.end(token);
    assert_eq!(slots.len(), 0);
}

/// Random operations, compared with a map from token to machine.
#[test]
fn slots_behave_like_a_map_under_random_operations() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut slots, wakes) = slots(32);
    let mut model: BTreeMap<Token, u32> = BTreeMap::new();
    let mut gone: Vec<Token> = Vec::new();
    let mut waiting = 0;
    for step in 0..100_000 {
        let pick = model.keys().nth(random.usize(0..32)).copied();
        match (random.u8(0..8), pick) {
            (0..=2, _) => match slots.reserve() {
                Some(token) => {
                    slots.put(token, step);
                    assert!(model.insert(token, step).is_none(), "a token is given once");
                    assert!(!gone.contains(&token));
                }
                None => assert_eq!(model.len() + waiting, 32),
            },
            (3..=4, Some(token)) => {
                assert_eq!(slots.take(token), model.remove(&token));
                let woken = random.bool();
                if woken {
                    wakes.wake(token);
                    waiting += 1;
                }
                slots.end(token);
                gone.push(token);
            }
            (5, Some(token)) => {
                assert_eq!(slots.take(token), model.get(&token).copied());
                slots.put(token, step);
                model.insert(token, step);
            }
            (6, _) => {
                let mut batch = Vec::new();
                wakes.take_all(&mut batch);
                assert_eq!(batch.len(), waiting);
                for index in batch {
                    wakes.take_flags(index);
                    assert!(slots.reclaim(index));
                }
                waiting = 0;
            }
            _ => {
                if let Some(token) = gone.last() {
                    assert_eq!(slots.take(*token), None);
                }
            }
        }
        assert_eq!(slots.len(), model.len());
        assert_eq!(slots.vacant(), 32 - model.len() - waiting);
    }
    let listed: Vec<_> = (0..slots.high_water()).filter_map(|index| slots.at(index)).collect();
    assert_eq!(listed.len(), model.len());
    for (token, machine) in listed {
        assert_eq!(machine, model.get(&token));
    }
}

#[test]
fn a_wakeup_of_an_unused_slot_frees_nothing() {
    let (wakes, _) = WakeQueue::new(2, Arc::new(NoWaker)).expect("memory");
    let mut slots = Slots::<u8>::new(2, Arc::new(wakes), Time::ZERO).expect("memory");
    assert!(!slots.reclaim(1) && slots.vacant() == 2);
}
