//! `SharedHistogram`: a histogram to which threads add while others read it.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::histogram::{Histogram, bucket_of};

/// A [`Histogram`] to which threads add while others read it, without a lock: for example, for the
/// requests of a server.
///
/// ```
/// # use rotor_core as rotor;
/// use std::time::Duration;
/// use rotor::SharedHistogram;
///
/// let times = SharedHistogram::new();
/// times.note(Duration::from_millis(3));
/// assert_eq!(times.read().count(), 1);
/// ```
#[derive(Default)]
pub struct SharedHistogram {
    counts: [AtomicU64; Histogram::BUCKETS],
    sum_nanos: AtomicU64,
    /// How often `sum_nanos` has wrapped around. 2^64 ns are 584 years, which a server whose
    /// requests wait side by side can reach.
    carries: AtomicU64,
}

impl SharedHistogram {
    /// Makes an empty histogram.
    pub fn new() -> SharedHistogram {
        SharedHistogram::default()
    }

    /// Adds a duration. Any number of threads may do so at the same time.
    #[inline]
    pub fn note(&self, time: Duration) {
        self.note_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// Adds a duration in nanoseconds, which saves a division if the caller has it in that unit.
    #[inline]
    pub fn note_nanos(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].fetch_add(1, Relaxed);
        // Most durations are within one turn, and are therefore zero in loop time.
        if nanos != 0 {
            let before = self.sum_nanos.fetch_add(nanos, Relaxed);
            if before.checked_add(nanos).is_none() {
                self.carries.fetch_add(1, Relaxed);
            }
        }
    }

    /// Adds a duration if no other thread adds: two loads and two stores, without a locked
    /// instruction.
    #[cfg_attr(not(debug_assertions), inline(always))]
    pub(crate) fn note_single_writer(&self, nanos: u64) {
        add_single_writer(&self.counts[bucket_of(nanos)], 1);
        if add_single_writer(&self.sum_nanos, nanos) {
            add_single_writer(&self.carries, 1);
        }
    }

    /// Returns what was added so far. A duration that is being added at the same time may be
    /// included in part.
    pub fn read(&self) -> Histogram {
        Histogram::from_parts(self.counts.each_ref().map(|count| count.load(Relaxed)), self.sum())
    }

    fn sum(&self) -> Duration {
        const NANOS_PER_SECOND: u128 = 1_000_000_000;
        let (carries, nanos) = (self.carries.load(Relaxed), self.sum_nanos.load(Relaxed));
        let nanos = u128::from(carries) << u64::BITS | u128::from(nanos);
        let seconds = u64::try_from(nanos / NANOS_PER_SECOND).unwrap_or(u64::MAX);
        Duration::new(seconds, (nanos % NANOS_PER_SECOND) as u32)
    }
}

/// Adds to a cell that no other thread writes. Returns whether it has wrapped around.
#[cfg_attr(not(debug_assertions), inline(always))]
fn add_single_writer(cell: &AtomicU64, more: u64) -> bool {
    let (sum, is_carried) = cell.load(Relaxed).overflowing_add(more);
    cell.store(sum, Relaxed);
    is_carried
}

impl fmt::Debug for SharedHistogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.read().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_added_in_each_way_are_read() {
        let shared = SharedHistogram::new();
        shared.note(Duration::from_micros(3));
        shared.note_nanos(0);
        shared.note_single_writer(5_000);
        shared.note(Duration::ZERO);
        let read = shared.read();
        assert_eq!((read.count(), read.sum()), (4, Duration::from_micros(8)));
        assert_eq!(read.quantile(0.5), Duration::from_micros(1));
        assert_eq!(read.quantile(1.0), Duration::from_micros(8));
    }

    #[test]
    fn a_sum_of_more_than_584_years_does_not_wrap_around() {
        const LONGEST: Duration = Duration::from_nanos(u64::MAX);
        let mut own = Histogram::default();
        let [shared, single_writer] = [(); 2].map(|()| SharedHistogram::new());
        for _ in 0..3 {
            own.note(LONGEST);
            shared.note(LONGEST);
            single_writer.note_single_writer(u64::MAX);
        }
        for histogram in [own, shared.read(), single_writer.read()] {
            assert_eq!((histogram.count(), histogram.sum()), (3, LONGEST * 3));
        }
    }
}
