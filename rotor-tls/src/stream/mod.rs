//! `TlsStream`: TLS around any socket, for either end of a connection.
//!
//! `opening` is what happens before the first byte of the protocol; this file is the socket itself.

mod opening;

use std::any::{Any, TypeId};
use std::fmt;
use std::fs::File;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::mem;
use std::net::{Shutdown, SocketAddr};

use rotor_core::Scope;
use rotor_core::backend::Source;
use rotor_core::net::{Either, StreamSocket};
use rotor_stream::Buf;

use self::opening::{Opening, OpeningOutcome};
use crate::client::TlsTarget;
use crate::connection::{Connection, flush};
use crate::error::is_retryable;
use crate::server::PendingHello;

/// TLS around a socket: written bytes are encrypted, and received bytes are decrypted.
///
/// It is a [`StreamSocket`] itself, so any [`Protocol`](rotor_stream::Protocol) runs on it. `S` may
/// be any socket: the kernel's, a simulated or scripted one, or another wrapping socket. A server
/// gets a stream from a [`TlsListener`](crate::TlsListener), a client by connecting to a
/// [`TlsTarget`].
///
/// * Bytes that a write has accepted are being sent, or are sent by the next flush: nothing is
///   encrypted twice.
/// * Our end is announced by `close_notify`, and so must be the peer's. An end without it is
///   `UnexpectedEof`; for streams it is
///   [`Exception::Truncated`](rotor_stream::Exception::Truncated). One side may end before the
///   other.
/// * Early data (0-RTT) is neither sent nor accepted, because it can be replayed. Renegotiation is
///   refused. Keys are updated when the peer requests it, and before they are used up.
/// * A waiting connection holds about 3.5 KiB with `ring`. Before the client has sent anything,
///   only the kernel's memory is used.
///
/// # Errors
///
/// [`TlsError::of`](crate::TlsError::of) returns what went wrong and whose fault it was. Errors of
/// the inner socket are passed on unchanged.
pub struct TlsStream<S> {
    inner: S,
    state: State,
}

/// A connection with or without TLS, for a client that connects to servers of both kinds:
/// `https://` and `http://`.
pub type MaybeTls<S> = Either<TlsStream<S>, S>;

/// The destination of a [`MaybeTls`] connection: an address, or a [`Host`](rotor_stream::Host).
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; pub use rotor_tls as tls; }
/// use rotor::net::Either;
/// use rotor::stream::Host;
/// use rotor::tls::{MaybeTlsTarget, NameError, TlsClient};
///
/// fn target(tls: &TlsClient, is_https: bool, name: &str) -> Result<MaybeTlsTarget<Host>, NameError> {
///     match is_https {
///         true => Ok(Either::A(tls.to_host(name, 443)?)),
///         false => Ok(Either::B(Host::new(name, 80))),
///     }
/// }
/// ```
pub type MaybeTlsTarget<A> = Either<TlsTarget<A>, A>;

enum State {
    Opening(Opening),
    Open(Box<Connection>),
    /// The handshake has failed. The buffer is sent to the peer; what the peer sends is no longer
    /// decoded.
    Failed(Buf),
}

impl<S> TlsStream<S> {
    /// Makes the server's end of a connection.
    pub(crate) fn server(inner: S, hello: Box<PendingHello>) -> TlsStream<S> {
        TlsStream { inner, state: State::Opening(Opening::ReadingHello(hello)) }
    }

    /// Makes the client's end of a connection that exists already, or is being established. The
    /// address in `target` does not matter.
    ///
    /// [`TlsServer::wrap`](crate::TlsServer::wrap) makes the server's end.
    #[doc(alias = "STARTTLS")]
    pub fn client<A>(inner: S, target: &TlsTarget<A>) -> TlsStream<S> {
        TlsStream { inner, state: State::Opening(Opening::Starting(target.start())) }
    }

    /// Returns the inner socket, for queries and options. Reading from it or writing to it breaks
    /// the connection.
    pub fn inner(&self) -> &S {
        &self.inner
    }
}

