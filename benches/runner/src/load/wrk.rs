//! Runs wrk, whose kinds of load (several threads) are used in articles.
//!
//! wrk checks only the status of a response, so the server must have been checked before.

use std::env;
use std::fs;
use std::net::SocketAddr;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{self, Command};
use std::thread;
use std::time::Duration;

use super::LoadError;
use crate::process::children_times;

/// Prints one line that is easy to parse.
const SCRIPT: &str = r#"
done = function(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format("rotor-bench %d %d %d %d %d %d\n", summary.requests, summary.duration,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout,
    latency:percentile(50), latency:percentile(99), latency:percentile(99.9)))
end
"#;

/// The result of a run of wrk.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WrkRun {
    /// The number of requests that were answered.
    pub requests: u64,
    /// By wrk's clock.
    pub wall: Duration,
    /// CPU time of all its threads together.
    pub generator: Duration,
    /// Latency at the 50th, 99th and 99.9th percentile.
    pub latency: [Duration; 3],
}

impl WrkRun {
    /// Returns the share of the time in which this many threads worked. If there are more of them
    /// than cores, they cannot all work at a time.
    pub fn busy(&self, threads: usize) -> f64 {
        let cores = thread::available_parallelism().map_or(threads, NonZero::get);
        self.generator.as_secs_f64() / self.wall.as_secs_f64() / threads.min(cores) as f64
    }
}

/// Runs wrk with this many threads, and connections in total, for this time.
///
/// # Errors
///
/// wrk cannot be run, or reports errors.
pub fn run(
    wrk: &Path,
    address: SocketAddr,
    threads: usize,
    connections: usize,
    time: Duration,
) -> Result<WrkRun, LoadError> {
    let script = Script::write()?;
    let before = children_times()?;
    let output = Command::new(wrk)
        .args([format!("-t{threads}"), format!("-c{connections}")])
        .arg(format!("-d{}s", time.as_secs().max(1))) // It knows whole seconds only.
        .arg("-s")
        .arg(&script.0)
        .arg(format!("http://{address}/"))
        .output()?;
    let generator = children_times()?.since(&before).total();
    let text = String::from_utf8_lossy(&output.stdout);
    let Some((mut run, errors)) = parse(&text) else {
        return Err(LoadError::Outside(format!(
            "wrk failed: {text}{}",
            String::from_utf8_lossy(&output.stderr)
        )));
    };
    if errors > 0 {
        return Err(LoadError::Outside(format!(
            "wrk saw {errors} errors in {} requests",
            run.requests
        )));
    }
    run.generator = generator;
    Ok(run)
}

/// Returns the result and the number of errors.
fn parse(text: &str) -> Option<(WrkRun, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("rotor-bench "))?;
    let figures: Vec<u64> =
        line.split(' ').map(|figure| figure.parse().ok()).collect::<Option<_>>()?;
    let [requests, wall, errors, latency @ ..] = figures.as_slice() else { return None };
    let latency: [u64; 3] = latency.try_into().ok()?;
    let run = WrkRun {
        requests: *requests,
        wall: Duration::from_micros(*wall),
        generator: Duration::ZERO,
        latency: latency.map(Duration::from_micros),
    };
    Some((run, *errors))
}

/// The script as a file, which is removed when the value is dropped.
struct Script(PathBuf);

impl Script {
    fn write() -> Result<Script, LoadError> {
        let script = Script(env::temp_dir().join(format!("rotor-bench-{}.lua", process::id())));
        fs::write(&script.0, SCRIPT)?;
        Ok(script)
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        // It is in the system's temporary directory; if it stays there, that does no harm.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::{WrkRun, parse};

    #[test]
    fn threads_that_fill_all_cores_are_busy_however_many_they_are() {
        let cores = thread::available_parallelism().expect("the system tells").get();
        let wall = Duration::from_secs(2);
        let latency = [Duration::ZERO; 3];
        let run = WrkRun { requests: 1, wall, generator: wall * cores as u32, latency };
        assert_eq!(run.busy(10 * cores), 1.0);
        assert_eq!(WrkRun { generator: wall, ..run }.busy(1), 1.0);
    }

    #[test]
    fn the_output_line_of_the_script_is_parsed() {
        let expected = WrkRun {
            requests: 1000,
            wall: Duration::from_secs(2),
            generator: Duration::ZERO,
            latency: [10, 20, 30].map(Duration::from_micros),
        };
        let text = "Running 2s test\nrotor-bench 1000 2000000 7 10 20 30\n";
        assert_eq!(parse(text), Some((expected, 7)));
        assert_eq!(parse("rotor-bench 1000 2000000 7 10 20\n"), None);
        assert_eq!(parse("unable to connect\n"), None);
    }
}
