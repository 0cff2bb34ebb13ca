//! Measures the time of a batch.

use std::fs;
use std::time::{Duration, Instant};

use crate::work::Work;

/// Runs this many batches. Returns the microseconds per batch, of wall-clock time and of CPU time
/// of the process.
pub(crate) fn batches(
    name: &str,
    work: Work,
    batches: usize,
    run: &dyn Fn(usize) -> u64,
) -> (f64, f64) {
    let (begun, cpu) = (Instant::now(), cpu_time());
    assert_eq!(run(batches), (batches * work.jobs()) as u64, "{name}");
    let each = |time: Duration| time.as_secs_f64() * 1e6 / batches as f64;
    (each(begun.elapsed()), each(cpu_time() - cpu))
}

/// Returns user and system time of the process so far, in units of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
