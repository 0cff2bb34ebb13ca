//! `Measured`: work that runs in the handler or on a pool, depending on how long its last runs
//! took.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::pool::OffloadPool;

/// A kind of work that may be short or long. It runs in the handler as long as its runs are short
/// on average, and otherwise on a pool.
///
/// Make one value for each kind of work, and share it among the machines that do that work; clones
/// share the average. It is a moving average in which the last run counts one eighth and the
/// earlier runs the rest. So one run of 20 ms sends the next thirty to the pool. The first run is
/// on the pool. A simulated loop does not measure runs on the pool, so it sends all of them there.
#[derive(Clone)]
pub struct Measured {
    pool: OffloadPool,
    inline_below: Duration,
    /// Nanoseconds; [`UNKNOWN`] before the first run.
    average: Arc<AtomicU64>,
}

const UNKNOWN: u64 = u64::MAX;

impl Measured {
    /// Creates one without measurements. Work that takes longer than 50 µs on average goes to
    /// `pool`; giving it away costs a fraction of that.
    pub fn new(pool: OffloadPool) -> Measured {
        let average = Arc::new(AtomicU64::new(UNKNOWN));
        Measured { pool, inline_below: Duration::from_micros(50), average }
    }

    /// Sets the average below which the work runs in the handler. Default 50 µs. With zero it never
    /// does.
    #[doc(alias = "here_below")]
    pub fn inline_below(mut self, time: Duration) -> Measured {
        self.inline_below = time;
        self
    }

    /// Returns the average of the last runs; `None` before the first one.
    pub fn average(&self) -> Option<Duration> {
        match self.average.load(Relaxed) {
            UNKNOWN => None,
            nanos => Some(Duration::from_nanos(nanos)),
        }
    }

    pub(crate) fn pool(&self) -> &OffloadPool {
        &self.pool
    }

    pub(crate) fn is_short(&self) -> bool {
        self.average().is_some_and(|average| average < self.inline_below)
    }

    /// Records a run. Two runs that end at the same time may count as one, which is good enough for
    /// an average.
    pub(crate) fn record(&self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(UNKNOWN).min(UNKNOWN - 1);
        let average = match self.average.load(Relaxed) {
            UNKNOWN => nanos,
            before => before - before / 8 + nanos / 8,
        };
        self.average.store(average, Relaxed);
    }
}

impl fmt::Debug for Measured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Measured({:?} on average)", self.average())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_average_follows_the_runs_and_is_not_short_at_first() {
        let measured =
            Measured::new(OffloadPool::default()).inline_below(Duration::from_micros(10));
        assert!(!measured.is_short() && measured.average().is_none());
        measured.record(Duration::from_micros(8));
        assert!(measured.clone().is_short());
        assert_eq!(measured.average(), Some(Duration::from_micros(8)));
        measured.record(Duration::from_millis(20));
        assert!(!measured.is_short());
        let runs = std::iter::repeat_with(|| measured.record(Duration::from_micros(1)));
        assert_eq!(runs.take_while(|()| !measured.is_short()).count(), 42);
        measured.record(Duration::MAX);
        assert!(!measured.is_short());
        for _ in 0..1_000 {
            measured.record(Duration::MAX);
        }
        assert!(!measured.is_short() && measured.average().is_some(), "it does not wrap round");
    }
}
