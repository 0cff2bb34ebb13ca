//! The servers, each in several ways.

use std::fmt;
use std::path::PathBuf;
use std::process::Command;

use super::{BoxError, Options};
use crate::compare::catalogue::Build;

/// Where the work of a request is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// On a pool of this many threads, which also wait.
    Sync(usize),
    /// In the thread that handles requests.
    Async1,
    /// Parsing on a pool of this many threads; the rest in the thread that handles requests.
    Async2(usize),
    /// A goroutine for each request.
    Goroutines,
}

/// In the order of the table.
const WAYS: &[Way] = &[Way::Sync(32), Way::Sync(100), Way::Async1, Way::Async2(4), Way::Async2(32)];

impl Way {
    /// Returns the name of the kind on the command line, without the number of threads.
    fn kind(self) -> &'static str {
        match self {
            Way::Sync(_) => "sync",
            Way::Async1 => "async1",
            Way::Async2(_) => "async2",
            Way::Goroutines => "goroutines",
        }
    }

    /// Returns the way of other servers with which this one is compared: goroutines are most
    /// similar to a handler that does everything itself.
    pub(super) fn compared_with(self) -> Way {
        match self {
            Way::Goroutines => Way::Async1,
            own => own,
        }
    }

    fn pool(self) -> Option<usize> {
        match self {
            Way::Sync(threads) | Way::Async2(threads) => Some(threads),
            Way::Async1 | Way::Goroutines => None,
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.pool() {
            Some(threads) => write!(f, "{}, {threads} threads", self.kind()),
            None => f.write_str(self.kind()),
        }
    }
}

/// A server.
#[derive(Debug)]
pub(super) struct Entry {
    pub(super) name: &'static str,
    build: Build,
    ways: &'static [Way],
    /// The number of `THREADS` that it is given; by default it has one, or as many as CPUs in the
    /// case of axum.
    threads: Option<usize>,
}

/// Ratios are to the first one of those that take part.
pub(super) const SERVERS: &[Entry] = &[
    Entry { name: "rotor", build: Build::Peer("json-rotor"), ways: WAYS, threads: None },
    Entry { name: "rotor-threads", build: Build::Peer("json-rotor"), ways: WAYS, threads: Some(2) },
    Entry { name: "hyper", build: Build::Peer("json-hyper"), ways: WAYS, threads: None },
    Entry { name: "hyper-threads", build: Build::Peer("json-hyper"), ways: WAYS, threads: Some(2) },
    Entry { name: "axum", build: Build::Peer("json-axum"), ways: WAYS, threads: None },
    Entry { name: "go", build: Build::Go("json"), ways: &[Way::Goroutines], threads: None },
];

/// The kinds of ways, for the command line.
pub(super) const KINDS: &[&str] = &["sync", "async1", "async2", "goroutines"];

/// A server that is built, in one of its ways.
#[derive(Debug)]
pub(super) struct Contender {
    pub(super) server: &'static str,
    pub(super) way: Way,
    program: PathBuf,
    threads: Option<usize>,
}

/// Builds the contenders. A server that cannot be built is reported and left out, unless it is the
/// only one.
pub(super) fn contenders(options: &Options) -> Result<Vec<Contender>, BoxError> {
    let mut contenders = Vec::new();
    for entry in &options.servers {
        let program = match entry.build.run() {
            Ok(program) => program,
            Err(why) => {
                eprintln!("{} is skipped: {why}", entry.name);
                continue;
            }
        };
        let ways = entry.ways.iter().filter(|way| options.has_way(way.kind()));
        contenders.extend(ways.map(|way| Contender {
            server: entry.name,
            way: *way,
            program: program.clone(),
            threads: entry.threads,
        }));
    }
    if contenders.is_empty() { Err("nothing takes part".into()) } else { Ok(contenders) }
}

impl Contender {
    /// Returns the command that starts it.
    pub(super) fn command(&self, delay_ms: u64) -> Command {
        let mut command = Command::new(&self.program);
        command.env_remove("THREADS").env_remove("POOL");
        command.env("WAY", self.way.kind()).env("DELAY_MS", delay_ms.to_string());
        command.envs(self.threads.map(|threads| ("THREADS", threads.to_string())));
        command.envs(self.way.pool().map(|threads| ("POOL", threads.to_string())));
        command
    }
}
