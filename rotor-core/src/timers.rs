//! The deadlines of a loop's machines: one for each slot of the slab, kept in a hierarchical timer wheel.
//!
//! **The wheel holds at most one entry for each slot, and never yields one before its deadline.** Deadlines are
//! rounded up to a tick of 1 ms; what is due comes out in the order of ticks.
//!
//! # What the request path costs
//!
//! A busy connection moves its deadline on at every event, and almost none of these deadlines is ever reached. So an
//! entry remembers the tick that it is *queued* at beside its deadline, and a later deadline is only stored: when the
//! entry comes up at its queued tick, it is found to be early and moves on to where it belongs (*late correction*).
//! Removing a deadline is the same, for [`Time::NEVER`] is a later one. Only an earlier deadline touches the lists.
//!
//! # How the wheel is laid out
//!
//! Ticks are read as numbers of 6-bit digits, and the wheel has a level for each digit, with 64 buckets:
//!
//! ```text
//!   level      7       …       2          1          0
//!   a bucket   139 years       4.096 s    64 ms      1 ms      wide
//! ```
//!
//! An entry's level is the highest digit in which its queued tick differs from `elapsed`, the tick that the wheel has
//! reached; its bucket there is that digit. Hence all of level 0 comes before all of level 1, and so on, and within a
//! level the buckets stand in order: the earliest is found with two counts of zero bits. When a bucket of a higher
//! level comes up, `elapsed` moves into it and its entries move to lower levels, which each can do seven times at most.
//! `elapsed` goes straight to a tick at which something is queued: a long gap costs no more than a short one.
//!
//! Each bucket knows a lower bound of the ticks queued in it, so that a loop with one deadline in ten minutes sleeps
//! for ten minutes and does not wake to move an entry from level to level. An entry that left its bucket or got a later
//! deadline may leave a bound that is too low, which costs one needless wake-up.
//!
//! The lists run through the entries themselves, four for each bucket: with a million entries each step along a list
//! waits for memory, and steps along four lists wait together. An entry is unlinked in constant time without knowing its bucket: the
//! bucket follows from `elapsed` and the queued tick, for both change only together.

use std::collections::VecDeque;

use crate::time::Time;

/// The deadlines of all machines of a loop.
///
/// Slots are named by their index in the slab. [`set`](Timers::set) and [`clear`](Timers::clear) are called with the
/// answers of machines, [`next_wake`](Timers::next_wake) before the loop waits, [`expire`](Timers::expire) after it, and
/// [`take_expired`](Timers::take_expired) when it is the turn of what `expire` put into the queue.
pub(crate) struct Timers {
    /// All queued ticks are at this one or later; it never passes the tick of the last call to `expire`.
    elapsed: u64,
    /// Bit n: level n has an occupied bucket.
    levels: u32,
    /// For each level, bit n: bucket n has entries.
    occupied: [u64; LEVELS],
    buckets: Box<[Bucket]>,
    /// By index of the slot; as long as the highest index used asks for.
    entries: Vec<Entry>,
}

impl Timers {
    /// Without deadlines. Time begins at `start`: earlier deadlines are due at once.
    #[cfg(test)]
    pub(crate) fn new(start: Time) -> Timers {
        Timers::with_capacity(start, 0)
    }

    /// The same with address space for that many slots, so that the entries of these never move.
    pub(crate) fn with_capacity(start: Time, slots: usize) -> Timers {
        Timers {
            elapsed: tick_before(start),
            levels: 0,
            occupied: [0; LEVELS],
            buckets: vec![Bucket { bound: 0, heads: [NONE; LISTS] }; LEVELS * DIGIT_VALUES]
                .into_boxed_slice(),
            entries: Vec::with_capacity(slots),
        }
    }

    /// Gives the slot this deadline in place of the one that it had; `Time::NEVER` takes it away.
    ///
    /// A deadline that has passed is due at the next call to `expire`. If the slot has expired and waits for its turn,
    /// a deadline no later than the expired one leaves it there, so that a machine that repeats its deadline at each
    /// event does not lose its turn to them; one that has not been reached takes it out.
    ///
    /// `u32::MAX` is no slot: misuse, and ignored.
    #[inline]
    pub(crate) fn set(&mut self, index: u32, deadline: Time) {
        // The range of `Time` ends within a tick, and rounding up would leave it.
        let deadline = if deadline > LAST_TICK_TIME { Time::NEVER } else { deadline };
        if let Some(entry) = self.entries.get_mut(index as usize)
            && entry.queued <= deadline
        {
            entry.deadline = deadline;
            return;
        }
        self.set_earlier(index, deadline);
    }

