//! An HTTP server whose responses are longer than memory: a large body at the client's pace, and an
//! endless stream of events.
//!
//! ```text
//! cargo run --release -p rotor-examples --example streaming [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl http://127.0.0.1:3000/events
//! ```
//!
//! `GET /big?BYTES` generates that many bytes (default: a gigabyte), a few at a time, as the client
//! takes them. `GET /events` is a stream of server-sent events, one each second.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Streaming;
use rotor::BoxError;
use rotor::http::server::{HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(streaming)
}

fn streaming() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    serve_http(address, HttpSeed::<Streaming>::new((), ServerConfig::new()), (), |address| {
        format!("try: curl http://{address}/events")
    })
}
