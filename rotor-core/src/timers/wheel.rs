//! The wheel itself: which bucket a tick belongs to, and which bucket comes up first.
//!
//! Ticks are numbers of 8-bit digits, and the wheel has a level for each digit, with 256 buckets:
//!
//! ```text
//!   level      5           …     2         1          0
//!   a bucket   35 years    …     65.5 s    256 ms     1 ms      wide
//! ```
//!
//! A tick's level is the highest digit in which it differs from `elapsed`, the tick that the wheel
//! has reached; its bucket there is that digit. Hence all of level 0 comes before all of level 1,
//! and so on, and within a level the buckets are in order. They are numbered consecutively, so that
//! the first one is found by counting zero bits twice.
//!
//! When a bucket of a higher level comes up, `elapsed` moves into it and its entries move to lower
//! levels, at most five times for each entry. `elapsed` jumps directly to the next tick at which
//! something is queued: a long gap costs no more than a short one.
//!
//! Each bucket has a lower bound of the ticks queued in it, so that a loop with one deadline in ten
//! minutes sleeps for ten minutes and does not wake to move an entry from level to level. If an
//! entry leaves its bucket or gets a later deadline, the bound may be too low, which costs one
//! needless wake-up.
//!
//! Digits have 8 bits because most time-outs are a few seconds long. These are in level 1, and move
//! once before they are reached; most of them do not move to level 0 but to a later deadline. See
//! `doc/decisions/0001-timer-wheel.md`.

use super::tick::TICK_NANOS;

/// The buckets of all levels, and the tick that has been reached.
pub(super) struct Wheel {
    /// All queued ticks are at or after this one.
    elapsed: u64,
    /// Bit n is set if word n of `occupied` is not zero.
    summary: u32,
    /// Bit n is set if bucket n has entries.
    occupied: [u64; BUCKETS / WORD_BITS],
    buckets: Box<[Bucket]>,
}

/// A bucket: the heads of its lists.
#[derive(Clone, Debug)]
pub(super) struct Bucket {
    /// No entry of the bucket is queued before this tick; `u64::MAX` if there is none.
    bound: u64,
    /// The first entry of each list, or `NONE`.
    pub(super) heads: Heads,
}

/// The first entries of a bucket's lists.
pub(super) type Heads = [u32; LISTS];

impl Wheel {
    /// Creates an empty wheel at this tick.
    pub(super) fn new(elapsed: u64) -> Wheel {
        let vacant = Bucket { bound: u64::MAX, heads: VACANT };
        Wheel {
            elapsed,
            summary: 0,
            occupied: [0; BUCKETS / WORD_BITS],
            buckets: vec![vacant; BUCKETS].into_boxed_slice(),
        }
    }

    /// Returns the tick that has been reached. It never passes a tick at which something is queued.
    pub(super) fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// Returns the bucket that comes up first, and the lower bound of the ticks queued in it.
    pub(super) fn first(&self) -> Option<(usize, u64)> {
        if self.summary == 0 {
            return None;
        }
        let word = self.summary.trailing_zeros() as usize;
        let bucket_index = word * WORD_BITS + self.occupied[word].trailing_zeros() as usize;
        Some((bucket_index, self.buckets[bucket_index].bound))
    }

    /// Returns the bucket in which a tick is queued: see the docs of the module.
    pub(super) fn bucket_of(&self, tick: u64) -> usize {
        // The bits of the lowest digit are set, so that a tick equal to `elapsed` is in level 0 as
        // well.
        let differing = (self.elapsed ^ tick) | (DIGIT_VALUES as u64 - 1);
        let level = (u64::BITS - 1 - differing.leading_zeros()) / DIGIT_BITS;
        let digit = (tick >> (level * DIGIT_BITS)) as usize % DIGIT_VALUES;
        level as usize * DIGIT_VALUES + digit
    }

    /// Returns the head of the list for an entry that is queued at `tick`, for the caller to
    /// replace it.
    #[inline]
    pub(super) fn head_for_insert(&mut self, tick: u64, index: u32) -> &mut u32 {
        let bucket_index = self.bucket_of(tick);
        let bucket = &mut self.buckets[bucket_index];
        // Never raised while the bucket has entries: a bound that is too low costs a needless
        // wake-up, one that is too high a late deadline. The bound of a vacant bucket is later than
        // any tick, so that the first entry marks the bucket here as well.
        if tick < bucket.bound {
            bucket.bound = tick;
            let word = bucket_index / WORD_BITS;
            self.occupied[word] |= 1 << (bucket_index % WORD_BITS);
            self.summary |= 1 << word;
        }
        &mut bucket.heads[list_of(bucket_index, index)]
    }

    /// Replaces the head of a list, the entry `index` queued at `tick`, by the next entry. Returns
    /// whether the bucket is vacant now.
    pub(super) fn unlink_head(&mut self, tick: u64, index: u32, next: u32) -> bool {
        let bucket_index = self.bucket_of(tick);
        let heads = &mut self.buckets[bucket_index].heads;
        heads[list_of(bucket_index, index)] = next;
        let is_vacant = *heads == VACANT;
        if is_vacant {
            self.mark_vacant(bucket_index);
        }
        is_vacant
    }

    /// Empties the first bucket, and moves on to `tick`, its lower bound.
    ///
    /// It must be the first one, because otherwise `elapsed` would pass entries of earlier buckets.
    pub(super) fn take_bucket(&mut self, bucket_index: usize, tick: u64) -> Heads {
        self.elapsed = tick;
        self.mark_vacant(bucket_index);
        std::mem::replace(&mut self.buckets[bucket_index].heads, VACANT)
    }

