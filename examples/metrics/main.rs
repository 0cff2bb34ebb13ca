//! An HTTP server that shows how it is doing: an access log on standard output, and counters for
//! Prometheus.
//!
//! ```text
//! cargo run --release -p rotor-examples --example metrics [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl http://127.0.0.1:3000/metrics
//! ```
//!
//! Every answer is written down in the common log format; `GET /metrics` has the counters. The page is
//! written by hand, in a dozen lines; that of `inspected` is made by `rotor-metrics`, and has
//! histograms, and the loop, as well.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
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

/// How long the program waits for what reads its log, at the end. Who reads at all has what is left
/// in far less.
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
    // The loop is gone by now, and its connections with it.
    if !log.finish(FINISH_TIME_MAX) {
        log::warn!("nobody reads the access log: its last lines are lost");
    }
    Ok(())
}
