//! A histogram of durations, with a fixed amount of memory for any number of them, whose high
//! percentiles are still exact to 1 %.

use std::time::Duration;

/// Each doubling is divided into this many equal parts, so a value is known to 1/128, which is
/// better than 1 %.
const PARTS: usize = 128;

/// The number of doublings, from 128 ns to more than an hour.
const DOUBLINGS: usize = 36;

/// A histogram of durations.
#[derive(Debug, Clone)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; PARTS * DOUBLINGS], total: 0 }
    }
}

impl Histogram {
    /// Counts one duration.
    pub fn record(&mut self, duration: Duration) {
        self.record_many(duration, 1);
    }

    /// Counts a duration this many times.
    pub fn record_many(&mut self, duration: Duration, times: u64) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let index = index_of(nanoseconds).min(self.counts.len() - 1);
        self.counts[index] += times;
        self.total += times;
    }

    /// Returns how many durations were counted.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the duration that this percentage of all durations does not exceed; zero if nothing
    /// was counted.
    pub fn percentile(&self, percent: f64) -> Duration {
        let rank = (self.total as f64 * percent / 100.0).ceil().max(1.0) as u64;
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Duration::from_nanos(upper_end_of(index));
            }
        }
        Duration::ZERO
    }
}

/// Returns the index of a value. Below `PARTS` each value has its own index; above, the index
/// follows from the highest bit and the seven bits after it.
fn index_of(value: u64) -> usize {
    let parts = PARTS as u64;
    if value < parts {
        return value as usize;
    }
    let doubling = value.ilog2() - parts.ilog2();
    let part = (value >> doubling) - parts;
    (doubling as usize + 1) * PARTS + part as usize
}

/// Returns the largest value with this index.
fn upper_end_of(index: usize) -> u64 {
    let (doubling, part) = (index / PARTS, (index % PARTS) as u64);
    match doubling {
        0 => part,
        _ => ((PARTS as u64 + part + 1) << (doubling - 1)) - 1,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{Histogram, index_of, upper_end_of};

    #[test]
    fn a_value_is_known_to_one_percent() {
        for value in
            (0..100_000).chain((17..40).map(|bits| (1 << bits) - 1)).chain([3_599_999_999_999])
        {
            let end = upper_end_of(index_of(value));
            assert!(end >= value && end - value <= value / 100, "{value} is taken for {end}");
        }
    }

    #[test]
    fn bucket_bounds_are_in_order() {
        let ends: Vec<u64> = (0..1000).map(upper_end_of).collect();
        assert!(ends.windows(2).all(|two| two[0] < two[1]));
    }

    #[test]
    fn percentiles_are_those_of_the_counted_values() {
        let mut histogram = Histogram::default();
        for microseconds in 1..=1000 {
            histogram.record(Duration::from_nanos(microseconds));
        }
        assert_eq!(histogram.total(), 1000);
        assert_eq!(histogram.percentile(0.0), Duration::from_nanos(1));
        assert_eq!(histogram.percentile(10.0), Duration::from_nanos(100));
        assert!((500..=504).contains(&histogram.percentile(50.0).as_nanos()));
        assert!((999..=1007).contains(&histogram.percentile(99.9).as_nanos()));
        assert_eq!(Histogram::default().percentile(99.0), Duration::ZERO);
    }

    #[test]
    fn an_endless_wait_is_counted_as_a_long_one() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::MAX);
        assert!(histogram.percentile(50.0) > Duration::from_secs(3600));
    }
}
