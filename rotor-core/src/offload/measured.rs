//! `Measured`: work that is run where its last runs say that it should be.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use super::pool::OffloadPool;

/// Work of one kind that is short as a rule, or long, or now this and now that: it is run in the
/// handler as long as its runs are short on average, else on a pool.
///
/// Clones are the same: one for each kind of work, shared by the machines that do it. The average
/// is a moving one, in which a run counts an eighth and those before it the rest; so one run of 20
/// ms sends the next thirty to the pool. The first is run on the pool. A simulated loop measures
/// nothing there, so it sends all of them.
#[derive(Clone)]
pub struct Measured {
    pool: OffloadPool,
    here_below: Duration,
    /// Nanoseconds; [`UNKNOWN`] before the first run.
    average: Arc<AtomicU64>,
}

const UNKNOWN: u64 = u64::MAX;

impl Measured {
    /// Makes one that has measured nothing, for work that goes to `pool` when it is long: longer
    /// than 50 µs on average, which is what giving it away costs, several times over.
    pub fn new(pool: OffloadPool) -> Measured {
        let average = Arc::new(AtomicU64::new(UNKNOWN));
        Measured { pool, here_below: Duration::from_micros(50), average }
    }

    /// Sets below which average the work is run in the handler. Default 50 µs. Zero: never.
    pub fn here_below(mut self, time: Duration) -> Measured {
        self.here_below = time;
        self
    }

    /// Returns the average of the last runs; `None` before the first.
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
        self.average().is_some_and(|average| average < self.here_below)
    }

    /// Notes a run. Two at a time may count as one: it is an average.
    pub(crate) fn note(&self, time: Duration) {
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
    fn an_average_follows_its_runs_and_the_first_is_not_short() {
        let measured = Measured::new(OffloadPool::default()).here_below(Duration::from_micros(10));
        assert!(!measured.is_short() && measured.average().is_none());
        measured.note(Duration::from_micros(8));
        assert!(measured.clone().is_short());
        assert_eq!(measured.average(), Some(Duration::from_micros(8)));
        measured.note(Duration::from_millis(20));
        assert!(!measured.is_short());
        let runs = std::iter::repeat_with(|| measured.note(Duration::from_micros(1)));
        assert_eq!(runs.take_while(|()| !measured.is_short()).count(), 42);
        measured.note(Duration::MAX);
        assert!(!measured.is_short());
        for _ in 0..1_000 {
            measured.note(Duration::MAX);
        }
        assert!(!measured.is_short() && measured.average().is_some(), "it does not wrap round");
    }
}
