//! System calls per request, counted by strace.
//!
//! A traced server is several times slower, so more connections are ready at each wait than without
//! strace: the share of `epoll_wait` is smaller than in reality, for every server alike. What a
//! server reads and writes for a request is not affected.

use std::collections::BTreeMap;
use std::process::Command;

use super::{MeasureError, Report, run_once};
use crate::arguments::{Arguments, ServerCommand};
use crate::program;
use crate::server::Server;
use crate::table::Table;

/// The number of calls, by name.
type Calls = BTreeMap<String, u64>;

pub(super) fn run(arguments: &Arguments) -> Result<String, MeasureError> {
    let Some(strace) = program::find("strace") else {
        return Ok("skipped: no strace\n".to_owned());
    };
    let mut table = Table::new(&["server", "system calls/request", "of these"]);
    for server in &arguments.servers {
        let count = |requests| count(arguments, server, Command::new(&strace), requests);
        let (once, twice) = (count(arguments.requests)?, count(2 * arguments.requests)?);
        let per_request = per_request(&once, &twice, arguments.requests);
        let total: f64 = per_request.iter().map(|(_, calls)| calls).sum();
        table.add(vec![server.label(), format!("{total:.3}"), describe(&per_request)]);
    }
    Ok(table.to_markdown())
}

fn count(
    arguments: &Arguments,
    server: &ServerCommand,
    mut strace: Command,
    requests: u64,
) -> Result<Calls, MeasureError> {
    let report = Report::new("strace");
    strace.args(["-c", "-f", "-o"]).arg(report.path());
    run_once(arguments, server.command_under(strace), requests, Server::terminate_traced)
        .map_err(|e| MeasureError::server(server, e))?;
    let text = report.read()?;
    parse_summary(&text).ok_or(MeasureError::Report("strace", text))
}

/// Parses the lines `% time, seconds, usecs/call, calls, [errors,] name` between the two rulers.
fn parse_summary(text: &str) -> Option<Calls> {
    let lines = text.lines().skip_while(|line| !line.starts_with("---")).skip(1);
    lines
        .take_while(|line| !line.starts_with("---"))
        .map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            Some(((*fields.last()?).to_owned(), fields.get(3)?.parse().ok()?))
        })
        .collect::<Option<Calls>>()
        .filter(|calls| !calls.is_empty())
}

/// Returns the difference of two runs per request, most frequent calls first.
fn per_request(once: &Calls, twice: &Calls, requests: u64) -> Vec<(String, f64)> {
    let mut calls: Vec<(String, f64)> = twice
        .iter()
        .map(|(name, count)| {
            let start_up = once.get(name).copied().unwrap_or(0);
            (name.clone(), (*count as f64 - start_up as f64) / requests as f64)
        })
        .collect();
    calls.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    calls
}

/// Lists the calls that are made at least once in a thousand requests; the others are random.
fn describe(per_request: &[(String, f64)]) -> String {
    let often = per_request.iter().filter(|(_, calls)| calls.abs() >= 0.001);
    often.map(|(name, calls)| format!("{name} {calls:.3}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::{describe, parse_summary, per_request};

    const SUMMARY: &str = "\
% time     seconds  usecs/call     calls    errors syscall
------ ----------- ----------- --------- --------- ----------------
 60.00    0.000600           0      2001           recvfrom
 40.00    0.000400           0      2000         7 sendto
  0.00    0.000000           0         8           mmap
------ ----------- ----------- --------- --------- ----------------
100.00    0.001000           0      4009         7 total
";

    #[test]
    fn a_summary_is_parsed_with_and_without_errors() {
        let calls = parse_summary(SUMMARY).expect("a summary");
        assert_eq!(calls.len(), 3);
        assert_eq!(calls["recvfrom"], 2001);
        assert_eq!(calls["sendto"], 2000);
        assert_eq!(parse_summary("strace: nothing"), None);
    }

    #[test]
    fn calls_of_the_startup_cancel_out() {
        let once = parse_summary(SUMMARY).expect("a summary");
        let mut twice = once.clone();
        *twice.get_mut("sendto").expect("there") += 1000;
        *twice.get_mut("recvfrom").expect("there") += 2000;
        assert_eq!(describe(&per_request(&once, &twice, 1000)), "recvfrom 2.000, sendto 1.000");
    }
}
