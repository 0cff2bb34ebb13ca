//! Passes requests on to another HTTP server, and its answers back.
//!
//! ```text
//! cargo run --release -p rotor-examples --example reverse_proxy [UPSTREAM [LISTEN]]
//! listening on http://127.0.0.1:3000/, passing on to http://127.0.0.1:8080/
//! curl -i http://127.0.0.1:3000/
//! ```
//!
//! Both sides may be encrypted: an `https://` upstream must have a certificate for the host of its
//! URL, from an issuer that the system trusts, or of the file that the environment names as
//! `SSL_CERT_FILE`; and where it names two files as `TLS_CERTIFICATE` and `TLS_KEY`, clients are
//! served with TLS, and with HTTP/2 where they speak it:
//!
//! ```text
//! TLS_CERTIFICATE=site.crt TLS_KEY=site.key reverse_proxy https://10.0.0.7/ 0.0.0.0:443
//! ```
//!
//! Both sides may speak HTTP/2, whatever the other one does: by the handshake of TLS, or without
//! TLS, where a client begins in it, and where the upstream is named as `h2c://10.0.0.7:8080/`.
//! Trailers are passed on between the two, which is what gRPC needs, and WebSockets, which HTTP/2
//! has on streams (RFC 8441): each side has a handshake of its own, with a key that is made and
//! proven here, and what the two ends agree on passes. An upstream that speaks HTTP/2 and takes
//! none there is asked over HTTP/1.1, if it is an `https://` one; an `h2c://` one is asked as by
//! any GET.
//!
//! Bodies go both ways at the pace of the slower side and are never held whole. Framing is written
//! anew, and fields that are for one connection stay there. Three kinds of fields do not pass from
//! a client, since upstreams believe that a proxy has said them (`fields.rs` has all names):
//!
//! * where the request comes from, and how (`Forwarded`, `X-Forwarded-For`, `X-Real-IP`,
//!   `CF-Connecting-IP`): replaced by what is known, as `X-Forwarded-For`, `-Host` and `-Proto`;
//! * what it asks for other than in its first line and `Host` (`X-Original-URL`, `X-Rewrite-URL`,
//!   `X-Host`, `X-HTTP-Method-Override`): frameworks route by it, past whatever was checked in
//!   front of them. An upstream whose clients do have to say another method that way needs that
//!   name taken off the list;
//! * who asks (`Remote-User`, `X-Auth-Request-User`, `X-SSL-Client-Cert`): this proxy has asked
//!   nobody.
//!
//! An upstream that cannot be reached or breaks the protocol is 502, and when too many requests
//! wait it is 503. One whose answer does not begin within 30 s is 504; that covers waiting for a
//! connection and making one, of which the latter may take 10 s. A failure is logged at once,
//! further ones of the same ten seconds in one line. WebSockets are passed through, other upgrades
//! are not: a request for one without a proper key is 400, a refusal of the upstream passes as it
//! is, and a proof that is none, or a page that a client of HTTP/2 would take for its WebSocket,
//! is 502. Ctrl-C lets requests finish for ten seconds.
#![forbid(unsafe_code)]

mod back;
mod fields;
mod handshake;
mod machine;
mod message;
mod tunnel;
mod warnings;

use std::net::SocketAddr;
use std::process::ExitCode;

use back::Back;
use machine::{Front, Upstream};
use rotor::http::client::{ByAddress, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed};
use rotor::net::{Either, IpNet, ListenOptions, Listener};
use rotor::tls::{MaybeTls, MaybeTlsTarget, TlsListener, TlsServer};
use rotor::{Backend, BoxError, Config, Loop, OffloadPool, rotor_compose};
use rotor_examples::identity::tls_server;
use rotor_examples::program;
use rotor_examples::serve::serve;
use rotor_examples::url::Url;
use rotor_uring::{Choice, OnAnyLoop, UringConfig, choose};
use warnings::Warnings;

/// The context: the way to the upstream.
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

/// What one event brings goes on to another connection when the events of the turn are through. So
/// few of them that all of it is still in the processor's cache then: 32 blocks of 16 KiB.
const EVENTS_MAX: usize = 32;

fn main() -> ExitCode {
    program::run(proxy)
}

fn proxy() -> Result<(), BoxError> {
    let url = program::argument(1, Url::local())?;
    if url.target() != "/" {
        // Clients say what they ask for: a path of ours would be dropped without a word.
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
        let client = url.client_config();
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
            // Clients that are told so, as gRPC's are, begin in HTTP/2 without TLS.
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
