//! An HTTP server that changes the protocol: after `Upgrade: echo` the connection sends back every
//! byte.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upgrade_echo [ADDRESS]
//! ```
//!
//! Without the upgrade, the answer is 426, which says what to ask for.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::UpgradeEcho;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(upgrade_echo)
}

fn upgrade_echo() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator = Loop::<HttpAccept<UpgradeEcho, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    let try_this = format!(
        "try: curl -i --http1.1 -H 'Connection: upgrade' -H 'Upgrade: echo' http://{address}/"
    );
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}
