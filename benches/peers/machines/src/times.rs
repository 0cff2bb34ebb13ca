//! The resources that a whole process with a brigade uses, from its start to its last hop, as
//! time(1) reports them.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::figures::Bench;
use crate::memory::{HOLD, KINDS};

/// The resources of a process, as time(1) reports them.
struct Times {
    user_s: f64,
    system_s: f64,
    elapsed_s: f64,
    resident_kib: u64,
}

pub(crate) fn measure(bench: &mut Bench) {
    let hops = bench.pick(500_000, 100);
    table(bench, true, bench.pick(500, 5), hops);
    for members in [bench.pick(50_000, 5), bench.pick(250_000, 6)] {
        table(bench, false, members, bench.pick(2_000_000, 100));
    }
}

/// Runs all kinds with pipes, or all with notifiers, once each.
fn table(bench: &mut Bench, has_pipes: bool, members: usize, hops: u64) {
    let joined = if has_pipes { "pipes" } else { "notifiers" };
    bench
        .line(&format!("\n## A process with {members} members, joined by {joined}: {hops} hops\n"));
    bench.line("| | user s | system s | elapsed s | most KiB resident |");
    bench.line("|--|--:|--:|--:|--:|");
    for (kind, _) in KINDS.iter().filter(|(_, pipes)| *pipes == has_pipes) {
        match times(kind, members, hops) {
            Ok(Times { user_s, system_s, elapsed_s, resident_kib }) => bench.line(&format!(
                "| {kind} | {user_s:.2} | {system_s:.2} | {elapsed_s:.2} | {resident_kib} |"
            )),
            Err(why) => bench.not_measured(&format!("| {kind} | not measured: {why} | | | |")),
        }
    }
}

fn times(kind: &str, members: usize, hops: u64) -> Result<Times, String> {
    let program = env::current_exe().map_err(|error| error.to_string())?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args([HOLD, kind, &members.to_string(), &hops.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| error.to_string())?;
    let times = times_of(&mut child, begun);
    // The process ends when its input does.
    drop(child.stdin.take());
    child.wait().map_err(|error| error.to_string())?;
    times.ok_or_else(|| format!("{members} could not be held here"))
}

/// Read while the process still lives, because nothing here can wait for a child and get its usage.
fn times_of(child: &mut Child, begun: Instant) -> Option<Times> {
    let mut line = String::new();
    BufReader::new(child.stdout.take()?).read_line(&mut line).ok()?;
    let elapsed_s = begun.elapsed().as_secs_f64();
    if line != "held\n" {
        return None;
    }
    let file = |name| fs::read_to_string(format!("/proc/{}/{name}", child.id())).ok();
    let (user, system) = ticks(&file("stat")?)?;
    let per_second = rustix::param::clock_ticks_per_second() as f64;
    Some(Times {
        user_s: user as f64 / per_second,
        system_s: system as f64 / per_second,
        elapsed_s,
        resident_kib: most_resident_kib(&file("status")?)?,
    })
}

/// Returns user and system time: the 14th and 15th field of proc(5)'s `stat`, whose second field is
/// a name in parentheses.
fn ticks(stat: &str) -> Option<(u64, u64)> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut fields = after_name.split_ascii_whitespace().skip(14 - 3);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

fn most_resident_kib(status: &str) -> Option<u64> {
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{most_resident_kib, ticks};

    #[test]
    fn the_statistics_of_a_process_are_parsed() {
        let stat = "42 (a) (b c) S 7 42 42 0 -1 4194560 100 0 0 0 5 6 8 9 20 0 1 0 100 1000 10";
        assert_eq!(ticks(stat), Some((5, 6)));
        assert_eq!(most_resident_kib("VmPeak:\t 9 kB\nVmHWM:\t  12 kB\n"), Some(12));
    }
}
