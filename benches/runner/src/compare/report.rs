//! The results of a comparison: tables as Markdown, and a plot.

use std::fs;
use std::path::Path;

use super::catalogue::Ready;
use super::options::Options;
use super::plot::{Bar, Plot};
use super::round::Sample;
use super::scenario::{Load, Scenario};
use super::{BoxError, machine, with_causes};
use crate::spread::Spread;
use crate::table::Table;

/// A figure of a sample.
type Figure = fn(&Sample) -> f64;

/// One server in all rounds.
pub(super) struct Row<'a> {
    pub(super) server: &'a Ready,
    rounds: Vec<Result<Sample, String>>,
    pub(super) system_calls: f64,
}

impl<'a> Row<'a> {
    pub(super) fn new(server: &'a Ready) -> Row<'a> {
        Row { server, rounds: Vec::new(), system_calls: f64::NAN }
    }

    pub(super) fn add(&mut self, sample: Result<Sample, BoxError>) {
        self.rounds.push(sample.map_err(|e| with_causes(&*e)));
    }

    /// Returns the rounds that do not count, and why.
    fn faults(&self) -> Option<String> {
        let faults: Vec<&str> = self.rounds.iter().filter_map(fault).collect();
        let (first, count, all) = (faults.first()?, faults.len(), self.rounds.len());
        Some(format!("{}: {count} of {all} rounds do not count: {first}", self.server.name()))
    }

    /// Returns whether in most rounds neither the server nor the generator was the bottleneck.
    fn was_not_busy(&self) -> bool {
        let idle = self
            .rounds
            .iter()
            .filter(|round| round.as_ref().is_ok_and(Sample::neither_was_busy))
            .count();
        idle * 2 > self.rounds.len()
    }

    fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(self.rounds.iter().filter_map(counted).map(figure))
    }

    /// Returns the ratio to the first row, from figures of the same round.
    fn ratio(&self, first: &Row<'_>, figure: Figure) -> Option<Spread> {
        let pairs = self.rounds.iter().map(counted).zip(first.rounds.iter().map(counted));
        Spread::of(pairs.filter_map(|(own, first)| Some(figure(own?) / figure(first?))))
    }

    /// `median (lowest–highest) ×ratio`.
    fn cell(&self, first: &Row<'_>, figure: Figure, digits: usize) -> String {
        let Some(spread) = self.spread(figure) else { return "-".to_owned() };
        let ratio = self.ratio(first, figure).map(|ratio| format!(" ×{:.2}", ratio.median));
        spread.to_text(digits) + &ratio.unwrap_or_default()
    }
}

