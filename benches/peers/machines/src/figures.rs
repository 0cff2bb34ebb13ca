//! Rounds, medians and tables.

use std::time::Instant;

use rustix::time::{ClockId, clock_gettime};

/// How much to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effort {
    Whole,
    /// Once, with little work.
    Smoke,
}

impl Effort {
    pub(crate) fn pick<T>(self, whole: T, smoke: T) -> T {
        match self {
            Effort::Whole => whole,
            Effort::Smoke => smoke,
        }
    }

    fn rounds(self) -> usize {
        self.pick(7, 1)
    }
}

/// One of those that are compared.
pub(crate) struct Contender {
    name: &'static str,
    /// Does so many operations.
    run: Box<dyn FnMut(u64)>,
    operations: u64,
    /// Nanoseconds for each operation, round by round.
    clock: Vec<f64>,
    cpu: Vec<f64>,
}

/// A contender that does so many operations in each round.
pub(crate) fn contender(name: &'static str, operations: u64, run: impl FnMut(u64) + 'static) -> Contender {
    Contender { name, run: Box::new(run), operations, clock: Vec::new(), cpu: Vec::new() }
}

impl Contender {
    fn round(&mut self) {
        let (clock, cpu) = (Instant::now(), cpu_nanos());
        (self.run)(self.operations);
        self.cpu.push((cpu_nanos() - cpu) / self.operations as f64);
        self.clock.push(clock.elapsed().as_nanos() as f64 / self.operations as f64);
    }
}

/// Has the contenders take turns, and prints what came of it.
pub(crate) fn compare(title: &str, unit: &str, effort: Effort, mut contenders: Vec<Contender>) {
    for contender in &mut contenders {
        // Caches, allocator and branch predictors settle outside the measured time.
        (contender.run)((contender.operations / 10).max(1));
    }
    for _ in 0..effort.rounds() {
        for contender in &mut contenders {
            contender.round();
        }
    }
    println!("\n## {title}\n");
    println!("| | {unit}, by the clock | ratio | CPU time | ratio |");
    println!("|--|--:|--:|--:|--:|");
    let [first, ..] = &contenders[..] else { return };
    for contender in &contenders {
        println!(
            "| {} | {} | {:.2} | {} | {:.2} |",
            contender.name,
            text(&contender.clock),
            ratio(&contender.clock, &first.clock),
            text(&contender.cpu),
            ratio(&contender.cpu, &first.cpu),
        );
    }
}

/// The median of the ratios of the same round.
fn ratio(ours: &[f64], first: &[f64]) -> f64 {
    median(ours.iter().zip(first).map(|(ours, first)| ours / first).collect()).1
}

fn text(nanos: &[f64]) -> String {
    let (lowest, median, highest) = median(nanos.to_vec());
    format!("{median:.1} ({lowest:.1} – {highest:.1})")
}

/// The lowest, the median, the highest.
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(0), at(values.len() / 2), at(values.len().saturating_sub(1)))
}

/// User and system time of all threads of the process so far.
fn cpu_nanos() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// As many workers as tokio would start by itself.
pub(crate) fn many_threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[cfg(test)]
mod tests {
    use super::{median, ratio};

    #[test]
    fn ratios_are_of_the_same_round() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), (1.0, 2.0, 3.0));
        assert_eq!(ratio(&[2.0, 40.0, 6.0], &[1.0, 20.0, 3.0]), 2.0);
    }
}
