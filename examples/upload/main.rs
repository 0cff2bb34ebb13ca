//! An HTTP server that takes bodies of any size, a piece at a time, and keeps none of them.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upload [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl -T some-file http://127.0.0.1:3000/
//! ```
//!
//! `POST` or `PUT` anything: the response says how many bytes arrived, and their checksum.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Upload;
use rotor::BoxError;
use rotor::http::server::{HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(upload)
}

fn upload() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    serve_http(address, HttpSeed::<Upload>::new((), ServerConfig::new()), (), |address| {
        format!("try: curl -T some-file http://{address}/")
    })
}
