//! The application: five protocols in one machine type, and the context that they share.
//!
//! ```text
//!   browser ──▶ Http ──ask──▶ Pool ──ask──▶ Resolver ──▶ name servers
//!                │  ◀─ page ─┘   └──▶ the page's server
//!                ▼
//!              Stats ◀── Statsd ◀── programs
//!                ▲
//!              Ticker
//! ```
//!
//! The parts do not refer to each other. They meet in the context: the pool and the resolver are
//! there as handles, and the statistics as a plain value, since a loop runs one handler at a time.

use std::net::SocketAddr;
use std::time::Duration;

use rotor::dns::{Dns, Resolver, ResolverConfig};
use rotor::http::client::{self, ByName, Fetch, Pool, PoolConfig, PoolMachine};
use rotor::http::server::{self, HttpAccept, HttpSeed};
use rotor::net::{DatagramSocket, IpNet, ListenOptions, Listener};
use rotor::stream::{AddressService, HasResolver, Host};
use rotor::{Backend, BoxError, Loop, LoopInstance, Response, rotor_compose};

use super::front::Front;
use super::stats::Stats;
use super::statsd::Statsd;
use super::ticker::Ticker;

rotor_compose! {
    /// The machines of the loop, on sockets of the family `N`.
    pub(crate) enum App<N: IpNet> <Shared> {
        /// The HTTP server: its listener, and its connections.
        Http(HttpAccept<Front, N::Listener>),
        /// The HTTP client: the pool's manager, and its connections.
        Pool(PoolMachine<Fetch<Shared>, ByName<N::Stream>>),
        /// The resolver, and its queries to name servers.
        Resolver(Resolver<N, Shared>),
        Statsd(Statsd<N::Datagram>),
        Ticker(Ticker),
    }
}

/// The context.
pub(crate) struct Shared {
    pub(crate) pool: Pool<Fetch<Shared>, Host>,
    pub(crate) stats: Stats,
    /// Called with each report of the ticker.
    pub(crate) report: fn(&str),
    dns: Dns,
}

/// Required by the pool's connections.
impl HasResolver for Shared {
    fn addresses(&self) -> &AddressService {
        self.dns.addresses()
    }
}

/// The settings of the application.
pub(crate) struct Plan {
    pub(crate) http: SocketAddr,
    pub(crate) statsd: SocketAddr,
    /// The interval between reports.
    pub(crate) every: Duration,
    pub(crate) resolver: ResolverConfig,
    pub(crate) report: fn(&str),
}

/// The addresses at which it listens.
pub(crate) struct Addresses {
    pub(crate) http: SocketAddr,
    pub(crate) statsd: SocketAddr,
}

/// Makes all parts, and the context from their handles.
pub(crate) fn set_up<N: IpNet, B: Backend>(
    mut creator: Loop<App<N>, B>,
    plan: Plan,
) -> Result<(LoopInstance<App<N>, B>, Addresses), BoxError> {
    let Plan { http, statsd, every, resolver, report } = plan;
    let dns = creator.add_part(App::Resolver, |scope| Ok(Resolver::new(resolver, scope)))?;
    let pool = creator.add_part(App::Pool, |scope| {
        let config = PoolConfig::new()
            .connections_max(100)
            .connections_per_origin_max(10)
            .waiting_per_origin_max(100);
        Ok(PoolMachine::new(config, client::ClientConfig::new(), scope))
    })?;
    let http = creator.add_part(App::Http, |scope| {
        let listener = N::Listener::bind(&http, &ListenOptions::new(), scope)?;
        let address = listener.local_address().unwrap_or(http);
        Ok((
            address,
            server::listen(listener, HttpSeed::new((), server::ServerConfig::new()), scope),
        ))
    })?;
    let statsd = creator.add_part(App::Statsd, |scope| {
        let socket = N::Datagram::bind(&statsd, scope)?;
        Ok((socket.local_address()?, Response::ok(Statsd::new(socket, scope)?)))
    })?;
    creator.add_machine_with(|scope| Ticker::start(every, scope).wrap(App::Ticker))?;
    let shared = Shared { pool, stats: Stats::default(), report, dns };
    Ok((creator.instantiate(shared), Addresses { http, statsd }))
}