/// Returns notes: what does not count, and what should be known about the rest.
pub(super) fn notes(rows: &[Row<'_>]) -> Vec<String> {
    let mut notes: Vec<String> = rows.iter().filter_map(Row::faults).collect();
    let idle: Vec<&str> =
        rows.iter().filter(|row| row.was_not_busy()).map(|row| row.server.name()).collect();
    if !idle.is_empty() {
        notes.push(format!(
            "neither server nor load generator was busy (the machine had other work, or its cores slept), so that pace \
             and latency say little: {}",
            idle.join(", "),
        ));
    }
    notes
}

/// Returns the sample of a round that counts.
fn counted(round: &Result<Sample, String>) -> Option<&Sample> {
    round.as_ref().ok().filter(|sample| sample.fault.is_none())
}

/// Returns why a round does not count.
fn fault(round: &Result<Sample, String>) -> Option<&str> {
    match round {
        Ok(sample) => sample.fault,
        Err(why) => Some(why),
    }
}

/// A scenario's results.
pub(super) struct Report {
    name: String,
    title: String,
    conditions: Vec<String>,
    cost: Table,
    pace: Table,
    notes: Vec<String>,
    plot: Plot,
    /// How many servers took part and answered correctly in every round.
    right_servers: usize,
}

impl Report {
    pub(super) fn new(
        scenario: &Scenario,
        options: &Options,
        rate: Option<f64>,
        rows: Vec<Row<'_>>,
        notes: Vec<String>,
    ) -> Report {
        let mut conditions = machine::describe();
        let cores =
            if options.pin { "server and load generator on a core each" } else { "nothing pinned" };
        conditions.push(format!(
            "Rounds: {} of {} s for each server in turn, {} server thread(s) where there is a choice, {cores}",
            options.rounds, options.seconds, options.threads,
        ));
        if let Some(rate) = rate {
            conditions.push(format!("Rate: {rate:.0} requests per second"));
        }
        let title = format!("{}: {}", scenario.name, scenario.what);
        Report {
            name: format!("{}{}", scenario.name, options.suffix()),
            plot: plot(&title, scenario, &rows),
            title,
            conditions,
            cost: cost_table(&rows),
            pace: pace_table(&rows),
            notes,
            right_servers: rows.iter().filter(|row| row.rounds.iter().all(Result::is_ok)).count(),
        }
    }

    pub(super) fn right_servers(&self) -> usize {
        self.right_servers
    }

    /// Returns the text for the terminal.
    pub(super) fn to_text(&self) -> String {
        format!(
            "\n{}\n\n{}\n{}{}",
            self.title,
            self.cost.to_markdown(),
            self.pace.to_markdown(),
            self.notes_list()
        )
    }

    /// Writes the report and the plot.
    pub(super) fn write(&self, directory: &Path) -> Result<(), BoxError> {
        fs::create_dir_all(directory)?;
        let Report { name, title, conditions, cost, pace, .. } = self;
        let conditions: String = conditions.iter().map(|line| format!("* {line}\n")).collect();
        let text = format!(
            "# {title}\n\n{conditions}\nMedian of the rounds (lowest–highest) × ratio to the first server in the same \
             round.\n\n{}\n{}{}\n![{title}]({name}.svg)\n",
            cost.to_markdown(),
            pace.to_markdown(),
            self.notes_list(),
        );
        fs::write(directory.join(format!("{name}.md")), text)?;
        self.plot.write(&directory.join(format!("{name}.svg")))
    }

    fn notes_list(&self) -> String {
        if self.notes.is_empty() {
            return String::new();
        }
        let lines: String = self.notes.iter().map(|note| format!("* {note}\n")).collect();
        format!("\n{lines}")
    }
}

fn cost_table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&[
        "server",
        "CPU µs/request",
        "user µs/request",
        "system calls/request",
        "resident MiB",
    ]);
    for row in rows {
        let calls = match row.system_calls / rows[0].system_calls {
            ratio if ratio.is_finite() => format!("{:.2} ×{ratio:.2}", row.system_calls),
            _ if row.system_calls.is_finite() => format!("{:.2}", row.system_calls),
            _ => "-".to_owned(),
        };
        table.add(vec![
            row.server.name().to_owned(),
            row.cell(&rows[0], |sample| sample.cpu_us, 2),
            row.cell(&rows[0], |sample| sample.user_us, 2),
            calls,
            row.cell(&rows[0], |sample| sample.resident_mib, 1),
        ]);
    }
    table
}

fn pace_table(rows: &[Row<'_>]) -> Table {
    let mut table = Table::new(&[
        "server",
        "requests/s",
        "p50 µs",
        "p99 µs",
        "p99.9 µs",
        "server busy",
        "generator",
    ]);
    for row in rows {
        let share = |figure: Figure| {
            row.spread(figure)
                .map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", 100.0 * share.median))
        };
        table.add(vec![
            row.server.name().to_owned(),
            row.cell(&rows[0], |sample| sample.requests_per_second, 0),
            row.cell(&rows[0], |sample| sample.latency_us[0], 0),
            row.cell(&rows[0], |sample| sample.latency_us[1], 0),
            row.cell(&rows[0], |sample| sample.latency_us[2], 0),
            share(|sample| sample.server_busy),
            share(|sample| sample.generator_busy),
        ]);
    }
    table
}

/// Plots CPU time with user time as its part; if the rate is given, the resulting latency.
fn plot(title: &str, scenario: &Scenario, rows: &[Row<'_>]) -> Plot {
    let (axis, whole, part): (_, Figure, Figure) = match scenario.load {
        Load::Open { .. } => {
            ("latency, µs: 99th percentile, dark: median", |s| s.latency_us[1], |s| s.latency_us[0])
        }
        _ => ("server CPU per request, µs; dark: in its own code", |s| s.cpu_us, |s| s.user_us),
    };
    let bars = rows.iter().filter_map(|row| {
        let part = row.spread(part).map_or(0.0, |part| part.median);
        Some(Bar { label: row.server.name().to_owned(), whole: row.spread(whole)?, part })
    });
    Plot { title: title.to_owned(), axis: axis.to_owned(), bars: bars.collect() }
}
