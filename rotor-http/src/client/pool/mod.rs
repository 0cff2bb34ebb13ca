//! The pool: connections to many servers, shared by whoever asks.
//!
//! ```text
//!   asker ──ask──▶ manager ──spawns──▶ connection ──▶ server
//!     ▲               │ queue of each origin ▲  │
//!     │               └──────── takes ───────┘  │
//!     └───────────────── answers ───────────────┘
//! ```
//!
//! The manager and the connections are machines of one type. The manager puts what is asked into
//! the queue of its origin; a connection with nothing to do takes the oldest from there. So nothing
//! is lost when a connection dies: what it had not taken is still in the queue. `origins` holds the
//! books, `origin` what they say of one server; both are pure. `manager` and `member` are the two
//! kinds of machine.

mod config;
mod manager;
mod member;
mod origin;
mod origins;

use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rotor_core::{
    Event, Future, Idle, InPlace, Machine, Notifier, Response, Scope, SendError, Service, Time,
};

pub use self::config::PoolConfig;
use self::manager::Manager;
use self::member::Member;
use self::origins::Origins;
use super::{Client, ClientConfig, ClientResult, Connection, ConnectionSeed, Connector, Job};

/// The handle of a pool: put one into the context, and any machine of the loop can ask; send one to
/// another thread, and the machines of its loop can.
///
/// Requests are made by handlers of one type `K`; an enum of handlers serves where there are
/// several. `O` names servers.
///
/// # What is promised
///
/// * Each request gets one outcome before its deadline, to the tick, wherever it is by then: in the
///   queue, waiting for a connection, under way.
/// * Requests for one origin are begun in the order in which they were asked.
/// * A request that finds no connection because the server refuses gets that error; those behind it
///   try anew.
/// * Dropping the future cancels: a request that waits is never made; one that is under way is cut
///   off.
pub struct Pool<K: Client, O = SocketAddr> {
    service: Service<Ask<K, O>, ClientResult<K>>,
}

/// What a pool is asked.
#[must_use]
#[non_exhaustive]
pub struct Ask<K, O = SocketAddr> {
    /// The server.
    pub origin: O,
    /// Makes the request and takes its answer.
    pub handler: K,
    /// Until when; `None` for [`PoolConfig::request_timeout`] from when the pool hears of it,
    /// `Time::NEVER` for none: then only the connection's limits are in force.
    pub deadline: Option<Time>,
}

impl<K, O> Ask<K, O> {
    /// Asks `origin` by `handler`, within [`PoolConfig::request_timeout`].
    pub fn new(origin: O, handler: K) -> Ask<K, O> {
        Ask { origin, handler, deadline: None }
    }

    /// Until when; `Time::NEVER` for no deadline.
    pub fn deadline(mut self, time: Time) -> Ask<K, O> {
        self.deadline = Some(time);
        self
    }
}

impl<K: Client, O> Pool<K, O> {
    /// Asks for a request to be made; this machine is woken with its outcome.
    ///
    /// # Errors
    ///
    /// The request comes back: [`Full`](SendError::Full) when [`PoolConfig::asks_max`] requests
    /// have not even been looked at, [`Closed`](SendError::Closed) when the pool is gone.
    pub fn ask<C>(
        &self,
        origin: O,
        handler: K,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<Ask<K, O>>> {
        self.service.ask(Ask::new(origin, handler), scope)
    }

    /// As [`ask`](Pool::ask), with a deadline of its own.
    ///
    /// # Errors
    ///
    /// As [`ask`](Pool::ask).
    pub fn ask_until<C>(
        &self,
        origin: O,
        handler: K,
        deadline: Time,
        scope: &Scope<'_, C>,
    ) -> Result<Future<ClientResult<K>>, SendError<Ask<K, O>>> {
        self.service.ask(Ask::new(origin, handler).deadline(deadline), scope)
    }

    /// The service behind the handle: for plain threads, which
    /// [`ask_from_thread`](Service::ask_from_thread).
    pub fn service(&self) -> &Service<Ask<K, O>, ClientResult<K>> {
        &self.service
    }
}

/// What manager and connections share. They run in one loop, so nobody ever waits for the lock.
struct Shared<K: Client, O> {
    origins: Mutex<Origins<O, Job<K>, Notifier>>,
    manager: Notifier,
    /// A request that was under way waits again, and the manager has not looked at its deadline
    /// yet.
    is_given_back: AtomicBool,
    settings: Arc<ClientConfig>,
}

impl<K: Client, O> Shared<K, O> {
    fn origins(&self) -> MutexGuard<'_, Origins<O, Job<K>, Notifier>> {
        self.origins.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The machines of a pool: one that manages it, and its connections. Make the first with
/// [`new`](PoolMachine::new), when the loop is set up or later.
pub struct PoolMachine<K: Client, N: Connector<K::Context>> {
    kind: Kind<K, N>,
}

type Member2<K, N> = Member<K, <N as Connector<<K as Client>::Context>>::Origin>;
type Connected<K, N> =
    <N as Connector<<K as Client>::Context>>::Connection<Connection<K, Member2<K, N>>>;

enum Kind<K: Client, N: Connector<K::Context>> {
    Manager(Box<Manager<K, N::Origin>>),
    Connection(Connected<K, N>),
}

/// What a connection of a pool is made from; only the pool makes one.
pub struct PoolSeed<K: Client, O: Ord + Clone> {
    origin: O,
    seed: ConnectionSeed<Member<K, O>>,
}

impl<K: Client, N: Connector<K::Context>> PoolMachine<K, N> {
    /// Makes a pool: its handle, and the machine that manages it.
    pub fn new<C, S>(
        config: PoolConfig,
        settings: ClientConfig,
        scope: &Scope<'_, C>,
    ) -> (Pool<K, N::Origin>, Response<Self, S>) {
        let (service, calls) = scope.create_service(config.asks_max);
        let shared = Arc::new(Shared {
            origins: Mutex::new(Origins::new(&config)),
            manager: scope.notifier(),
            is_given_back: AtomicBool::new(false),
            settings: Arc::new(settings),
        });
        let manager = Manager::new(config, calls, shared);
        (Pool { service }, Response::ok(PoolMachine { kind: Kind::Manager(Box::new(manager)) }))
    }

