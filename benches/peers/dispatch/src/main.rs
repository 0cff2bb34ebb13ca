//! Batches of blocking work: rotor's ways beside tokio's, a pool on crossbeam's channel, and the
//! crates `blocking` and `blocking-permit`.
//!
//! ```text
//! cargo run --release -p dispatch                      everything
//! cargo run --release -p dispatch -- noop              one workload: noop, expensive or sleep
//! cargo run --release -p dispatch -- noop 2000         that many batches in each round
//! cargo run --release -p dispatch -- noop 2000 rotor   of those with that in their name
//! cargo run --release -p dispatch -- turns             permits, locks and barriers
//! cargo build --release --manifest-path dispatch/permit/Cargo.toml     blocking-permit's rows are there then
//! ```
//!
//! A batch is 100 jobs, 200 of `sleep`; the next begins when all results are there. Contenders take
//! turns, nine rounds each. Four threads run the jobs of `noop` and `expensive` (it sorts 300
//! numbers), forty those of `sleep` (1 µs and an exponential time of 12 µs on average, 49 µs at the
//! most). Figures are medians: microseconds a batch by the clock, with the lowest and the highest,
//! and of CPU time of the process. The ratio is that of the clock to the row `tokio ct` (the first
//! one, where that is left out), the median of those of the rounds.

mod measure;
mod ours;
mod peers;
mod process;
mod sections;
mod turns;
mod work;

use std::process::Command;

use crate::work::Work;

const ROUNDS: usize = 9;

/// A way to run a batch: its name, and what runs so many of them.
pub(crate) type Contender = (&'static str, Runs);

pub(crate) enum Runs {
    /// In this process. Returns the sum of results.
    Here(Box<dyn Fn(usize) -> u64>),
    /// In a process of its own, which says what a batch took by the clock and of CPU time.
    There(Box<dyn Fn(usize) -> (f64, f64)>),
}

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
    contenders.extend(sections::contenders(work));
    contenders.extend(peers::contenders(work));
    contenders.extend(process::contenders(work));
    contenders.retain(|(name, _)| name.contains(part));
    let mut figures: Vec<Vec<(f64, f64)>> = contenders.iter().map(|_| Vec::new()).collect();
    for (name, runs) in &contenders {
        measure(name, work, batches.div_ceil(10), runs); // threads are started, memory is there
    }
    for _ in 0..ROUNDS {
        for ((name, runs), figures) in contenders.iter().zip(&mut figures) {
            figures.push(measure(name, work, batches, runs));
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

fn measure(name: &str, work: Work, batches: usize, runs: &Runs) -> (f64, f64) {
    match runs {
        Runs::Here(run) => measure::batches(name, work, batches, run),
        Runs::There(run) => run(batches),
    }
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}
