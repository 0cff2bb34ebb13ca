//! CPU time of the server per request. The speed of a shared machine drifts by a fifth within minutes, so the servers
//! take turns, a ratio is made of figures of the same round, and what is reported is the median of the rounds with the
//! lowest and the highest beside it.

use super::table::Table;
use super::{MeasureError, PATIENCE};
use crate::arguments::{Arguments, ServerCommand};
use crate::load::Generator;
use crate::process::{Cores, cpu_times};
use crate::server::Server;

/// A server or generator that has worked for this share of the time has set the pace.
const BUSY: f64 = 0.90;

/// One server in one round.
struct Sample {
    total_us: f64,
    user_us: f64,
    requests_per_second: f64,
    /// Shares of the wall-clock time; a server of several threads may have more than one whole.
    server_busy: f64,
    generator_busy: f64,
}

pub(super) fn run(arguments: &Arguments) -> Result<String, MeasureError> {
    let cores = if arguments.pin { Some(Cores::pick()?) } else { None };
    let mut samples: Vec<Vec<Sample>> = arguments.servers.iter().map(|_| Vec::new()).collect();
    for _ in 0..arguments.rounds {
        for (server, samples) in arguments.servers.iter().zip(&mut samples) {
            samples.push(sample(arguments, server, cores)?);
        }
    }
    let heading = [
        "server",
        "CPU µs/request",
        "ratio",
        "user µs",
        "user ratio",
        "requests/s",
        "server busy",
        "generator",
    ];
    let mut table = Table::new(&heading);
    let mut notes = String::new();
    for (server, own) in arguments.servers.iter().zip(&samples) {
        table.add(row(server, own, &samples[0]));
        if let Some(note) = pace_note(own) {
            notes.push_str(&format!("note: {}: {note}\n", server.label()));
        }
    }
    Ok(table.to_markdown() + &notes)
}

/// What is to be said where it was not the server that set the pace.
fn pace_note(samples: &[Sample]) -> Option<&'static str> {
    if of(samples, |s| s.server_busy).median >= BUSY {
        None
    } else if of(samples, |s| s.generator_busy).median >= BUSY {
        Some("the load generator was the bottleneck: requests/s say nothing about the server")
    } else {
        Some("neither it nor the load generator was busy: the machine has other work, or its cores slept")
    }
}

fn row(server: &ServerCommand, own: &[Sample], first: &[Sample]) -> Vec<String> {
    let ratio = |figure: fn(&Sample) -> f64| {
        Spread::of(own.iter().zip(first).map(|(own, first)| figure(own) / figure(first)).collect())
    };
    vec![
        server.label(),
        of(own, |s| s.total_us).to_text(2),
        ratio(|s| s.total_us).to_text(2),
        of(own, |s| s.user_us).to_text(2),
        ratio(|s| s.user_us).to_text(2),
        of(own, |s| s.requests_per_second).to_text(0),
        format!("{:.0} %", 100.0 * of(own, |s| s.server_busy).median),
        format!("{:.0} %", 100.0 * of(own, |s| s.generator_busy).median),
    ]
}

fn sample(
    arguments: &Arguments,
    server: &ServerCommand,
    cores: Option<Cores>,
) -> Result<Sample, MeasureError> {
    // A child inherits the cores of the thread that starts it, with no moment in between.
    cores.as_ref().map_or(Ok(()), Cores::enter_server)?;
    let running = Server::start(server.command(), PATIENCE).map_err(|e| MeasureError::server(server, e))?;
    cores.as_ref().map_or(Ok(()), Cores::enter_generator)?;

    let failed = |e| MeasureError::server(server, e);
    let mut generator =
        Generator::connect(running.address(), arguments.connections, arguments.pipeline).map_err(failed)?;
    // Caches, allocator and branch predictors settle outside the measured time.
    generator.run(arguments.requests.div_ceil(10)).map_err(failed)?;
    let before = cpu_times(running.pid())?;
    let run = generator.run(arguments.requests).map_err(failed)?;
    let used = cpu_times(running.pid())?.since(&before);

    let (requests, wall) = (run.requests as f64, run.wall.as_secs_f64());
    Ok(Sample {
        total_us: used.total().as_secs_f64() * 1e6 / requests,
        user_us: used.user.as_secs_f64() * 1e6 / requests,
        requests_per_second: requests / wall,
        server_busy: used.total().as_secs_f64() / wall,
        generator_busy: run.generator.as_secs_f64() / wall,
    })
}

fn of(samples: &[Sample], figure: impl Fn(&Sample) -> f64) -> Spread {
    Spread::of(samples.iter().map(figure).collect())
}

/// A figure over several rounds.
#[derive(Debug, PartialEq)]
struct Spread {
    lowest: f64,
    median: f64,
    highest: f64,
}

impl Spread {
    /// Of at least one figure; of an even number, the upper of the two in the middle.
    fn of(mut figures: Vec<f64>) -> Spread {
        figures.sort_by(f64::total_cmp);
        Spread { lowest: figures[0], median: figures[figures.len() / 2], highest: figures[figures.len() - 1] }
    }

    fn to_text(&self, digits: usize) -> String {
        let Spread { lowest, median, highest } = self;
        if !median.is_finite() {
            return "-".to_owned(); // A run shorter than the clock's tick divides by zero.
        }
        format!("{median:.digits$} ({lowest:.digits$}–{highest:.digits$})")
    }
}

#[cfg(test)]
mod tests {
    use super::Spread;

    #[test]
    fn a_spread_has_the_median_between_its_ends() {
        let spread = Spread::of(vec![3.0, 1.0, 2.0]);
        assert_eq!(spread, Spread { lowest: 1.0, median: 2.0, highest: 3.0 });
        assert_eq!(spread.to_text(1), "2.0 (1.0–3.0)");
    }
}
