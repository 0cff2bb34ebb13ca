//! `Transport`: what a protocol sees of its connection.

use std::any::{Any, TypeId};
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rotor_core::net::StreamSocket;

use crate::buf::Buf;
use crate::limits::StreamConfig;
use crate::output::{EndState, Output};
use crate::status::{Flags, Status};

/// A protocol's connection during a call: its input, its output, and what else the socket offers.
///
/// Its type does not name the kind of socket, so a protocol runs on any of them. Input and output
/// are fields, so that both can be borrowed at once.
pub struct Transport<'a> {
    /// The bytes that have arrived and have not been consumed.
    pub input: &'a mut Buf,
    /// The bytes to be written. The stream writes them after the protocol has returned, as soon as
    /// the socket takes them.
    ///
    /// Another [`Output`] may be put in its place before
    /// [`shutdown_write`](Transport::shutdown_write). After that the note that our side has ended
    /// would be lost with the replaced output.
    pub output: &'a mut Output,
    socket: Option<&'a dyn SocketControl>,
    status: Option<&'a mut Status>,
    /// How many more calls the protocol may get in this event; `None` outside of such an event.
    calls_left: Option<&'a mut u32>,
}

/// What a protocol can find out about its connection apart from the bytes, as a value that can be
/// kept while input and output are borrowed.
///
/// Each query for an address costs a system call.
#[doc(alias = "Addresses")]
#[doc(alias = "ConnectInfo")]
#[derive(Clone, Copy)]
pub struct ConnectionInfo<'a> {
    socket: Option<&'a dyn SocketControl>,
}

impl<'a> ConnectionInfo<'a> {
    /// Returns the address of the peer; `None` if it has none (Unix sockets) or the connection is
    /// gone.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// Returns the local address; `None` if there is none.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// Returns what a wrapping socket, or one inside it, knows from its handshake, as a `T`; see
    /// [`Transport::session`].
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.socket?.session_of(TypeId::of::<T>())?.downcast_ref()
    }

    /// Returns whether nobody between the two ends can read or change the bytes; see
    /// [`Transport::is_secure`].
    pub fn is_secure(&self) -> bool {
        self.socket.is_some_and(|socket| socket.is_secure())
    }
}

impl fmt::Debug for ConnectionInfo<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConnectionInfo")
    }
}

/// What a protocol may request from a socket of any kind.
trait SocketControl {
    fn peer_address(&self) -> Option<SocketAddr>;
    fn local_address(&self) -> Option<SocketAddr>;
    fn negotiated(&self) -> Option<&[u8]>;
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any>;
    fn is_secure(&self) -> bool;
    fn unsent_len(&self) -> usize;
    fn set_nodelay(&self, yes: bool) -> io::Result<()>;
    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()>;
}

impl<S: StreamSocket> SocketControl for S {
    fn peer_address(&self) -> Option<SocketAddr> {
        StreamSocket::peer_address(self)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        StreamSocket::local_address(self)
    }

    fn negotiated(&self) -> Option<&[u8]> {
        StreamSocket::negotiated(self)
    }

    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        StreamSocket::session_of(self, wanted)
    }

    fn is_secure(&self) -> bool {
        StreamSocket::is_secure(self)
    }

    fn unsent_len(&self) -> usize {
        StreamSocket::unsent_len(self)
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        StreamSocket::set_nodelay(self, yes)
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        StreamSocket::set_keepalive(self, idle)
    }
}

