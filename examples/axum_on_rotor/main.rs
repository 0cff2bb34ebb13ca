//! The routes of axum, with layers of tower-http, served by rotor.
//!
//! ```text
//! cargo run --release -p rotor-examples --example axum_on_rotor [ADDRESS [DIRECTORY]]
//! listening on http://127.0.0.1:3000/
//! curl -H 'Content-Type: application/json' -d '{"text": "water"}' http://127.0.0.1:3000/todos
//! curl -N http://127.0.0.1:3000/events
//! ```
//!
//! `routes.rs` uses nothing of rotor: the same routes can be served by hyper with
//! `axum::serve(listener, routes)`. Here `Tower::run` takes the place of that line. There are a
//! list of things to do (`/todos`), a stream of events (`/events`), an upload whose bytes are
//! counted as they arrive (`/count`), and the files of a directory (`/files/`). All are compressed
//! if the client supports it, over HTTP/1.1 and HTTP/2. The futures run on rotor's loop; a tokio
//! runtime on another thread provides the timers.
//!
//! It listens on 127.0.0.1:3000 and serves the files of the current directory unless told
//! otherwise. On SIGINT or SIGTERM, requests in progress are finished first.
#![forbid(unsafe_code)]

mod routes;

use std::net::SocketAddr;
use std::process::ExitCode;

use axum::extract::ConnectInfo;
use rotor::BoxError;
use rotor::http::server::{Http2Config, Serve, ServerConfig};
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;
use rotor_tower::Tower;

fn main() -> ExitCode {
    program::run(axum_on_rotor)
}

fn axum_on_rotor() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let directory = program::argument(2, ".".to_owned())?;
    let config = || ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    let serve = Serve::new(address).config(config);
    let tower = Tower::new(routes::routes(&directory)).extend(|head, extensions| {
        if let Some(address) = head.peer_address() {
            extensions.insert(ConnectInfo(address));
        }
    });
    match chosen_kind()? {
        Some(uring) => tower.run(serve.loop_kind(uring)),
        None => tower.run(serve),
    }
}
