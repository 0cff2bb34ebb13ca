//! An HTTP server that sends back what it gets: the one that outside suites are pointed at.
//!
//! ```text
//! cargo run --release -p rotor-examples --example http_echo [ADDRESS]
//! ```
//!
//! `GET /` is a page with `ETag` and `Last-Modified`, conditions honoured; `POST /` reads the whole
//! body, then sends it back; `/echo` lists the fields received; `OPTIONS` (`*` too) and 405 say
//! what is allowed. A head has 3 s, and so has the beginning of a body.
//!
//! It listens on 127.0.0.1:3000 unless told otherwise. SIGINT or SIGTERM lets the requests that are
//! under way finish.
#![forbid(unsafe_code)]

mod machine;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use machine::Echo;
use rotor::http::Limits;
use rotor::http::server::{self, Http2Config, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{ListenOptions, Listener, TcpListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::program;
use rotor_examples::serve::serve;

fn main() -> ExitCode {
    program::run(echo)
}

fn echo() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let config =
        ServerConfig::new().limits(limits()).http2(Http2Config::new().prior_knowledge(true));
    let mut creator = Loop::<HttpAccept<Echo, TcpListener>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            Ok(server::listen(listener, HttpSeed::new((), config), scope))
        })
    })?;
    let try_this = format!("try: curl -i http://{address}/ -d hello");
    serve(&mut creator.instantiate(()), &[format!("listening on http://{address}/"), try_this])
}

fn limits() -> Limits {
    let patience = Duration::from_secs(3);
    Limits::new().head_timeout(patience).body_grace(patience)
}
