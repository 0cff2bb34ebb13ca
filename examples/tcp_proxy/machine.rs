//! A connection that is passed on to another address, both ways.
//!
//! One machine with two sockets, rather than two machines with one each: what one socket gives is
//! what the other takes, so there is nothing to tell anybody, no queue between them, and
//! back-pressure is simply not reading. The price: both sockets report under one token, so an event
//! does not say which of them it is about, and both are tried.
//!
//! ```text
//!          connected, hands shaken             both directions ended
//!  Opening ─────────────────────▶ Relaying ────────────────────────▶ end
//!      └ refused, late ▶ end         └ reset, silent for too long ▶ both reset
//! ```
//!
//! An end is passed on as an end, and all else as a reset: whoever hears an end takes what came before
//! it for all there is. The price is that of any reset (RFC 9293, section 3.10.5): what the other
//! side's system has not sent yet is thrown away.
//!
//! Either socket may be a wrapping one, of TLS say: then hands are shaken first, what it has taken
//! is flushed, and an end that its peer has not told of is a failure, not an end to be passed on.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use rotor::net::StreamSocket;
use rotor::stream::Accepted;
use rotor::{EventSet, Infallible, Interest, Machine, Response, Scope, with_causes};

/// How long both sides may take until bytes can pass: for the upstream to accept a connection, and
/// for both to shake hands where they do.
pub(crate) const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);

/// How long a connection may be silent in both directions. Longer than any keep-alive that a
/// protocol above may have.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(600);

/// How much is read at a time, in bytes. What the other side does not take of it is all that is
/// ever held of a direction.
const CHUNK_BYTES: usize = 16 * 1024;

/// How many chunks a direction may pass on in one event, before the other machines have their turn.
const CHUNKS_PER_EVENT: u32 = 8;

/// A client and its upstream, whose sockets may be of two kinds: what is said first to the upstream
/// is for its socket to say.
pub(crate) struct Proxy<S, U, C> {
    client: S,
    upstream: U,
    /// How far each of them is.
    client_stage: Stage,
    upstream_stage: Stage,
    to_upstream: Direction,
    to_client: Direction,
    context: std::marker::PhantomData<fn(C)>,
}

/// Where clients are passed on to.
pub(crate) struct Route<T>(Arc<Chooses<T>>);

/// Finds the target for a client at the first address, which has connected to the second, as far as
/// there are addresses.
type Chooses<T> = dyn Fn(Option<SocketAddr>, Option<SocketAddr>) -> T + Send + Sync;

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

/// How far a socket is.
#[derive(Clone, Copy, PartialEq)]
enum Stage {
    Connecting,
    /// It shakes hands, if it is of a kind that does.
    Shaking,
    Open,
}

impl Stage {
    /// Goes as far as the socket has come by now.
    fn go_on<C>(
        mut self,
        socket: &mut impl StreamSocket,
        scope: &Scope<'_, C>,
    ) -> io::Result<Stage> {
        if self == Stage::Connecting && socket.has_connected()? {
            self = Stage::Shaking;
        }
        while self == Stage::Shaking {
            if unless_it_would_block(|| socket.handshake(scope))?.is_some() {
                // What comes in small pieces goes on in small pieces.
                let _refused = socket.set_nodelay(true);
                self = Stage::Open;
            } else if !socket.handshake_has_drained() {
                // Else there may be an end behind what it has read: events are not looked at here.
                break;
            }
        }
        Ok(self)
    }
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
            match unless_it_would_block(|| from.read(&mut chunk))? {
                None => return Ok(passed),
                Some(0) => self.has_ended = true,
                Some(count) => {
                    let written = unless_it_would_block(|| to.write(&chunk[..count]))?.unwrap_or(0);
                    self.held.extend_from_slice(&chunk[written..count]);
                    passed = Passed::Some;
                }
            }
        }
        Ok(Passed::Enough)
    }

    /// Writes what is held, here and by a socket that wraps another; whether that was all of it.
    fn drain(&mut self, to: &mut impl Write) -> io::Result<bool> {
        if unless_it_would_block(|| to.flush())?.is_none() {
            return Ok(false);
        }
        while !self.held.is_empty() {
            let written = unless_it_would_block(|| to.write(&self.held))?;
            let Some(count) = written else { return Ok(false) };
            self.held.drain(..count);
        }
        // An idle connection holds no memory.
        self.held = Vec::new();
        Ok(true)
    }

    /// Passes the end on.
    fn tell(&mut self, to: &mut impl StreamSocket) -> io::Result<()> {
        if !self.is_told {
            match unless_it_would_block(|| to.shutdown(Shutdown::Write)) {
                // It was reset, or has closed both ways: its own read says so.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => self.is_told = true,
                // One that wraps another may have words to say first, for which there is no room.
                other => self.is_told = other?.is_some(),
            }
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.has_ended && self.is_told
    }
}

