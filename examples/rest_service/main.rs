//! A REST service over SQLite: routes, JSON in and out, a database that blocks on other threads.
//!
//! ```text
//! cargo run --release -p rotor-examples --example rest_service [ADDRESS [FILE]]
//! ```
//!
//! `GET /notes?limit=20` lists them, `POST /notes` adds one (`{"text": ".."}`), `GET` and `DELETE` of
//! `/notes/ID` are about one; every refusal is JSON too. Handlers are async functions: each hands its
//! question to a thread of the pool (`Scope::offload`), which has a connection of its own, and waits for
//! the answer.
//!
//! It listens on 127.0.0.1:3000 and keeps the notes in `notes.sqlite` unless told otherwise. SIGINT or
//! SIGTERM lets the requests that are under way finish.
#![forbid(unsafe_code)]

mod notes;
mod service;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use rotor::http::server::Serve;
use rotor::{BoxError, Scope};
use rotor_async::http::{run, with_scope};
use rotor_examples::program;

fn main() -> ExitCode {
    program::run(rest_service)
}

fn rest_service() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let file = PathBuf::from(program::argument(2, "notes.sqlite".to_owned())?);
    notes::create(&file)?;
    let service = service::Service::new(file)?;
    let answer =
        with_scope(move |request, scope: &mut Scope<'_, ()>| service.answer(request, scope));
    Ok(run(Serve::new(address), answer, || ())?)
}
