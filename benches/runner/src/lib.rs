//! Runs servers side by side and reports what a request costs each of them.
//!
//! **It can run any server that takes its listen address as last argument and prints a line with
//! `http://ADDRESS:PORT/` when it listens.** Such a server answers `GET /` with status 200 and the
//! body `Hello, World!`. Every answer is checked, and a run with a wrong one does not count.
//!
//! # A program
//!
//! The binary offers this as subcommands (`rotor-bench help`). A program can start a server, send
//! requests and end it:
//!
//! ```no_run
//! use rotor_bench::load::Generator;
//! use rotor_bench::server::Server;
//! use std::process::Command;
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let patience = Duration::from_secs(10);
//! let server = Server::start(Command::new("target/release/examples/hello_world_server"), patience)?;
//! // Sixteen connections, one request at a time on each; a wrong answer is an error.
//! let run = Generator::connect(server.address(), 16, 1)?.run(10_000)?;
//! println!("{} requests in {:?}", run.requests, run.wall);
//! server.terminate(patience)?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is measured
//!
//! Machines are shared and noisy, so nothing here is reported as an absolute number of requests per
//! second. Stable figures are reported first: system calls, instructions, CPU time of the server
//! per request, and ratios of servers that took turns in the same run.
//!
//! # Where things are
//!
//! * [`server`]: starts a server, finds its address, ends it. Tests that need external programs use
//!   it too.
//! * [`program`]: finds an external program, or reports that it is missing.
//! * [`load`]: a load generator that sends a fixed number of requests; [`answer`] checks the
//!   responses.
//! * [`process`]: what the system knows about a process: CPU time, descendants, cores.
//! * [`measure`]: one module for each subcommand of the binary that measures servers given as
//!   commands.
//! * [`compare`]: the servers of `benches/peers` and rotor's, built, started and compared in
//!   scenarios.
//! * [`json`]: services that parse and wait, on a pool, inline, or with the parsing on the pool.
//!
//! # Limits
//!
//! Servers and load share one machine and its loopback interface, so effects of the network are not
//! in the figures. The load comes from one thread, which must be faster than the server;
//! [`load::wrk`] runs an external generator. Linux only, because of `/proc`; some subcommands need
//! `strace`, `valgrind` or `wrk` and report if these are missing.
//!
//! # Versions and features
//!
//! Rust 1.88 or later, on Linux. There are no features to choose, and it is not published: it
//! belongs to the repository.
//!
//! # The book
//!
//! * [What it costs](https://github.com/rotor-rs/rotor/blob/main/doc/guide/costs.md)
//! * [All chapters](https://github.com/rotor-rs/rotor/blob/main/doc/README.md)
//! * [The other benches](https://github.com/rotor-rs/rotor/blob/main/benches/README.md)
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "looks at servers from outside: it has no loop and no scope, and its clock is the wall's"
)]

pub mod answer;
pub mod arguments;
pub mod compare;
pub mod histogram;
pub mod json;
pub mod load;
pub mod measure;
pub mod process;
pub mod program;
pub mod server;
mod spread;
mod table;
