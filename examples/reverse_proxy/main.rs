//! Passes requests on to another HTTP server, and the responses back.
//!
//! ```text
//! cargo run --release -p rotor-examples --example reverse_proxy [UPSTREAM [LISTEN]]
//! listening on http://127.0.0.1:3000/, passing on to http://127.0.0.1:8080/
//! curl -i http://127.0.0.1:3000/
//! ```
//!
//! Both sides may be encrypted. An `https://` upstream must have a certificate for the host of its
//! URL, from an issuer that the system trusts, or that is in the file named by the environment
//! variable `SSL_CERT_FILE`. If the variables `TLS_CERTIFICATE` and `TLS_KEY` name two files,
//! clients are served with TLS, and with HTTP/2 if they support it:
//!
//! ```text
//! TLS_CERTIFICATE=site.crt TLS_KEY=site.key reverse_proxy https://10.0.0.7/ 0.0.0.0:443
//! ```
//!
//! Both sides may speak HTTP/2, independently of each other: negotiated by TLS, or without TLS, if
//! a client begins with it, and if the upstream is given as `h2c://10.0.0.7:8080/`. Trailers are
//! passed on between the two, which is what gRPC needs. So are WebSockets, which HTTP/2 carries on
//! streams (RFC 8441): each side has its own handshake, with a key that is made and proven here,
//! and what the two ends agree on is passed on. If an `https://` upstream speaks HTTP/2 but does
//! not support WebSockets there, HTTP/1.1 is used; an `h2c://` upstream gets an ordinary GET.
//!
//! Bodies are passed on in both directions at the speed of the slower side and are never held as a
//! whole. Framing is written anew, and fields for one connection only are not passed on. Three
//! kinds of fields are not passed on from a client, because upstreams assume that a proxy has set
//! them (`fields.rs` has all names):
//!
//! * where the request comes from, and how (`Forwarded`, `X-Forwarded-For`, `X-Real-IP`,
//!   `CF-Connecting-IP`): replaced by what is known, as `X-Forwarded-For`, `-Host` and `-Proto`;
//! * what it requests other than by its first line and `Host` (`X-Original-URL`, `X-Rewrite-URL`,
//!   `X-Host`, `X-HTTP-Method-Override`): frameworks route by these fields, and would bypass checks
//!   that were made in front of them. If the clients of an upstream must override the method in
//!   this way, remove that name from the list;
//! * who makes it (`Remote-User`, `X-Auth-Request-User`, `X-SSL-Client-Cert`): this proxy
//!   authenticates nobody.
//!
//! If the upstream cannot be reached or violates the protocol, the response is 502; if too many
//! requests wait, it is 503; if the head is larger than an upstream of HTTP/2 accepts, it is 431.
//! If the upstream's response does not begin within 30 s, it is 504; this includes waiting for a
//! connection and making one, which may take up to 10 s. If it pauses for 60 s later, it is cut off.
//! A failure is logged at once, further ones within ten seconds in one line. A request that an
//! upstream of HTTP/2 has not processed because it ends its connection, or has too many, is made
//! again, with its body if that has at most 64 KiB; otherwise it is 503.
//!
//! A client of HTTP/1.1 that closes, or ends its side, while it waits gets what the upstream sends
//! without a pause of more than 2 s; then the request is cancelled. Other proxies cancel it at once.
//!
//! The body of a request must arrive at 1 KiB/s until the response begins. From then on the client
//! may pause as well, and the request is cut off after 60 s in which neither side has sent
//! anything. The same applies to a call of gRPC from its beginning, if both sides speak HTTP/2: its
//! messages come when there are some. A client that makes such calls, and sends a byte a minute, is
//! not noticed. It occupies streams, of which the upstream allows a hundred or so on a connection,
//! but no whole connection to the upstream.
//!
//! WebSockets are passed through, other upgrades are not. A WebSocket request without a valid key
//! gets 400, and a refusal of the upstream is passed on unchanged. An invalid proof of the upstream,
//! or a page that a client of HTTP/2 would take for its WebSocket, leads to 502. On Ctrl-C, requests
//! in progress are finished first, for at most ten seconds.
#![forbid(unsafe_code)]

mod back;
mod fields;
mod handshake;
mod machine;
mod message;
mod replay;
mod tunnel;
mod upstream;
mod warnings;

use std::net::SocketAddr;
use std::process::ExitCode;

