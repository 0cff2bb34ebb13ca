//! A WebSocket server that sends back what it gets. External test suites run against this one.
//!
//! ```text
//! cargo run --release -p rotor-examples --example ws_echo [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: python3 -m websockets ws://127.0.0.1:3000/
//! ```
//!
//! It accepts any path and any origin, and messages of up to 64 MiB, compressed if the client
//! supports it.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, connections are closed
//! with 1001.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Site;
use rotor::BoxError;
use rotor::http::server::{Http2Config, HttpSeed, ServerConfig};
use rotor::websocket::{Deflate, Origins, WebSocketConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

/// The test suites send messages of 16 MiB.
const MESSAGE_MAX: usize = 64 << 20;

/// One of their messages has 4 MiB in frames of 64 bytes.
const FRAGMENTS_MAX: u32 = 1 << 17;

fn main() -> ExitCode {
    program::run(ws_echo)
}

fn ws_echo() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let config = WebSocketConfig::new()
        .message_max(MESSAGE_MAX)
        .fragments_max(FRAGMENTS_MAX)
        .deflate(Deflate::new())
        // Nothing here depends on the cookies of a user, so another site cannot misuse them.
        .origins(Origins::Any)
        .share();
    // WebSockets on streams of HTTP/2, for clients that begin with it (RFC 8441).
    let http = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    serve_http(address, HttpSeed::<Site<()>>::new(config, http), (), |address| {
        format!("try: python3 -m websockets ws://{address}/")
    })
}