impl<S: StreamSocket> Read for TlsStream<S> {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(connection) if !buffer.is_empty() => {
                connection.read(&mut self.inner, buffer)
            }
            // A read of no bytes checks whether the inner socket is connected. After a failed
            // handshake, received bytes do not matter.
            State::Open(_) | State::Opening(_) | State::Failed(_) => self.inner.read(buffer),
        }
    }
}

impl<S: StreamSocket> Write for TlsStream<S> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(connection) => connection.write(&mut self.inner, &[IoSlice::new(bytes)]),
            State::Opening(_) | State::Failed(_) => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Gathers small pieces until they fill a record. A piece that fills a record is encrypted
    /// without being copied first.
    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(connection) => connection.write(&mut self.inner, slices),
            State::Opening(_) | State::Failed(_) => Err(ErrorKind::NotConnected.into()),
        }
    }

    #[inline]
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.state {
            State::Open(connection) => connection.flush(&mut self.inner),
            State::Failed(outgoing) => flush(outgoing, &mut self.inner),
            State::Opening(opening) => opening.flush(&mut self.inner),
        }
    }
}

/// How many bytes of a file are read and encrypted at a time: as many as one write takes.
const FILE_BYTES: usize = 64 * 1024;

impl<S: Source> Source for TlsStream<S> {
    rotor_core::rotor_forward_source!(inner);
}

impl<S: StreamSocket> StreamSocket for TlsStream<S> {
    type Target = TlsTarget<S::Target>;

    fn connect<C>(target: &TlsTarget<S::Target>, scope: &Scope<'_, C>) -> io::Result<Self> {
        let inner = S::connect(target.address(), scope)?;
        Ok(TlsStream::client(inner, target))
    }

    rotor_core::__rotor_forward_socket_options!(inner);

    /// Resets the inner socket, except after an alert. The alert tells the peer that the bytes
    /// before it are not complete, and why. A reset might overtake it; on a loop that sends later,
    /// it would.
    fn reset(&mut self) -> io::Result<()> {
        match &self.state {
            State::Open(connection) if connection.has_sent_alert() => Ok(()),
            _ => self.inner.reset(),
        }
    }

    fn may_agree_on(target: &TlsTarget<S::Target>, protocol: &[u8]) -> bool {
        target.offers(protocol)
    }

