//! An HTTP server that shows how it is doing: an access log on standard output, and counters for Prometheus.
//!
//! ```text
//! cargo run --release --example metrics [ADDRESS]
//! ```
//!
//! Every answer is written down in the common log format; `GET /metrics` has the counters.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are under way finish.

mod access_log;
mod machine;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::TcpListener;
use rotor::{Config, Loop, signals};

use access_log::AccessLog;
use machine::{Metrics, Shared};

fn main() -> Result<(), Box<dyn Error>> {
    let mut address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let log = AccessLog::start()?;
    let config = ServerConfig::new().log(log.hook());
    let shared = Shared::new(config.counters(), log.lost());
    let mut creator = Loop::<HttpAccept<Metrics, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        server::bind(&address, HttpSeed::new(shared, config), scope)
            .inspect(|server| address = server.local_address().unwrap_or(address))
    })?;
    announce(address)?;
    signals::drain_on_termination(creator.handle(), Duration::from_secs(10))?;
    creator.instantiate(()).run()?;
    log.finish();
    Ok(())
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/")?;
    writeln!(out, "try: curl http://{address}/metrics")?;
    out.flush()
}
