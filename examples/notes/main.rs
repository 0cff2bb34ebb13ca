//! A service in 70 lines: routes, JSON in and out, a query, errors as JSON, and notes in memory.
//!
//! ```text
//! cargo run --release -p rotor-examples --example notes [ADDRESS]
//! curl -i http://127.0.0.1:3000/notes --json '{"text": "water the plants"}'
//! ```
//!
//! `GET /notes?limit=20` lists the notes, at most 100. `POST /notes` adds one (`{"text": ".."}`).
//! `GET` and `DELETE` of `/notes/ID` return or remove one. The arguments of a handler declare what
//! it needs: if a request lacks one of them, or its body is not a note, the request is refused with
//! the reason before the handler is called.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use rotor::BoxError;
use rotor::http::Status;
use rotor::http::server::{Reply, Response, Scope, Serve};
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;
use rotor_service::{Json, Path, Query, Rejection, Router, json};
use serde::{Deserialize, Serialize};

/// The maximum number of notes, which are kept in memory.
const NOTES_MAX: usize = 10_000;

/// The maximum size of a note as JSON, in bytes.
const NOTE_BYTES_MAX: usize = 4 << 10;

/// The maximum number of notes in a list, whatever the request says: a response is in memory, and
/// all notes together would be 40 MB.
const LIST_MAX: usize = 100;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
}

/// The context of the loop: all connections share it, without a lock.
#[derive(Default)]
struct Notes {
    kept: BTreeMap<u64, Note>,
    /// The last number that was given to a note. Numbers are not used again.
    last: u64,
}

type Answer = Result<Reply, Rejection>;

fn list(Query(query): Query, response: &mut Response<'_>, notes: &mut Scope<'_, Notes>) -> Answer {
    let limit = query.parse("limit")?.unwrap_or(20).min(LIST_MAX);
    let shown: Vec<_> = notes.kept.iter().take(limit).collect();
    Ok(json::reply(response, Status::OK, &shown))
}

fn add(
    Json(note): Json<Note>,
    response: &mut Response<'_>,
    notes: &mut Scope<'_, Notes>,
) -> Answer {
    if notes.kept.len() >= NOTES_MAX {
        return Err(Rejection::new(Status::SERVICE_UNAVAILABLE, "there are too many"));
    }
    notes.last += 1;
    let id = notes.last;
    notes.kept.insert(id, note);
    Ok(json::reply(response, Status::CREATED, &id))
}

fn show(Path(id): Path<u64>, response: &mut Response<'_>, notes: &mut Scope<'_, Notes>) -> Answer {
    let note = notes.kept.get(&id).ok_or_else(Rejection::not_found)?;
    Ok(json::reply(response, Status::OK, note))
}

fn take(Path(id): Path<u64>, response: &mut Response<'_>, notes: &mut Scope<'_, Notes>) -> Answer {
    let note = notes.kept.remove(&id).ok_or_else(Rejection::not_found)?;
    Ok(json::reply(response, Status::OK, &note))
}

fn serve() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let router = Router::new()
        .body_bytes_max(NOTE_BYTES_MAX)
        .get("/notes", list)?
        .post("/notes", add)?
        .get("/notes/{id}", show)?
        .delete("/notes/{id}", take)?;
    let serve = Serve::new(address);
    match chosen_kind()? {
        Some(uring) => router.run(serve.loop_kind(uring), Notes::default)?,
        None => router.run(serve, Notes::default)?,
    }
    Ok(())
}

fn main() -> std::process::ExitCode {
    program::run(serve)
}
