//! `Resolver`: the machine type.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;

use rotor_core::net::{DatagramSocket, Net, StreamSocket};
use rotor_core::{Description, EventSet, Machine, Response, Scope, SpawnError, Time};

use crate::config::ResolverConfig;
use crate::dns::Dns;
use crate::error::LookupError;
use crate::query::{Query, QuerySeed};
use crate::result::QueryResult;
use crate::stub_resolver::StubResolver;

/// A DNS resolver on the sockets of `N`, for loops with any context `C`.
///
/// [`new`](Resolver::new) makes one. It spawns other machines of the same type, one for each
/// question that it asks the servers. It ends when no handle is left, or when the loop drains and
/// nobody waits for it; they end with it, although a server may still answer them.
#[doc(alias = "stub resolver")]
#[doc(alias = "name resolution")]
pub struct Resolver<N: Net, C> {
    role: Role<N>,
    context: PhantomData<fn(C)>,
}

enum Role<N: Net> {
    Stub(Box<StubResolver>),
    Query(Box<Query<N>>),
}

/// The seed of a query of a resolver. Only the resolver makes and uses it.
pub struct ResolverSeed(Box<QuerySeed>);

impl<N: Net, C> Resolver<N, C>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    /// Creates a resolver, and its handle.
    pub fn new<X>(config: ResolverConfig, scope: &Scope<'_, X>) -> (Dns, Response<Resolver<N, C>>) {
        let (dns, stub) = StubResolver::new(config, scope);
        (dns, Response::ok(Resolver { role: Role::Stub(Box::new(stub)), context: PhantomData }))
    }

    /// Returns the response of the stub: the next query to spawn, or its next deadline.
    fn respond(
        mut stub: Box<StubResolver>,
        is_closed: bool,
        now: Time,
    ) -> Response<Self, ResolverSeed> {
        if stub.is_finished(is_closed) {
            return Response::done();
        }
        let (deadline, next) = (stub.deadline(), stub.take_next_query(now));
        let resolver = Resolver { role: Role::Stub(stub), context: PhantomData };
        match next {
            // Only one query for each response: `spawned` or `spawn_error` asks for the next one.
            Some(seed) => Response::spawn(resolver, ResolverSeed(Box::new(seed))),
            None => Response::ok(resolver).deadline_opt(deadline),
        }
    }

    fn wrap_query<M>(response: Response<Query<N>, M>) -> Response<Self, M> {
        let wrap = |query| Resolver { role: Role::Query(Box::new(query)), context: PhantomData };
        response.map(wrap, |seed| seed)
    }
}

impl<N: Net, C> Machine for Resolver<N, C>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    type Context = C;
    type Seed = ResolverSeed;

    fn create(seed: ResolverSeed, scope: &mut Scope<'_, C>) -> Response<Self> {
        Resolver::wrap_query(Query::start(*seed.0, scope))
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            // The stub has no socket, so the event can only be spurious.
            Role::Stub(_) => Response::keep(self),
            Role::Query(query) => Resolver::wrap_query(query.ready(scope)),
        }
    }

    fn spawned(self, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Stub(stub) => Resolver::respond(stub, false, scope.now()),
            Role::Query(_) => Response::keep(self),
        }
    }

    fn spawn_error(
        self,
        error: SpawnError<ResolverSeed>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self, ResolverSeed> {
        // If the seed was consumed, the query has sent its report when it ended.
        if let Some(ResolverSeed(seed)) = error.seed {
            seed.report.send(QueryResult::failed(LookupError::NoSlot));
        }
        match self.role {
            Role::Stub(stub) => Resolver::respond(stub, false, scope.now()),
            Role::Query(_) => Response::keep(self),
        }
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Stub(mut stub) => {
                stub.timeout(scope.now());
                // The lookups that timed out have made room for others.
                let is_closed = stub.wakeup(scope);
                Resolver::respond(stub, is_closed, scope.now())
            }
            Role::Query(query) => Resolver::wrap_query(query.timeout(scope)),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Stub(mut stub) => {
                let is_closed = stub.wakeup(scope);
                Resolver::respond(stub, is_closed, scope.now())
            }
            Role::Query(query) => Resolver::wrap_query(query.wakeup(scope)),
        }
    }

    fn describe(&self, to: &mut Description) {
        match &self.role {
            Role::Stub(stub) => stub.describe(to),
            Role::Query(query) => query.describe(to),
        }
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Stub(mut stub) => {
                // Machines that are still at work may still ask.
                stub.is_draining = !scope.wait_for_others();
                Resolver::respond(stub, false, scope.now())
            }
            // Its own deadlines limit it, but they may be far away. If it is not awaited any more
            // later, it ends when its resolver does.
            Role::Query(query) if scope.wait_for_others() || query.is_awaited() => {
                Response::keep(Resolver { role: Role::Query(query), context: PhantomData })
            }
            Role::Query(_) => Response::done(),
        }
    }
}

impl<N: Net, C> fmt::Debug for Resolver<N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Query(_) => f.write_str("Query"),
            Role::Stub(stub) => {
                let (lookups, queries, cached) = stub.counts();
                f.debug_struct("Resolver")
                    .field("lookups", &lookups)
                    .field("queries", &queries)
                    .field("cached", &cached)
                    .finish()
            }
        }
    }
}

impl fmt::Debug for ResolverSeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ResolverSeed").field(&self.0.question).finish()
    }
}
