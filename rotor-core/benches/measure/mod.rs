//! What the benches share: whether to measure at all, rounds, medians.

use std::fmt;
use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// How much to measure.
#[derive(Clone, Copy)]
pub(crate) struct Effort {
    is_smoke: bool,
    is_wall: bool,
}

impl Effort {
    /// Cargo passes `--bench` from `cargo bench` and nothing from `cargo test`; `--test` asks for a
    /// quick run. `--wall` is for running under valgrind, which lacks the clock of processor time:
    /// one round by the clock on the wall.
    pub(crate) fn from_arguments() -> Effort {
        let arguments: Vec<String> = std::env::args().collect();
        let has = |argument: &str| arguments.iter().any(|a| a == argument);
        let is_smoke = !has("--bench") || has("--test");
        Effort { is_smoke, is_wall: is_smoke || has("--wall") }
    }

    /// How often each figure is taken. Rounds of all figures are interleaved, so that a machine
    /// that slows down slows all of them.
    pub(crate) fn rounds(self) -> usize {
        if self.is_wall { 1 } else { 7 }
    }

    /// The number of operations for a measurement, or the one that only shows that it runs.
    pub(crate) fn pick<T>(self, measure: T, smoke: T) -> T {
        if self.is_smoke { smoke } else { measure }
    }

    /// Nanoseconds that each of so many operations took: processor time of this thread, kernel
    /// included, so that whatever else runs on the machine disturbs little.
    #[expect(clippy::disallowed_methods, reason = "a bench reads the clock")]
    pub(crate) fn nanos_per<T>(self, operations: u64, work: impl FnOnce() -> T) -> f64 {
        let nanos = if self.is_wall {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed().as_nanos() as f64
        } else {
            let before = processor_nanos();
            std::hint::black_box(work());
            processor_nanos() - before
        };
        nanos / operations as f64
    }
}

fn processor_nanos() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// One figure, taken in several rounds. Prints the median, and the lowest and the highest.
#[derive(Default)]
pub(crate) struct Figure(Vec<f64>);

impl Figure {
    pub(crate) fn push(&mut self, value: f64) {
        let at = self.0.partition_point(|other| *other < value);
        self.0.insert(at, value);
    }

    pub(crate) fn median(&self) -> f64 {
        self.0.get(self.0.len() / 2).copied().unwrap_or(f64::NAN)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [lowest, .., highest] = self.0[..] else {
            return f.pad(&format!("{:.1}", self.median()));
        };
        f.pad(&format!("{:.1} ({lowest:.1} – {highest:.1})", self.median()))
    }
}
