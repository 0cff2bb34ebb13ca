//! Runs servers side by side and reports what a request costs each of them.
//!
//! **A server that this can run takes its listen address as last argument and prints a line with
//! `http://ADDRESS:PORT/` when it listens.** It answers `GET /` with status 200 and the body `Hello, World!`; every
//! answer is checked, and a run with a wrong one does not count.
//!
//! Machines are shared and noisy, so nothing here is reported as an absolute requests-per-second contest. What is
//! steady is reported first: system calls, instructions, CPU time of the server per request, and ratios of servers
//! that took turns in the same run.
//!
//! * [`server`]: start a server, find its address, end it. Tests that need outside programs use it too.
//! * [`program`]: find an outside program, or say that it is missing.
//! * [`load`]: a load generator that sends a fixed number of requests; [`answer`] checks what comes back.
//! * [`process`]: what the system knows about a process: CPU time, descendants, cores.
//! * [`measure`]: one module for each subcommand of the binary that measures servers given as commands.
//! * [`compare`]: the servers of `benches/peers` and ours, built, started and compared in scenarios.
#![forbid(unsafe_code)]
#![expect(
    clippy::disallowed_methods,
    reason = "looks at servers from outside: it has no loop and no scope, and its clock is the wall's"
)]

pub mod answer;
pub mod arguments;
pub mod compare;
pub mod histogram;
pub mod load;
pub mod measure;
pub mod process;
pub mod program;
pub mod server;
mod spread;
mod table;
