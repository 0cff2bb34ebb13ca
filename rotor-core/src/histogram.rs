//! `Histogram`: counts durations in buckets whose bounds are powers of two of microseconds.

use std::fmt;
use std::time::Duration;

/// Counts durations in 24 buckets: below 1 µs, below 2 µs, below 4 µs and so on. The last bucket
/// has all durations of 2²² µs (4.2 s) or longer.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: [u64; Histogram::BUCKETS],
    /// Not nanoseconds in 64 bits: ten thousand requests that wait at the same time would exceed
    /// those in 21 days.
    sum: Duration,
}

impl Histogram {
    /// The number of buckets.
    pub const BUCKETS: usize = 24;

    pub(crate) fn note(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.counts[bucket_of(nanos)] += 1;
        self.sum = self.sum.saturating_add(Duration::from_nanos(nanos));
    }

    /// Makes a histogram from values that were counted elsewhere.
    pub(crate) fn from_parts(counts: [u64; Histogram::BUCKETS], sum: Duration) -> Histogram {
        Histogram { counts, sum }
    }

    /// Returns how many durations were counted.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of all durations.
    pub fn sum(&self) -> Duration {
        self.sum
    }

    /// Returns the buckets in ascending order, each as its upper bound (exclusive) and the number
    /// of durations in it. The last bucket has no bound ([`Duration::MAX`]).
    pub fn buckets(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        self.counts.iter().enumerate().map(|(bucket, count)| (bound_of(bucket), *count))
    }

    /// Returns an upper bound of the quantile `share` (0 to 1), such as 0.5 for the median or 0.99
    /// for p99: the bound of the bucket that contains it. Returns zero if nothing was counted.
    #[doc(alias = "percentile")]
    pub fn quantile(&self, share: f64) -> Duration {
        let count = self.count();
        if count == 0 {
            return Duration::ZERO;
        }
        let place = ((share.clamp(0.0, 1.0) * count as f64).ceil() as u64).max(1);
        let mut below = 0;
        let bucket = self.counts.iter().position(|count| {
            below += count;
            below >= place
        });
        bound_of(bucket.unwrap_or(Histogram::BUCKETS - 1))
    }
}

/// Returns the index of the bucket, which is the number of binary digits of the whole microseconds.
#[inline]
pub(crate) fn bucket_of(nanos: u64) -> usize {
    let micros = nanos / 1_000;
    ((u64::BITS - micros.leading_zeros()) as usize).min(Histogram::BUCKETS - 1)
}

fn bound_of(bucket: usize) -> Duration {
    match bucket {
        last if last == Histogram::BUCKETS - 1 => Duration::MAX,
        bucket => Duration::from_micros(1 << bucket),
    }
}

impl Histogram {
    /// Writes the histogram under this name in Prometheus' text format: seconds, cumulative
    /// buckets, sum and count.
    ///
    /// # Errors
    ///
    /// Those of `text`.
    #[doc(alias = "openmetrics")]
    pub fn write_prometheus(&self, name: &str, text: &mut impl fmt::Write) -> fmt::Result {
        writeln!(text, "# TYPE {name} histogram")?;
        let mut below = 0;
        for (bound, count) in self.buckets() {
            below += count;
            if bound == Duration::MAX {
                writeln!(text, "{name}_bucket{{le=\"+Inf\"}} {below}")?;
            } else {
                writeln!(text, "{name}_bucket{{le=\"{}\"}} {below}", bound.as_secs_f64())?;
            }
        }
        writeln!(text, "{name}_sum {}", self.sum().as_secs_f64())?;
        writeln!(text, "{name}_count {below}")
    }
}

impl fmt::Debug for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (half, most) = (self.quantile(0.5), self.quantile(0.99));
        write!(f, "Histogram({} times, p50 < {half:?}, p99 < {most:?})", self.count())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_below_the_bound_of_its_bucket() {
        for (nanos, bucket) in [
            (0, 0),
            (999, 0),
            (1_000, 1),
            (1_999, 1),
            (2_000, 2),
            (3_999, 2),
            (4_000, 3),
            ((1 << 22) * 1_000 - 1, 22),
            ((1 << 22) * 1_000, 23),
            (u64::MAX, 23),
        ] {
            assert_eq!(bucket_of(nanos), bucket, "{nanos} ns");
            assert!(Duration::from_nanos(nanos) < bound_of(bucket), "{nanos} ns");
        }
    }

    #[test]
    fn a_quantile_is_a_bucket_bound_and_zero_if_empty() {
        let mut histogram = Histogram::default();
        assert_eq!((histogram.quantile(0.5), histogram.count()), (Duration::ZERO, 0));
        for micros in [0, 0, 3, 100] {
            histogram.note(Duration::from_micros(micros));
        }
        for (share, micros) in [(0.0, 1), (0.5, 1), (0.51, 4), (0.75, 4), (0.76, 128), (7.0, 128)] {
            assert_eq!(histogram.quantile(share), Duration::from_micros(micros), "{share}");
        }
        assert_eq!((histogram.count(), histogram.sum()), (4, Duration::from_micros(103)));
        histogram.note(Duration::MAX);
        assert_eq!(histogram.quantile(1.0), Duration::MAX);
        assert_eq!(histogram.buckets().count(), Histogram::BUCKETS);
    }

    #[test]
    fn prometheus_text_has_seconds_in_cumulative_buckets() {
        let mut histogram = Histogram::default();
        histogram.note(Duration::from_micros(1));
        histogram.note(Duration::from_secs(60));
        let mut text = String::new();
        histogram.write_prometheus("queue_time", &mut text).expect("a string takes all");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "# TYPE queue_time histogram");
        assert_eq!(lines[1], "queue_time_bucket{le=\"0.000001\"} 0");
        assert_eq!(lines[2], "queue_time_bucket{le=\"0.000002\"} 1");
        assert_eq!(lines[24], "queue_time_bucket{le=\"+Inf\"} 2");
        assert_eq!(lines[25..], ["queue_time_sum 60.000001", "queue_time_count 2"]);
    }
}
