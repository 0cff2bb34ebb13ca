//! An HTTP server with an access log on standard output and counters for Prometheus.
//!
//! ```text
//! cargo run --release -p rotor-examples --example metrics [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl http://127.0.0.1:3000/metrics
//! ```
//!
//! Every response is logged in the common log format, and `GET /metrics` returns the counters. That
//! page is written by hand, in a dozen lines; the one in `inspected` is made by `rotor-metrics`,
//! and also has histograms and the loop's statistics.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::{Metrics, Shared};
use rotor::BoxError;
use rotor::http::server::{AccessLogConfig, HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

/// How long the program waits at its end until the rest of its log is read. A reader that works
/// needs far less.
const FINISH_TIME_MAX: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    program::run(metrics)
}

fn metrics() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let log = AccessLogConfig::standard_output().start()?;
    let config = ServerConfig::new().access_log(&log);
    let shared = Shared::new(config.counters(), log.lost());
    serve_http(address, HttpSeed::<Metrics>::new(shared, config), (), |address| {
        format!("try: curl http://{address}/metrics")
    })?;
    // The loop and its connections have ended by now.
    if !log.finish(FINISH_TIME_MAX) {
        log::warn!("nobody reads the access log: its last lines are lost");
    }
    Ok(())
}
