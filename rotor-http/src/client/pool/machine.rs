//! `PoolMachine`: the manager and the connections of a pool, as one machine type.

use std::fmt;
#[cfg(feature = "http2")]
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

#[cfg(feature = "http2")]
use rotor_core::net::StreamSocket;
use rotor_core::{Description, Event, Idle, InPlace, Machine, Response, Scope};

use super::config::PoolConfig;
use super::handle::Pool;
use super::manager::{Decision, Manager};
use super::member::Member;
use super::origins::Origins;
use super::seed::PoolSeed;
use super::shared::Shared;
use crate::client::config::ClientConfig;
use crate::client::connection::Connection;
#[cfg(feature = "http2")]
use crate::client::connector::ByAddress;
use crate::client::connector::Connector;
use crate::client::handler::Client;

/// The machines of a pool: its manager and its connections. Make the manager with
/// [`new`](PoolMachine::new), when the loop is set up or later.
///
/// The manager ends in a drain, or when no handle is left and the last connection has ended. So a
/// loop whose context has a handle does not end by itself ([`Exit::Empty`]): let a machine call
/// [`Scope::stop_loop`].
///
/// [`Exit::Empty`]: rotor_core::Exit::Empty
#[doc(alias = "connection pool")]
pub struct PoolMachine<K: Client, N: Connector<K::Context>> {
    kind: Kind<K, N>,
}

type PoolMember<K, N> = Member<K, <N as Connector<<K as Client>::Context>>::Origin>;
type ConnectionMachine<K, N> =
    <N as Connector<<K as Client>::Context>>::Connection<Connection<K, PoolMember<K, N>>>;

enum Kind<K: Client, N: Connector<K::Context>> {
    Manager(Box<Manager<K, N::Origin>>),
    Connection(ConnectionMachine<K, N>),
}

impl<K: Client, N: Connector<K::Context>> PoolMachine<K, N> {
    /// Makes a pool. Returns its handle, and the machine that manages it.
    #[doc(alias = "create_pool")]
    pub fn new<C, S>(
        config: PoolConfig,
        client: ClientConfig,
        scope: &Scope<'_, C>,
    ) -> (Pool<K, N::Origin>, Response<Self, S>) {
        let (service, calls) = scope.create_service(config.asks_max);
        let may_multiplex: fn(&N::Origin) -> bool =
            match (cfg!(feature = "http2"), client.has_prior_knowledge()) {
                (false, _) => |_| false,
                (true, true) => |_| true,
                (true, false) => N::may_multiplex,
            };
        let shared = Arc::new(Shared {
            origins: Mutex::new(Origins::new(&config, may_multiplex)),
            manager: scope.notifier(),
            has_returned_job: AtomicBool::new(false),
            config: Arc::new(client),
            without_http2: N::without_http2,
        });
        let manager = Manager::new(config, calls, shared);
        (Pool { service }, Response::ok(PoolMachine { kind: Kind::Manager(Box::new(manager)) }))
    }

    fn wrap_connection<S, S2>(
        response: Response<ConnectionMachine<K, N>, S>,
    ) -> Response<Self, S2> {
        // Connectors promise not to spawn machines.
        response
            .without_spawn()
            .map(|connection| PoolMachine { kind: Kind::Connection(connection) }, |seed| seed)
    }

    fn handle_manager_event(
        mut manager: Box<Manager<K, N::Origin>>,
        event: Event<PoolSeed<K, N::Origin>>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Response<Self, PoolSeed<K, N::Origin>> {
        match event {
            Event::SpawnError(error) => manager.spawn_failed(error, scope),
            // Machines that are still at work may still make requests.
            Event::Draining(_) if !scope.wait_for_others() => manager.drain(),
            _ => {}
        }
        let decision = manager.manage(scope);
        let deadline = manager.next_deadline();
        let machine = PoolMachine { kind: Kind::Manager(manager) };
        match decision {
            Decision::Wait => Response::ok(machine).deadline(deadline),
            Decision::Again => Response::again(machine).deadline(deadline),
            Decision::Spawn(seed) => Response::spawn(machine, seed).deadline(deadline),
            Decision::Done => Response::done(),
        }
    }
}

#[cfg(feature = "http2")]
impl<K, S> PoolMachine<K, ByAddress<S>>
where
    K: Client,
    S: StreamSocket<Target: Clone + Ord + fmt::Debug>,
{
    /// Returns the windows of an HTTP/2 connection, as this side knows them, and its own address.
    /// Hidden and not part of the crate's API: for tests that compare both sides.
    #[doc(hidden)]
    pub fn ledger(&self) -> Option<(SocketAddr, crate::h2::Ledger)> {
        let Kind::Connection(stream) = &self.kind else { return None };
        Some((stream.local_address()?, stream.protocol()?.ledger()?))
    }
}

impl<K: Client, N: Connector<K::Context>> Machine for PoolMachine<K, N> {
    type Context = K::Context;
    type Seed = PoolSeed<K, N::Origin>;

    fn create(seed: Self::Seed, scope: &mut Scope<'_, K::Context>) -> Response<Self> {
        PoolMachine::wrap_connection(N::connect(&seed.origin, seed.seed, scope))
    }

    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Response<Self, Self::Seed> {
        match self.kind {
            Kind::Manager(manager) => PoolMachine::handle_manager_event(manager, event, scope),
            Kind::Connection(connection) => {
                PoolMachine::wrap_connection(connection.handle(event.filter_map(|_| None), scope))
            }
        }
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, K::Context>,
    ) -> InPlace<Self::Seed> {
        // The manager is called seldom, and spawns machines, so handling its events in place would
        // gain nothing.
        let Kind::Connection(connection) = &mut self.kind else { return InPlace::Declined(event) };
        match connection.handle_in_place(event.filter_map(|_| None), scope) {
            InPlace::Handled(response) => InPlace::Handled(response.without_spawn()),
            InPlace::Declined(event) => InPlace::Declined(event.filter_map(|_| None)),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match &self.kind {
            // The manager never makes room for others, because without it no requests could be
            // made.
            Kind::Manager(_) => None,
            Kind::Connection(connection) => connection.idle(),
        }
    }

    fn describe(&self, to: &mut Description) {
        match &self.kind {
            Kind::Manager(_) => to.set_state("managing"),
            Kind::Connection(connection) => connection.describe(to),
        }
    }

    fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Manager(_) => std::any::type_name::<Manager<K, N::Origin>>(),
            Kind::Connection(connection) => connection.type_name(),
        }
    }
}

impl<K: Client, N: Connector<K::Context>> fmt::Debug for PoolMachine<K, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Manager(_) => "PoolMachine(manager)",
            Kind::Connection(_) => "PoolMachine(connection)",
        })
    }
}