/// Nothing for a socket that would block: only then an event tells when it no longer does. What a
/// signal interrupts is done again.
fn unless_it_would_block<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<Option<T>> {
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
            client_stage: Stage::Shaking,
            upstream_stage: Stage::Connecting,
            to_upstream,
            to_client,
            context: std::marker::PhantomData,
        };
        scope.register(&mut proxy.client, Interest::Both)?;
        scope.register(&mut proxy.upstream, Interest::Both)?;
        Ok(proxy)
    }

    /// Whether bytes can pass by now.
    fn open(&mut self, scope: &Scope<'_, C>) -> io::Result<bool> {
        if !self.is_open() {
            self.client_stage = self.client_stage.go_on(&mut self.client, scope)?;
            self.upstream_stage = self.upstream_stage.go_on(&mut self.upstream, scope)?;
        }
        Ok(self.is_open())
    }

    fn is_open(&self) -> bool {
        (self.client_stage, self.upstream_stage) == (Stage::Open, Stage::Open)
    }

    /// Passes on what there is, both ways.
    fn relay(&mut self) -> io::Result<Passed> {
        let up = self.to_upstream.pass(&mut self.client, &mut self.upstream);
        // An upstream that is gone may have answered first. The end behind that answer is none: the
        // write has taken the error that would stand there.
        self.to_client.is_told |= up.is_err();
        let down = self.to_client.pass(&mut self.upstream, &mut self.client);
        Ok(match (up?, down?) {
            (Passed::Enough, _) | (_, Passed::Enough) => Passed::Enough,
            (Passed::Nothing, Passed::Nothing) => Passed::Nothing,
            _ => Passed::Some,
        })
    }

    fn go_on(mut self, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        let was_open = self.is_open();
        match self.open(scope) {
            Ok(true) => {}
            Ok(false) => return Response::keep(self),
            Err(error) => return Self::give_up(&error, scope),
        }
        let passed = match self.relay() {
            Ok(passed) => passed,
            Err(error) => return self.cut(&error, scope),
        };
        if self.to_upstream.is_over() && self.to_client.is_over() {
            return Response::done();
        }
        let silence = scope.now() + SILENCE_MAX;
        match passed {
            Passed::Enough => Response::again(self).deadline(silence),
            // An event without bytes is no sign of life: it buys no time.
            Passed::Nothing if was_open => Response::keep(self),
            // The time for opening is over, too, where nothing has been said yet.
            Passed::Some | Passed::Nothing => Response::ok(self).deadline(silence),
        }
    }

    /// Ends both connections by a reset: what has passed is not all that there was to be.
    fn cut(mut self, error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        // A kind of socket that has no resets ends in order.
        let _none = (self.client.reset(), self.upstream.reset());
        Self::give_up(error, scope)
    }

    /// Ends both connections: nothing has passed yet, or they are reset.
    fn give_up(error: &io::Error, scope: &Scope<'_, C>) -> Response<Self, Infallible> {
        log::debug!("connection {} ends: {}", scope.token(), with_causes(error));
        Response::done()
    }
}

impl<S: StreamSocket, U: StreamSocket, C> Machine for Proxy<S, U, C> {
    type Context = C;
    type Seed = Infallible;

    fn ready(self, _: EventSet, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.go_on(scope)
    }

    /// Another thread has signed something for a handshake, or there is room for one more.
    fn wakeup(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        self.go_on(scope)
    }

    fn timeout(self, scope: &mut Scope<'_, C>) -> Response<Self, Infallible> {
        let is_open = self.is_open();
        let what = match (self.upstream_stage, self.client_stage) {
            (Stage::Connecting, _) => "the upstream does not answer",
            (Stage::Shaking, _) => "the upstream does not shake hands",
            (Stage::Open, Stage::Open) => "silent for too long",
            (Stage::Open, _) => "the client does not shake hands",
        };
        let error = io::Error::new(io::ErrorKind::TimedOut, what);
        if is_open { self.cut(&error, scope) } else { Self::give_up(&error, scope) }
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
