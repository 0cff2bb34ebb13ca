//! Batches of blocking work: rotor's ways beside tokio's, a pool on crossbeam's channel, and the
//! crate `blocking`.
//!
//! ```text
//! cargo run --release -p dispatch                      everything
//! cargo run --release -p dispatch -- noop              one workload: noop, expensive or sleep
//! cargo run --release -p dispatch -- noop 2000         that many batches in each round
//! cargo run --release -p dispatch -- noop 2000 rotor   of those with that in their name
//! cargo run --release -p dispatch -- turns             permits and locks
//! ```
//!
//! A batch is 100 jobs, 200 of `sleep`; the next begins when all results are there. Contenders take
//! turns, nine rounds each. Four threads run the jobs of `noop` and `expensive` (it sorts 300
//! numbers), forty those of `sleep` (1 µs and an exponential time of 12 µs on average, 49 µs at the
//! most). Figures are medians: microseconds a batch by the clock, with the lowest and the highest,
//! and of CPU time of the process. The ratio is that of the clock to the row `tokio ct` (the first
//! one, where that is left out), the median of those of the rounds.

mod ours;
mod peers;
mod turns;
mod work;

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::work::Work;

const ROUNDS: usize = 9;

/// A way to run a batch: its name, and what runs so many batches and returns the sum of results.
pub(crate) type Contender = (&'static str, Box<dyn Fn(usize) -> u64>);

fn main() {
    let mut arguments = std::env::args().skip(1);
    let batches = |work: Work| work.batches();
    match arguments.next() {
        Some(name) if name == "turns" => turns::compare(),
        Some(name) => {
            let work = Work::named(&name).expect("noop, expensive or sleep");
            let batches = arguments.next().and_then(|count| count.parse().ok());
            let part = arguments.next().unwrap_or_default();
            compare(work, batches.unwrap_or(work.batches()), &part);
        }
        None => {
            for work in Work::ALL {
                again(work, batches(work));
            }
            turns::compare();
        }
    }
}

/// Each workload has a process of its own: the crate `blocking` reads its number of threads once.
fn again(work: Work, batches: usize) {
    let program = std::env::current_exe().expect("this program has a path");
    let status = Command::new(program)
        .args([work.name(), &batches.to_string()])
        .env("BLOCKING_MAX_THREADS", work.threads().to_string())
        .status();
    assert!(status.expect("it starts").success());
}

fn compare(work: Work, batches: usize, part: &str) {
    println!(
        "{}, {} jobs a batch, {} threads, {batches} batches a round",
        work.name(),
        work.jobs(),
        work.threads()
    );
    println!("{:<22}{:>32}{:>12}{:>10}", "", "µs a batch", "CPU", "ratio");
    let mut contenders = ours::contenders(work);
    contenders.extend(peers::contenders(work));
    contenders.retain(|(name, _)| name.contains(part));
    let mut figures: Vec<Vec<(f64, f64)>> = contenders.iter().map(|_| Vec::new()).collect();
    for (_, run) in &contenders {
        run(batches.div_ceil(10)); // threads are started, memory is there
    }
    for _ in 0..ROUNDS {
        for ((name, run), figures) in contenders.iter().zip(&mut figures) {
            figures.push(measure(name, work, batches, run));
        }
    }
    let base = contenders.iter().position(|(name, _)| *name == "tokio ct").unwrap_or(0);
    let clocks: Vec<f64> = figures[base].iter().map(|figures| figures.0).collect();
    for ((name, _), figures) in contenders.iter().zip(&figures) {
        let clock = sorted(figures.iter().map(|figures| figures.0));
        let cpu = sorted(figures.iter().map(|figures| figures.1));
        let ratio = sorted(figures.iter().zip(&clocks).map(|(figures, base)| figures.0 / base));
        let text = format!("{:.0} ({:.0} – {:.0})", clock[ROUNDS / 2], clock[0], clock[ROUNDS - 1]);
        println!("{name:<22}{text:>32}{:>12.0}{:>10.2}", cpu[ROUNDS / 2], ratio[ROUNDS / 2]);
    }
    println!();
}

fn measure(name: &str, work: Work, batches: usize, run: &dyn Fn(usize) -> u64) -> (f64, f64) {
    let (begun, cpu) = (Instant::now(), cpu_time());
    assert_eq!(run(batches), (batches * work.jobs()) as u64, "{name}");
    let each = |time: Duration| time.as_secs_f64() * 1e6 / batches as f64;
    (each(begun.elapsed()), each(cpu_time() - cpu))
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}

/// User and system time of the process so far, in units of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks: u64 = [11, 12].iter().filter_map(|at| fields.get(*at)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 10)
}
