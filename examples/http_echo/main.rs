//! An HTTP server that sends back what it gets: the one that outside suites are pointed at.
//!
//! ```text
//! cargo run --release --example http_echo [ADDRESS]
//! ```
//!
//! `GET /` is a page with `ETag` and `Last-Modified`, conditions honoured; `POST /` reads the whole body, then sends it
//! back; `/echo` lists the fields received; `OPTIONS` (`*` too) and 405 say what is allowed. A head has 3 s, and so has the
//! beginning of a body.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are under way finish.

mod machine;

use std::error::Error;
use std::io::Write;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::http::h1::Limits;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::TcpListener;
use rotor::{Config, Loop, signals};

use machine::Echo;

fn main() -> Result<(), Box<dyn Error>> {
    let mut address: SocketAddr = std::env::args().nth(1).as_deref().unwrap_or("127.0.0.1:3000").parse()?;
    let config = ServerConfig::new().limits(limits());
    let mut creator = Loop::<HttpAccept<Echo, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        server::bind(&address, HttpSeed::new((), config), scope)
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
    writeln!(out, "try: curl -i http://{address}/ -d hello")?;
    out.flush()
}

fn limits() -> Limits {
    let patience = Duration::from_secs(3);
    Limits::new().head_timeout(patience).body_grace(patience)
}
