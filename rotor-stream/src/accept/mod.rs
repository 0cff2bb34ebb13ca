//! `Accept`: the machine that accepts connections and makes a machine for each.
//!
//! `listening` does the listening, `seed` is what machines are made from, `connections` counts the
//! connections, `peer_fault` says which of their failures are no failures of this end.

mod config;
mod connections;
mod failure;
mod inherited;
mod listening;
mod peer_fault;
mod seed;

use std::any::type_name;
use std::fmt;
use std::net::SocketAddr;

pub use rotor_core::net::Accepted;
use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Description, Event, Idle, InPlace, Interest, Machine, Response, Scope};

pub use self::config::AcceptConfig;
use self::connections::ConnectionGuard;
pub(crate) use self::failure::is_out_of_descriptors;
pub use self::inherited::InheritedListeners;
use self::listening::Listening;
use self::peer_fault::{has_ended, without_peer_fault, without_peer_fault_in_place};
pub use self::seed::AcceptSeed;
use self::seed::Origin;
use crate::error::StreamError;

/// A listener, or one of the machines that it has made for its connections. They are one type
/// because they share a loop.
///
/// ```no_run
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// # use rotor::Scope;
/// # use rotor::stream::{Intent, Matched, Protocol, Transport};
/// # struct Echo;
/// # impl Protocol for Echo {
/// #     type Context = ();
/// #     type Seed = ();
/// #     fn create(_: (), _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
/// #     fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> { Intent::done() }
/// # }
/// use rotor::net::{ListenOptions, TcpListener, TcpStream};
/// use rotor::{Config, Loop};
/// use rotor::stream::{Accept, AcceptConfig, Stream};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// type Server = Accept<Stream<Echo, TcpStream>, TcpListener>;
/// let address = "127.0.0.1:7007".parse()?;
/// let mut creator = Loop::<Server>::new(&Config::new())?;
/// creator.add_machine_with(|scope| {
///     Accept::bind(&address, &ListenOptions::new(), (), AcceptConfig::new(), scope)
/// })?;
/// creator.instantiate(()).run()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "acceptor")]
#[doc(alias = "listener")]
pub struct Accept<M: Accepted<L::Socket>, L: Listener> {
    role: Role<M, L>,
}

enum Role<M: Accepted<L::Socket>, L: Listener> {
    // Boxed: each slot has the size of the larger variant, and only one of thousands of machines
    // listens.
    Listening(Box<Listening<M, L>>),
    Connection { machine: M, guard: Option<ConnectionGuard> },
}

impl<M: Accepted<L::Socket>, L: Listener> Accept<M, L> {
    /// Binds an address and listens on it.
    ///
    /// If that fails, the response is the system's error: for example, the address is in use or
    /// does not belong to this host, or no descriptor is left.
    pub fn bind<C>(
        address: &L::Address,
        options: &ListenOptions,
        shared: M::Shared,
        config: AcceptConfig,
        scope: &mut Scope<'_, C>,
    ) -> Response<Accept<M, L>> {
        match L::bind(address, options, scope) {
            Ok(listener) => Accept::listen(listener, shared, config, scope),
            Err(error) => Response::error(StreamError::Socket(error)),
        }
    }

    /// Listens on an open listener: one that was made before, or passed to the process.
    ///
    /// If the listener cannot be registered, the response is the system's error.
    pub fn listen<C>(
        mut listener: L,
        shared: M::Shared,
        config: AcceptConfig,
        scope: &mut Scope<'_, C>,
    ) -> Response<Accept<M, L>> {
        if let Err(error) = scope.register(&mut listener, Interest::Readable) {
            return Response::error(StreamError::Socket(error));
        }
        let listening = Listening::new(listener, shared, config, scope.notifier());
        Response::ok(Accept { role: Role::Listening(Box::new(listening)) })
    }

