//! The scenarios: what is requested, how, and what else happens meanwhile.

use std::net::SocketAddr;

use super::site::{BODY_1M_BYTES, BODY_64K_BYTES, FILE_BYTES, letters};
use crate::load::Exchange;
use crate::program;

/// What one request asks for. A server that does not support it does not take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    /// `GET /`: 13 bytes.
    Hello,
    /// `GET /64k`: 64 KiB from memory.
    Body64K,
    /// `GET /1m`: 1 MiB from memory.
    Body1M,
    /// `GET /file`: 1 MiB from a file.
    File,
    /// `POST /` with 1 KiB, answered with 13 bytes.
    Post,
    /// `GET /` on a connection of its own, which the server closes.
    Close,
}

/// The length of the body that is posted, in bytes.
const POST_BYTES: usize = 1024;

impl Task {
    /// Returns the length of the body from memory, if it is not the hello body.
    pub(super) fn body_bytes(self) -> Option<usize> {
        match self {
            Task::Body64K => Some(BODY_64K_BYTES),
            Task::Body1M => Some(BODY_1M_BYTES),
            Task::Hello | Task::File | Task::Post | Task::Close => None,
        }
    }

    pub(super) fn exchange(self, address: SocketAddr) -> Exchange {
        match self {
            Task::Hello => Exchange::hello(address),
            Task::Body64K => Exchange::get(address, "/64k", letters(BODY_64K_BYTES)),
            Task::Body1M => Exchange::get(address, "/1m", letters(BODY_1M_BYTES)),
            Task::File => Exchange::get(address, "/file", letters(FILE_BYTES)),
            Task::Post => Exchange::post(address, letters(POST_BYTES)),
            Task::Close => Exchange::hello(address).closing(),
        }
    }
}

/// How requests are sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Load {
    /// By the built-in generator: each connection waits for its responses.
    Closed { connections: usize, pipeline: usize },
    /// By wrk, with the parameters that an article has used.
    Wrk { threads: usize, connections: usize },
    /// By the built-in generator, at a constant rate.
    Open { connections: usize },
}

impl Load {
    /// Checks whether this can be run.
    ///
    /// # Errors
    ///
    /// A necessary program is missing.
    pub(super) fn is_possible(&self) -> Result<(), &'static str> {
        match self {
            Load::Wrk { .. } if program::find("wrk").is_none() => Err("there is no wrk"),
            _ => Ok(()),
        }
    }

    pub(super) fn connections(&self) -> usize {
        match *self {
            Load::Closed { connections, .. }
            | Load::Wrk { connections, .. }
            | Load::Open { connections } => connections,
        }
    }
}

/// What other connections do meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// There are none.
    Nothing,
    /// This many connections have had a response and make no further requests.
    Idle(usize),
    /// This many connections have read half of a 64 KiB body and do not read on.
    HalfAnswers(usize),
    /// This many connections request 64 KiB again and again and read it slowly.
    SlowReaders(usize),
}

impl Held {
    pub(super) fn connections(self) -> usize {
        match self {
            Held::Nothing => 0,
            Held::Idle(count) | Held::HalfAnswers(count) | Held::SlowReaders(count) => count,
        }
    }

    /// Returns what a server must support for this in addition to the task.
    pub(super) fn task(self) -> Option<Task> {
        match self {
            Held::Nothing => None,
            Held::Idle(_) => Some(Task::Hello),
            Held::HalfAnswers(_) | Held::SlowReaders(_) => Some(Task::Body64K),
        }
    }
}

/// A scenario.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Scenario {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) task: Task,
    pub(super) load: Load,
    pub(super) held: Held,
}

const fn closed(
    name: &'static str,
    what: &'static str,
    task: Task,
    connections: usize,
) -> Scenario {
    Scenario {
        name,
        what,
        task,
        load: Load::Closed { connections, pipeline: 1 },
        held: Held::Nothing,
    }
}

const fn wrk(
    name: &'static str,
    what: &'static str,
    threads: usize,
    connections: usize,
) -> Scenario {
    Scenario {
        name,
        what,
        task: Task::Hello,
        load: Load::Wrk { threads, connections },
        held: Held::Nothing,
    }
}

const fn beside(
    name: &'static str,
    what: &'static str,
    connections: usize,
    held: Held,
) -> Scenario {
    Scenario {
        name,
        what,
        task: Task::Hello,
        load: Load::Closed { connections, pipeline: 1 },
        held,
    }
}

/// All scenarios. The numbers of connections are those of other published figures, and all are
/// below the limit of descriptors that a system usually has.
pub(super) const SCENARIOS: &[Scenario] = &[
    closed("hello-64", "hello, 64 connections", Task::Hello, 64),
    closed("hello-400", "hello, 400 connections", Task::Hello, 400),
    wrk("wrk-t1-c50", "hello, as the async-std article: wrk -t1 -c50", 1, 50),
    wrk("wrk-t10-c50", "hello, as the async-std article: wrk -t10 -c50", 10, 50),
    wrk("wrk-t1-c500", "hello, as the async-std article: wrk -t1 -c500", 1, 500),
    wrk("wrk-t2-c400", "hello, as the first rotor's article: wrk -t2 -c400", 2, 400),
    Scenario {
        name: "pipelined-16",
        what: "hello, 64 connections, 16 requests at a time on each",
        task: Task::Hello,
        load: Load::Closed { connections: 64, pipeline: 16 },
        held: Held::Nothing,
    },
    closed("body-64k", "a body of 64 KiB from memory, 64 connections", Task::Body64K, 64),
    closed("body-1m", "a body of 1 MiB from memory, 16 connections", Task::Body1M, 16),
    closed("file-1m", "a file of 1 MiB, 16 connections", Task::File, 16),
    closed("post-1k", "hello to a posted KiB, 64 connections", Task::Post, 64),
    closed(
        "new-connections",
        "hello, a connection for each request, 64 at a time",
        Task::Close,
        64,
    ),
    beside("idle-10000", "hello, 100 busy of 10,000 connections", 100, Held::Idle(9_900)),
    beside(
        "half-answers",
        "hello, 64 connections; 4,000 more have read half of 64 KiB and do not read on",
        64,
        Held::HalfAnswers(4_000),
    ),
    beside(
        "slow-readers",
        "hello, 64 connections; 200 more read bodies of 64 KiB at 200 KiB a second each",
        64,
        Held::SlowReaders(200),
    ),
    Scenario {
        name: "open-loop",
        what: "hello at a constant rate, 64 connections; latency counts from when a request was due",
        task: Task::Hello,
        load: Load::Open { connections: 64 },
        held: Held::Nothing,
    },
];

/// Returns the scenario with this name.
pub(super) fn find(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use super::{SCENARIOS, find};

    #[test]
    fn every_scenario_is_found_by_its_own_name() {
        for scenario in SCENARIOS {
            assert_eq!(find(scenario.name), Some(scenario));
        }
    }
}