    /// Takes the slot's deadline away and unlinks its entry: for a machine that has ended.
    ///
    /// For one that goes on without a deadline, `set` to `Time::NEVER` is cheaper.
    pub(crate) fn clear(&mut self, index: u32) {
        let Some(entry) = self.entries.get_mut(index as usize) else { return };
        entry.deadline = Time::NEVER;
        if entry.queued != UNQUEUED {
            self.unlink(index);
        }
    }

    /// The slot's deadline, also when it has expired and not been taken.
    pub(crate) fn deadline(&self, index: u32) -> Option<Time> {
        let entry = self.entries.get(index as usize)?;
        (entry.deadline != Time::NEVER).then_some(entry.deadline)
    }

    /// When the loop must wake to call `expire`; `None` if nothing is queued.
    ///
    /// Never later than the tick of the earliest deadline. It may be earlier, once for each deadline that was put off,
    /// brought forward or taken away; `expire` then yields nothing and the next answer is later.
    pub(crate) fn next_wake(&self) -> Option<Time> {
        let (_, tick) = self.first_bucket()?;
        Some(time_of(tick))
    }

    /// Appends what is due at `now` to `due`, in the order of ticks.
    ///
    /// What expires is no longer queued, but keeps its deadline until `take_expired`, `set` or `clear`.
    #[inline]
    pub(crate) fn expire(&mut self, now: Time, due: &mut VecDeque<Due>) {
        let now = tick_before(now);
        while let Some((bucket, tick)) = self.first_bucket() {
            if tick > now {
                return;
            }
            self.open(bucket, tick, due);
        }
    }

    /// Says whether the slot has expired and waits for its turn, and if so ends its deadline.
    ///
    /// Between `expire` and its turn a machine may have ended, or have answered another event with a new deadline; then
    /// its timeout is not to be delivered. Answers true once for each expiry.
    pub(crate) fn take_expired(&mut self, index: u32) -> bool {
        let Some(entry) = self.entries.get_mut(index as usize) else { return false };
        let expired = entry.is_expired();
        if expired {
            entry.deadline = Time::NEVER;
        }
        expired
    }

    /// The part of `set` that has to touch the lists: the entry is not queued, or queued too late.
    fn set_earlier(&mut self, index: u32, deadline: Time) {
        if deadline == Time::NEVER {
            return; // the index is beyond those used so far, and has none
        }
        let tick = tick_after(deadline);
        let Some(entry) = self.entry_mut(index) else { return };
        let (was_expired, was_queued) = (entry.is_expired(), entry.queued);
        entry.deadline = deadline;
        if was_expired && tick <= self.elapsed {
            return;
        }
        let tick = tick.max(self.elapsed);
        if time_of(tick) == was_queued {
            return;
        }
        if was_queued != UNQUEUED {
            self.unlink(index);
        }
        self.link(index, tick);
    }

    /// The entry of that index, made if this is the highest one so far.
    fn entry_mut(&mut self, index: u32) -> Option<&mut Entry> {
        if index == NONE {
            debug_assert!(false, "slot {index} cannot have a deadline");
            return None;
        }
        let index = index as usize;
        if index >= self.entries.len() {
            self.entries.resize(index + 1, Entry::IDLE);
        }
        self.entries.get_mut(index)
    }

