//! A connection that is passed on to another address, in both directions.
//!
//! It is one machine with two sockets instead of two machines with one each. The bytes that one
//! socket returns are written to the other, so no messages and no queue are needed, and
//! backpressure means not to read. The price: both sockets report under one token, so an event
//! does not say which one it is about, and both are tried.
//!
//! ```text
//!          connected, hands shaken             both directions ended
//!  Opening ─────────────────────▶ Relaying ────────────────────────▶ end
//!      └ refused, late ▶ end         └ reset, silent for too long ▶ both reset
//! ```
//!
//! An end is passed on as an end, and everything else as a reset, because a peer that reads an end
//! takes what came before it for complete. The price is that of any reset (RFC 9293, section
//! 3.10.5): output that the system has not sent yet is discarded.
//!
//! Either socket may be a wrapper, for example of TLS. Then the handshake comes first, output that
//! the wrapper holds is flushed, and an end that the peer has not announced (in TLS, by
//! close_notify) is a failure, not an end to be passed on.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rotor::net::StreamSocket;
use rotor::stream::Accepted;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope, with_causes};

/// How long it may take until bytes can pass: until the upstream has accepted a connection, and the
/// handshakes are done, if there are any.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a connection may be silent in both directions. It is longer than any keep-alive of a
/// protocol above.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(600);

/// How much is read at a time, in bytes. The part of it that the other side does not take is all
/// that is ever held for a direction.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many chunks a direction may pass on in one event, before other machines have their turn.
const CHUNKS_PER_EVENT: u32 = 8;

/// A client and its upstream, whose sockets may be of different kinds. If something must be sent to
/// the upstream first, its socket does that.
pub(crate) struct Proxy<S, U, C> {
    client: S,
    upstream: U,
    /// The stage of each of them.
    client_stage: Stage,
    upstream_stage: Stage,
    to_upstream: Direction,
    to_client: Direction,
    context: std::marker::PhantomData<fn(C)>,
}

/// The target to which clients are passed on.
pub(crate) struct Route<T>(Arc<ChooseTarget<T>>);

/// Returns the target for a client at the first address that has connected to the second address,
/// if these are known.
type ChooseTarget<T> = dyn Fn(Option<SocketAddr>, Option<SocketAddr>) -> T + Send + Sync;

impl<T> Route<T> {
    pub(crate) fn new(
        choose: impl Fn(Option<SocketAddr>, Option<SocketAddr>) -> T + Send + Sync + 'static,
    ) -> Route<T> {
        Route(Arc::new(choose))
    }
}

impl<T> Clone for Route<T> {
    fn clone(&self) -> Self {
        Route(self.0.clone())
    }
}

/// The stage of a socket.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Connecting,
    /// The handshake, for sockets that have one.
    Handshaking,
    Open,
}

impl Stage {
    /// Goes on as far as the socket allows now.
    fn advance<C>(
        mut self,
        socket: &mut impl StreamSocket,
        scope: &Scope<'_, C>,
    ) -> io::Result<Stage> {
        if self == Stage::Connecting && socket.has_connected()? {
            self = Stage::Handshaking;
        }
        while self == Stage::Handshaking {
            if nonblocking(|| socket.handshake(scope))?.is_some() {
                // Bytes that arrive in small pieces are sent in small pieces.
                let _refused = socket.set_nodelay(true);
                self = Stage::Open;
            } else if !socket.handshake_has_drained() {
                // Otherwise there may be an end after the bytes that were read: events are not
                // examined here.
                break;
            }
        }
        Ok(self)
    }
}

/// The state of one direction.
#[derive(Default)]
struct Direction {
    /// Bytes that were read, and not taken by the other side yet.
    held: Vec<u8>,
    /// Whether the side that is read from has ended.
    has_ended: bool,
    /// Whether that was passed on to the side that is written to.
    is_end_forwarded: bool,
}

/// The result of passing bytes on.
#[derive(PartialEq)]
enum PassOutcome {
    Nothing,
    Some,
    /// As much as one event may pass on; there may be more.
    Enough,
}

impl Direction {
    /// Passes on the bytes that are available, then the end.
    fn pass(
        &mut self,
        from: &mut impl Read,
        to: &mut impl StreamSocket,
    ) -> io::Result<PassOutcome> {
        let mut passed = PassOutcome::Nothing;
        // On the stack, so that bytes that pass at once need no allocation.
        let mut chunk = [0; CHUNK_BYTES];
        for _ in 0..CHUNKS_PER_EVENT {
            // Done before anything is read: if the other side takes nothing, the bytes stay in the
            // first socket, and its window closes.
            if !self.drain(to)? {
                return Ok(passed);
            }
            // Only after the last byte: an end that overtook it would cut the stream.
            if self.has_ended {
                return self.forward_end(to).map(|()| passed);
            }
            match nonblocking(|| from.read(&mut chunk))? {
                None => return Ok(passed),
                Some(0) => self.has_ended = true,
                Some(count) => {
                    let written = nonblocking(|| to.write(&chunk[..count]))?.unwrap_or(0);
                    self.held.extend_from_slice(&chunk[written..count]);
                    passed = PassOutcome::Some;
                }
            }
        }
        Ok(PassOutcome::Enough)
    }

    /// Writes what is held, here and by a wrapper. Returns whether that was everything.
    fn drain(&mut self, to: &mut impl Write) -> io::Result<bool> {
        if nonblocking(|| to.flush())?.is_none() {
            return Ok(false);
        }
        while !self.held.is_empty() {
            let written = nonblocking(|| to.write(&self.held))?;
            let Some(count) = written else { return Ok(false) };
            self.held.drain(..count);
        }
        // An idle connection holds no memory.
        self.held = Vec::new();
        Ok(true)
    }

