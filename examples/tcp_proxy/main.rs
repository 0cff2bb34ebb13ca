//! Passes connections on to another address, in both directions.
//!
//! ```text
//! # without arguments: 127.0.0.1:7000, 127.0.0.1:7001 and no header
//! cargo run --release -p rotor-examples --example tcp_proxy [LISTEN [UPSTREAM [HEADER]]]
//! listening on 127.0.0.1:7000
//! passing on to 127.0.0.1:7001
//! try: nc -l 127.0.0.1 7001, then nc 127.0.0.1 7000
//! ```
//!
//! What is typed into one `nc` appears in the other. If one side ends, the other is told, and may
//! still send. If a side does not read, the other one cannot send any more; nothing accumulates
//! here.
//!
//! Either side may be encrypted, so that the proxy removes TLS or adds it:
//!
//! ```text
//! TLS_CERTIFICATE=site.crt TLS_KEY=site.key tcp_proxy 127.0.0.1:7000 127.0.0.1:7001
//! tcp_proxy 127.0.0.1:7000 tls://db.example.com:5433
//! ```
//!
//! `HEADER` tells the upstream the client's address, by the PROXY protocol: `send-proxy` is version
//! 1, a line, and `send-proxy-v2` version 2, as in haproxy. It comes before TLS.
//!
//! ```text
//! tcp_proxy 127.0.0.1:7000 127.0.0.1:7001 send-proxy-v2
//! ```
//!
//! A `tls://` upstream must have a certificate for that name, from an issuer that the system
//! trusts, or that is in the file named by the environment variable `SSL_CERT_FILE`. On Ctrl-C,
//! connections may finish, for at most ten seconds.
#![forbid(unsafe_code)]

mod machine;

use std::fmt;
use std::net::{SocketAddr, ToSocketAddrs};
use std::process::ExitCode;
use std::str::FromStr;

use machine::{Proxy, Route};
use rotor::net::{Either, IpNet, ListenOptions, Listener, Net};
use rotor::proxy_protocol::{ProxyHeader, ProxyStream, ProxyTarget, Version};
use rotor::stream::{Accept, AcceptConfig};
use rotor::tls::{
    MaybeTls, MaybeTlsTarget, Roots, TlsClient, TlsClientConfig, TlsListener, TlsServer,
};
use rotor::{Backend, BoxError, Config, Loop, Response};
use rotor_examples::chosen_loop::on_chosen_loop;
use rotor_examples::identity::tls_server;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_uring::OnAnyLoop;

/// A listener with or without TLS.
type Listens<N> = Either<TlsListener<<N as Net>::Listener>, <N as Net>::Listener>;

/// An upstream's socket, with or without a PROXY header, and with or without TLS.
type Connects<N> = MaybeTls<Either<ProxyStream<<N as Net>::Stream>, <N as Net>::Stream>>;

/// An upstream's address, with the header that its socket sends first, if any.
type Address = Either<ProxyTarget<SocketAddr>, SocketAddr>;

type Machine<N> = Accept<Proxy<MaybeTls<<N as Net>::Stream>, Connects<N>, ()>, Listens<N>>;

/// The upstream: `ADDRESS:PORT`, or `tls://NAME:PORT`.
#[derive(Clone)]
enum Upstream {
    Clear(SocketAddr),
    Tls(String, u16),
}

impl Upstream {
    /// Asks the system for the address, which may block.
    fn resolve(&self, header: Header) -> Result<Route<MaybeTlsTarget<Address>>, BoxError> {
        let (name, port) = match self {
            Upstream::Clear(address) => {
                let address = *address;
                return Ok(Route::new(move |client, here| {
                    Either::B(header.before(address, client, here))
                }));
            }
            Upstream::Tls(name, port) => (name, *port),
        };
        let bare = name.trim_start_matches('[').trim_end_matches(']');
        let addresses = (bare, port).to_socket_addrs();
        let mut addresses = addresses.map_err(|error| format!("cannot resolve {name}: {error}"))?;
        let address = addresses.next().ok_or_else(|| format!("{name} has no address"))?;
        let tls = TlsClient::new(TlsClientConfig::new(Roots::none().platform()?))?;
        let target = tls.to(address, name)?;
        Ok(Route::new(move |client, here| {
            Either::A(target.with_address(header.before(address, client, here)))
        }))
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

/// What the upstream is told about the client.
#[derive(Clone, Copy)]
enum Header {
    Nothing,
    Proxy(Version),
}

impl Header {
    /// Returns the address with the header that is sent first: the client's address, and the one to
    /// which it has connected.
    fn before(
        self,
        address: SocketAddr,
        client: Option<SocketAddr>,
        here: Option<SocketAddr>,
    ) -> Address {
        let Header::Proxy(version) = self else { return Either::B(address) };
        let header = match (client, here) {
            (Some(client), Some(here)) => ProxyHeader::proxied(version, client, here),
            _ => ProxyHeader::unknown(version),
        };
        Either::A(ProxyTarget::new(address, header))
    }
}

impl FromStr for Header {
    type Err = BoxError;

    fn from_str(text: &str) -> Result<Header, BoxError> {
        match text {
            "none" => Ok(Header::Nothing),
            "send-proxy" => Ok(Header::Proxy(Version::V1)),
            "send-proxy-v2" => Ok(Header::Proxy(Version::V2)),
            _ => Err("there is no such header".into()),
        }
    }
}

impl fmt::Display for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Header::Nothing => "none",
            Header::Proxy(Version::V1) => "send-proxy",
            Header::Proxy(Version::V2) => "send-proxy-v2",
        })
    }
}

fn main() -> ExitCode {
    program::run(proxy)
}

fn proxy() -> Result<(), BoxError> {
    let address = program::argument(1, SocketAddr::from(([127, 0, 0, 1], 7000)))?;
    let nowhere = Upstream::Clear(SocketAddr::from(([127, 0, 0, 1], 7001)));
    let upstream = program::argument(2, nowhere)?;
    // If the argument is invalid, the error shows an example.
    let header = match std::env::args_os().nth(3) {
        Some(_) => program::argument(3, Header::Proxy(Version::V2))?,
        None => Header::Nothing,
    };
    let route = upstream.resolve(header)?;
    let tls = tls_server(&[])?;
    on_chosen_loop(Server { address, upstream, route, tls })
}

/// The proxy, on a loop.
struct Server {
    address: SocketAddr,
    upstream: Upstream,
    route: Route<MaybeTlsTarget<Address>>,
    tls: Option<TlsServer>,
}

impl OnAnyLoop for Server {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Server { mut address, upstream, route, tls } = self;
        let mut creator = Loop::<Machine<N>, B>::with_backend(backend, &Config::new())?;
        creator.add_machine_with(|scope| {
            Response::attempt(|| {
                let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
                address = listener.local_address().unwrap_or(address);
                let listener = match tls {
                    Some(tls) => Either::A(tls.over(listener)),
                    None => Either::B(listener),
                };
                Ok(Accept::listen(listener, route, AcceptConfig::new(), scope))
            })
        })?;
        let mut instance = creator.instantiate(());
        let mut lines =
            vec![format!("listening on {address}"), format!("passing on to {upstream}")];
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
}