use back::{Back, upstream_http2, upstream_limits};
use machine::Front;
use rotor::http::Limits;
use rotor::http::client::{ByAddress, ClientConfig, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed};
use rotor::net::{Either, IpNet, ListenOptions, Listener};
use rotor::tls::{MaybeTls, MaybeTlsTarget, TlsListener, TlsServer};
use rotor::{Backend, BoxError, Config, Loop, OffloadPool, rotor_compose};
use rotor_examples::identity::tls_server;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_examples::url::Url;
use rotor_uring::{Choice, OnAnyLoop, UringConfig, choose};
use upstream::Upstream;
use warnings::Warnings;

/// The context: the pool of connections to the upstream.
struct Gateway {
    pool: Pool<Back<Gateway>, Origin>,
    authority: String,
    warnings: Warnings,
}

/// The upstream: an address, with TLS or without.
type Origin = MaybeTlsTarget<SocketAddr>;

impl Upstream for Gateway {
    type Origin = Origin;

    fn pool(&self) -> &Pool<Back<Gateway>, Origin> {
        &self.pool
    }

    fn authority(&self) -> &str {
        &self.authority
    }

    fn warnings(&mut self) -> &mut Warnings {
        &mut self.warnings
    }
}

rotor_compose! {
    enum Machines <N: IpNet> <Gateway> {
        Accept(HttpAccept<Front<Gateway>, Either<TlsListener<N::Listener>, N::Listener>>),
        Pool(PoolMachine<Back<Gateway>, ByAddress<MaybeTls<N::Stream>>>),
    }
}

/// What is read in one turn is passed on to other connections when the turn's events are done. With
/// so few events, all of it is still in the CPU's cache then: 32 blocks of 16 KiB.
const EVENTS_MAX: usize = 32;

fn main() -> ExitCode {
    program::run(proxy)
}

fn proxy() -> Result<(), BoxError> {
    let url = program::argument(1, Url::local())?;
    if url.target() != "/" {
        // Clients send the path; one that was given here would be ignored silently.
        return Err(format!("the upstream is a server, without a path: {url}").into());
    }
    let address = program::argument(2, SocketAddr::from(([127, 0, 0, 1], 3000)))?;
    let upstream = url.http2_server_at(url.resolve()?)?;
    let tls = tls_server(&[b"h2", b"http/1.1"])?;
    let config = UringConfig::new().events_max(EVENTS_MAX).offload_pool(OffloadPool::default());
    choose(Choice::from_env()?, &config, Proxy { url, address, upstream, tls })?
}

/// The proxy, on a loop.
struct Proxy {
    url: Url,
    address: SocketAddr,
    upstream: Origin,
    tls: Option<TlsServer>,
}

impl OnAnyLoop for Proxy {
    type Output = Result<(), BoxError>;

    fn run<N: IpNet, B: Backend>(self, backend: B) -> Result<(), BoxError> {
        let Proxy { url, address, upstream, tls } = self;
        let http2 = upstream_http2(url.http2_config());
        let client = ClientConfig::new().limits(upstream_limits(Limits::new())).http2(http2);
        let scheme = if tls.is_some() { "https" } else { "http" };
        let config = Config::new().events_max(EVENTS_MAX);
        let mut creator = Loop::<Machines<N>, B>::with_backend(backend, &config)?;
        let pool = creator.add_part(Machines::Pool, |scope| {
            let config = PoolConfig::new().connections_per_origin_max(256);
            Ok(PoolMachine::new(config, client.clone(), scope))
        })?;
        let address = creator.add_part(Machines::Accept, |scope| {
            let listener = N::Listener::bind(&address, &ListenOptions::new(), scope)?;
            let address = listener.local_address().unwrap_or(address);
            let listener = match tls {
                Some(tls) => Either::A(tls.over(listener)),
                None => Either::B(listener),
            };
            // Some clients, such as gRPC's, begin with HTTP/2 without TLS if they are told to.
            let http2 = server::Http2Config::new().prior_knowledge(true);
            let config = server::ServerConfig::new().http2(http2);
            let seed = HttpSeed::<Front<Gateway>>::new(upstream, config);
            Ok((address, server::listen(listener, seed, scope)))
        })?;
        let mut instance = creator.instantiate(Gateway {
            pool,
            authority: url.authority().to_owned(),
            warnings: Warnings::new(),
        });
        instance.every(warnings::PERIOD, |_, scope| {
            let now = scope.now();
            scope.warnings.sum_up(now);
        });
        serve(&mut instance, &[format!("listening on {scheme}://{address}/, passing on to {url}")])
    }
}
