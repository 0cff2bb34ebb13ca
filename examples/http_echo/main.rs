//! An HTTP server that sends back what it gets. External test suites run against this one.
//!
//! ```text
//! cargo run --release -p rotor-examples --example http_echo [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl -i http://127.0.0.1:3000/ -d hello
//! ```
//!
//! `GET /` returns a page with `ETag` and `Last-Modified`, and evaluates conditions. `POST /` reads
//! the whole body, then sends it back. `/echo` lists the received fields. `OPTIONS` (`*` too) and
//! 405 report the allowed methods. A head may take 3 s, and so may the beginning of a body.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::Echo;
use rotor::BoxError;
use rotor::http::Limits;
use rotor::http::server::{Http2Config, HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(echo)
}

fn echo() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let config =
        ServerConfig::new().limits(limits()).http2(Http2Config::new().prior_knowledge(true));
    serve_http(address, HttpSeed::<Echo>::new((), config), (), |address| {
        format!("try: curl -i http://{address}/ -d hello")
    })
}

fn limits() -> Limits {
    let patience = Duration::from_secs(3);
    Limits::new().head_timeout(patience).body_grace(patience)
}