    /// The bucket that comes up first, and the lower bound of the ticks queued in it.
    fn first_bucket(&self) -> Option<(usize, u64)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros() as usize;
        let bucket = level * DIGIT_VALUES + self.occupied[level].trailing_zeros() as usize;
        Some((bucket, self.buckets[bucket].bound))
    }

    /// Empties the first bucket at `tick`, its lower bound: each entry expires, moves to where it belongs, or is left
    /// out because it lost its deadline.
    ///
    /// `bucket` must be the first one, or `elapsed` would pass entries of the others.
    fn open(&mut self, bucket: usize, tick: u64, due: &mut VecDeque<Due>) {
        let first_due = due.len();
        let mut has_overdue = false;
        let mut cursors = std::mem::replace(&mut self.buckets[bucket].heads, [NONE; LISTS]);
        self.mark_vacant(bucket);
        self.elapsed = tick;
        while cursors != [NONE; LISTS] {
            for cursor in &mut cursors {
                let index = *cursor;
                if index == NONE {
                    continue;
                }
                let entry = &mut self.entries[index as usize];
                *cursor = entry.next;
                let deadline = tick_after(entry.deadline);
                if deadline <= tick {
                    entry.queued = UNQUEUED;
                    has_overdue |= deadline < tick;
                    due.push_back(Due { tick: time_of(deadline), index });
                } else if entry.deadline == Time::NEVER {
                    entry.queued = UNQUEUED;
                } else {
                    // Never the bucket that is being emptied: it is the one that `elapsed` is in.
                    self.link(index, deadline);
                }
            }
        }
        // Deadlines that had passed when they were set are queued at the tick of that time, together.
        if has_overdue {
            due.make_contiguous()[first_due..].sort_unstable_by_key(|due| due.tick);
        }
    }

    /// Queues an entry that is in no list.
    fn link(&mut self, index: u32, tick: u64) {
        let place = self.place(tick);
        let bucket = &mut self.buckets[place];
        bucket.bound = if bucket.is_vacant() { tick } else { bucket.bound.min(tick) };
        let next = std::mem::replace(&mut bucket.heads[list_of(index)], index);
        if next != NONE {
            self.entries[next as usize].previous = index;
        }
        self.mark_occupied(place);
        let entry = &mut self.entries[index as usize];
        entry.queued = time_of(tick);
        entry.next = next;
        entry.previous = NONE;
    }

    /// Takes a queued entry out of its list.
    fn unlink(&mut self, index: u32) {
        let entry = &mut self.entries[index as usize];
        let queued = std::mem::replace(&mut entry.queued, UNQUEUED);
        let (next, previous) = (entry.next, entry.previous);
        if next != NONE {
            self.entries[next as usize].previous = previous;
        }
        if previous != NONE {
            self.entries[previous as usize].next = next;
            return;
        }
        let place = self.place(tick_before(queued));
        let bucket = &mut self.buckets[place];
        bucket.heads[list_of(index)] = next;
        if bucket.is_vacant() {
            self.mark_vacant(place);
        }
    }

    /// The bucket in which a tick is queued: see the docs of the module.
    fn place(&self, tick: u64) -> usize {
        // The lowest digit is set so that a tick equal to `elapsed` is of level 0 as well.
        let differing = (self.elapsed ^ tick) | (DIGIT_VALUES as u64 - 1);
        let level = (u64::BITS - 1 - differing.leading_zeros()) / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % DIGIT_VALUES;
        level as usize * DIGIT_VALUES + digit
    }

    fn mark_occupied(&mut self, bucket: usize) {
        let (level, digit) = (bucket / DIGIT_VALUES, bucket % DIGIT_VALUES);
        self.occupied[level] |= 1 << digit;
        self.levels |= 1 << level;
    }

    fn mark_vacant(&mut self, bucket: usize) {
        let (level, digit) = (bucket / DIGIT_VALUES, bucket % DIGIT_VALUES);
        self.occupied[level] &= !(1 << digit);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }
}

/// A slot whose deadline has been reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Due {
    /// The slot's deadline, rounded up to a tick: those of one tick are neighbours and share it.
    pub(crate) tick: Time,
    /// The slot.
    pub(crate) index: u32,
}

/// What is kept for each slot.
#[derive(Clone, Debug)]
struct Entry {
    /// `Time::NEVER` if there is none.
    deadline: Time,
    /// The tick at which the wheel looks at this entry, or `UNQUEUED`. Not after the deadline's tick, unless that one
    /// had passed when it was set. A time, so that `set` need not divide to compare it.
    queued: Time,
    /// The neighbours in the bucket's list, or `NONE`; without meaning while the entry is not queued.
    next: u32,
    previous: u32,
}

