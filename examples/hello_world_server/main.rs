//! An HTTP server that answers `GET /` with `Hello, World!`, on one thread.
//!
//! ```text
//! cargo run --release --example hello_world_server [ADDRESS:PORT]     # 127.0.0.1:3000 if there is none
//! listening on http://127.0.0.1:3000/
//! try: wrk -t2 -c400 -d10 http://127.0.0.1:3000/
//! ```
//!
//! A browser or `curl` shows `Hello, World!`; `wrk` shows how many of them a second. Ctrl-C lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;
#[path = "../serving/program.rs"]
mod program;
#[path = "../serving/serve.rs"]
mod serve;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::Hello;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use serve::serve;

fn main() -> ExitCode {
    program::run(hello)
}

fn hello() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
        })
    })?;
    let try_this = format!("try: wrk -t2 -c400 -d10 http://{address}/");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}
