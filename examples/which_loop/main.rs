//! The hello server on the loop that the environment names: mio's, or io_uring's if the system
//! allows it.
//!
//! ```text
//! ROTOR_BACKEND=uring cargo run --release -p rotor-examples --example which_loop [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/
//! curl http://127.0.0.1:3000/
//! ```
//!
//! Without the variable, or with `mio`, it is mio's. If io_uring is refused, a line on standard
//! error says why, and it is mio's as well. `THREADS` is the number of loops, each with a thread, a
//! ring and a listener of its own (default: one).
//!
//! A program that does more than HTTP uses `rotor_uring::choose`; `tcp_echo_server` is a small one.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use rotor::BoxError;
use rotor::http::Status;
use rotor::http::server::{Head, Reply, Response, Scope, Serve};
use rotor_examples::program;
use rotor_uring::{Choice, UringConfig, UringKind};

fn hello(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    match head.path() {
        "/" => response.reply(Status::OK, "text/plain", b"Hello, World!"),
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}

fn which_loop() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let serve = Serve::new(address).threads(program::threads()?);
    match UringKind::chosen(Choice::from_env()?, &UringConfig::new()) {
        Some(uring) => serve.loop_kind(uring).run_fn(hello, || ())?,
        None => serve.run_fn(hello, || ())?,
    }
    Ok(())
}

fn main() -> ExitCode {
    program::run(which_loop)
}
