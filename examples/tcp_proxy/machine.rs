//! A connection that is passed on to another address, both ways.
//!
//! One machine with two sockets, rather than two machines with one each: what one socket gives is
//! what the other takes, so there is nothing to tell anybody, no queue between them, and
//! back-pressure is simply not reading. The price: both sockets report under one token, so an event
//! does not say which of them it is about, and both are tried.
//!
//! ```text
//!             connected                     both directions ended
//!  Connecting ─────────▶ Relaying ────────────────────────────────▶ end
//!      └ refused, late ▶ end   └ reset, silent for too long ▶ end
//! ```

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rotor::net::StreamSocket;
use rotor::stream::Accepted;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope};

/// How long the upstream may take to accept a connection.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a connection may be silent in both directions. Longer than any keep-alive that a
/// protocol above may have.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(600);

/// How much is read at a time, in bytes. What the other side does not take of it is all that is
/// ever held of a direction.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many chunks a direction may pass on in one event, before the other machines have their turn.
const CHUNKS_PER_EVENT: u32 = 8;

/// A client and its upstream.
pub(crate) struct Proxy<S, C> {
    client: S,
    upstream: S,
    is_connected: bool,
    to_upstream: Direction,
    to_client: Direction,
    context: std::marker::PhantomData<fn(C)>,
}

/// What is under way in one direction.
#[derive(Default)]
struct Direction {
    /// What was read and not yet taken by the other side.
    held: Vec<u8>,
    /// The side that is read from has ended.
    has_ended: bool,
    /// The side that is written to was told so.
    is_told: bool,
}

/// What became of passing bytes on.
#[derive(PartialEq)]
enum Passed {
    Nothing,
    Some,
    /// As much as one event may; there may be more.
    Enough,
}

impl Direction {
    /// Passes on what there is, then the end.
    fn pass(&mut self, from: &mut impl Read, to: &mut impl StreamSocket) -> io::Result<Passed> {
        let mut passed = Passed::Nothing;
        // On the stack: what goes through at once is never allocated.
        let mut chunk = [0; CHUNK_BYTES];
        for _ in 0..CHUNKS_PER_EVENT {
            // Before anything is read: what the other side does not take stays with the first one,
            // and its window closes.
            if !self.drain(to)? {
                return Ok(passed);
            }
            // Only behind the last byte: an end that overtakes it cuts the stream.
            if self.has_ended {
                return self.tell(to).map(|()| passed);
            }
            match from.read(&mut chunk) {
                Ok(0) => self.has_ended = true,
                Ok(count) => {
                    let written = to_would_block(to.write(&chunk[..count]))?.unwrap_or(0);
                    self.held.extend_from_slice(&chunk[written..count]);
                    passed = Passed::Some;
                }
                Err(error) => return to_would_block(Err(error)).map(|_: Option<()>| passed),
            }
        }
        Ok(Passed::Enough)
    }

    /// Writes what is held; whether that was all of it.
    fn drain(&mut self, to: &mut impl Write) -> io::Result<bool> {
        while !self.held.is_empty() {
            let Some(count) = to_would_block(to.write(&self.held))? else { return Ok(false) };
            self.held.drain(..count);
        }
        // An idle connection holds no memory.
        self.held = Vec::new();
        Ok(true)
    }

    /// Passes the end on.
    fn tell(&mut self, to: &mut impl StreamSocket) -> io::Result<()> {
        if !self.is_told {
            self.is_told = true;
            match to.shutdown(Shutdown::Write) {
                // It was reset, or has closed both ways: its own read says so.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {}
                other => other?,
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.is_told
    }
}

/// Nothing for a socket that would block.
fn to_would_block<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error)
            if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

impl<S: StreamSocket, C> Proxy<S, C> {
    fn connect(client: S, target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        let upstream = S::connect(target, scope)?;
        let (to_upstream, to_client) = Default::default();
        let mut proxy = Proxy {
            client,
            upstream,
            is_connected: false,
            to_upstream,
            to_client,
            context: std::marker::PhantomData,
        };
        scope.register(&mut proxy.client, Interest::Both)?;
        scope.register(&mut proxy.upstream, Interest::Both)?;
        Ok(proxy)
    }

    /// Whether the upstream has accepted the connection by now.
    fn look_whether_connected(&mut self) -> io::Result<bool> {
        if !self.is_connected {
            self.is_connected = self.upstream.has_connected()?;
            if self.is_connected {
                // What comes in small pieces goes on in small pieces.
                let _refused =
                    self.client.set_nodelay(true).and_then(|()| self.upstream.set_nodelay(true));
            }
        }
        Ok(self.is_connected)
    }

    /// Passes on what there is, both ways.
    fn relay(&mut self) -> io::Result<Passed> {
        let up = self.to_upstream.pass(&mut self.client, &mut self.upstream)?;
        let down = self.to_client.pass(&mut self.upstream, &mut self.client)?;
        Ok(match (up, down) {
            (Passed::Enough, _) | (_, Passed::Enough) => Passed::Enough,
            (Passed::Nothing, Passed::Nothing) => Passed::Nothing,
            _ => Passed::Some,
        })
    }

    /// Ends both connections: a reset on one side is all that the other side can be told, too.
    fn give_up(error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        log::debug!("connection {} ends: {error}", scope.token());
        Response::done()
    }
}

impl<S: StreamSocket, C> Machine for Proxy<S, C> {
    type Context = C;
    type Seed = Infallible;

    fn ready(mut self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        let was_connected = self.is_connected;
        match self.look_whether_connected() {
            Ok(true) => {}
            Ok(false) => return Response::keep(self),
            Err(error) => return Self::give_up(&error, scope),
        }
        let passed = match self.relay() {
            Ok(passed) => passed,
            Err(error) => return Self::give_up(&error, scope),
        };
        if self.to_upstream.is_over() && self.to_client.is_over() {
            return Response::done();
        }
        let silence = scope.now() + SILENCE_MAX;
        match passed {
            Passed::Enough => Response::again(self).deadline(silence),
            // An event without bytes is no sign of life: it buys no time.
            Passed::Nothing if was_connected => Response::keep(self),
            // The time for connecting is over, too, where nothing has been said yet.
            Passed::Some | Passed::Nothing => Response::ok(self).deadline(silence),
        }
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        let what =
            if self.is_connected { "silent for too long" } else { "the upstream does not answer" };
        Self::give_up(&io::Error::new(io::ErrorKind::TimedOut, what), scope)
    }
}

impl<S: StreamSocket, C> Accepted<S> for Proxy<S, C>
where
    S::Target: Clone,
{
    /// Where everything is passed on to.
    type Shared = S::Target;

    fn accepted(
        client: S,
        _: Option<SocketAddr>,
        target: S::Target,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self> {
        match Proxy::connect(client, &target, scope) {
            Ok(proxy) => Response::ok(proxy).deadline(scope.now() + CONNECT_TIME_MAX),
            Err(error) => Response::error(error),
        }
    }
}