impl Entry {
    const IDLE: Entry = Entry { deadline: Time::NEVER, queued: UNQUEUED, next: NONE, previous: NONE };

    /// A deadline that is not queued is one that has expired: any other is queued when it is set.
    fn is_expired(&self) -> bool {
        self.queued == UNQUEUED && self.deadline != Time::NEVER
    }
}

#[derive(Clone, Debug)]
struct Bucket {
    /// No entry of the bucket is queued before this tick; without meaning while it has none.
    bound: u64,
    /// The first entry of each list, or `NONE`.
    heads: [u32; LISTS],
}

impl Bucket {
    fn is_vacant(&self) -> bool {
        self.heads == [NONE; LISTS]
    }
}

/// Nanoseconds in a tick: 1 ms, the finest that every backend can wait for.
const TICK_NANOS: u64 = 1_000_000;

/// The last whole tick of the range of `Time`. A deadline after it cannot be rounded up, and is as good as none.
const LAST_TICK_TIME: Time = Time::from_nanos(u64::MAX / TICK_NANOS * TICK_NANOS);

/// Later than any tick, so that whatever is not queued compares as queued too late, except to have no deadline.
const UNQUEUED: Time = Time::NEVER;

/// No entry: the end of a list.
const NONE: u32 = u32::MAX;

/// Lists of a bucket. Measured with a million entries: see `doc/decisions/0001-timer-wheel.md`.
const LISTS: usize = 4;

/// One word of occupancy bits for each level.
const DIGIT_BITS: u32 = 6;
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Enough for every tick: a deadline can be as far away as `Time` reaches.
const LEVELS: usize = (u64::MAX / TICK_NANOS).ilog2() as usize / DIGIT_BITS as usize + 1;

/// The list of its bucket that an entry belongs to.
fn list_of(index: u32) -> usize {
    index as usize % LISTS
}

/// The last tick that has been reached at this time.
fn tick_before(time: Time) -> u64 {
    time.as_nanos() / TICK_NANOS
}

/// When a tick that is in the range of `Time` is reached.
fn time_of(tick: u64) -> Time {
    Time::from_nanos(tick * TICK_NANOS)
}

