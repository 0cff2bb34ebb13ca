//! Process memory of an idle keep-alive connection after one response: the slope of a line through
//! several numbers of connections, so that what the server needs for itself does not count.

use std::thread;
use std::time::Duration;

use super::catalogue::{Ready, prepare};
use super::options::Options;
use super::rig::Rig;
use super::scenario::{Held, Task};
use super::site::Site;
use super::{BoxError, Outcome, with_causes};
use crate::load::Generator;
use crate::load::held::Idle;
use crate::process::{Cores, raise_descriptor_limit, resident_bytes};
use crate::spread::Spread;
use crate::table::Table;

/// The numbers of connections at which memory is read. They are far enough apart that pages and
/// pools of the allocator do not matter.
const POINTS: [usize; 5] = [2_000, 4_000, 6_000, 8_000, 10_000];

/// How many connections make requests before memory is read: fewer than at the first of the points,
/// so that none of those has only memory that was used before.
const WARM_UP_CONNECTIONS: usize = 1_000;

/// How many requests these make. A server has memory that it takes once, however many connections
/// there are, but only piece by piece as it is used: a ring of buffers for what arrives, for
/// instance, or spare memory for responses. Otherwise the pieces that the first request of a
/// connection uses would count as that connection's.
const WARM_UP_REQUESTS: u64 = 50_000;

/// How long a server may take to free what a response needed.
const SETTLE_TIME: Duration = Duration::from_millis(200);

/// Measures all requested servers, in turns.
///
/// # Errors
///
/// The system lacks something necessary. A problem of one server is a note.
pub fn run(options: &Options) -> Result<Outcome, BoxError> {
    raise_descriptor_limit()?;
    let rig = Rig {
        site: Site::create()?,
        cores: if options.pin { Some(Cores::pick()?) } else { None },
        threads: options.threads,
        time: Duration::ZERO,
    };
    let mut notes = Vec::new();
    let servers = prepare(&options.servers, &mut notes);
    let mut rows: Vec<(&Ready, Vec<Line>)> =
        servers.iter().map(|server| (server, Vec::new())).collect();
    for _ in 0..options.rounds {
        rows.retain_mut(|(server, lines)| match measure(server, &rig) {
            Ok(line) => {
                lines.push(line);
                true
            }
            Err(why) => {
                notes.push(format!("{} does not take part: {}", server.name(), with_causes(&*why)));
                false
            }
        });
    }
    let mut table = Table::new(&["server", "KiB/connection", "MiB at none", "MiB at 10,000"]);
    for (server, lines) in &rows {
        let cell = |figure: fn(&Line) -> f64, digits| {
            Spread::of(lines.iter().map(figure))
                .map_or_else(|| "-".to_owned(), |spread| spread.to_text(digits))
        };
        table.add(vec![
            server.name().to_owned(),
            cell(|line| line.slope / 1024.0, 2),
            cell(|line| line.at_none / (1024.0 * 1024.0), 1),
            cell(|line| line.at_most / (1024.0 * 1024.0), 1),
        ]);
    }
    let is_as_asked = !options.strict || rows.len() == options.servers.len();
    let notes: String = notes.iter().map(|note| format!("* {note}\n")).collect();
    Ok(Outcome { text: format!("{}{notes}", table.to_markdown()), is_as_asked })
}

/// Memory as a function of the number of connections, in bytes.
struct Line {
    slope: f64,
    at_none: f64,
    at_most: f64,
}

fn measure(server: &Ready, rig: &Rig) -> Result<Line, BoxError> {
    if let Some(why) = server.cannot_hold(POINTS[POINTS.len() - 1]) {
        return Err(why.into());
    }
    let running = server.start_for(Task::Hello, Held::Nothing, rig)?;
    // After that it has started, including worker processes.
    Generator::connect(running.address(), WARM_UP_CONNECTIONS, 1)?.run(WARM_UP_REQUESTS)?;
    let at_none = resident_bytes(running.pid())? as f64;
    let mut held = Vec::new();
    let mut points = Vec::new();
    let mut open = 0;
    for connections in POINTS {
        held.push(Idle::open(running.address(), connections - open)?);
        open = connections;
        thread::sleep(SETTLE_TIME);
        points.push((connections as f64, resident_bytes(running.pid())? as f64));
    }
    held.into_iter().try_for_each(Idle::finish)?;
    Ok(Line { slope: slope(&points), at_none, at_most: points[points.len() - 1].1 })
}

/// Returns the slope of the line by least squares.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |figure: fn(&(f64, f64)) -> f64| points.iter().map(figure).sum::<f64>() / count;
    let (mean_x, mean_y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = points.iter().map(|(x, _)| (x - mean_x) * (x - mean_x)).sum();
    covariance / variance
}

#[cfg(test)]
mod tests {
    use super::slope;

    #[test]
    fn the_slope_is_that_of_the_line() {
        assert_eq!(slope(&[(0.0, 5.0), (1.0, 8.0), (2.0, 11.0)]), 3.0);
        assert_eq!(slope(&[(0.0, 1.0), (1.0, 0.0), (2.0, 1.0)]), 0.0);
    }
}
