//! An HTTP server with one route that blocks, without holding up other requests.
//!
//! ```text
//! mkfifo /tmp/pipe
//! cargo run --release -p rotor-examples --example blocking_route /tmp/pipe [ADDRESS]
//! curl http://127.0.0.1:3000/file &      # waits until somebody writes into the pipe
//! curl http://127.0.0.1:3000/            # is answered meanwhile
//! echo hello > /tmp/pipe
//! ```
//!
//! `GET /file` answers with the file that the first argument names, which is read anew each time.
//! The system can read files only by calls that block: for a moment if the file is on a disk, for
//! any length of time if it is a pipe or on a network. `GET /` shows how many requests there were.
//!
//! On SIGINT or SIGTERM, requests in progress are finished first.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use rotor::http::Status;
use rotor::http::server::{
    self, Head, HttpAccept, HttpSeed, Reply, Response as HttpResponse, Scope, ServerConfig,
    ServerFn,
};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

/// What all requests share.
struct Shared {
    file: String,
    requests: u64,
}

type Handler = fn(&Head<'_>, &mut HttpResponse<'_>, &mut Scope<'_, Shared>) -> Reply;

fn main() -> ExitCode {
    program::run(blocking_route)
}

fn blocking_route() -> Result<(), BoxError> {
    let file = program::argument(1, "/etc/hostname".to_owned())?;
    let mut address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let mut creator =
        Loop::<HttpAccept<ServerFn<Handler, Shared>, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            let seed = HttpSeed::new(answer as Handler, ServerConfig::new());
            Ok(server::listen(listener, seed, scope))
        })
    })?;
    // From here on, another thread goes on with the loop while a handler is in a section that is
    // declared to block.
    let mut instance = creator.instantiate(Shared { file, requests: 0 }).handing_over();
    serve(&mut instance, &[format!("listening on http://{address}/")])
}

fn answer(
    head: &Head<'_>,
    response: &mut HttpResponse<'_>,
    scope: &mut Scope<'_, Shared>,
) -> Reply {
    scope.requests += 1;
    match head.path() {
        "/" => {
            let requests = format!("{}\n", scope.requests);
            response.reply(Status::OK, "text/plain", requests.as_bytes())
        }
        "/file" => {
            // The section needs its own copy, because the context is with the other machines
            // meanwhile.
            let file = scope.file.clone();
            match scope.blocking(|| std::fs::read(file)) {
                Ok(content) => response.reply(Status::OK, "application/octet-stream", &content),
                Err(_) => response.reply(Status::NOT_FOUND, "text/plain", b"it cannot be read\n"),
            }
        }
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}
