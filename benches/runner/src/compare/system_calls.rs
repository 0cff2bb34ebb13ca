//! System calls per request, counted in a separate pass, because counting slows down the server.
//!
//! perf attaches to the running server and slows it by a few percent, so it sees the waits of a
//! real load. If perf is not permitted, strace is used, which slows the server several times: more
//! connections are then ready at each wait, and the share of waits is smaller than in reality, for
//! every server alike.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{self, Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

use super::BoxError;
use super::catalogue::Ready;
use super::rig::Rig;
use super::round::{HeldOpen, RunningLoad, start};
use super::scenario::Scenario;
use crate::process::{descendants, signal};
use crate::program;

/// How long a counter may take to attach, which it does not report. What it misses at the beginning
/// is nothing, since the load begins later.
const ATTACH_TIME: Duration = Duration::from_millis(500);

/// How long the load runs while system calls are counted; their number varies little.
const COUNT_TIME: Duration = Duration::from_secs(1);

/// A count with fewer calls per request than this is wrong: no server answers a thousand requests
/// with one call.
const CALLS_MIN: f64 = 0.001;

/// Starts a server and counts its system calls.
pub(super) fn per_request(scenario: &Scenario, server: &Ready, rig: &Rig) -> Result<f64, BoxError> {
    let mut why = None;
    for counter in [Counter::Perf, Counter::Strace] {
        match count(counter, scenario, server, rig) {
            Ok(calls) if calls >= CALLS_MIN => return Ok(calls),
            Ok(_) => {}
            Err(e) => why = Some(e),
        }
    }
    Err(why.unwrap_or_else(|| "neither perf nor strace counted any".into()))
}

fn count(
    counter: Counter,
    scenario: &Scenario,
    server: &Ready,
    rig: &Rig,
) -> Result<f64, BoxError> {
    let running = start(scenario, server, rig)?;
    let address = running.address();
    let held = HeldOpen::open(scenario.held, address)?;
    let mut load = RunningLoad::open(scenario, address, None)?;
    load.run(COUNT_TIME / 10)?;

    let file = Output(env::temp_dir().join(format!("rotor-bench-calls-{}", process::id())));
    let mut pids = vec![running.pid()];
    pids.extend(descendants(running.pid()));
    let mut counting = counter.attach(&pids, &file)?;
    thread::sleep(ATTACH_TIME);
    let taken = load.run(COUNT_TIME);
    // The counter is ended even after a failed run; otherwise it would go on counting.
    signal(counting.id(), Signal::INT)?;
    counting.wait()?;
    let requests = taken?.requests;
    held.finish()?;
    let text = fs::read_to_string(&file.0)?;
    let calls = counter
        .parse(&text)
        .ok_or_else(|| format!("{counter:?}'s report is not understood: {text}"))?;
    Ok(calls as f64 / requests as f64)
}

/// The program that counts.
#[derive(Debug, Clone, Copy)]
enum Counter {
    Perf,
    Strace,
}

impl Counter {
    fn attach(self, pids: &[u32], file: &Output) -> Result<Child, BoxError> {
        let mut command = match self {
            Counter::Perf => {
                let mut perf = Command::new(program::find("perf").ok_or("there is no perf")?);
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                perf.args(["stat", "-x,", "-e", "raw_syscalls:sys_enter", "-p", &pids.join(",")]);
                perf
            }
            Counter::Strace => {
                let mut strace = Command::new(
                    program::find("strace").ok_or("there is neither perf nor strace")?,
                );
                strace.args(["-c", "-f", "-U", "calls,name"]);
                strace.args(pids.iter().flat_map(|pid| ["-p".to_owned(), pid.to_string()]));
                strace
            }
        };
        command
            .arg("-o")
            .arg(&file.0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Ok(command.spawn()?)
    }

    fn parse(self, text: &str) -> Option<u64> {
        match self {
            // Numbers, then the name: `12345,,raw_syscalls:sys_enter,...`.
            Counter::Perf => {
                let line = text.lines().find(|line| line.contains("raw_syscalls:sys_enter"))?;
                line.split(',').next()?.parse().ok()
            }
            // Lines `N name`, the last of which is the total.
            Counter::Strace => {
                let line = text.lines().find(|line| line.trim_end().ends_with(" total"))?;
                line.split_ascii_whitespace().next()?.parse().ok()
            }
        }
    }
}

/// The counter's report, which is removed when the value is dropped.
struct Output(PathBuf);

impl Drop for Output {
    fn drop(&mut self) {
        // The file may not exist.
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::Counter;

    #[test]
    fn reports_of_perf_and_strace_are_parsed() {
        let perf = "# started on today\n\n29,,raw_syscalls:sys_enter,1519410,100.00,,\n";
        assert_eq!(Counter::Perf.parse(perf), Some(29));
        assert_eq!(Counter::Perf.parse("<not counted>,,raw_syscalls:sys_enter,0,100.00,,\n"), None);
        let strace = "    calls syscall\n--------- ----------------\n        3 read\n        4 write\n--------- ----------------\n        7 total\n";
        assert_eq!(Counter::Strace.parse(strace), Some(7));
        assert_eq!(Counter::Strace.parse(""), None);
    }
}
