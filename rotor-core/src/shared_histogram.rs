//! `SharedHistogram`: a histogram that one side adds to while others read it.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::histogram::{Histogram, bucket_of};

/// A [`Histogram`] that threads add to while others read it, without a lock: what a server counts
/// of its requests, say.
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
}

impl SharedHistogram {
    /// Makes one without times.
    pub fn new() -> SharedHistogram {
        SharedHistogram::default()
    }

    /// Adds a time. Any number of threads may.
    #[inline]
    pub fn note(&self, time: Duration) {
        self.note_nanos(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// The same, in nanoseconds, which saves those who have them so a division.
    #[inline]
    pub fn note_nanos(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].fetch_add(1, Relaxed);
        // Most are within one turn, and so none at all by loop time.
        if nanos != 0 {
            self.sum_nanos.fetch_add(nanos, Relaxed);
        }
    }

    /// The same where nobody else adds: two loads and two stores, and nothing is locked.
    #[inline(always)]
    pub(crate) fn note_alone(&self, nanos: u64) {
        add_alone(&self.counts[bucket_of(nanos)], 1);
        add_alone(&self.sum_nanos, nanos);
    }

    /// Returns what was added so far. What is added meanwhile may be in it in part.
    pub fn read(&self) -> Histogram {
        Histogram::of(self.counts.each_ref().map(|count| count.load(Relaxed)), self.sum())
    }

    /// All times together, in nanoseconds.
    pub(crate) fn sum(&self) -> u64 {
        self.sum_nanos.load(Relaxed)
    }
}

/// Adds to a cell that nobody else writes.
#[inline(always)]
pub(crate) fn add_alone(cell: &AtomicU64, more: u64) {
    cell.store(cell.load(Relaxed).wrapping_add(more), Relaxed);
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
    fn what_is_added_in_either_way_is_read() {
        let shared = SharedHistogram::new();
        shared.note(Duration::from_micros(3));
        shared.note_nanos(0);
        shared.note_alone(5_000);
        shared.note(Duration::ZERO);
        let read = shared.read();
        assert_eq!((read.count(), read.sum()), (4, Duration::from_micros(8)));
        assert_eq!(read.quantile(0.5), Duration::from_micros(1));
        assert_eq!(read.quantile(1.0), Duration::from_micros(8));
    }
}
