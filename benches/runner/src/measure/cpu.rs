//! CPU time of the server per request. The speed of a shared machine varies by a fifth within
//! minutes, so the servers take turns, a ratio is made from figures of the same round, and the
//! report has the median of the rounds with the lowest and the highest.

use super::{MeasureError, PATIENCE};
use crate::arguments::{Arguments, ServerCommand};
use crate::load::Generator;
use crate::process::{Cores, cpu_times};
use crate::server::Server;
use crate::spread::Spread;
use crate::table::Table;

/// A server or generator that worked for this share of the time was the bottleneck.
const BUSY: f64 = 0.90;

/// One server in one round.
struct Sample {
    total_us: f64,
    user_us: f64,
    requests_per_second: f64,
    /// Shares of the wall-clock time; a server with several threads may exceed one.
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

/// Returns a note if the server was not the bottleneck.
fn pace_note(samples: &[Sample]) -> Option<&'static str> {
    if median(samples, |s| s.server_busy) >= BUSY {
        None
    } else if median(samples, |s| s.generator_busy) >= BUSY {
        Some("the load generator was the bottleneck: requests/s say nothing about the server")
    } else {
        Some(
            "neither it nor the load generator was busy: the machine has other work, or its cores slept",
        )
    }
}

fn row(server: &ServerCommand, own: &[Sample], first: &[Sample]) -> Vec<String> {
    let figure = |figure: fn(&Sample) -> f64, digits| text(own.iter().map(figure), digits);
    let ratio = |figure: fn(&Sample) -> f64| {
        text(own.iter().zip(first).map(|(own, first)| figure(own) / figure(first)), 2)
    };
    vec![
        server.label(),
        figure(|s| s.total_us, 2),
        ratio(|s| s.total_us),
        figure(|s| s.user_us, 2),
        ratio(|s| s.user_us),
        figure(|s| s.requests_per_second, 0),
        format!("{:.0} %", 100.0 * median(own, |s| s.server_busy)),
        format!("{:.0} %", 100.0 * median(own, |s| s.generator_busy)),
    ]
}

fn sample(
    arguments: &Arguments,
    server: &ServerCommand,
    cores: Option<Cores>,
) -> Result<Sample, MeasureError> {
    // A child inherits the cores of the thread that starts it, from its first moment.
    cores.as_ref().map_or(Ok(()), Cores::enter_server)?;
    let running =
        Server::start(server.command(), PATIENCE).map_err(|e| MeasureError::server(server, e))?;
    cores.as_ref().map_or(Ok(()), Cores::enter_generator)?;

    let failed = |e| MeasureError::server(server, e);
    let mut generator =
        Generator::connect(running.address(), arguments.connections, arguments.pipeline)
            .map_err(failed)?;
    // Warms up caches, allocator and branch predictors before the measured time.
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

/// Formats `median (lowest–highest)`; a run shorter than the clock's tick has none.
fn text(figures: impl Iterator<Item = f64>, digits: usize) -> String {
    Spread::of(figures).map_or_else(|| "-".to_owned(), |spread| spread.to_text(digits))
}

fn median(samples: &[Sample], figure: fn(&Sample) -> f64) -> f64 {
    Spread::of(samples.iter().map(figure)).map_or(f64::NAN, |spread| spread.median)
}