    fn from_connection(machine: M, guard: Option<ConnectionGuard>) -> Accept<M, L> {
        Accept { role: Role::Connection { machine, guard } }
    }

    /// Returns the machine of a connection; `None` if this is the listener.
    pub fn connection(&self) -> Option<&M> {
        match &self.role {
            Role::Connection { machine, .. } => Some(machine),
            Role::Listening(_) => None,
        }
    }

    /// Returns the address of the listener; `None` if this is a connection, or the listener has no
    /// address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        match &self.role {
            Role::Listening(listening) => listening.local_address(),
            Role::Connection { .. } => None,
        }
    }
}

impl<M: Accepted<L::Socket>, L: Listener> Machine for Accept<M, L> {
    type Context = M::Context;
    type Seed = AcceptSeed<M, L>;

    fn create(seed: AcceptSeed<M, L>, scope: &mut Scope<'_, M::Context>) -> Response<Self> {
        match seed.origin {
            Origin::Accepted { socket, peer, shared, guard } => {
                let response = M::accepted(socket, peer, shared, scope);
                without_peer_fault(response, scope.token(), type_name::<M>())
                    .wrap(|machine| Accept::from_connection(machine, Some(guard)))
            }
            Origin::ClonePanicked { socket, panicked } => {
                drop(socket);
                // Continue the panic as one of the new machine, because the loop counts and reports
                // those.
                std::panic::resume_unwind(Box::new(panicked.message().to_string()))
            }
            Origin::Spawned(seed) => {
                M::create(seed, scope).wrap(|machine| Accept::from_connection(machine, None))
            }
        }
    }

    fn handle(
        self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self, Self::Seed> {
        match self.role {
            Role::Connection { machine, guard } => {
                let name = machine.type_name();
                let response = machine.handle(event.filter_map(AcceptSeed::into_spawned), scope);
                let response = match guard {
                    Some(_) => without_peer_fault(response, scope.token(), name),
                    None => response,
                };
                response
                    .map(|machine| Accept::from_connection(machine, guard), AcceptSeed::from_seed)
            }
            Role::Listening(listening) => listening
                .handle(event, scope)
                .map(|listening| Accept { role: Role::Listening(listening) }, |seed| seed),
        }
    }

    #[inline(always)]
    fn handle_in_place(
        &mut self,
        event: Event<Self::Seed>,
        scope: &mut Scope<'_, M::Context>,
    ) -> InPlace<Self::Seed> {
        match &mut self.role {
            Role::Connection { machine, guard } => {
                let event = event.filter_map(AcceptSeed::into_spawned);
                let answer = machine.handle_in_place(event, scope).map(AcceptSeed::from_seed);
                if has_ended(&answer) && guard.is_some() {
                    return without_peer_fault_in_place(answer, scope.token(), machine.type_name());
                }
                answer
            }
            // It is a pointer, so passing it by value costs nothing.
            Role::Listening(_) => InPlace::Declined(event),
        }
    }

    fn idle(&self) -> Option<Idle> {
        match &self.role {
            Role::Connection { machine, guard: Some(guard) } => {
                Some(machine.idle()?.accepted_by(guard.listener()))
            }
            Role::Connection { machine, guard: None } => machine.idle(),
            // A listener is never idle: if it were closed, no new connection would use the room.
            Role::Listening(_) => None,
        }
    }

    fn describe(&self, to: &mut Description) {
        match &self.role {
            Role::Connection { machine, .. } => machine.describe(to),
            Role::Listening(_) => to.set_state("listening"),
        }
    }

    fn type_name(&self) -> &'static str {
        match &self.role {
            Role::Connection { machine, .. } => machine.type_name(),
            Role::Listening(_) => type_name::<L>(),
        }
    }
}

impl<M: Accepted<L::Socket>, L: Listener> fmt::Debug for Accept<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.role {
            Role::Listening(_) => "Accept(listening)",
            Role::Connection { .. } => "Accept(a connection)",
        })
    }
}
