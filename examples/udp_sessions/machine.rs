//! Sessions on one datagram socket: a machine that reads it, and a machine for each peer.
//!
//! A machine spawns only machines of its own type, so both are one type. The socket is in the
//! context, the [`World`], through which all of them can send. The content of a datagram is stored
//! there as well, and its session is woken.

#[path = "session.rs"]
pub(crate) mod session;
#[path = "wire.rs"]
pub(crate) mod wire;
#[path = "world.rs"]
pub(crate) mod world;

use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::net::SocketAddr;
use std::time::Duration;

use rotor::net::DatagramSocket;
use rotor::{EventSet, Interest, Machine, Response, Scope, SpawnError, Time};

use self::session::Session;
use self::wire::DATAGRAM_BYTES_MAX;
use self::world::World;

/// How many datagrams are received before other machines of the loop have their turn.
const DATAGRAMS_PER_EVENT: u32 = 64;
/// How often the endpoint removes entries whose session has panicked.
const SWEEP_PERIOD: Duration = Duration::from_secs(1);

/// ```text
///   Endpoint ──HELLO──▶ spawn ─▶ Session, which ends by itself
///      └── draining, nobody left ──▶ ended, and the socket with it
/// ```
pub(crate) enum UdpSessions<D> {
    Endpoint(Endpoint<D>),
    Session(Session),
}

/// The machine that reads the socket.
pub(crate) struct Endpoint<D> {
    /// How many more datagrams it may receive in this event.
    budget: u32,
    socket: PhantomData<fn(D)>,
}

/// The answer of a handler.
type Answer<D> = Response<UdpSessions<D>, SocketAddr>;

impl<D: DatagramSocket<Address = SocketAddr>> UdpSessions<D> {
    /// Opens the address. Returns the machine that reads, and the context of the loop. `scope` must
    /// be the machine's own.
    pub(crate) fn open<C>(
        address: &SocketAddr,
        sessions_max: usize,
        scope: &Scope<'_, C>,
    ) -> io::Result<(World<D>, Response<Self>)> {
        let mut socket = D::bind(address, scope)?;
        scope.register(&mut socket, Interest::Readable)?;
        let endpoint = Endpoint { budget: 0, socket: PhantomData };
        let response =
            Response::ok(UdpSessions::Endpoint(endpoint)).deadline(scope.now() + SWEEP_PERIOD);
        Ok((World::new(socket, sessions_max), response))
    }
}

impl<D: DatagramSocket<Address = SocketAddr>> Endpoint<D> {
    /// Receives until there is nothing left, or until the budget is used up.
    fn receive(mut self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        // One byte longer than the longest valid datagram, so that a longer one is detected.
        let mut buffer = [0; DATAGRAM_BYTES_MAX + 1];
        while self.budget > 0 {
            // Counted before the call: every datagram counts, including invalid ones.
            self.budget -= 1;
            let Some(socket) = &mut scope.socket else { return Response::done() };
            match socket.receive_from(&mut buffer) {
                Ok((length, from)) => {
                    if self.handle(&buffer[..length], from, scope) {
                        return Response::spawn(UdpSessions::Endpoint(self), from);
                    }
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    return Response::keep(UdpSessions::Endpoint(self));
                }
                // A signal, or the error of a datagram that was sent earlier: more may be waiting.
                Err(_) => scope.counters.socket_errors += 1,
            }
        }
        Response::again(UdpSessions::Endpoint(self))
    }

    /// Returns whether the sender gets a session. If a datagram makes this panic, it must not end
    /// the machine, which reads for all other sessions: the panic costs only that datagram.
    fn handle(&self, datagram: &[u8], from: SocketAddr, scope: &mut Scope<'_, World<D>>) -> bool {
        let (now, is_draining) = (scope.now(), scope.draining_until().is_some());
        let handled = scope.guard(|scope| {
            let asks = scope.datagram(datagram, from, now);
            let gets = asks && !is_draining && scope.has_room();
            if asks && !gets {
                scope.refuse(from);
            }
            gets
        });
        handled.unwrap_or_else(|_shown_by_the_panic_hook| {
            scope.counters.panics += 1;
            false
        })
    }

    fn sweep(self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        scope.remove_panicked();
        Response::ok(UdpSessions::Endpoint(self)).deadline(scope.now() + SWEEP_PERIOD)
    }

    /// Ends after the sessions, which may still receive from their peers, and closes the socket.
    fn drain(self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        if scope.wait_for_others() {
            return Response::keep(UdpSessions::Endpoint(self));
        }
        scope.socket = None;
        Response::done()
    }
}

impl<D: DatagramSocket<Address = SocketAddr>> UdpSessions<D> {
    /// Lets a session do what is due.
    fn step(mut session: Session, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        let Some(deadline) = session.step(scope) else {
            scope.forget(session.address());
            return Response::done();
        };
        Response::ok(UdpSessions::Session(session)).deadline(deadline)
    }
}

impl<D: DatagramSocket<Address = SocketAddr>> Machine for UdpSessions<D> {
    type Context = World<D>;
    type Seed = SocketAddr;

    fn create(peer: SocketAddr, scope: &mut Scope<'_, World<D>>) -> Response<Self> {
        let deadline = scope.now() + session::IDLE_TIME_MAX;
        Response::ok(UdpSessions::Session(Session::new(peer, scope))).deadline(deadline)
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        match self {
            UdpSessions::Endpoint(endpoint) => {
                Endpoint { budget: DATAGRAMS_PER_EVENT, ..endpoint }.receive(scope)
            }
            session => Response::keep(session), // it has no socket
        }
    }

    fn spawned(self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        match self {
            UdpSessions::Endpoint(endpoint) => endpoint.receive(scope),
            session => Response::keep(session),
        }
    }

    fn spawn_error(
        self,
        error: SpawnError<SocketAddr>,
        scope: &mut Scope<'_, World<D>>,
    ) -> Answer<D> {
        if let Some(stranger) = error.seed {
            scope.refuse(stranger); // the loop has no slot
        }
        self.spawned(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        match self {
            UdpSessions::Endpoint(endpoint) => endpoint.sweep(scope),
            UdpSessions::Session(session) => Self::step(session, scope),
        }
    }

    fn wakeup(self, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        self.timeout(scope)
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, World<D>>) -> Answer<D> {
        match self {
            UdpSessions::Endpoint(endpoint) => endpoint.drain(scope),
            UdpSessions::Session(session) => Self::step(session, scope),
        }
    }
}
