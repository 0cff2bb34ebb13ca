//! The deadlines of a few slots, in tables; and the invariants of the wheel's lists.

use std::collections::VecDeque;
use std::time::Duration;

use super::tick::{LAST_TICK_TIME, tick_after, tick_before, time_of};
use super::wheel::{LISTS, NONE};
use super::{Entry, Timers, UNQUEUED};
use crate::time::Time;

pub(super) const MS: u64 = 1_000_000;
pub(super) const SECOND: u64 = 1_000 * MS;
pub(super) const HOUR: u64 = 3_600 * SECOND;
pub(super) const YEAR: u64 = 8_766 * HOUR;

pub(super) fn at(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn expired(timers: &mut Timers, now: u64) -> Vec<(u64, u32)> {
    let mut due = VecDeque::new();
    timers.expire(at(now), &mut due);
    due.iter().map(|due| (due.tick.as_nanos() / MS, due.index)).collect()
}

impl Timers {
    /// Walks all lists, and panics if one of the documented invariants does not hold.
    pub(super) fn check_invariants(&self) {
        let mut queued = 0;
        for (bucket_index, list, head) in self.wheel.heads() {
            let (mut index, mut previous) = (head, NONE);
            while index != NONE {
                let entry = &self.entries[index as usize];
                let tick = tick_before(entry.queued);
                assert_eq!(entry.previous, previous, "entry {index}");
                assert_eq!(entry.queued, time_of(tick), "entry {index}");
                self.wheel.check_queued(bucket_index, list, index, tick);
                let elapsed = self.wheel.elapsed();
                assert!(tick <= tick_after(entry.deadline).max(elapsed), "entry {index}");
                queued += 1;
                (index, previous) = (entry.next, index);
            }
        }
        assert_eq!(self.wake, self.first_wake());
        assert_eq!(queued, self.entries.iter().filter(|entry| entry.queued != UNQUEUED).count());
    }
}

#[test]
fn an_entry_takes_24_bytes() {
    assert_eq!(size_of::<Entry>(), 24);
    assert!(size_of::<Timers>() <= 264);
}

#[test]
fn a_deadline_is_rounded_up_to_a_tick() {
    for (deadline, tick) in
        [(0, 0), (1, 1), (MS - 1, 1), (MS, 1), (MS + 1, 2), (2 * MS - 1, 2), (2 * MS, 2)]
    {
        let mut timers = Timers::new(Time::ZERO);
        timers.set(0, at(deadline));
        assert_eq!(timers.next_wake(), Some(at(tick * MS)), "{deadline}");
        if tick > 0 {
            assert_eq!(expired(&mut timers, tick * MS - 1), [], "{deadline}");
        }
        assert_eq!(expired(&mut timers, tick * MS), [(tick, 0)], "{deadline}");
        assert_eq!(timers.next_wake(), None, "{deadline}");
    }
}

#[test]
fn a_lone_deadline_wakes_the_loop_once_at_every_digit_boundary() {
    let starts = [0, 1, 254, 255, 256, 257, 65_535, 65_536, 1 << 32, (1 << 40) - 1];
    for start in starts {
        for digit in 0..6 {
            for delay in [(1_u64 << (8 * digit)) - 1, 1 << (8 * digit), (1 << (8 * digit)) + 1] {
                let mut timers = Timers::new(at(start * MS));
                timers.set(3, at((start + delay) * MS));
                timers.check_invariants();
                assert_eq!(timers.next_wake(), Some(at((start + delay) * MS)));
                assert_eq!(expired(&mut timers, (start + delay) * MS), [(start + delay, 3)]);
            }
        }
    }
}

#[test]
fn deadlines_expire_in_the_order_of_their_ticks() {
    let mut timers = Timers::new(Time::ZERO);
    let mut rng = fastrand::Rng::with_seed(1);
    for index in 0..10_000 {
        timers.set(index, at(rng.u64(..100 * MS)));
    }
    let due = expired(&mut timers, HOUR);
    assert_eq!(due.len(), 10_000);
    assert!(due.is_sorted_by_key(|(tick, _)| *tick));
}

#[test]
fn past_deadlines_expire_in_order_too() {
    let mut timers = Timers::new(Time::ZERO);
    timers.set(0, at(500 * MS));
    assert_eq!(expired(&mut timers, 500 * MS), [(500, 0)]);
    for (index, deadline) in [(1, 400), (2, 200), (3, 501), (4, 300), (5, 500)] {
        timers.set(index, at(deadline * MS));
    }
    assert_eq!(timers.next_wake(), Some(at(500 * MS)));
    assert_eq!(expired(&mut timers, SECOND), [(200, 2), (300, 4), (400, 1), (500, 5), (501, 3)]);
}

#[test]
fn a_postponed_deadline_causes_one_needless_wakeup() {
    let mut timers = Timers::new(Time::ZERO);
    timers.set(0, at(10 * SECOND));
    for seconds in 11..1_000 {
        timers.set(0, at(seconds * SECOND));
    }
    assert_eq!(timers.next_wake(), Some(at(10 * SECOND)));
    assert_eq!(expired(&mut timers, 10 * SECOND), []);
    assert_eq!(timers.next_wake(), Some(at(999 * SECOND)));
    assert_eq!(expired(&mut timers, 999 * SECOND), [(999_000, 0)]);
}

#[test]
fn a_removed_deadline_leaves_the_queue_at_its_tick() {
    let mut timers = Timers::new(Time::ZERO);
    timers.set(0, at(SECOND));
    timers.set(0, Time::NEVER);
    assert_eq!(timers.deadline(0), None);
    assert_eq!(expired(&mut timers, SECOND), []);
    assert_eq!(timers.next_wake(), None);
    timers.check_invariants();
}

#[test]
fn a_cleared_entry_is_unlinked_at_any_position_in_its_list() {
    const COUNT: u32 = 3 * LISTS as u32;
    for cleared in 0..COUNT {
        let mut timers = Timers::new(Time::ZERO);
        (0..COUNT).for_each(|index| timers.set(index, at(SECOND)));
        timers.clear(cleared);
        assert_eq!(timers.entries[cleared as usize].queued, UNQUEUED);
        timers.check_invariants();
        let mut rest = expired(&mut timers, SECOND);
        rest.sort_unstable();
        assert_eq!(
            rest,
            (0..COUNT).filter(|i| *i != cleared).map(|i| (1_000, i)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn an_expiry_is_taken_once_and_not_after_a_new_deadline() {
    let mut timers = Timers::new(Time::ZERO);
    (0..5).for_each(|index| timers.set(index, at(SECOND)));
    assert!((0..5).all(|index| !timers.take_expired(index)));
    assert_eq!(expired(&mut timers, SECOND).len(), 5);
    assert_eq!(timers.deadline(0), Some(at(SECOND)));
    assert!(timers.take_expired(0));
    assert!(!timers.take_expired(0));
    assert_eq!(timers.deadline(0), None);
    timers.set(1, at(2 * SECOND));
    assert!(!timers.take_expired(1));
    timers.set(2, Time::NEVER);
    assert!(!timers.take_expired(2));
    timers.clear(3);
    assert!(!timers.take_expired(3));
    timers.set(4, at(SECOND));
    assert!(timers.take_expired(4), "the same deadline again keeps its turn");
    assert_eq!(expired(&mut timers, HOUR), [(2_000, 1)]);
}

#[test]
fn an_index_that_was_never_used_has_no_deadline() {
    let mut timers = Timers::new(Time::ZERO);
    timers.clear(7);
    assert_eq!(timers.deadline(7), None);
    assert!(!timers.take_expired(u32::MAX));
    assert_eq!(timers.entries.len(), 0);
}

#[test]
fn the_ends_of_the_range_saturate() {
    let last = LAST_TICK_TIME.as_nanos();
    for start in [0, SECOND, last - 1, last, u64::MAX] {
        let mut timers = Timers::new(at(start));
        timers.set(0, at(last - 1));
        timers.set(1, at(last));
        timers.set(2, at(last + 1));
        timers.set(3, at(u64::MAX - 1));
        timers.set(4, Time::NEVER);
        timers.set(5, Time::NEVER + Duration::MAX);
        timers.check_invariants();
        assert_eq!(timers.next_wake(), Some(at(last)));
        let due = expired(&mut timers, u64::MAX);
        assert_eq!(due.len(), 2, "{due:?}");
        assert_eq!(timers.next_wake(), None);
        timers.set(6, Time::ZERO);
        assert_eq!(expired(&mut timers, u64::MAX), [(0, 6)]);
    }
}

#[test]
fn a_clock_that_steps_back_expires_nothing() {
    let mut timers = Timers::new(Time::ZERO);
    timers.set(0, at(SECOND));
    timers.set(1, at(HOUR));
    assert_eq!(expired(&mut timers, SECOND), [(1_000, 0)]);
    assert_eq!(expired(&mut timers, 0), []);
    timers.check_invariants();
}

#[test]
fn memory_is_bounded_by_the_highest_index() {
    let mut timers = Timers::new(Time::ZERO);
    let mut rng = fastrand::Rng::with_seed(2);
    timers.set(999, at(SECOND));
    let capacity = timers.entries.capacity();
    for now in 0..100_000 {
        timers.set(rng.u32(..1_000), at(now * MS + rng.u64(..HOUR)));
        expired(&mut timers, now * MS);
    }
    assert_eq!((timers.entries.len(), timers.entries.capacity()), (1_000, capacity));
}

#[test]
fn needless_wakeups_do_not_exceed_changes_of_deadlines() {
    for seed in 0..40 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut timers = Timers::new(Time::ZERO);
        let mut due = VecDeque::new();
        let (mut now, mut changes, mut needless, mut fired) = (0, 0, 0, 0);
        for _ in 0..3_000 {
            let index = rng.u32(..50);
            let span = [100 * MS, 30 * SECOND, 100 * HOUR][rng.usize(..3)];
            changes += u32::from(timers.deadline(index).is_some());
            match rng.u8(..10) {
                0 => timers.clear(index),
                1 => timers.set(index, Time::NEVER),
                _ => timers.set(index, at(now + rng.u64(..span))),
            }
            if rng.u8(..4) != 0 {
                continue;
            }
            let Some(wake) = timers.next_wake() else { continue };
            now = wake.as_nanos();
            timers.expire(wake, &mut due);
            needless += u32::from(due.is_empty());
            fired += due.len();
            due.drain(..).for_each(|due| assert!(timers.take_expired(due.index)));
            assert!(timers.next_wake().is_none_or(|next| next > wake));
        }
        assert!(needless <= changes, "seed {seed}: {needless} needless wakes, {changes} changes");
        assert!(fired > 0);
    }
}

#[test]
fn unchanged_deadlines_cause_no_needless_wakeup() {
    let mut rng = fastrand::Rng::with_seed(3);
    let mut timers = Timers::new(Time::ZERO);
    for index in 0..2_000 {
        let span = [100 * MS, 30 * SECOND, 100 * HOUR, 10 * YEAR][rng.usize(..4)];
        timers.set(index, at(rng.u64(..span)));
    }
    while let Some(wake) = timers.next_wake() {
        assert_ne!(expired(&mut timers, wake.as_nanos()), []);
    }
    assert!((0..2_000).all(|index| timers.take_expired(index)));
}
