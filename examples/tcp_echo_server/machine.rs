//! A connection that sends back what it is sent; `Server` makes one for each socket that it
//! accepts.

use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::ops::Range;
use std::time::Duration;

use rotor::net::{Listener, StreamSocket};
use rotor::{EventSet, Interest, Machine, Response, Scope, Time};

use rotor_examples::server::Server;

/// An echo server on listeners of any kind: this is what the loop holds.
pub(crate) type EchoServer<C, L> = Server<Echo<C, <L as Listener>::Socket>, L>;

/// What the machine asks of the context that it shares with others.
pub(crate) trait CountsEchoes {
    /// So many bytes were read, to be sent back.
    fn received(&mut self, bytes: usize);
}

/// How many bytes one read takes at most.
const BUFFER_BYTES: usize = 4096;
/// How often a connection reads before the others have their turn.
const READS_PER_EVENT: u32 = 16;
/// How long a peer may send nothing, and take nothing of what it is sent.
const IDLE_TIME_MAX: Duration = Duration::from_secs(300);

pub(crate) struct Echo<C, S> {
    socket: S,
    buffer: Box<[u8; BUFFER_BYTES]>,
    /// What of the buffer is still to be sent back.
    unsent: Range<usize>,
    /// The peer has ended its side: what follows the last byte comes without another event.
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
                // The socket is empty: the system would say so if it were asked once more.
                Ok(count)
                    if count < BUFFER_BYTES && !self.closing && self.socket.short_read_drains() =>
                {
                    return self.wait(scope);
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return self.wait(scope),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                // Whoever resets a connection ends it; there is nobody to answer, and nothing to
                // complain of.
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
        // What has come is sent back; an edge that was told before the drain is not told again.
        self.ready(EventSet::EMPTY, scope)
    }
}

impl<C: CountsEchoes, S: StreamSocket> Echo<C, S> {
    /// Returns how many bytes were read and sent back; `WouldBlock` when there is nothing to read
    /// or no room to send.
    fn read_and_send(&mut self, context: &mut C) -> io::Result<usize> {
        // First what waits: a peer that does not take its echo is not read from.
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

    /// The machine goes on when the peer does; a loop that drains does not wait for that.
    fn wait(self, scope: &Scope<'_, C>) -> Response<Self, S> {
        if self.unsent.is_empty() && scope.draining_until().is_some() {
            return Response::done();
        }
        Response::ok(self).deadline(scope.now() + IDLE_TIME_MAX)
    }
}
