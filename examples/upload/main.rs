//! An HTTP server that takes bodies of any size, a piece at a time, and keeps none of them.
//!
//! ```text
//! cargo run --release -p rotor-examples --example upload [ADDRESS]
//! ```
//!
//! `POST` or `PUT` anything: the answer says how many octets came, and their checksum.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Upload;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(upload)
}

fn upload() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator = Loop::<HttpAccept<Upload, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    let try_this = format!("try: curl -T some-file http://{address}/");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}
