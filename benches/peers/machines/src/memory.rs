//! The memory of a member of a brigade. A process of its own holds a brigade, and its memory is
//! read; the slope of a line through four sizes is the memory of one member.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::brigade::{Brigade, bare, machines, one_thread, tasks, threads};
use crate::figures::{Bench, many_threads, one_thread};

/// The argument that makes the program hold a brigade until its standard input ends.
pub(crate) const HOLD: &str = "--hold";

/// The kinds of brigades: the name in the table, and whether members have pipes, which limits their
/// number.
pub(crate) const KINDS: &[(&str, bool)] = &[
    ("bare loop, pipes", true),
    ("one thread, pipes", true),
    ("machines, pipes", true),
    ("tokio current thread, pipes", true),
    ("tokio multi-threaded, pipes", true),
    ("threads, pipes", true),
    ("machines, notifiers", false),
    ("tokio current thread, notifiers", false),
];

pub(crate) fn measure(bench: &mut Bench) {
    bench.line("\n## Memory of one member of a brigade, by regression over four sizes\n");
    bench.line("| | sizes | KiB of private memory, each | KiB of it at the largest |");
    bench.line("|--|--|--:|--:|");
    for (kind, has_pipes) in KINDS {
        let sizes = bench.pick(
            if *has_pipes {
                [2_000, 5_000, 7_000, 9_500]
            } else {
                [50_000, 100_000, 150_000, 250_000]
            },
            [10, 20, 30, 40],
        );
        match sizes.iter().map(|size| held(kind, *size)).collect::<Result<Vec<f64>, String>>() {
            Ok(kib) => {
                let points: Vec<(f64, f64)> =
                    sizes.iter().map(|size| *size as f64).zip(kib.iter().copied()).collect();
                let largest = kib.last().copied().unwrap_or(f64::NAN);
                bench.line(&format!(
                    "| {kind} | {sizes:?} | {:.3} | {largest:.0} |",
                    slope(&points)
                ));
            }
            Err(why) => {
                bench.not_measured(&format!("| {kind} | {sizes:?} | not measured: {why} | |"));
            }
        }
    }
}

/// Returns the KiB of private memory of a process that holds a brigade.
fn held(kind: &str, members: usize) -> Result<f64, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let mut child = Command::new(program)
        .args([HOLD, kind, &members.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let kib = private_kib(&mut child);
    // The process ends when its input does.
    drop(child.stdin.take());
    child.wait().map_err(|error| error.to_string())?;
    kib.ok_or_else(|| format!("{members} could not be held here"))
}

fn private_kib(child: &mut Child) -> Option<f64> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    if line != "held\n" {
        return None;
    }
    let status = fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let line = status.lines().find(|line| line.starts_with("RssAnon:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the slope by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
    let above: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let below: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    above / below
}

/// Holds a brigade after this many hops. Without a number, after two rounds, so that what a member
/// allocates when it first works is included.
pub(crate) fn hold(arguments: &[String]) -> ExitCode {
    let [kind, members, hops @ ..] = arguments else { return ExitCode::FAILURE };
    let Ok(members) = members.parse() else { return ExitCode::FAILURE };
    let hops = match hops {
        [] => Ok(2 * members as u64),
        [hops, ..] => hops.parse(),
    };
    let Ok(hops) = hops else { return ExitCode::FAILURE };
    raise_descriptor_limit();
    let mut brigade: Box<dyn Brigade> = match kind.as_str() {
        "bare loop, pipes" => Box::new(bare::Pipes::new(members)),
        "one thread, pipes" => Box::new(one_thread::Pipes::new(members)),
        "machines, pipes" => Box::new(machines::pipes(members)),
        "tokio current thread, pipes" => Box::new(tasks::pipes(one_thread(), members)),
        "tokio multi-threaded, pipes" => Box::new(tasks::pipes(many_threads(), members)),
        "threads, pipes" => Box::new(threads::Pipes::new(members, false)),
        "machines, notifiers" => Box::new(machines::notifiers(members)),
        "tokio current thread, notifiers" => Box::new(tasks::notifiers(one_thread(), members)),
        _ => return ExitCode::FAILURE,
    };
    brigade.hops(hops);
    println!("held");
    // Until the caller has read the memory.
    let mut rest = Vec::new();
    match std::io::stdin().read_to_end(&mut rest) {
        Ok(_) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// Raises the limit of descriptors as far as the system allows, because each member has a pipe.
pub(crate) fn raise_descriptor_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        eprintln!("the limit of descriptors stays: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn a_slope_is_found_through_noise_that_cancels_out() {
        assert_eq!(slope(&[(1.0, 3.0), (2.0, 5.0), (3.0, 7.0)]), 2.0);
        assert!((slope(&[(1.0, 3.1), (2.0, 4.9), (3.0, 4.9 + 2.2)]) - 2.0).abs() < 0.01);
    }
}
