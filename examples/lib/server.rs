//! A listener and the connections that it accepts, as one machine type. The server examples on the
//! core share it.
//!
//! Whatever runs out, it does not spin, and it drops no accepted connection:
//!
//! ```text
//!               ┌──────── no slot: woken when one is free ───────┐
//!               ▼                                                │
//!   waits ─▶ accept() ─ a connection ─▶ spawn ─▶ spawned() ─▶ accept() ─ nothing more ─▶ waits
//!               │                         └▶ no slot after all: the socket is held, and spawned first
//!               └─ no descriptor: a pause, which a deadline ends
//! ```
//!
//! `rotor::stream` has the same for byte-stream protocols, with limits. Here it is shown without
//! them.

use std::convert::identity;
use std::fmt;
use std::io;
use std::time::Duration;

use rotor::net::Listener;
use rotor::{Description, Event, Idle, Interest, Machine, Response, Scope, Time};

/// How long to wait if the process cannot accept a connection, usually because no descriptor is
/// left. The system does not report when that changes. A tenth of a second is soon enough for the
/// peer, and costs nothing.
const PAUSE: Duration = Duration::from_millis(100);

/// The shortest time between two warnings about this.
const WARNING_INTERVAL: Duration = Duration::from_secs(1);

/// A listener, or one of its connections, which is a machine made from an accepted socket.
pub enum Server<M, L: Listener> {
    /// The listener.
    Listening(Listening<L>),
    /// A connection.
    Connection(M),
}

/// A listener that waits for connections, for a slot, or for a descriptor.
pub struct Listening<L: Listener> {
    listener: L,
    /// A connection that was accepted, and for which there was no slot.
    held: Option<L::Socket>,
    paused_until: Time,
    warn_from: Time,
}

impl<M, L: Listener> Server<M, L> {
    /// Makes the machine that accepts; `scope` must be its own.
    pub fn listen<C>(mut listener: L, scope: &Scope<'_, C>) -> io::Result<Server<M, L>> {
        scope.register(&mut listener, Interest::Readable)?;
        let (held, paused_until, warn_from) = (None, Time::ZERO, Time::ZERO);
        Ok(Server::Listening(Listening { listener, held, paused_until, warn_from }))
    }
}

impl<M: Machine<Seed = L::Socket>, L: Listener> Machine for Server<M, L> {
    type Context = M::Context;
    type Seed = L::Socket;

    fn create(socket: L::Socket, scope: &mut Scope<'_, M::Context>) -> Response<Self> {
        M::create(socket, scope).wrap(Server::Connection)
    }

    /// For a listener, every event leads to an attempt to accept. The events of a connection are
    /// passed on.
    fn handle(
        self,
        event: Event<L::Socket>,
        scope: &mut Scope<'_, M::Context>,
    ) -> Response<Self, L::Socket> {
        match self {
            Server::Connection(connection) => {
                connection.handle(event, scope).map(Server::Connection, identity)
            }
            Server::Listening(mut listening) => {
                if let Event::SpawnError(error) = event {
                    if error.seed.is_none() {
                        log::warn!("a connection was lost: {error}");
                    }
                    listening.held = error.seed;
                }
                listening.accept(scope).map(Server::Listening, identity)
            }
        }
    }

    fn idle(&self) -> Option<Idle> {
        match self {
            Server::Listening(_) => None,
            Server::Connection(connection) => connection.idle(),
        }
    }

    fn describe(&self, to: &mut Description) {
        match self {
            Server::Listening(_) => to.set_state("listening"),
            Server::Connection(connection) => connection.describe(to),
        }
    }

    fn type_name(&self) -> &'static str {
        match self {
            Server::Listening(_) => "Listening",
            Server::Connection(connection) => connection.type_name(),
        }
    }
}

impl<L: Listener> Listening<L> {
    /// Accepts one connection to be spawned, or waits for what is missing.
    ///
    /// After a spawn, `spawned` calls this again, until no connection is left. The loop limits the
    /// number of spawns in a row and leaves the rest for its next turn, so a burst of connections
    /// does not starve other machines.
    fn accept<C>(mut self, scope: &Scope<'_, C>) -> Response<Self, L::Socket> {
        if self.held.is_none() && scope.draining_until().is_some() {
            return Response::done();
        }
        if scope.now() < self.paused_until {
            return Response::keep(self);
        }
        if !scope.has_free_slot() {
            scope.wake_on_free_slot();
            return Response::ok(self);
        }
        if let Some(socket) = self.held.take() {
            return Response::spawn(self, socket);
        }
        match self.listener.accept() {
            Ok((socket, _)) => Response::spawn(self, socket),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Response::ok(self),
            // That connection is gone; the next one can be accepted.
            Err(e)
                if matches!(
                    e.kind(),
                    io::ErrorKind::ConnectionAborted | io::ErrorKind::Interrupted
                ) =>
            {
                Response::again(self)
            }
            Err(e) => self.pause(&e, scope),
        }
    }

    fn pause<C>(mut self, error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, L::Socket> {
        if scope.now() >= self.warn_from {
            log::warn!("connections wait, since they cannot be accepted: {error}");
            self.warn_from = scope.now() + WARNING_INTERVAL;
        }
        self.paused_until = scope.now() + PAUSE;
        let until = self.paused_until;
        Response::ok(self).deadline(until)
    }
}

impl<M, L: Listener> fmt::Debug for Server<M, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Server::Listening(_) => "Listening",
            Server::Connection(_) => "Connection",
        })
    }
}

impl<L: Listener> fmt::Debug for Listening<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listening")
            .field("paused_until", &self.paused_until)
            .finish_non_exhaustive()
    }
}
