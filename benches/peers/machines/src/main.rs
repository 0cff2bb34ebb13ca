//! The cost of machines, compared with tokio's tasks, threads and a bare loop on mio.
//!
//! ```text
//! cargo run --release -p machines                      everything
//! cargo run --release -p machines -- brigade tasks     only these
//! cargo run --release -p machines -- --out FILE        the tables into a file too, with where they are from
//! cargo run --release -p machines -- --pinned          all of it on one core, as under `taskset 1`
//! cargo run --release -p machines -- --smoke           once, with little work: that it runs, not what it costs
//! ```
//!
//! | measurement | what is done |
//! |--|--|
//! | `brigade` | one byte goes round a ring of members joined by pipes; or one wake-up round a ring of notifiers |
//! | `tasks` | chained spawn, spawn many, ping-pong, yield many: the shapes of tokio's own benches |
//! | `timers` | deadlines re-armed in random order, one in six reached |
//! | `requests` | a request from one to another and its answer |
//! | `lifetime` | one is made, called once and ends, and then the next |
//! | `wakeups` | a wake-up from another thread, to one that is busy and to one that sleeps |
//! | `memory` | what a member of a brigade holds, by regression over four sizes |
//! | `times` | what a process with a brigade takes in all: user, system, elapsed, most memory resident, as time(1) says it |
//!
//! Contenders take turns within each round. Figures are medians of the rounds with the lowest and
//! the highest, of wall-clock time and of the process's CPU time; for wall-clock time there are
//! also the mean and the standard deviation. Ratios are to the first contender in the same round.
//! The multi-threaded runtime has as many workers as there are CPUs, which is its default.
#![forbid(unsafe_code)]

mod brigade;
#[allow(dead_code, unused_imports, reason = "the module of the crate; a part of it is used")]
#[path = "../../../../rotor-core/src/timers/mod.rs"]
mod deadlines;
mod figures;
mod lifetime;
mod memory;
mod requests;
mod tasks;
#[allow(
    dead_code,
    unused_imports,
    unreachable_pub,
    reason = "the module of the crate; a part of it is used"
)]
#[path = "../../../../rotor-core/src/time.rs"]
mod time;
mod timers;
mod times;
mod wakeups;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use figures::{Bench, Effort};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// A measurement: its name, and a function that prints its tables.
type Measurement = (&'static str, fn(&mut Bench));

const MEASUREMENTS: &[Measurement] = &[
    ("brigade", brigade::measure),
    ("tasks", tasks::measure),
    ("timers", timers::measure),
    ("requests", requests::measure),
    ("lifetime", lifetime::measure),
    ("wakeups", wakeups::measure),
    ("memory", memory::measure),
    ("times", times::measure),
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == memory::HOLD) {
        return memory::hold(&arguments[1..]);
    }
    let effort = if take_flag(&mut arguments, "--smoke") { Effort::Smoke } else { Effort::Whole };
    let is_pinned = take_flag(&mut arguments, "--pinned");
    let mut out = None;
    if let Some(at) = arguments.iter().position(|argument| argument == "--out") {
        if at + 1 == arguments.len() {
            eprintln!("--out wants the name of a file");
            return ExitCode::FAILURE;
        }
        out = arguments.drain(at..at + 2).nth(1).map(PathBuf::from);
    }
    let is_known = |name: &String| MEASUREMENTS.iter().any(|(known, _)| known == name);
    if let Some(unknown) = arguments.iter().find(|name| !is_known(name)) {
        let names: Vec<&str> = MEASUREMENTS.iter().map(|(name, _)| *name).collect();
        eprintln!("{unknown:?} is none of: {}, --pinned, --smoke, --out", names.join(", "));
        return ExitCode::FAILURE;
    }
    let mut bench = match Bench::new(effort, out.as_deref()) {
        Ok(bench) => bench,
        Err(error) => {
            eprintln!("the file of figures cannot be made: {error}");
            return ExitCode::FAILURE;
        }
    };
    memory::raise_descriptor_limit();
    if is_pinned && let Err(error) = pin() {
        eprintln!("this process cannot be kept on one core: {error}");
        return ExitCode::FAILURE;
    }
    for (name, measure) in MEASUREMENTS {
        if arguments.is_empty() || arguments.iter().any(|argument| argument == name) {
            measure(&mut bench);
        }
    }
    ExitCode::SUCCESS
}

/// Removes a flag from the arguments. Returns whether it was there.
fn take_flag(arguments: &mut Vec<String>, flag: &str) -> bool {
    let all = arguments.len();
    arguments.retain(|argument| argument != flag);
    arguments.len() < all
}

/// Pins this thread, and all threads and processes that it starts later, to the first core on which
/// it may run.
fn pin() -> rustix::io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut core = CpuSet::new();
    (0..CpuSet::MAX_CPU)
        .find(|index| allowed.is_set(*index))
        .into_iter()
        .for_each(|first| core.set(first));
    sched_setaffinity(None, &core)
}
