//! An HTTPS server: HTTP/2 and HTTP/1.1 over TLS 1.2 and 1.3. It reads its certificates again at
//! SIGHUP.
//!
//! ```text
//! cargo run --release -p rotor-examples --example https_server [CHAIN.pem KEY.pem] [ADDRESS:PORT]
//! try: curl --cacert /tmp/rotor-https-4711-0/certificate.pem https://localhost:3443/session
//! listening on https://127.0.0.1:3443/
//! ```
//!
//! Without files, it makes a self-signed certificate for `localhost` at start, and leaves it with
//! its key in a directory of its own that nobody else can read. At SIGHUP it reads both files
//! again: later handshakes use the new certificate, existing connections are not affected, and
//! files that do not fit together change nothing.
//!
//! `GET /` says hello, and `GET /session` shows the result of the handshake. The server listens on
//! 127.0.0.1:3443 unless told otherwise. `THREADS` is the number of loops, each with a thread and a
//! listener of its own (default: one). On SIGINT or SIGTERM, requests in progress are finished
//! first.
#![forbid(unsafe_code)]

mod certificate;
mod machine;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;

use certificate::Files;
use machine::Hello;
use rotor::http::server::Serve;
use rotor::signals::on_hangup;
use rotor::tls::{TlsServer, TlsServerConfig};
use rotor::{BoxError, with_causes};
use rotor_examples::chosen_loop::chosen_kind;
use rotor_examples::program;

fn main() -> ExitCode {
    program::run(https)
}

fn https() -> Result<(), BoxError> {
    let has_files = env::args_os().len() > 2;
    let address = SocketAddr::from(([127, 0, 0, 1], 3443));
    let address = program::argument(if has_files { 3 } else { 1 }, address)?;
    let files = if has_files { Files::given() } else { Files::make()? };
    let tls = TlsServer::new(TlsServerConfig::new(files.read()?).alpn(&[b"h2", b"http/1.1"]))?;
    if !has_files {
        let (certificate, port) = (files.certificate().display(), address.port());
        eprintln!("try: curl --cacert {certificate} https://localhost:{port}/session");
    }
    let renewed = tls.clone();
    on_hangup(move || match files.read().and_then(|identity| renewed.reload(&[identity])) {
        Ok(()) => log::warn!("the certificate was read again"),
        Err(error) => log::error!("the old certificate stays: {}", with_causes(&error)),
    })?;
    let serve = Serve::new(address).over(tls).threads(program::threads()?);
    match chosen_kind()? {
        Some(uring) => serve.loop_kind(uring).run::<Hello>(|| ((), ()))?,
        None => serve.run::<Hello>(|| ((), ()))?,
    }
    Ok(())
}