    fn without(target: TlsTarget<S::Target>, protocol: &[u8]) -> Option<TlsTarget<S::Target>> {
        target.without(protocol)
    }

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        if let State::Opening(Opening::Starting(start)) = &mut self.state {
            start.begin_handshake();
        }
        if let Err(error) = self.inner.handshake(scope) {
            if !is_retryable(&error) {
                self.abandon();
            }
            return Err(error);
        }
        let opening = match mem::replace(&mut self.state, State::Failed(Buf::new())) {
            State::Opening(opening) => opening,
            open_or_failed => {
                self.state = open_or_failed;
                return Ok(());
            }
        };
        let (state, result) = match opening.advance(&mut self.inner, scope) {
            OpeningOutcome::Open(connection) => (State::Open(connection), Ok(())),
            OpeningOutcome::Waiting(opening, error) => (State::Opening(opening), Err(error)),
            OpeningOutcome::Failed(error, outgoing) => (State::Failed(outgoing), Err(error)),
        };
        self.state = state;
        result
    }

    fn handshake_has_drained(&self) -> bool {
        // An inner socket that has bytes to send is called in any case.
        !self.inner.wants_write()
            && match &self.state {
                State::Opening(opening) => opening.has_drained(&self.inner),
                State::Open(connection) => connection.incoming.has_drained(&self.inner),
                State::Failed(_) => false,
            }
    }

    /// Sends `close_notify` to a peer that has begun a handshake: RFC 8446 §6.1 requires it of an
    /// end that closes its side without having reported an error, and being too slow is not one.
    fn cancel_handshake(&mut self) -> bool {
        let outgoing = match mem::replace(&mut self.state, State::Failed(Buf::new())) {
            State::Opening(opening) => opening.cancel(),
            open_or_failed => {
                self.state = open_or_failed;
                return false;
            }
        };
        let is_for_the_peer = !outgoing.is_empty();
        self.state = State::Failed(outgoing);
        // If no handshake has begun here, the inner socket may not have finished its own.
        is_for_the_peer || self.inner.cancel_handshake()
    }

    /// Sends `close_notify` together with the last bytes.
    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Open(connection) => connection.write_last(&mut self.inner, bytes),
            State::Opening(_) | State::Failed(_) => Err(ErrorKind::NotConnected.into()),
        }
    }

    /// Ends our side by `close_notify`, then that of the inner socket.
    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        if how != Shutdown::Read {
            match &mut self.state {
                State::Open(connection) => connection.close(&mut self.inner)?,
                State::Failed(outgoing) => flush(outgoing, &mut self.inner)?,
                State::Opening(_) => {}
            }
        }
        self.inner.shutdown(how)
    }

    fn negotiated(&self) -> Option<&[u8]> {
        self.connection()?.session.protocol()
    }

    /// Returns a [`TlsSession`](crate::TlsSession).
    fn session(&self) -> Option<&dyn Any> {
        self.connection().map(|connection| &connection.session as &dyn Any)
    }

    /// Returns a [`TlsSession`](crate::TlsSession), or the session of the inner socket.
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        let own = self.session().filter(|session| (**session).type_id() == wanted);
        own.or_else(|| self.inner.session_of(wanted))
    }

    fn is_secure(&self) -> bool {
        self.connection().is_some()
    }

    fn holds_input(&self) -> bool {
        self.connection().is_some_and(Connection::holds_input)
    }

    #[inline]
    fn short_read_drains(&self) -> bool {
        self.connection().is_some_and(|connection| connection.has_drained(&self.inner))
    }

    #[inline]
    fn read_cost(&self) -> usize {
        self.connection().map_or(0, Connection::read_cost)
    }

    fn wants_read(&self) -> bool {
        self.inner.wants_read()
    }

    #[inline]
    fn wants_write(&self) -> bool {
        let waits = match &self.state {
            State::Open(connection) => !connection.outgoing.is_empty(),
            State::Failed(outgoing) => !outgoing.is_empty(),
            State::Opening(opening) => opening.wants_write(),
        };
        waits || self.inner.wants_write()
    }

    fn awaits_rest(&self) -> bool {
        self.connection().is_some_and(|connection| !connection.incoming.bytes.is_empty())
            || self.inner.awaits_rest()
    }

    #[inline]
    fn unsent_len(&self) -> usize {
        let unsent = match &self.state {
            State::Open(connection) => connection.outgoing.len(),
            State::Failed(outgoing) => outgoing.len(),
            State::Opening(opening) => opening.unsent_len(),
        };
        unsent + self.inner.unsent_len()
    }

    fn held_bytes(&self) -> usize {
        let held = match &self.state {
            State::Open(connection) => connection.held_bytes(),
            State::Failed(outgoing) => outgoing.capacity(),
            State::Opening(opening) => opening.held_bytes(),
        };
        held + self.inner.held_bytes()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        // Waiting bytes are written first: a piece of a file that is not taken would be read again.
        self.flush()?;
        let mut piece = Buf::new();
        match piece.read_file_at(file, offset, count.min(FILE_BYTES))? {
            0 => Ok(0),
            _ => self.write(&piece),
        }
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.inner.peer_address()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.inner.local_address()
    }
}

impl<S> TlsStream<S> {
    /// Handles a failure of the inner socket before there was a handshake here.
    #[cold]
    fn abandon(&mut self) {
        match mem::replace(&mut self.state, State::Failed(Buf::new())) {
            State::Opening(opening) => opening.abandon(),
            open_or_failed => self.state = open_or_failed,
        }
    }

    #[inline]
    fn connection(&self) -> Option<&Connection> {
        match &self.state {
            State::Open(connection) => Some(connection),
            _ => None,
        }
    }
}

impl<S> fmt::Debug for TlsStream<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Opening(_) => f.write_str("TlsStream(shakes hands)"),
            State::Open(connection) => {
                f.debug_tuple("TlsStream").field(&connection.session).finish()
            }
            State::Failed(_) => f.write_str("TlsStream(failed)"),
        }
    }
}
