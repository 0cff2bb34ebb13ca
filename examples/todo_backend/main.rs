//! A small JSON service: a list of things to do, in memory.
//!
//! ```text
//! cargo run --release -p rotor-examples --example todo_backend [ADDRESS]
//! listening on http://127.0.0.1:3000/
//! try: curl -i http://127.0.0.1:3000/todos -d '{"title": "water the plants"}'
//! ```
//!
//! `GET /todos` lists them, `POST /todos` adds one (`{"title": ".."}`), `DELETE /todos` removes
//! all; `GET`, `PATCH` (`{"completed": true}`) and `DELETE` of `/todos/ID` are for a single one.
//! The list is the context of the loop: all connections share it, without a lock, because a loop
//! calls one handler at a time. Pages of any origin may use it, such as those of
//! <https://todobackend.com>.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. On SIGINT or SIGTERM, requests in progress
//! are finished first.
#![forbid(unsafe_code)]

mod machine;
mod todos;

use std::net::SocketAddr;
use std::process::ExitCode;

use machine::TodoBackend;
use rotor::BoxError;
use rotor::http::server::{HttpSeed, ServerConfig};
use rotor_examples::program;
use rotor_examples::serve::serve_http;
use rotor_service::Cors;
use todos::Todos;

fn main() -> ExitCode {
    program::run(todo_backend)
}

fn todo_backend() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let seed = HttpSeed::<TodoBackend<Todos>>::new(Cors::any(), ServerConfig::new());
    serve_http(address, seed, Todos::new(), |address| {
        format!("try: curl -i http://{address}/todos -d '{{\"title\": \"water the plants\"}}'")
    })
}