    fn mark_vacant(&mut self, bucket_index: usize) {
        self.buckets[bucket_index].bound = u64::MAX;
        let word = bucket_index / WORD_BITS;
        self.occupied[word] &= !(1 << (bucket_index % WORD_BITS));
        if self.occupied[word] == 0 {
            self.summary &= !(1 << word);
        }
    }
}

/// No entry: the end of a list.
pub(super) const NONE: u32 = u32::MAX;

/// The heads of a bucket without entries.
pub(super) const VACANT: Heads = [NONE; LISTS];

/// The number of lists of a bucket. Measured with a million entries: see
/// `doc/decisions/0001-timer-wheel.md`.
pub(super) const LISTS: usize = 4;

const DIGIT_BITS: u32 = 8;
const DIGIT_VALUES: usize = 1 << DIGIT_BITS;

/// Enough for every tick: a deadline can be as far away as `Time` reaches.
const LEVELS: usize = (u64::MAX / TICK_NANOS).ilog2() as usize / DIGIT_BITS as usize + 1;

/// The number of buckets of all levels.
const BUCKETS: usize = LEVELS * DIGIT_VALUES;

const WORD_BITS: usize = u64::BITS as usize;

/// Returns the list to which an entry belongs. Buckets of a single tick have one list: they have
/// few entries, and ends of lists would cost more than steps along them.
fn list_of(bucket_index: usize, index: u32) -> usize {
    if bucket_index < DIGIT_VALUES { 0 } else { index as usize % LISTS }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Wheel {
        /// Every list head: its bucket's index, its list, the entry. Panics if the bitmap of
        /// occupied buckets is wrong.
        pub(crate) fn heads(&self) -> impl Iterator<Item = (usize, usize, u32)> {
            for (bucket_index, bucket) in self.buckets.iter().enumerate() {
                let is_marked = self.occupied[bucket_index / WORD_BITS]
                    & (1 << (bucket_index % WORD_BITS))
                    != 0;
                assert_eq!(bucket.heads != VACANT, is_marked, "bucket {bucket_index}");
            }
            for (word, occupied) in self.occupied.iter().enumerate() {
                assert_eq!(*occupied != 0, self.summary & (1 << word) != 0, "word {word}");
            }
            let buckets = self.buckets.iter().enumerate();
            buckets.flat_map(|(bucket_index, bucket)| {
                (0..LISTS).map(move |list| (bucket_index, list, bucket.heads[list]))
            })
        }

        /// Panics unless an entry that is queued at this tick may be in this list.
        pub(crate) fn check_queued(&self, bucket_index: usize, list: usize, index: u32, tick: u64) {
            assert_eq!(
                (self.bucket_of(tick), list_of(bucket_index, index)),
                (bucket_index, list),
                "tick {tick}"
            );
            assert!(self.buckets[bucket_index].bound <= tick, "tick {tick}");
            assert!(self.elapsed <= tick, "tick {tick}");
        }
    }

    #[test]
    fn the_buckets_take_36_kib() {
        assert_eq!(size_of::<Bucket>() * BUCKETS, 36 * 1024);
    }

    #[test]
    fn every_tick_has_a_bucket_and_every_bucket_a_mark() {
        let last = u64::MAX / TICK_NANOS;
        assert!(Wheel::new(0).bucket_of(last) < BUCKETS);
        assert_eq!(last >> (LEVELS as u32 * DIGIT_BITS), 0);
        assert!(BUCKETS / WORD_BITS <= u32::BITS as usize);
    }

    #[test]
    fn a_tick_belongs_to_the_level_of_its_highest_differing_digit() {
        for (elapsed, tick, bucket_index) in [
            (0, 0, 0),
            (0, 255, 255),
            (0, 256, 257),
            (255, 256, 257),
            (256, 256, 0),
            (256, 511, 255),
            (256, 512, 258),
            (0, 65_535, 511),
            (0, 65_536, 513),
            (65_536, 65_536 + 256, 257),
            (0, 1 << 40, 5 * 256 + 1),
        ] {
            assert_eq!(Wheel::new(elapsed).bucket_of(tick), bucket_index, "{tick} at {elapsed}");
        }
    }

    #[test]
    fn the_first_bucket_has_the_earliest_tick_on_any_level() {
        let mut wheel = Wheel::new(300);
        for tick in [1 << 40, 70_000, 66_000, 900, 600, 520, 401, 300] {
            *wheel.head_for_insert(tick, 1) = 1;
            let first = wheel.bucket_of(tick);
            assert_eq!(wheel.first(), Some((first, tick)));
        }
        for tick in [300, 401, 520, 900, 66_000, 1 << 40] {
            let (bucket_index, bound) = wheel.first().expect("they are not all open");
            assert_eq!(bound, tick);
            assert_ne!(wheel.take_bucket(bucket_index, tick), VACANT);
        }
        assert_eq!(wheel.first(), None);
    }

    #[test]
    fn a_bucket_is_vacant_when_all_its_lists_are() {
        let mut wheel = Wheel::new(0);
        *wheel.head_for_insert(999, 1) = 1;
        *wheel.head_for_insert(999, 2) = 2;
        let bucket_index = wheel.bucket_of(999);
        assert!(!wheel.unlink_head(999, 1, NONE));
        assert_eq!(wheel.first(), Some((bucket_index, 999)));
        assert!(wheel.unlink_head(999, 2, NONE));
        assert_eq!(wheel.first(), None);
    }
}
