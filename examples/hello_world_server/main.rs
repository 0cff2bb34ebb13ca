//! An HTTP server that answers `GET /` with `Hello, World!`, on one thread.
//!
//! ```text
//! cargo run --release --example hello_world_server [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/
//! curl http://127.0.0.1:3000/
//! ```
//!
//! A browser or `curl` shows `Hello, World!`; `wrk -t2 -c400 -d10 http://127.0.0.1:3000/` measures
//! how many requests a second it serves. On Ctrl-C, requests in progress are finished first.
#![forbid(unsafe_code)]

mod hello;

use rotor::http::server::{ServeError, serve};

fn main() -> Result<(), ServeError> {
    let address = std::env::args().nth(1);
    serve(address.as_deref().unwrap_or("127.0.0.1:3000"), hello::hello)
}
