//! A service that parses a body, waits as for a database, and answers: the cost of doing that in
//! the thread that handles requests, on a pool, or with only the parsing on the pool.
//!
//! The servers are those of `benches/peers/json` and `benches/peers/go/json`; such services are
//! known from rkusa's article `rust-async-web-bench`. Contenders take turns, round after round.
//! Ratios are of the CPU time per request, to the first server in the same way and round.

mod contender;
mod options;
mod payload;
mod sample;

use std::error::Error;

pub use options::{Options, USAGE};

use crate::compare::{Outcome, machine};
use crate::process::raise_descriptor_limit;
use crate::spread::Spread;
use crate::table::Table;
use contender::{Contender, contenders};
use payload::Body;
use sample::{Sample, sample};

type BoxError = Box<dyn Error + Send + Sync>;

/// A generator that worked for this share of the time was at its limit.
const SATURATED: f64 = 0.95;

/// Builds and runs the requested services, and makes a table for each body and delay.
///
/// # Errors
///
/// A server cannot be built or started, or answers wrongly.
pub fn run(options: &Options) -> Result<Outcome, BoxError> {
    raise_descriptor_limit()?;
    let contenders = contenders(options)?;
    let mut text = machine::describe().iter().map(|line| format!("* {line}\n")).collect::<String>();
    for body in &options.bodies {
        for delay_ms in &options.delays_ms {
            text.push_str(&compare(options, &contenders, *body, *delay_ms)?);
        }
    }
    Ok(Outcome { text, is_as_asked: true })
}

/// Compares all contenders with one body and one delay.
fn compare(
    options: &Options,
    contenders: &[Contender],
    body: Body,
    delay_ms: u64,
) -> Result<String, BoxError> {
    let payload = body.payload();
    let requests = options.requests(body, delay_ms);
    let mut samples: Vec<Vec<Sample>> = contenders.iter().map(|_| Vec::new()).collect();
    for round in 1..=options.rounds {
        eprintln!("{body}, {delay_ms} ms: round {round} of {}", options.rounds);
        for (contender, samples) in contenders.iter().zip(&mut samples) {
            let connections = options.connections;
            let taken = sample(contender, &payload, delay_ms, connections, requests)
                .map_err(|e| format!("{}, {}: {e}", contender.server, contender.way))?;
            samples.push(taken);
        }
    }
    let heading = [
        "server",
        "way",
        "total s",
        "req/s",
        "p50 ms",
        "p99 ms",
        "CPU µs/request",
        "ratio",
        "peak MiB",
        "threads",
    ];
    let mut table = Table::new(&heading);
    let mut notes = String::new();
    for (contender, own) in contenders.iter().zip(&samples) {
        let compared = contender.way.compared_with();
        let first = contenders.iter().position(|other| other.way == compared);
        table.add(row(contender, own, first.map(|first| &samples[first][..])));
        if own.iter().any(|sample| sample.generator_busy > SATURATED) {
            notes.push_str(&format!(
                "note: {}, {}: the load generator was at its end\n",
                contender.server, contender.way
            ));
        }
    }
    Ok(format!(
        "\n## {body} ({} bytes), delay {delay_ms} ms: {requests} requests on {} connections, rounds: {}\n\n{}{notes}",
        payload.bytes.len(),
        options.connections,
        options.rounds,
        table.to_markdown()
    ))
}

/// Without a first one in the same way, there is no ratio.
fn row(contender: &Contender, own: &[Sample], first: Option<&[Sample]>) -> Vec<String> {
    let median = |figure: fn(&Sample) -> f64, digits: usize| {
        let spread = Spread::of(own.iter().map(figure));
        spread.map_or_else(|| "-".to_owned(), |spread| format!("{:.digits$}", spread.median))
    };
    let ratios =
        own.iter().zip(first.unwrap_or_default()).map(|(own, first)| own.cpu_us / first.cpu_us);
    let spread = |spread: Option<Spread>, digits| {
        spread.map_or_else(|| "-".to_owned(), |spread| spread.to_text(digits))
    };
    vec![
        contender.server.to_owned(),
        contender.way.to_string(),
        median(|s| s.total_s, 2),
        median(|s| s.requests_per_second, 0),
        median(|s| s.p50_ms, 1),
        median(|s| s.p99_ms, 1),
        spread(Spread::of(own.iter().map(|s| s.cpu_us)), 1),
        spread(Spread::of(ratios), 2),
        median(|s| s.peak_mib, 1),
        median(|s| s.threads, 0),
    ]
}
