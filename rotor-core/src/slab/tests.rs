//! Slots are lent, taken and given back, by a model and at the edges.

use std::collections::BTreeMap;

use super::*;
use crate::backend::Wake;

struct NoWaker;

impl Wake for NoWaker {
    fn wake(&self) -> std::io::Result<()> {
        Ok(())
    }
}

fn slab(capacity: usize) -> (Slab<u32>, Arc<WakeQueue>) {
    let queue = Arc::new(WakeQueue::new(capacity, Arc::new(NoWaker)).expect("room").0);
    (Slab::new(capacity, queue.clone()).expect("room"), queue)
}

#[test]
fn a_slot_costs_at_most_a_word_beside_its_machine() {
    assert_eq!(size_of::<Slot<[u64; 8]>>(), 64 + 8);
    assert!(size_of::<Slot<Box<u8>>>() <= 16);
}

#[test]
fn a_token_of_before_finds_nothing() {
    let (mut slab, _) = slab(1);
    let first = slab.reserve().expect("room for one");
    assert!(slab.reserve().is_none(), "room for one only");
    slab.put(first, 1);
    assert_eq!(slab.take(first, 0), Some(1));
    assert_eq!(slab.take(first, 0), None);
    slab.release(first);
    let second = slab.reserve().expect("the slot is free again");
    assert_eq!(second.index(), first.index());
    slab.put(second, 2);
    assert_eq!(slab.take(first, 0), None);
    assert!(slab.gathered(first).is_none() && slab.gathered(second).is_some());
    slab.release(first);
    assert_eq!(slab.len(), 1);
}

#[test]
fn a_slot_with_a_wake_up_in_the_list_waits_for_it() {
    let (mut slab, queue) = slab(1);
    let token = slab.reserve().expect("room for one");
    queue.wake(token);
    slab.release(token);
    assert_eq!((slab.len(), slab.vacant()), (0, 0));
    assert!(slab.reserve().is_none());
    let mut batch = Vec::new();
    queue.take_all(&mut batch);
    assert_eq!(batch, [0]);
    queue.take(0);
    assert!(slab.collect(0) && !slab.collect(0));
    assert!(slab.reserve().is_some());
}

#[test]
fn what_comes_for_a_running_machine_is_kept() {
    let (mut slab, _) = slab(1);
    let token = slab.reserve().expect("room for one");
    let gathered = slab.gathered(token).expect("it is running");
    gathered.add(Gathered::READY);
    gathered.events |= EventSet::READABLE;
    let gathered = slab.put(token, 1);
    assert!(gathered.take(Gathered::READY) && !gathered.take(Gathered::READY));
    assert_eq!(gathered.events, EventSet::READABLE);
}

/// Random operations against a map from token to machine.
#[test]
fn it_does_what_a_map_does() {
    let mut random = fastrand::Rng::with_seed(3);
    let (mut slab, queue) = slab(32);
    let mut model: BTreeMap<Token, u32> = BTreeMap::new();
    let mut gone: Vec<Token> = Vec::new();
    let mut waiting = 0;
    for step in 0..100_000 {
        let pick = model.keys().nth(random.usize(0..32)).copied();
        match (random.u8(0..8), pick) {
            (0..=2, _) => match slab.reserve() {
                Some(token) => {
                    slab.put(token, step);
                    assert!(model.insert(token, step).is_none(), "a token is given once");
                    assert!(!gone.contains(&token));
                }
                None => assert_eq!(model.len() + waiting, 32),
            },
            (3..=4, Some(token)) => {
                assert_eq!(slab.take(token, 0), model.remove(&token));
                let woken = random.bool();
                if woken {
                    queue.wake(token);
                    waiting += 1;
                }
                slab.release(token);
                gone.push(token);
            }
            (5, Some(token)) => {
                assert_eq!(slab.take(token, 0), model.get(&token).copied());
                slab.put(token, step);
                model.insert(token, step);
            }
            (6, _) => {
                let mut batch = Vec::new();
                queue.take_all(&mut batch);
                assert_eq!(batch.len(), waiting);
                for index in batch {
                    queue.take(index);
                    assert!(slab.collect(index));
                }
                waiting = 0;
            }
            _ => {
                if let Some(token) = gone.last() {
                    assert_eq!(slab.take(*token, 0), None);
                }
            }
        }
        assert_eq!(slab.len(), model.len());
        assert_eq!(slab.vacant(), 32 - model.len() - waiting);
    }
    let listed: Vec<_> = (0..slab.high_water()).filter_map(|index| slab.at(index)).collect();
    assert_eq!(listed.len(), model.len());
    for (token, machine) in listed {
        assert_eq!(machine, model.get(&token));
    }
}