    /// Passes the end on.
    fn forward_end(&mut self, to: &mut impl StreamSocket) -> io::Result<()> {
        if !self.is_end_forwarded {
            match nonblocking(|| to.shutdown(Shutdown::Write)) {
                // The socket was reset, or is closed in both directions, which its own read
                // reports.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => {
                    self.is_end_forwarded = true
                }
                // A wrapper may have to write something first, for which there is no room.
                other => self.is_end_forwarded = other?.is_some(),
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.is_end_forwarded
    }
}

/// Returns `None` if the socket would block: only then does an event report when it no longer does.
/// A call that a signal interrupts is repeated.
fn nonblocking<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
    loop {
        match call() {
            Ok(value) => return Ok(Some(value)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

impl<S: StreamSocket, U: StreamSocket, C> Proxy<S, U, C> {
    fn connect(client: S, target: &U::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        let upstream = U::connect(target, scope)?;
        let (to_upstream, to_client) = Default::default();
        let mut proxy = Proxy {
            client,
            upstream,
            client_stage: Stage::Handshaking,
            upstream_stage: Stage::Connecting,
            to_upstream,
            to_client,
            context: std::marker::PhantomData,
        };
        scope.register(&mut proxy.client, Interest::Both)?;
        scope.register(&mut proxy.upstream, Interest::Both)?;
        Ok(proxy)
    }

    /// Returns whether bytes can pass now.
    fn open(&mut self, scope: &Scope<'_, C>) -> io::Result<bool> {
        if !self.is_open() {
            self.client_stage = self.client_stage.advance(&mut self.client, scope)?;
            self.upstream_stage = self.upstream_stage.advance(&mut self.upstream, scope)?;
        }
        Ok(self.is_open())
    }

    fn is_open(&self) -> bool {
        (self.client_stage, self.upstream_stage) == (Stage::Open, Stage::Open)
    }

    /// Passes on what is available, in both directions.
    fn relay(&mut self) -> io::Result<PassOutcome> {
        let up = self.to_upstream.pass(&mut self.client, &mut self.upstream);
        // An upstream that is gone may have responded first. The end after that response is not a
        // real one: the write has taken the error that the read would have returned.
        self.to_client.is_end_forwarded |= up.is_err();
        let down = self.to_client.pass(&mut self.upstream, &mut self.client);
        Ok(match (up?, down?) {
            (PassOutcome::Enough, _) | (_, PassOutcome::Enough) => PassOutcome::Enough,
            (PassOutcome::Nothing, PassOutcome::Nothing) => PassOutcome::Nothing,
            _ => PassOutcome::Some,
        })
    }

    fn proceed(mut self, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        let was_open = self.is_open();
        match self.open(scope) {
            Ok(true) => {}
            Ok(false) => return Response::keep(self),
            Err(error) => return Self::end_with_error(&error, scope),
        }
        let passed = match self.relay() {
            Ok(passed) => passed,
            Err(error) => return self.reset_both(&error, scope),
        };
        if self.to_upstream.is_over() && self.to_client.is_over() {
            return Response::done();
        }
        let silence = scope.now() + SILENCE_MAX;
        match passed {
            PassOutcome::Enough => Response::again(self).deadline(silence),
            // An event without bytes is no sign of life, so it does not extend the time limit.
            PassOutcome::Nothing if was_open => Response::keep(self),
            // The time limit for opening has been met, even if no byte has passed yet.
            PassOutcome::Some | PassOutcome::Nothing => Response::ok(self).deadline(silence),
        }
    }

    /// Ends both connections by a reset, because not everything was passed on.
    fn reset_both(mut self, error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        // Kinds of socket without resets end in an orderly way.
        let _none = (self.client.reset(), self.upstream.reset());
        Self::end_with_error(error, scope)
    }

    /// Ends both connections: either nothing has passed yet, or they are reset.
    fn end_with_error(error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        log::debug!("connection {} ends: {}", scope.token(), with_causes(error));
        Response::done()
    }
}

impl<S: StreamSocket, U: StreamSocket, C> Machine for Proxy<S, U, C> {
    type Context = C;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.proceed(scope)
    }

    /// Called when another thread has computed a signature for a handshake, or when there is room
    /// for another one.
    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.proceed(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        let is_open = self.is_open();
        let what = match (self.upstream_stage, self.client_stage) {
            (Stage::Connecting, _) => "the upstream does not answer",
            (Stage::Handshaking, _) => "the upstream does not shake hands",
            (Stage::Open, Stage::Open) => "silent for too long",
            (Stage::Open, _) => "the client does not shake hands",
        };
        let error = io::Error::new(io::ErrorKind::TimedOut, what);
        if is_open { self.reset_both(&error, scope) } else { Self::end_with_error(&error, scope) }
    }
}

impl<S: StreamSocket, U: StreamSocket, C> Accepted<S> for Proxy<S, U, C> {
    type Shared = Route<U::Target>;

    fn accepted(
        client: S,
        from: Option<SocketAddr>,
        route: Route<U::Target>,
        scope: &mut Scope<'_, C>,
    ) -> Response<Self> {
        let target = (route.0)(from, client.local_address());
        match Proxy::connect(client, &target, scope) {
            Ok(proxy) => Response::ok(proxy).deadline(scope.now() + CONNECT_TIME_MAX),
            Err(error) => Response::error(error),
        }
    }
}
