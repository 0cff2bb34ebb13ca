//! An HTTP server that switches the protocol: after `Upgrade: echo` the connection sends back every
//! byte.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upgrade_echo [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl -i --http1.1 -H 'Connection: upgrade' -H 'Upgrade: echo' http://127.0.0.1:3000/
//! ```
//!
//! Without the upgrade, the response is 426, which names the protocol.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::UpgradeEcho;
use rotor::BoxError;
use rotor::http::server::{HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;

fn main() -> ExitCode {
    program::run(upgrade_echo)
}

fn upgrade_echo() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    serve_http(address, HttpSeed::<UpgradeEcho>::new((), ServerConfig::new()), (), |address| {
        let headers = "-H 'Connection: upgrade' -H 'Upgrade: echo'";
        format!("try: curl -i --http1.1 {headers} http://{address}/")
    })
}
