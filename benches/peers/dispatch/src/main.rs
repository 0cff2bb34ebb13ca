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
//! A batch is 100 jobs, 200 of `sleep`; the next begins when all results are there. Each contender
//! is a process of its own, so that none has the threads and the memory of the others beside it;
//! they take turns, nine rounds each, and sleep meanwhile. Four threads run the jobs of `noop` and
//! `expensive` (it sorts 300 numbers), forty those of `sleep` (1 µs and an exponential time of 12
//! µs on average, 49 µs at the most). Figures are medians: microseconds a batch by the clock, with
//! the lowest and the highest, and of CPU time of the process. The ratio is that of the clock to
//! the row `tokio ct` (the first one, where that is left out), the median of those of the rounds.

mod measure;
mod ours;
mod peers;
mod process;
mod sections;
mod turns;
mod work;

use crate::work::Work;

const ROUNDS: usize = 9;

/// A way to run batches: its name, and what sets it up.
pub(crate) type Contender = (&'static str, Box<dyn FnOnce() -> Run>);

/// Runs so many batches, and returns the sum of their results.
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

/// All contenders of this program.
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
