//! An echo server made of two machines, generic over the socket family: it runs on any backend.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use rotor_core::net::{Listener, Net, StreamSocket};
use rotor_core::{EventSet, Interest, Machine, Response, Scope, SpawnError, Time};

/// The number of unwritten bytes at which a connection stops reading.
pub(crate) const OUTPUT_MAX: usize = 1024;

/// A listener or one of its connections.
pub(crate) enum Echo<N: Net> {
    Listener(N::Listener),
    Connection(Connection<N::Stream>),
}

pub(crate) struct Connection<S> {
    socket: S,
    pub(crate) output: VecDeque<u8>,
    input_ended: bool,
}

impl<N: Net> Echo<N> {
    pub(crate) fn listen<C>(mut listener: N::Listener, scope: &Scope<'_, C>) -> Response<Self> {
        Response::attempt(|| {
            scope.register(&mut listener, Interest::Readable)?;
            Ok(Response::ok(Echo::Listener(listener)))
        })
    }
}

impl<N: Net> Machine for Echo<N> {
    type Context = ();
    type Seed = N::Stream;

    fn create(mut socket: N::Stream, scope: &mut Scope<'_, ()>) -> Response<Self> {
        Response::attempt(|| {
            scope.register(&mut socket, Interest::Both)?;
            let connection = Connection { socket, output: VecDeque::new(), input_ended: false };
            Ok(Response::ok(Echo::Connection(connection)).deadline(idle_until(scope)))
        })
    }

    fn ready(self, _: EventSet, scope: &mut Scope<'_, ()>) -> Response<Self, N::Stream> {
        match self {
            Echo::Listener(listener) => accept(listener, scope),
            Echo::Connection(connection) => connection.echo(scope),
        }
    }

    fn spawned(self, scope: &mut Scope<'_, ()>) -> Response<Self, N::Stream> {
        self.ready(EventSet::EMPTY, scope)
    }

    /// Drops the connection that found no slot, or whose machine failed.
    fn spawn_error(
        self,
        _: SpawnError<N::Stream>,
        scope: &mut Scope<'_, ()>,
    ) -> Response<Self, N::Stream> {
        self.ready(EventSet::EMPTY, scope)
    }

    fn wakeup(self, scope: &mut Scope<'_, ()>) -> Response<Self, N::Stream> {
        self.ready(EventSet::EMPTY, scope)
    }

    fn timeout(self, scope: &mut Scope<'_, ()>) -> Response<Self, N::Stream> {
        match self {
            Echo::Listener(_) => self.ready(EventSet::EMPTY, scope),
            Echo::Connection(_) => Response::done(),
        }
    }

    fn draining(self, _: Time, _: &mut Scope<'_, ()>) -> Response<Self, N::Stream> {
        match self {
            Echo::Listener(_) => Response::done(),
            Echo::Connection(_) => Response::keep(self),
        }
    }
}

fn idle_until<C>(scope: &Scope<'_, C>) -> Time {
    scope.now() + Duration::from_secs(60)
}

fn accept<N: Net>(
    mut listener: N::Listener,
    scope: &Scope<'_, ()>,
) -> Response<Echo<N>, N::Stream> {
    loop {
        if !scope.has_free_slot() {
            scope.wake_on_free_slot();
            return Response::ok(Echo::Listener(listener));
        }
        match listener.accept() {
            Ok((socket, _)) => return Response::spawn(Echo::Listener(listener), socket),
            Err(error) => match error.kind() {
                io::ErrorKind::WouldBlock => return Response::ok(Echo::Listener(listener)),
                io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                _ => {
                    let again = scope.now() + Duration::from_millis(100);
                    return Response::ok(Echo::Listener(listener)).deadline(again);
                }
            },
        }
    }
}

impl<S: StreamSocket> Connection<S> {
    fn echo<N: Net<Stream = S>>(mut self, scope: &Scope<'_, ()>) -> Response<Echo<N>, S> {
        Response::attempt(|| {
            loop {
                let may_read = self.read()?;
                let may_write = self.write()?;
                if self.input_ended && self.output.is_empty() {
                    return Ok(Response::done());
                }
                if !may_write && (!may_read || self.output.len() >= OUTPUT_MAX) {
                    break;
                }
                if !may_read && self.output.is_empty() {
                    break;
                }
            }
            Ok(Response::ok(Echo::Connection(self)).deadline(idle_until(scope)))
        })
    }

    /// Reads until the output is full; returns false when nothing is left to read.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 256];
        while self.output.len() < OUTPUT_MAX && !self.input_ended {
            let most = (OUTPUT_MAX - self.output.len()).min(buffer.len());
            match self.socket.read(&mut buffer[..most]) {
                Ok(0) => self.input_ended = true,
                Ok(count) => self.output.extend(&buffer[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(!self.input_ended)
    }

    /// Writes the output; returns false when the socket accepts no more.
    fn write(&mut self) -> io::Result<bool> {
        while !self.output.is_empty() {
            match self.socket.write(self.output.as_slices().0) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }
}
