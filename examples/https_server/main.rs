//! An HTTPS server: HTTP/2 and HTTP/1.1 over TLS 1.2 and 1.3. It reads its certificates again at
//! SIGHUP.
//!
//! ```text
//! cargo run --release -p rotor-examples --example https_server [CHAIN.pem KEY.pem] [ADDRESS:PORT]
//! listening on https://127.0.0.1:3443/
//! try: curl --cacert /tmp/rotor-https-4711-0/certificate.pem https://localhost:3443/session
//! ```
//!
//! Without files, it makes a self-signed certificate for `localhost` at start, and leaves it with
//! its key in a directory of its own that nobody else can read. At SIGHUP it reads both files
//! again: later handshakes use the new certificate, existing connections are not affected, and
//! files that do not fit together change nothing.
//!
//! `GET /` says hello, and `GET /session` shows the result of the handshake. The server listens on
//! 127.0.0.1:3443 unless told otherwise. On SIGINT or SIGTERM, requests in progress are finished
//! first.
#![forbid(unsafe_code)]

mod certificate;
mod machine;

use std::env;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;

use certificate::Files;
use machine::Hello;
use rotor::http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor::net::{IpNet, ListenOptions, Listener};
use rotor::tls::{TlsListener, TlsServer, TlsServerConfig};
use rotor::{Backend, BoxError, Config, Loop, Response, with_causes};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

fn main() -> ExitCode {
    program::run(https)
}

fn https() -> Result<(), BoxError> {
    let has_files = env::args_os().len() > 2;
    let address = SocketAddr::from(([127, 0, 0, 1], 3443));
    let address = program::argument(if has_files { 3 } else { 1 }, address)?;
    let files = if has_files { Files::given() } else { Files::make()? };
    let tls = TlsServer::new(TlsServerConfig::new(files.read()?).alpn(&[b"h2", b"http/1.1"]))?;
    let certificate = (!has_files).then(|| files.certificate().display().to_string());
    reload_at_hang_up(tls.clone(), files)?;
    on_chosen_loop(Site { address, tls, certificate })
}

/// The server, at an address.
struct Site {
    address: SocketAddr,
    tls: TlsServer,
    /// The path of the certificate that it has made.
    certificate: Option<String>,
}

impl OnAnyLoop for Site {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Site { mut address, tls, certificate } = self;
        let mut creator = Loop::<HttpAccept<Hello, TlsListener<N::Listener>>, B>::with_backend(
            backend,
            &Config::new(),
        )?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let of_tls = tls.at(address);
                let listener = TlsListener::bind(&of_tls, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                Ok(server::listen(listener, HttpSeed::new((), ServerConfig::new()), scope))
            })
        })?;
        let mut lines = vec![format!("listening on https://{address}/")];
        if let Some(certificate) = certificate {
            let port = address.port();
            lines
                .push(format!("try: curl --cacert {certificate} https://localhost:{port}/session"));
        }
        serve(&mut creator.instantiate(()), &lines)
    }
}

/// Starts a thread that reads the files again at each SIGHUP, as long as the process lives.
fn reload_at_hang_up(tls: TlsServer, files: Files) -> Result<(), BoxError> {
    let mut signals = Signals::new([SIGHUP])?;
    thread::Builder::new().name("reload".into()).spawn(move || {
        for _ in signals.forever() {
            match files.read().and_then(|identity| tls.reload(&[identity])) {
                Ok(()) => log::warn!("the certificate was read again"),
                Err(error) => log::error!("the old certificate stays: {}", with_causes(&error)),
            }
        }
    })?;
    Ok(())
}
