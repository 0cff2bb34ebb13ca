//! Rounds, medians and tables.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
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

/// How much to measure, and where the tables are written: to standard output, and to a file if one
/// is given.
pub(crate) struct Bench {
    effort: Effort,
    out: Option<File>,
}

impl Bench {
    /// Begins a bench. A file begins with where its figures come from.
    pub(crate) fn new(effort: Effort, out: Option<&Path>) -> io::Result<Bench> {
        let mut out = out.map(File::create).transpose()?;
        if let Some(out) = &mut out {
            writeln!(out, "{}", provenance())?;
        }
        Ok(Bench { effort, out })
    }

    pub(crate) fn pick<T>(&self, whole: T, smoke: T) -> T {
        self.effort.pick(whole, smoke)
    }

    /// Writes a row that says why it has no figures. Little work can be done everywhere, so then
    /// this is a failure.
    ///
    /// # Panics
    ///
    /// The effort is `Smoke`.
    pub(crate) fn not_measured(&mut self, row: &str) {
        assert_eq!(self.effort, Effort::Whole, "{row}");
        self.line(row);
    }

    /// Writes one more line of Markdown.
    pub(crate) fn line(&mut self, line: &str) {
        println!("{line}");
        if let Some(out) = &mut self.out {
            writeln!(out, "{line}").expect("the file of figures can be written");
        }
    }

    /// Lets the contenders take turns, and prints the results.
    pub(crate) fn compare(&mut self, title: &str, unit: &str, mut contenders: Vec<Contender>) {
        for contender in &mut contenders {
            // Warms up caches, allocator and branch predictors before the measured time.
            (contender.run)((contender.operations / 10).max(1));
        }
        for _ in 0..self.effort.rounds() {
            for contender in &mut contenders {
                contender.round();
            }
        }
        self.line(&format!("\n## {title}\n"));
        self.line(&format!(
            "| | {unit}, by the clock | mean ± deviation | ratio | CPU time | ratio |"
        ));
        self.line("|--|--:|--:|--:|--:|--:|");
        let [first, ..] = &contenders[..] else { return };
        for contender in &contenders {
            self.line(&format!(
                "| {} | {} | {} | {:.2} | {} | {:.2} |",
                contender.name,
                text(&contender.clock),
                mean_text(&contender.clock),
                ratio(&contender.clock, &first.clock),
                text(&contender.cpu),
                ratio(&contender.cpu, &first.cpu),
            ));
        }
    }
}

/// Returns date, machine, kernel, compiler, commit and command; what cannot be determined is left
/// out.
fn provenance() -> String {
    let answer = |program: &str, arguments: &[&str]| -> Option<String> {
        let output = Command::new(program).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let processors = std::thread::available_parallelism().ok();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let facts = [
        answer("date", &["-u", "+%F %R UTC"]),
        processor,
        processors.map(|count| format!("{count} processors")),
        answer("uname", &["-sr"]),
        answer("rustc", &["--version"]),
        answer("git", &["describe", "--always", "--dirty"])
            .map(|commit| format!("commit {commit}")),
        Some(format!("`cargo run --release -p machines -- {}`", arguments.join(" "))),
    ];
    facts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// One of the things that are compared.
pub(crate) struct Contender {
    name: &'static str,
    /// Does this many operations.
    run: Box<dyn FnMut(u64)>,
    operations: u64,
    /// Nanoseconds per operation, for each round.
    clock: Vec<f64>,
    cpu: Vec<f64>,
}

/// Makes a contender that does this many operations in each round.
pub(crate) fn contender(
    name: &'static str,
    operations: u64,
    run: impl FnMut(u64) + 'static,
) -> Contender {
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

/// Returns the median of the ratios of the same round.
fn ratio(ours: &[f64], first: &[f64]) -> f64 {
    median(ours.iter().zip(first).map(|(ours, first)| ours / first).collect()).1
}

fn text(nanos: &[f64]) -> String {
    let (lowest, median, highest) = median(nanos.to_vec());
    format!("{median:.1} ({lowest:.1} – {highest:.1})")
}

fn mean_text(nanos: &[f64]) -> String {
    let (mean, deviation) = mean(nanos);
    format!("{mean:.1} ± {deviation:.1}")
}

/// Returns the mean, and the sample's standard deviation, which is zero for a single value.
fn mean(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / (count - 1.0).max(1.0)).sqrt())
}

/// Returns the lowest, the median, and the highest.
fn median(mut values: Vec<f64>) -> (f64, f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied().unwrap_or(f64::NAN);
    (at(0), at(values.len() / 2), at(values.len().saturating_sub(1)))
}

/// Returns user and system time of all threads of the process so far.
fn cpu_nanos() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}

/// Makes a runtime with as many workers as tokio uses by default.
pub(crate) fn many_threads() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

pub(crate) fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ratios_are_of_the_same_round() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), (1.0, 2.0, 3.0));
        assert_eq!(ratio(&[2.0, 40.0, 6.0], &[1.0, 20.0, 3.0]), 2.0);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(mean(&[2.0, 4.0, 4.0, 6.0]), (4.0, (8.0_f64 / 3.0).sqrt()));
        assert_eq!(mean(&[7.0]), (7.0, 0.0));
    }

    #[test]
    fn a_file_of_figures_says_where_they_are_from() {
        let path = std::env::temp_dir().join(format!("machines-figures-{}.md", std::process::id()));
        let mut bench = Bench::new(Effort::Smoke, Some(&path)).expect("there is room");
        bench.compare(
            "A title",
            "ns a nothing",
            vec![contender("first", 10, |_| {}), contender("second", 10, |_| {})],
        );
        let text = std::fs::read_to_string(&path).expect("it was written");
        std::fs::remove_file(&path).expect("it is there");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("cargo run --release -p machines"), "{text}");
        assert_eq!(lines[2], "## A title");
        assert!(
            lines[6].starts_with("| first | ") && lines[7].starts_with("| second | "),
            "{text}"
        );
    }
}
