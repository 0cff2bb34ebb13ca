//! The timers compared with a simple model of the same deadlines, under random operations.

use std::collections::{BTreeSet, VecDeque};

use super::tests::{HOUR, MS, SECOND, YEAR, at};
use super::tick::LAST_TICK_TIME;
use super::{Due, Timers};
use crate::time::Time;

/// A simple model of the same deadlines.
struct Model {
    armed: BTreeSet<(u64, u32)>,
    slots: Vec<Slot>,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    deadline: Option<u64>,
    is_expired: bool,
}

impl Model {
    fn set(&mut self, index: u32, deadline: Option<u64>, is_expired: bool) {
        let slot = &mut self.slots[index as usize];
        if let Some(old) = slot.deadline {
            self.armed.remove(&(old.div_ceil(MS), index));
        }
        *slot = Slot { deadline, is_expired };
        if let Some(new) = deadline
            && !is_expired
        {
            self.armed.insert((new.div_ceil(MS), index));
        }
    }

    fn expire(&mut self, now: u64) -> Vec<(u64, u32)> {
        let later = self.armed.split_off(&(now / MS + 1, 0));
        let due = Vec::from_iter(std::mem::replace(&mut self.armed, later));
        due.iter().for_each(|(_, index)| self.slots[*index as usize].is_expired = true);
        due
    }
}

/// The wheel and the model side by side.
struct ModelTest {
    timers: Timers,
    model: Model,
    due: VecDeque<Due>,
    now: u64,
    rng: fastrand::Rng,
    deadlines: u32,
    expiries: usize,
}

impl ModelTest {
    fn new(start: u64, slots: usize, seed: u64) -> ModelTest {
        ModelTest {
            timers: Timers::new(at(start)),
            model: Model { armed: BTreeSet::new(), slots: vec![Slot::default(); slots] },
            due: VecDeque::new(),
            now: start,
            rng: fastrand::Rng::with_seed(seed),
            deadlines: 0,
            expiries: 0,
        }
    }

    /// Nothing, a part of a tick, some ticks, seconds, hours, years, or the maximum time.
    fn random_span(&mut self, reach: usize) -> u64 {
        let spans =
            [1, MS, 5 * MS, 100 * MS, 20 * SECOND, HOUR, 1_000 * HOUR, 150 * YEAR, u64::MAX];
        let longest = spans[self.rng.usize(..reach)];
        self.rng.u64(..longest)
    }

    fn set(&mut self, reach: usize) {
        let index = self.rng.u32(..self.model.slots.len() as u32);
        let slot = self.model.slots[index as usize];
        let span = self.random_span(reach);
        let deadline = match self.rng.u8(..8) {
            0 => self.now.saturating_sub(span),
            1 => slot.deadline.unwrap_or(self.now),
            2 => slot.deadline.unwrap_or(self.now).saturating_sub(span),
            _ => self.now.saturating_add(span),
        };
        self.timers.set(index, at(deadline));
        let deadline = (deadline <= LAST_TICK_TIME.as_nanos()).then_some(deadline);
        let is_expired = slot.is_expired && {
            let is_expired = self.timers.entries[index as usize].is_expired();
            if deadline.is_some() && deadline <= slot.deadline {
                assert!(is_expired, "{index} lost its turn");
            }
            if deadline.is_none_or(|deadline| deadline > self.now) {
                assert!(!is_expired, "{index} kept its turn");
            }
            is_expired
        };
        self.model.set(index, deadline, is_expired);
        self.deadlines += 1;
    }

    fn remove(&mut self) {
        let index = self.rng.u32(..self.model.slots.len() as u32);
        if self.rng.bool() {
            self.timers.clear(index);
        } else {
            self.timers.set(index, Time::NEVER);
        }
        self.model.set(index, None, false);
    }

    fn expire(&mut self) {
        let already_due = self.due.len();
        self.timers.expire(at(self.now), &mut self.due);
        let fresh: Vec<_> = self
            .due
            .range(already_due..)
            .map(|due| (due.tick.as_nanos() / MS, due.index))
            .collect();
        assert!(fresh.is_sorted_by_key(|(tick, _)| *tick), "{fresh:?}");
        let mut sorted = fresh;
        sorted.sort_unstable();
        assert_eq!(sorted, self.model.expire(self.now), "at {}", self.now);
        self.expiries += sorted.len();
        assert!(self.timers.next_wake().is_none_or(|wake| wake > at(self.now)));
    }

    /// Delivers some of what is due; the rest stays in the queue over the next operations.
    fn deliver(&mut self) {
        for _ in 0..self.rng.usize(..=self.due.len()) {
            let Some(Due { index, .. }) = self.due.pop_front() else { return };
            let expected = self.model.slots[index as usize].is_expired;
            assert_eq!(self.timers.take_expired(index), expected, "slot {index}");
            if expected {
                self.model.set(index, None, false);
            }
        }
    }

    fn check(&self) {
        if let Some((tick, _)) = self.model.armed.first() {
            let wake = self.timers.next_wake().map(|wake| wake.as_nanos() / MS);
            assert!(
                wake.is_some_and(|wake| wake <= *tick.max(&self.timers.wheel.elapsed())),
                "{wake:?} after {tick}"
            );
        }
    }

    fn run(&mut self, operations: u32, reach: usize) {
        for operation in 0..operations {
            match self.rng.u8(..16) {
                0..=8 => self.set(reach),
                9 => self.remove(),
                10..=12 => {
                    self.now =
                        self.now.saturating_add(self.random_span(reach.saturating_sub(1).max(1)));
                    self.expire();
                }
                13 => {
                    // One nanosecond before the wake-up nothing may be due, at the wake-up the
                    // model decides.
                    let Some(wake) = self.timers.next_wake() else { continue };
                    if let Some(before) = wake.as_nanos().checked_sub(1) {
                        self.now = self.now.max(before);
                        self.expire();
                    }
                    self.now = self.now.max(wake.as_nanos());
                    self.expire();
                }
                _ => self.deliver(),
            }
            self.check();
            if operation % 64 == 0 {
                self.timers.check_invariants();
                for (index, slot) in self.model.slots.iter().enumerate() {
                    assert_eq!(self.timers.deadline(index as u32), slot.deadline.map(at));
                }
            }
        }
    }
}

#[test]
fn random_operations_agree_with_a_model() {
    let mut deadlines = 0;
    let mut expiries = 0;
    for seed in 0..120 {
        let slots = [1, 3, 20, 300][seed as usize % 4];
        let start = if seed % 3 == 0 { 0 } else { seed * 77 * HOUR + seed };
        let reach = 2 + seed as usize % 8;
        eprintln!("seed {seed}: {slots} slots, reach {reach}");
        let mut test = ModelTest::new(start, slots, seed);
        test.run(4_000, reach);
        deadlines += test.deadlines;
        expiries += test.expiries;
    }
    assert!(deadlines >= 100_000, "{deadlines}");
    assert!(expiries >= 50_000, "{expiries}");
}