/// The first tick that is not before this time.
fn tick_after(time: Time) -> u64 {
    time.as_nanos().div_ceil(TICK_NANOS)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::time::Duration;

    use super::*;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;
    const HOUR: u64 = 3_600 * SECOND;
    const YEAR: u64 = 8_766 * HOUR;

    fn at(nanos: u64) -> Time {
        Time::from_nanos(nanos)
    }

    fn expired(timers: &mut Timers, now: u64) -> Vec<(u64, u32)> {
        let mut due = VecDeque::new();
        timers.expire(at(now), &mut due);
        due.iter().map(|due| (due.tick.as_nanos() / MS, due.index)).collect()
    }

    impl Timers {
        /// Walks all lists, and panics where one of the statements in the docs does not hold.
        fn check_invariants(&self) {
            let mut queued = 0;
            for (place, bucket) in self.buckets.iter().enumerate() {
                let (level, digit) = (place / DIGIT_VALUES, place % DIGIT_VALUES);
                let is_marked = self.occupied[level] & (1 << digit) != 0;
                assert_eq!(!bucket.is_vacant(), is_marked, "bucket {place}");
                for (list, head) in bucket.heads.into_iter().enumerate() {
                    let (mut index, mut previous) = (head, NONE);
                    while index != NONE {
                        let entry = &self.entries[index as usize];
                        let tick = tick_before(entry.queued);
                        assert_eq!(list, list_of(index), "entry {index}");
                        assert_eq!(entry.previous, previous, "entry {index}");
                        assert_eq!(entry.queued, time_of(tick), "entry {index}");
                        assert_eq!(self.place(tick), place, "entry {index}");
                        assert!(bucket.bound <= tick, "entry {index}");
                        assert!(self.elapsed <= tick, "entry {index}");
                        assert!(tick <= tick_after(entry.deadline).max(self.elapsed), "entry {index}");
                        queued += 1;
                        (index, previous) = (entry.next, index);
                    }
                }
            }
            for (level, occupied) in self.occupied.iter().enumerate() {
                assert_eq!(*occupied != 0, self.levels & (1 << level) != 0, "level {level}");
            }
            assert_eq!(queued, self.entries.iter().filter(|entry| entry.queued != UNQUEUED).count());
        }
    }

    #[test]
    fn an_entry_takes_24_bytes() {
        assert_eq!(size_of::<Entry>(), 24);
        assert!(size_of::<Timers>() <= 128);
        assert_eq!(size_of::<Bucket>() * LEVELS * DIGIT_VALUES, 12 * 1024);
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
        let starts = [0, 1, 62, 63, 64, 65, 4_095, 4_096, 1 << 30, (1 << 36) - 1];
        for start in starts {
            for level in 0..LEVELS as u32 {
                for delay in
                    [(1_u64 << (level * DIGIT_BITS)) - 1, 1 << (level * DIGIT_BITS), (1 << (level * 6)) + 1]
                {
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
    fn ticks_come_out_in_order_and_those_of_one_tick_together() {
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
    fn deadlines_that_had_passed_come_out_in_order_too() {
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
    fn a_deadline_put_off_costs_one_needless_wake() {
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
    fn a_deadline_taken_away_is_no_longer_queued_after_its_tick() {
        let mut timers = Timers::new(Time::ZERO);
        timers.set(0, at(SECOND));
        timers.set(0, Time::NEVER);
        assert_eq!(timers.deadline(0), None);
        assert_eq!(expired(&mut timers, SECOND), []);
        assert_eq!(timers.next_wake(), None);
        timers.check_invariants();
    }

    #[test]
    fn a_cleared_entry_is_unlinked_wherever_it_stands_in_its_list() {
        const COUNT: u32 = 3 * LISTS as u32;
        for cleared in 0..COUNT {
            let mut timers = Timers::new(Time::ZERO);
            (0..COUNT).for_each(|index| timers.set(index, at(SECOND)));
            timers.clear(cleared);
            assert_eq!(timers.entries[cleared as usize].queued, UNQUEUED);
            timers.check_invariants();
            let mut rest = expired(&mut timers, SECOND);
            rest.sort_unstable();
            assert_eq!(rest, (0..COUNT).filter(|i| *i != cleared).map(|i| (1_000, i)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_expiry_is_taken_once_and_not_after_a_new_answer() {
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

    /// The same deadlines kept in the plainest way.
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
    struct Pair {
        timers: Timers,
        model: Model,
        due: VecDeque<Due>,
        now: u64,
        rng: fastrand::Rng,
        deadlines: u32,
        expiries: usize,
    }

    impl Pair {
        fn new(start: u64, slots: usize, seed: u64) -> Pair {
            Pair {
                timers: Timers::new(at(start)),
                model: Model { armed: BTreeSet::new(), slots: vec![Slot::default(); slots] },
                due: VecDeque::new(),
                now: start,
                rng: fastrand::Rng::with_seed(seed),
                deadlines: 0,
                expiries: 0,
            }
        }

        /// Nothing, a part of a tick, some ticks, seconds, hours, years, or all the time there is.
        fn random_span(&mut self, reach: usize) -> u64 {
            let spans = [1, MS, 5 * MS, 100 * MS, 20 * SECOND, HOUR, 1_000 * HOUR, 150 * YEAR, u64::MAX];
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
            let fresh: Vec<_> =
                self.due.range(already_due..).map(|due| (due.tick.as_nanos() / MS, due.index)).collect();
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
                    wake.is_some_and(|wake| wake <= *tick.max(&self.timers.elapsed)),
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
                        self.now = self.now.saturating_add(self.random_span(reach.saturating_sub(1).max(1)));
                        self.expire();
                    }
                    13 => {
                        // One nanosecond before the wake-up nothing may be due, at the wake-up the model decides.
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
            let mut pair = Pair::new(start, slots, seed);
            pair.run(4_000, reach);
            deadlines += pair.deadlines;
            expiries += pair.expiries;
        }
        assert!(deadlines >= 100_000, "{deadlines}");
        assert!(expiries >= 50_000, "{expiries}");
    }

    #[test]
    fn needless_wakes_are_no_more_than_changes_of_deadlines() {
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
    fn untouched_deadlines_cost_no_needless_wake() {
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
}
