//! An HTTP server that also speaks HTTP/2 on unencrypted connections, with clients that begin with
//! it.
//!
//! ```text
//! cargo run --release -p rotor-examples --example http2_hello [ADDRESS:PORT]
//! listening on http://127.0.0.1:3000/
//! curl --http2-prior-knowledge http://127.0.0.1:3000/
//! ```
//!
//! `curl --http2-prior-knowledge http://127.0.0.1:3000/` and `nghttp http://127.0.0.1:3000/` get
//! the page over HTTP/2, any other client over HTTP/1.1. The handler is the same for both.
#![forbid(unsafe_code)]

use std::net::SocketAddr;
use std::process::ExitCode;

use rotor::http::Status;
use rotor::http::server::{Head, Http2Config, Reply, Response, Scope, Serve, ServerConfig};
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;

fn hello(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    match head.path() {
        "/" => response.reply(Status::OK, "text/plain", b"Hello, World!"),
        _ => response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n"),
    }
}

fn main() -> ExitCode {
    program::run(|| {
        let serve = Serve::new(program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?)
            .config(|| ServerConfig::new().http2(Http2Config::new().prior_knowledge(true)));
        match chosen_kind()? {
            Some(uring) => serve.loop_kind(uring).run_fn(hello, || ())?,
            None => serve.run_fn(hello, || ())?,
        }
        Ok(())
    })
}
