//! A REST service over SQLite: routes, JSON in and out, static files, and a blocking database on
//! other threads.
//!
//! ```text
//! cargo run --release -p rotor-examples --example rest_service [ADDRESS [FILE [DIRECTORY]]]
//! listening on http://127.0.0.1:3000/
//! curl -H 'Content-Type: application/json' -d '{"text": "water"}' http://127.0.0.1:3000/notes
//! curl http://127.0.0.1:3000/notes
//! ```
//!
//! `GET /notes?limit=20` lists the notes, `POST /notes` adds one (`{"text": ".."}`), `GET` and
//! `DELETE` of `/notes/ID` return or remove one. `GET /later` answers after a tenth of a second.
//! Below `/static` are the files of a directory. Every error is JSON too, except those of files.
//! Handlers are async functions; each asks the database on a thread of the pool, which has a
//! connection of its own, and waits for the answer.
//!
//! It listens on 127.0.0.1:3000, keeps the notes in `notes.sqlite` and serves the files of the
//! current directory unless told otherwise. On SIGINT or SIGTERM, requests in progress are finished
//! first.
//!
//! `benches/peers/rest-axum` is the same service on axum; `tests/long/first-service` compares them.
#![forbid(unsafe_code)]

mod notes;
mod service;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use rotor::BoxError;
use rotor::http::files::FilesConfig;
use rotor::http::server::Serve;
use rotor_async::http::run_with_files;
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;
use rotor_service::json_errors;

fn main() -> ExitCode {
    program::run(rest_service)
}

fn rest_service() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let notes = notes::open(program::argument(2, "notes.sqlite".to_owned())?)?;
    let directory = program::argument(3, ".".to_owned())?;
    let files = FilesConfig::new(directory).mounted_at("/static").open()?;
    let routes = Arc::new(service::routes()?);
    let answer = move |request| service::answer(request, routes.clone(), notes.clone());
    let (serve, answer) = (Serve::new(address), json_errors(answer));
    match chosen_kind()? {
        Some(uring) => run_with_files(serve.loop_kind(uring), answer, files, || ())?,
        None => run_with_files(serve, answer, files, || ())?,
    }
    Ok(())
}
