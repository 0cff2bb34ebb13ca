//! `Resolver`: the machine type; `Dns`: its handle.

use std::fmt;
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::sync::Arc;

use rotor_core::net::{DatagramSocket, Net, StreamSocket};
use rotor_core::{EventSet, Machine, Response, Scope, Service, SpawnError, Time};
use rotor_stream::{AddressService, HasResolver};

use crate::config::ResolverConfig;
use crate::desk::Desk;
use crate::error::LookupError;
use crate::error::Outcome;
use crate::exchange::{Exchange, ExchangeSeed};
use crate::record::{Answer, Question};

/// What comes of a question: the records, or why there are none.
pub type LookupResult = Result<Arc<Answer>, LookupError>;

/// The handle of a [`Resolver`]: what others ask it through. Cheap to clone; keep it in the
/// context.
#[derive(Clone, Debug)]
pub struct Dns {
    pub(crate) records: Service<Question, LookupResult>,
    pub(crate) addresses: AddressService,
}

impl Dns {
    /// Asks for the records of one kind of exactly one name: no search list, no hosts file.
    pub fn records(&self) -> &Service<Question, LookupResult> {
        &self.records
    }
}

impl HasResolver for Dns {
    /// Asks for the addresses of a host, as programs do: addresses as text, the hosts file, then
    /// the search list.
    fn addresses(&self) -> &AddressService {
        &self.addresses
    }
}

/// A DNS resolver on the sockets of `N`, for loops with the context `C`, of which it wants nothing.
///
/// One is made by [`new`](Resolver::new); it spawns others of the same type, one for each question
/// that it asks the servers. It ends when no handle is left, or when the loop drains and nobody
/// waits for it.
pub struct Resolver<N: Net, C> {
    role: Role<N>,
    context: PhantomData<fn(C)>,
}

enum Role<N: Net> {
    Desk(Box<Desk>),
    Exchange(Box<Exchange<N>>),
}

/// A question that a resolver asks: made by it and for it only.
pub struct ResolverSeed(Box<ExchangeSeed>);

impl<N: Net, C> Resolver<N, C>
where
    N::Datagram: DatagramSocket<Address = SocketAddr>,
    N::Stream: StreamSocket<Target = SocketAddr>,
{
    /// A resolver, and its handle.
    pub fn new<X>(config: ResolverConfig, scope: &Scope<'_, X>) -> (Dns, Response<Resolver<N, C>>) {
        let (dns, desk) = Desk::new(config, scope);
        (dns, Response::ok(Resolver { role: Role::Desk(Box::new(desk)), context: PhantomData }))
    }

    /// What the desk answers: an exchange to be made, or its next deadline.
    fn settle(mut desk: Box<Desk>, is_closed: bool) -> Response<Self, ResolverSeed> {
        if desk.is_over(is_closed) {
            return Response::done();
        }
        let (deadline, next) = (desk.deadline(), desk.next_exchange());
        let resolver = Resolver { role: Role::Desk(desk), context: PhantomData };
        match next {
            Some(seed) => Response::spawn(resolver, ResolverSeed(Box::new(seed))),
            None => Response::ok(resolver).deadline_opt(deadline),
        }
    }

    fn exchange<M>(response: Response<Exchange<N>, M>) -> Response<Self, M> {
        let wrap =
            |exchange| Resolver { role: Role::Exchange(Box::new(exchange)), context: PhantomData };
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
        Resolver::exchange(Exchange::begin(*seed.0, scope))
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Desk(_) => Response::keep(self),
            Role::Exchange(exchange) => Resolver::exchange(exchange.ready(scope)),
        }
    }

    fn spawned(self, _: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Desk(desk) => Resolver::settle(desk, false),
            Role::Exchange(_) => Response::keep(self),
        }
    }

    fn spawn_error(
        self,
        error: SpawnError<ResolverSeed>,
        _: &mut Scope<'_, C>,
    ) -> Response<Self, ResolverSeed> {
        // An exchange that was consumed has reported as it ended.
        if let Some(ResolverSeed(seed)) = error.seed {
            seed.report.send(Outcome::failed(LookupError::NoSlot));
        }
        match self.role {
            Role::Desk(desk) => Resolver::settle(desk, false),
            Role::Exchange(_) => Response::keep(self),
        }
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Desk(mut desk) => {
                desk.timeout(scope.now());
                let is_closed = desk.wakeup(scope);
                Resolver::settle(desk, is_closed)
            }
            Role::Exchange(exchange) => Resolver::exchange(exchange.timeout(scope)),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Desk(mut desk) => {
                let is_closed = desk.wakeup(scope);
                Resolver::settle(desk, is_closed)
            }
            Role::Exchange(_) => Response::keep(self),
        }
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, C>) -> Response<Self, ResolverSeed> {
        match self.role {
            Role::Desk(mut desk) => {
                // Who is still at work may still ask.
                desk.is_draining = !scope.wait_for_others();
                Resolver::settle(desk, false)
            }
            // Somebody waits for it, or nobody asks for the resolver's sake: it is bounded by its
            // times.
            Role::Exchange(_) => Response::keep(self),
        }
    }
}

impl<N: Net, C> fmt::Debug for Resolver<N, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.role {
            Role::Exchange(_) => f.write_str("Exchange"),
            Role::Desk(desk) => {
                let (lookups, exchanges, cached) = desk.counts();
                f.debug_struct("Resolver")
                    .field("lookups", &lookups)
                    .field("exchanges", &exchanges)
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
