//! A connection that answers every request head with the same page.
//!
//! It searches for the blank line that ends a head and parses nothing; for real use there is
//! `rotor::http`. It shows a protocol without a buffer: its state is how much of the blank line has
//! arrived, and how many responses are to be sent.

use std::io::{self, ErrorKind};
use std::marker::PhantomData;
use std::time::Duration;

use rotor::net::{Listener, StreamSocket};
use rotor::{EventSet, Interest, Machine, Response, Scope, Time};

use rotor_examples::server::Server;

/// A hello server on listeners of any kind.
pub(crate) type HelloServer<C, L> = Server<Hello<C, <L as Listener>::Socket>, L>;

/// What the machine needs from the context.
pub(crate) trait CountsGreetings {
    /// Called when one more response is to be sent.
    fn greeted(&mut self);
}

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const BLANK_LINE: &[u8] = b"\r\n\r\n";
/// The maximum number of bytes in one read.
const READ_BYTES: usize = 2048;
/// How often a connection reads before other machines have their turn.
const READS_PER_EVENT: u32 = 16;
/// How long a peer may neither send anything nor take what it is sent.
const IDLE_TIME_MAX: Duration = Duration::from_secs(60);

pub(crate) struct Hello<C, S> {
    socket: S,
    /// How many bytes of the blank line have arrived.
    matched: usize,
    /// How many responses are to be sent, including the one in progress.
    owed: usize,
    /// How much of the first of them has been sent.
    sent: usize,
    /// Whether the peer has ended its side: the end is then read without another event.
    closing: bool,
    context: PhantomData<fn(C)>,
}

impl<C: CountsGreetings, S: StreamSocket> Machine for Hello<C, S> {
    type Context = C;
    type Seed = S;

    fn create(mut socket: S, scope: &mut Scope<'_, C>) -> Response<Self> {
        if let Err(error) = scope.register(&mut socket, Interest::Both) {
            return Response::error(error);
        }
        let hello =
            Hello { socket, matched: 0, owed: 0, sent: 0, closing: false, context: PhantomData };
        Response::ok(hello).deadline(scope.now() + IDLE_TIME_MAX)
    }

    fn ready(mut self, events: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, S> {
        self.closing |= events.is_closing();
        for _ in 0..READS_PER_EVENT {
            match self.read_and_answer(scope) {
                Ok(0) => return Response::done(),
                Ok(count)
                    if count < READ_BYTES && !self.closing && self.socket.short_read_drains() =>
                {
                    return self.wait(scope);
                }
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return self.wait(scope),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Response::error(e),
            }
        }
        Response::again(self)
    }

    fn timeout(self, _: &mut Scope<'_, C>) -> Response<Self, S> {
        Response::done()
    }

    fn draining(self, _: Time, scope: &mut Scope<'_, C>) -> Response<Self, S> {
        self.ready(EventSet::EMPTY, scope)
    }
}

impl<C: CountsGreetings, S: StreamSocket> Hello<C, S> {
    /// Returns how many bytes were read, after all responses to them were sent.
    fn read_and_answer(&mut self, context: &mut C) -> io::Result<usize> {
        self.send()?;
        let mut input = [0; READ_BYTES];
        let count = self.socket.read(&mut input)?;
        for byte in &input[..count] {
            self.matched = match *byte {
                byte if byte == BLANK_LINE[self.matched] => self.matched + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.matched == BLANK_LINE.len() {
                self.matched = 0;
                self.owed += 1;
                context.greeted();
            }
        }
        self.send()?;
        Ok(count)
    }

    fn send(&mut self) -> io::Result<()> {
        while self.owed > 0 {
            match self.socket.write(&ANSWER[self.sent..])? {
                0 => return Err(ErrorKind::WriteZero.into()),
                count => self.sent += count,
            }
            if self.sent == ANSWER.len() {
                self.sent = 0;
                self.owed -= 1;
            }
        }
        Ok(())
    }

    /// Waits for the peer; during a drain, the machine ends instead.
    fn wait(self, scope: &Scope<'_, C>) -> Response<Self, S> {
        if self.owed == 0 && scope.draining_until().is_some() {
            return Response::done();
        }
        Response::ok(self).deadline(scope.now() + IDLE_TIME_MAX)
    }
}
