//! Compares servers in the scenarios that are usual for this kind of system.
//!
//! The servers take turns, round after round. Ratios are made from figures of the same round, and
//! the report has the median of the rounds with the lowest and highest. Every response to the
//! built-in generator is checked to its last byte, and each server's responses are checked before
//! anything is measured. A round whose server answered wrongly, or in which the generator was the
//! bottleneck, is reported and does not count.

pub(crate) mod catalogue;
pub(crate) mod machine;
mod memory;
mod nginx;
mod options;
mod plot;
mod report;
mod rig;
mod round;
mod scenario;
mod site;
mod system_calls;

use std::error::Error;
use std::time::Duration;

pub use memory::run as run_memory;
pub use options::{Options, OptionsError, USAGE, names};

use crate::load::Generator;
use crate::process::{Cores, raise_descriptor_limit};
use catalogue::{Ready, prepare};
use report::{Report, Row};
use rig::Rig;
use scenario::{Load, Scenario};
use site::Site;

/// An error of any type.
type BoxError = Box<dyn Error + Send + Sync>;

/// The result of all comparisons.
#[derive(Debug)]
pub struct Outcome {
    /// Tables and notes.
    pub text: String,
    /// Whether all servers took part and answered correctly, or need not (without `strict`).
    pub is_as_asked: bool,
}

/// Runs the requested scenarios. Prints progress to standard error, and writes a report and a plot
/// for each.
///
/// # Errors
///
/// The system lacks something that every scenario needs, or a report cannot be written. A problem
/// of one server is a note.
pub fn run(options: &Options) -> Result<Outcome, BoxError> {
    raise_descriptor_limit()?;
    let rig = Rig {
        site: Site::create()?,
        cores: if options.pin { Some(Cores::pick()?) } else { None },
        threads: options.threads,
        time: Duration::from_secs_f64(options.seconds),
    };
    let mut notes = Vec::new();
    let servers = prepare(&options.servers, &mut notes);
    let mut outcome = Outcome {
        text: String::new(),
        is_as_asked: !options.strict || servers.len() == options.servers.len(),
    };
    for scenario in &options.scenarios {
        let report = compare(scenario, &servers, &rig, options, notes.clone())?;
        outcome.text.push_str(&report.to_text());
        outcome.is_as_asked &= !options.strict || report.right_servers() == servers.len();
        if let Some(directory) = &options.out {
            report.write(directory)?;
        }
    }
    Ok(outcome)
}

/// Runs one scenario with all servers.
fn compare(
    scenario: &'static Scenario,
    servers: &[Ready],
    rig: &Rig,
    options: &Options,
    mut notes: Vec<String>,
) -> Result<Report, BoxError> {
    eprintln!("{}: {}", scenario.name, scenario.what);
    let mut rows = Vec::new();
    for server in servers {
        match check(scenario, server, rig) {
            Ok(()) => rows.push(Row::new(server)),
            Err(why) => {
                notes.push(format!("{} does not take part: {}", server.name(), with_causes(&*why)))
            }
        }
    }
    let rate = match (&scenario.load, rows.first()) {
        (Load::Open { connections }, Some(first)) => Some(match options.rate {
            Some(rate) => rate,
            None => half_of_peak(scenario, *connections, first.server, rig)?,
        }),
        _ => None,
    };
    for round in 1..=options.rounds {
        eprintln!("  round {round} of {}", options.rounds);
        for row in &mut rows {
            row.add(round::sample(scenario, row.server, rig, rate));
        }
    }
    for row in &mut rows {
        match system_calls::per_request(scenario, row.server, rig) {
            Ok(calls) => row.system_calls = calls,
            Err(e) => notes.push(format!("{}: system calls not counted: {e}", row.server.name())),
        }
    }
    notes.extend(report::notes(&rows));
    Ok(Report::new(scenario, options, rate, rows, notes))
}

/// Checks whether a server answers what the scenario requests, before anything is measured.
fn check(scenario: &Scenario, server: &Ready, rig: &Rig) -> Result<(), BoxError> {
    if let Some(why) = server.cannot(scenario) {
        return Err(why.into());
    }
    scenario.load.is_possible()?;
    let running = server.start(scenario, rig)?;
    let address = running.address();
    Generator::open(address, 4, 1, scenario.task.exchange(address))?.run(8)?;
    Ok(())
}

/// Returns the rate for an open loop: half of what the first server, the yardstick, reaches in a
/// closed loop. All servers get the same rate; if one does not keep up, that is reported.
fn half_of_peak(
    scenario: &Scenario,
    connections: usize,
    server: &Ready,
    rig: &Rig,
) -> Result<f64, BoxError> {
    let running = round::start(scenario, server, rig)?;
    let address = running.address();
    let mut generator = Generator::open(address, connections, 1, scenario.task.exchange(address))?;
    generator.run_for(rig.warm_up())?;
    let run = generator.run_for(rig.time)?;
    Ok(run.requests as f64 / run.wall.as_secs_f64() / 2.0)
}

/// Returns an error and its causes on one line.
fn with_causes(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |&error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}
