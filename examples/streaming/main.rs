//! An HTTP server whose answers are longer than memory: a large body at the client's pace, and
//! events without end.
//!
//! ```text
//! cargo run --release -p rotor-examples --example streaming [ADDRESS]
//! ```
//!
//! `GET /big?BYTES` generates that many octets (a gigabyte if it does not say), a few at a time, as
//! the client takes them. `GET /events` is a stream of server-sent events, one a second.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Streaming;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(streaming)
}

fn streaming() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator = Loop::<HttpAccept<Streaming, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    let try_this = format!("try: curl http://{address}/events");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}