    fn connection<S, S2>(response: Response<Connected<K, N>, S>) -> Response<Self, S2> {
        // Connectors promise not to spawn.
        response
            .without_spawn()
            .map(|connection| PoolMachine { kind: Kind::Connection(connection) }, |seed| seed)
    }

    fn manage(
        mut manager: Box<Manager<K, N::Origin>>,
        event: Event<PoolSeed<K, N::Origin>>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Response<Self, PoolSeed<K, N::Origin>> {
        match event {
            Event::SpawnError(error) => manager.spawn_failed(error, scope),
            // Who is still at work may still ask.
            Event::Draining(_) if !scope.wait_for_others() => manager.drain(),
            _ => {}
        }
        let next = manager.manage(scope);
        let deadline = manager.next_deadline();
        let machine = PoolMachine { kind: Kind::Manager(manager) };
        match next {
            manager::Next::Wait => Response::ok(machine).deadline(deadline),
            manager::Next::Again => Response::again(machine).deadline(deadline),
            manager::Next::Spawn(seed) => Response::spawn(machine, seed).deadline(deadline),
            manager::Next::Done => Response::done(),
        }
    }
}

impl<K: Client, N: Connector<K::Context>> Machine for PoolMachine<K, N> {
    type Context = K::Context;
    type Seed = PoolSeed<K, N::Origin>;

    fn create(seed: Self::Seed, scope: &mut Scope<'_, K::Context>) -> Response<Self> {
        PoolMachine::connection(N::connect(&seed.origin, seed.seed, scope))
    }

    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, K::Context>,
    ) -> Response<Self, Self::Seed> {
        match self.kind {
            Kind::Manager(manager) => PoolMachine::manage(manager, event, scope),
            Kind::Connection(connection) => {
                PoolMachine::connection(connection.handle(event.filter_map(|_| None), scope))
            }
        }
    }

    #[inline]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, K::Context>,
    ) -> InPlace<Self::Seed> {
        let Kind::Connection(connection) = &mut self.kind else { return InPlace::Declined(event) };
        match connection.handle_in_place(event.filter_map(|_| None), scope) {
            InPlace::Handled(response) => InPlace::Handled(response.without_spawn()),
            InPlace::Declined(event) => InPlace::Declined(event.filter_map(|_| None)),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match &self.kind {
            Kind::Manager(_) => None,
            Kind::Connection(connection) => connection.idle(),
        }
    }

    fn type_name(&self) -> &'static str {
        match &self.kind {
            Kind::Manager(_) => std::any::type_name::<Manager<K, N::Origin>>(),
            Kind::Connection(connection) => connection.type_name(),
        }
    }
}

impl<K: Client, O> Clone for Pool<K, O> {
    fn clone(&self) -> Pool<K, O> {
        Pool { service: self.service.clone() }
    }
}

impl<K: Client, O> fmt::Debug for Pool<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pool").field(&self.service).finish()
    }
}

impl<K, O: fmt::Debug> fmt::Debug for Ask<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ask")
            .field("origin", &self.origin)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
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

impl<K: Client, O: Ord + Clone + fmt::Debug> fmt::Debug for PoolSeed<K, O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PoolSeed").field(&self.origin).finish()
    }
}