impl<'a> Transport<'a> {
    #[inline]
    pub(crate) fn new<S: StreamSocket>(
        input: &'a mut Buf,
        output: &'a mut Output,
        socket: &'a S,
        status: &'a mut Status,
        calls_left: Option<&'a mut u32>,
    ) -> Transport<'a> {
        Transport { input, output, socket: Some(socket), status: Some(status), calls_left }
    }

    /// Makes a transport without a socket: for tests of parts of a protocol, and for layers that
    /// run a protocol on their own buffers.
    pub fn detached(input: &'a mut Buf, output: &'a mut Output) -> Transport<'a> {
        Transport { input, output, socket: None, status: None, calls_left: None }
    }

    /// Returns the rest of what can be known about the connection, in a value that can be kept
    /// while input and output are borrowed.
    #[doc(alias = "addresses")]
    #[inline]
    pub fn connection(&self) -> ConnectionInfo<'a> {
        ConnectionInfo { socket: self.socket }
    }

    /// Returns the address of the peer; `None` if it has none (Unix sockets), or if the transport has
    /// no socket, as on a stream of HTTP/2. This costs a system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// Returns the local address; `None` if there is none, as for
    /// [`peer_address`](Transport::peer_address). This costs a system call.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// Returns the protocol that a wrapping socket has negotiated in its handshake; `None` if
    /// nothing was negotiated.
    #[doc(alias = "ALPN")]
    pub fn negotiated(&self) -> Option<&[u8]> {
        self.socket?.negotiated()
    }

    /// Returns what a wrapping socket knows from its handshake, as a `T`; for example the
    /// certificate of the peer.
    ///
    /// Each kind of wrapper has its own type for this. If one wrapper is inside another, the types
    /// of both are found. `None` on other sockets, and if the transport has no socket.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection().session()
    }

    /// Returns whether nobody between the two ends can read or change the bytes. This is true only
    /// for a wrapping socket that encrypts.
    #[doc(alias = "TLS")]
    pub fn is_secure(&self) -> bool {
        self.connection().is_secure()
    }

    /// Returns how many bytes the system has not taken yet: those in `output`, and those of earlier
    /// output that a wrapping socket (TLS) still holds in its own form. If this number gets smaller
    /// without a change by the protocol, the system has taken more, which shows that the peer
    /// reads.
    ///
    /// The number may grow while `output` shrinks, because encrypted bytes take more space.
    #[inline]
    pub fn unsent_len(&self) -> usize {
        self.output.len() + self.socket.map_or(0, |socket| socket.unsent_len())
    }

    /// Returns whether reading and delivering input is suspended, because the output was above
    /// [`output_high_water`](crate::StreamConfig::output_high_water) and is not yet down to half of
    /// that. A protocol inside another one ([`Layered`](crate::Layered)) is also told so while the
    /// connection itself takes no input.
    ///
    /// A deadline keeps running meanwhile, although `input` may already hold what the protocol
    /// waits for. So a `timeout` that finds this `true` should go on waiting.
    /// [`flush_timeout`](crate::StreamConfig::flush_timeout) limits how long the peer may take.
    #[inline]
    pub fn is_input_held(&self) -> bool {
        // While the protocol waits for no input, nothing else checks whether the output has come
        // down.
        self.status.as_ref().is_some_and(|status| {
            let is_gated = status.flags.has(Flags::IS_GATED)
                && self.output.len() > status.config.output_high_water / 2;
            is_gated || status.flags.has(Flags::HELD_BY_LAYER)
        })
    }

    /// Sets whether the protocol is collecting one whole message in memory, and the next input is
    /// part of it. An event may then read up to
    /// [`collect_budget`](crate::StreamConfig::collect_budget) of it. Default: no. Use it for
    /// messages whose length is limited.
    ///
    /// Without a stream behind the transport this does nothing.
    #[inline]
    pub fn set_collecting(&mut self, yes: bool) {
        if let Some(status) = &mut self.status {
            status.flags.set(Flags::IS_COLLECTING, yes);
        }
    }

    /// Counts this call as `more` additional calls against
    /// [`calls_budget`](crate::StreamConfig::calls_budget), so that other machines get their turn
    /// as soon as if the protocol had been called that often.
    ///
    /// It is for a protocol that handles many small messages in one call. What is left in `input`
    /// when the budget is used up is delivered in the next turn. Outside of an event that delivers
    /// input, and without a stream behind the transport, this does nothing.
    #[inline]
    pub fn count_calls(&mut self, more: u32) {
        if let Some(calls_left) = &mut self.calls_left {
            **calls_left = calls_left.saturating_sub(more);
        }
    }

    /// Returns the mark above which the stream delivers no input; the greatest number without a
    /// stream.
    pub(crate) fn output_high_water(&self) -> usize {
        self.status.as_ref().map_or(usize::MAX, |status| status.config.output_high_water)
    }

    /// Returns whether the socket takes output, as far as is known.
    pub(crate) fn is_writable(&self) -> bool {
        self.status.as_ref().is_some_and(|status| status.writable)
    }

    /// Replaces the limits of the stream, when this protocol turns into another one, as HTTP does
    /// on an upgrade.
    ///
    /// [`StreamConfig::standard`] changes nothing. Settings that the new configuration leaves unset
    /// ([`held`](StreamConfig::held), [`on_abort`](StreamConfig::on_abort),
    /// [`count_bytes`](StreamConfig::count_bytes)) stay as they were. The configuration is copied
    /// for that, so set all three if many connections share it. The options of the socket
    /// (`nodelay`, `keepalive`, the sizes of the system's buffers) stay as they are. Without a
    /// stream behind the transport this does nothing.
    pub fn set_config(&mut self, config: Arc<StreamConfig>) {
        if let Some(status) = &mut self.status {
            status.set_config(config);
        }
    }

    /// Half-closes the connection after all output: the peer reads the output, then the end.
    /// Reading continues.
    ///
    /// Writing to the output after this fails.
    #[doc(alias = "half-close")]
    #[doc(alias = "SHUT_WR")]
    pub fn shutdown_write(&mut self) {
        // Not from `ShutDown`: the socket would be shut down twice.
        if self.output.end_state() == EndState::Open {
            self.output.set_end_state(EndState::Requested);
        }
    }

    /// Sets whether small writes are sent at once (`true`, the default) or gathered for a while.
    ///
    /// # Errors
    ///
    /// The system's error; the connection goes on as it was.
    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.socket.map_or(Ok(()), |socket| socket.set_nodelay(yes))
    }

    /// Makes the system probe a peer that has been silent for `idle`; `None` turns this off.
    ///
    /// # Errors
    ///
    /// The system's error; the connection goes on as it was.
    pub fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        self.socket.map_or(Ok(()), |socket| socket.set_keepalive(idle))
    }
}

impl fmt::Debug for Transport<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("input", &self.input)
            .field("output", &self.output)
            .finish_non_exhaustive()
    }
}
