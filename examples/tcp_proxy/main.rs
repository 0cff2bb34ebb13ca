//! Passes connections on to another address, both ways.
//!
//! ```text
//! cargo run --release -p rotor-examples --example tcp_proxy [LISTEN [UPSTREAM]]        # 127.0.0.1:7000 127.0.0.1:7001
//! listening on 127.0.0.1:7000
//! passing on to 127.0.0.1:7001
//! try: nc -l 127.0.0.1 7001, then nc 127.0.0.1 7000
//! ```
//!
//! What is typed into one `nc` appears in the other. When one side ends, the other is told, and may
//! still send. A side that does not read stops the other one from sending; nothing piles up here.
//!
//! Either side may be encrypted, which takes TLS off, or puts it on:
//!
//! ```text
//! TLS_CERTIFICATE=site.crt TLS_KEY=site.key tcp_proxy 127.0.0.1:7000 127.0.0.1:7001
//! tcp_proxy 127.0.0.1:7000 tls://db.example.com:5433
//! ```
//!
//! A `tls://` upstream must have a certificate for that name, from an issuer that the system trusts,
//! or of the file that the environment names as `SSL_CERT_FILE`. Ctrl-C lets connections finish for ten seconds.
#![forbid(unsafe_code)]

mod machine;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::str::FromStr;

use machine::Proxy;
use rotor::net::{Either, ListenOptions, Listener, TcpListener, TcpStream};
use rotor::stream::{Accept, AcceptConfig};
use rotor::tls::{MaybeTls, MaybeTlsTarget, Roots, TlsClient, TlsClientConfig, TlsListener};
use rotor::{BoxError, Config, Loop, Response};
use rotor_examples::identity::tls_server;
use rotor_examples::program;
use rotor_examples::serve::serve;

/// A listener that shakes hands or does not; its sockets are of one kind with those that connect.
type Listens = Either<TlsListener<TcpListener>, TcpListener>;

/// Where everything is passed on to: `ADDRESS:PORT`, or `tls://NAME:PORT`.
#[derive(Clone)]
enum Upstream {
    Clear(SocketAddr),
    Tls(String, u16),
}

impl Upstream {
    /// Asks the system where that is, which may take its time.
    fn resolve(&self) -> Result<MaybeTlsTarget<SocketAddr>, BoxError> {
        let (name, port) = match self {
            Upstream::Clear(address) => return Ok(Either::B(*address)),
            Upstream::Tls(name, port) => (name, *port),
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let addresses = (bare, port).to_socket_addrs();
        let mut addresses = addresses.map_err(|error| format!("cannot resolve {name}: {error}"))?;
        let address = addresses.next().ok_or_else(|| format!("{name} has no address"))?;
        let tls = TlsClient::new(TlsClientConfig::new(Roots::none().platform()?))?;
        Ok(Either::A(tls.to(address, name)?))
    }
}

impl FromStr for Upstream {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Upstream, BoxError> {
        let Some(rest) = text.strip_prefix("tls://") else {
            return Ok(Upstream::Clear(text.parse()?));
        };
        let (name, port) = rest.rsplit_once(':').ok_or("there is no port")?;
        Ok(Upstream::Tls(name.to_owned(), port.parse()?))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Clear(address) => address.fmt(f),
            Upstream::Tls(name, port) => write!(f, "tls://{name}:{port}"),
        }
    }
}

fn main() -> ExitCode {
    program::run(proxy)
}

fn proxy() -> Result<(), BoxError> {
    let mut address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?;
    let nowhere = Upstream::Clear(SocketAddr::from(([127, 0, 0, 1], 7001)));
    let upstream = program::argument(2, nowhere)?;
    let target = upstream.resolve()?;
    let tls = tls_server(&[])?;
    let mut creator = Loop::<Accept<Proxy<MaybeTls<TcpStream>, ()>, Listens>>::new(&Config::new())?;
    creator.add_machine_with(|scope| {
        Response::attempt(|| {
            let listener = TcpListener::bind(&address, &ListenOptions::new(), scope)?;
            address = listener.local_address().unwrap_or(address);
            let listener = match tls {
                Some(tls) => Either::A(tls.over(listener)),
                None => Either::B(listener),
            };
            Ok(Accept::listen(listener, target, AcceptConfig::new(), scope))
        })
    })?;
    let mut instance = creator.instantiate(());
    let mut lines = vec![format!("listening on {address}"), format!("passing on to {upstream}")];
    if let Upstream::Clear(upstream) = upstream {
        lines.push(format!(
            "try: nc -l {} {}, then nc {} {}",
            upstream.ip(),
            upstream.port(),
            address.ip(),
            address.port()
        ));
    }
    serve(&mut instance, &lines)
}
