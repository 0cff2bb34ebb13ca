//! An HTTP server whose answers are longer than memory: a large body at the client's pace, and events without end.
//!
//! ```text
//! cargo run --release --example streaming [ADDRESS]
//! ```
//!
//! `GET /big?BYTES` generates that many octets (a gigabyte if it does not say), a few at a time, as the client takes them.
//! `GET /events` is a stream of server-sent events, one a second.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are under way finish.

mod machine;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::TcpListener;
use rotor::{Config, Loop, signals};

use machine::Streaming;

fn main() -> Result<(), Box<dyn Error>> {
    let mut address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let mut creator = Loop::<HttpAccept<Streaming, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope)
            .inspect(|server| address = server.local_address().unwrap_or(address))
    })?;
    announce(address)?;
    signals::drain_on_termination(creator.handle(), Duration::from_secs(10))?;
    creator.instantiate(()).run()?;
    Ok(())
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/")?;
    writeln!(out, "try: curl http://{address}/events")?;
    out.flush()
}
