//! An HTTP server that answers `GET /` with `Hello, World!`, on one thread.
//!
//! ```text
//! cargo run --release --example hello_world_server [ADDRESS]
//! ```
//!
//! It listens on 127.0.0.1:3000 unless told otherwise and prints the address and a line to try. SIGINT or SIGTERM lets
//! the requests that are under way finish.

mod machine;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::server::{self, HttpAccept, HttpSeed, Settings};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{Config, Loop, Response, signals};

use machine::Hello;

fn main() -> Result<(), Box<dyn Error>> {
    let address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            announce(listener.local_address().unwrap_or(address))?;
            Ok(server::listen(listener, HttpSeed::new((), Settings::new()), scope))
        })
    })?;
    signals::drain_on_termination(creator.handle(), Duration::from_secs(10))?;
    creator.instantiate(()).run()?;
    Ok(())
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "listening on http://{address}/")?;
    writeln!(out, "try: wrk -t2 -c400 -d10 http://{address}/")?;
    out.flush()
}
