//! Batches of blocking work: rotor's ways compared with tokio's, a pool on crossbeam's channel, and
//! the crates `blocking` and `blocking-permit`.
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
//! A batch is 100 jobs, or 200 of `sleep`; the next one begins when all results have arrived. Each
//! contender is a process of its own, so that it is not affected by the threads and the memory of
//! the others. They take turns, nine rounds each, and sleep in between. Four threads run the jobs
//! of `noop` and `expensive` (which sorts 300 numbers), forty those of `sleep` (1 µs plus an
//! exponentially distributed time of 12 µs on average, at most 49 µs). Figures are medians per
//! batch in microseconds: wall-clock time, with the lowest and the highest, and CPU time of the
//! process. The ratio is that of the wall-clock time to the row `tokio ct` (or the first row, if
//! that is left out), the median over the rounds.

mod measure;
mod ours;
mod peers;
mod process;
mod sections;
mod turns;
mod work;

use crate::work::Work;

const ROUNDS: usize = 9;

/// A way to run batches: its name, and a function that sets it up.
pub(crate) type Contender = (&'static str, Box<dyn FnOnce() -> Run>);

/// Runs this many batches, and returns the sum of their results.
pub(crate) type Run = Box<dyn Fn(usize) -> u64>;

fn main() {
    let mut arguments = std::env::args().skip(1);
    match arguments.next() {
        Some(name) if name == "turns" => turns::compare(),
        Some(name) if name == process::CONTENDER => {
            let (work, name) = (arguments.next(), arguments.next());
            let work = work.and_then(|work| Work::named(&work)).expect("noop, expensive or sleep");
            process::serve(work, &name.expect("the name of a contender"));
        }
        Some(name) => {
            let work = Work::named(&name).expect("noop, expensive or sleep");
            let batches = arguments.next().and_then(|count| count.parse().ok());
            let part = arguments.next().unwrap_or_default();
            compare(work, batches.unwrap_or(work.batches()), &part);
        }
        None => {
            for work in Work::ALL {
                compare(work, work.batches(), "");
            }
            turns::compare();
        }
    }
}

fn compare(work: Work, batches: usize, part: &str) {
    println!(
        "{}, {} jobs a batch, {} threads, {batches} batches a round",
        work.name(),
        work.jobs(),
        work.threads()
    );
    println!("{:<22}{:>32}{:>12}{:>10}", "", "µs a batch", "CPU", "ratio");
    let mut contenders = process::all(work, part);
    let mut figures: Vec<Vec<(f64, f64)>> = contenders.iter().map(|_| Vec::new()).collect();
    for (_, process) in &mut contenders {
        process.batches(batches.div_ceil(10)); // threads are started, memory is there
    }
    for _ in 0..ROUNDS {
        for ((_, process), figures) in contenders.iter_mut().zip(&mut figures) {
            figures.push(process.batches(batches));
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

/// Returns all contenders of this program.
fn contenders(work: Work) -> Vec<Contender> {
    let mut contenders = ours::contenders(work);
    contenders.extend(sections::contenders(work));
    contenders.extend(peers::contenders(work));
    contenders
}

fn sorted(figures: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut figures: Vec<f64> = figures.collect();
    figures.sort_by(f64::total_cmp);
    figures
}
