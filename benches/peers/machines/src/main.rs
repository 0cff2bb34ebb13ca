//! What machines cost, beside tokio's tasks, threads and a bare loop on mio.
//!
//! ```text
//! cargo run --release -p machines                      everything
//! cargo run --release -p machines -- brigade tasks     only these
//! cargo run --release -p machines -- --out FILE        the tables into a file too, with where they are from
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
//!
//! Contenders take turns within each round. Figures are medians of the rounds with the lowest and
//! the highest, by the clock and of the process's CPU time; ratios are to the first contender, of
//! the same round. The multi-threaded runtime has as many workers as there are processors, as by
//! default.
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
mod wakeups;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use figures::{Bench, Effort};

/// A measurement: its name, and what prints its tables.
type Measurement = (&'static str, fn(&mut Bench));

const MEASUREMENTS: &[Measurement] = &[
    ("brigade", brigade::measure),
    ("tasks", tasks::measure),
    ("timers", timers::measure),
    ("requests", requests::measure),
    ("lifetime", lifetime::measure),
    ("wakeups", wakeups::measure),
    ("memory", memory::measure),
];

fn main() -> ExitCode {
    let mut arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == memory::HOLD) {
        return memory::hold(&arguments[1..]);
    }
    let all = arguments.len();
    arguments.retain(|argument| argument != "--smoke");
    let effort = if arguments.len() < all { Effort::Smoke } else { Effort::Whole };
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
        eprintln!("{unknown:?} is none of: {}, --smoke, --out", names.join(", "));
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
    for (name, measure) in MEASUREMENTS {
        if arguments.is_empty() || arguments.iter().any(|argument| argument == name) {
            measure(&mut bench);
        }
    }
    ExitCode::SUCCESS
}
