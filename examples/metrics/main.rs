//! An HTTP server that shows how it is doing: an access log on standard output, and counters for
//! Prometheus.
//!
//! ```text
//! cargo run --release -p rotor-examples --example metrics [ADDRESS]
//! ```
//!
//! Every answer is written down in the common log format; `GET /metrics` has the counters.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::{Metrics, Shared};
use rotor::http::server::{self, AccessLogConfig, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

/// How long the program waits for what reads its log, at the end. Who reads at all has what is left
/// in far less.
const FINISH_TIME_MAX: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    program::run(metrics)
}

fn metrics() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let log = AccessLogConfig::standard_output().start()?;
    let config = ServerConfig::new().access_log(&log);
    let shared = Shared::new(config.counters(), log.lost());
    let mut creator = Loop::<HttpAccept<Metrics, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new(shared, config), scope))
        })
    })?;
    let try_this = format!("try: curl http://{address}/metrics");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])?;
    // The loop is gone by now, and its connections with it.
    if !log.finish(FINISH_TIME_MAX) {
        log::warn!("nobody reads the access log: its last lines are lost");
    }
    Ok(())
}
