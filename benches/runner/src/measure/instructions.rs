//! User instructions per request, counted by valgrind's callgrind. This figure shows best whether
//! something has changed, since it hardly differs from run to run.

use std::process::Command;

use super::{MeasureError, Report, run_once};
use crate::arguments::{Arguments, ServerCommand};
use crate::program;
use crate::server::Server;
use crate::table::Table;

pub(super) fn run(arguments: &Arguments) -> Result<String, MeasureError> {
    let Some(valgrind) = program::find("valgrind") else {
        return Ok("skipped: no valgrind\n".to_owned());
    };
    let mut table = Table::new(&["server", "user instructions/request", "ratio"]);
    let mut first = None;
    for server in &arguments.servers {
        let count = |requests| count(arguments, server, Command::new(&valgrind), requests);
        let (once, twice) = (count(arguments.requests)?, count(2 * arguments.requests)?);
        let per_request = (twice as f64 - once as f64) / arguments.requests as f64;
        let ratio = per_request / *first.get_or_insert(per_request);
        table.add(vec![server.label(), format!("{per_request:.0}"), format!("{ratio:.2}")]);
    }
    Ok(table.to_markdown())
}

fn count(
    arguments: &Arguments,
    server: &ServerCommand,
    mut valgrind: Command,
    requests: u64,
) -> Result<u64, MeasureError> {
    let report = Report::new("callgrind");
    // Fair scheduling; otherwise the threads of a server starve each other on valgrind's single
    // lock.
    valgrind.args(["-q", "--tool=callgrind", "--fair-sched=try"]);
    valgrind.arg(format!("--callgrind-out-file={}", report.path().display()));
    run_once(arguments, server.command_under(valgrind), requests, Server::terminate)
        .map_err(|e| MeasureError::server(server, e))?;
    let text = report.read()?;
    parse_total(&text)
        .ok_or_else(|| MeasureError::Report("callgrind", "it has no line 'totals:'".to_owned()))
}

/// Returns the number of instructions of the run, of all threads: the line `totals: N` at the end
/// of callgrind's file.
fn parse_total(text: &str) -> Option<u64> {
    text.lines().rev().find_map(|line| line.strip_prefix("totals:"))?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_total_is_found() {
        assert_eq!(
            super::parse_total("events: Ir\nfn=(0)\n16 4\n\ntotals: 126557\n"),
            Some(126_557)
        );
        assert_eq!(super::parse_total("events: Ir\n"), None);
    }
}
