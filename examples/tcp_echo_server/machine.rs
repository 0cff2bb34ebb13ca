//! A connection that sends back what it receives. `Server` makes one for each socket that it
//! accepts.

use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use rotor::net::{Listener, StreamSocket};
use rotor::{EventSet, Interest, Machine, Response, Scope, Time};

use rotor_examples::server::Server;

/// An echo server on listeners of any kind. This is the machine of the loop.
pub(crate) type EchoServer<C, L> = Server<Echo<C, <L as Listener>::Socket>, L>;

/// What the machine needs from the context.
pub(crate) trait CountsEchoes {
    /// Called when bytes were read, which will be sent back.
    fn received(&mut self, bytes: usize);
}

/// The maximum number of bytes in one read.
const BUFFER_BYTES: usize = 4096;
/// How often a connection reads before other machines have their turn.
const READS_PER_EVENT: u32 = 16;
/// How long a peer may neither send anything nor take what it is sent.
const IDLE_TIME_MAX: Duration = Duration::from_secs(300);

pub(crate) struct Echo<C, S> {
    socket: S,
    buffer: Box<[u8; BUFFER_BYTES]>,
    /// The part of the buffer that is still to be sent back.
    unsent: Range<usize>,
    /// Whether the peer has ended its side: the end is then read without another event.
    closing: bool,
    context: PhantomData<fn(C)>,
}

impl<C: CountsEchoes, S: StreamSocket> Machine for Echo<C, S> {
    type Context = C;
    type Seed = S;

    fn create(mut socket: S, scope: &mut Scope<'_, C>) -> Response<Self> {
        if let Err(error) = scope.register(&mut socket, Interest::Both) {
            return Response::error(error);
        }
        let buffer = Box::new([0; BUFFER_BYTES]);
        let echo = Echo { socket, buffer, unsent: 0..0, closing: false, context: PhantomData };
        Response::ok(echo).deadline(scope.now() + IDLE_TIME_MAX)
    }

    fn ready(mut self, events: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, S> {
        self.closing |= events.is_closing();
        for _ in 0..READS_PER_EVENT {
            match self.read_and_send(scope) {
                Ok(0) => return Response::done(),
                // The socket is empty: another read would return `WouldBlock`.
                Ok(count)
                    if count < BUFFER_BYTES && !self.closing && self.socket.short_read_drains() =>
                {
                    return self.wait(scope);
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return self.wait(scope),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // A reset ends the connection. This is not an error worth a log line.
                Err(e)
                    if matches!(e.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) =>
                {
                    return Response::done();
                }
                Err(e) => return Response::error(e),
            }
        }
        Response::again(self)
    }

    fn timeout(self, _: &mut Scope<'_, C>) -> Response<Self, S> {
        Response::done()
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, C>) -> Response<Self, S> {
        // Bytes that have arrived are sent back. An edge that was reported before the drain is not
        // reported again.
        self.ready(EventSet::EMPTY, scope)
    }
}

impl<C: CountsEchoes, S: StreamSocket> Echo<C, S> {
    /// Returns how many bytes were read and sent back. Returns `WouldBlock` if there is nothing to
    /// read or no room to send.
    fn read_and_send(&mut self, context: &mut C) -> io::Result<usize> {
        // Waiting bytes are sent first: nothing is read from a peer that does not take its echo.
        self.send()?;
        let count = self.socket.read(&mut self.buffer[..])?;
        context.received(count);
        self.unsent = 0..count;
        self.send()?;
        Ok(count)
    }

    fn send(&mut self) -> io::Result<()> {
        while !self.unsent.is_empty() {
            match self.socket.write(&self.buffer[self.unsent.clone()])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.unsent.start += count,
            }
        }
        Ok(())
    }

    /// Waits for the peer; during a drain, the machine ends instead.
    fn wait(self, scope: &Scope<'_, C>) -> Response<Self, S> {
        if self.unsent.is_empty() && scope.draining_until().is_some() {
            return Response::done();
        }
        Response::ok(self).deadline(scope.now() + IDLE_TIME_MAX)
    }
}
