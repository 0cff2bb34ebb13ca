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
use crate::output::{End, Output};
use crate::status::{Flags, Status};

/// A protocol's connection while it is being called: what came in, what is to go out, and the
/// socket's odds and ends.
///
/// It does not name the kind of socket, so a protocol runs on any. Input and output are fields, so
/// that both can be held at once.
pub struct Transport<'a> {
    /// The bytes that came in and were not consumed.
    pub input: &'a mut Buf,
    /// What is to be written: after the protocol has answered, or as soon as the socket takes it.
    ///
    /// Another one may be put in its place until [`shutdown_write`](Transport::shutdown_write):
    /// what that noted goes with it.
    pub output: &'a mut Output,
    socket: Option<&'a dyn SocketControl>,
    status: Option<&'a mut Status>,
}

/// What a protocol may know of its connection beside the bytes, in a value that may be kept while
/// input and output are borrowed.
///
/// Each address is asked for when it is wanted: it costs a system call.
#[doc(alias = "Addresses")]
#[doc(alias = "ConnectInfo")]
#[derive(Clone, Copy)]
pub struct ConnectionInfo<'a> {
    socket: Option<&'a dyn SocketControl>,
}

impl<'a> ConnectionInfo<'a> {
    /// The address of the peer; `None` where there is none (Unix sockets), or no connection any
    /// more.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// The address at this end; `None` where there is none.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// What a wrapping socket, or one inside it, tells of its handshake as a `T`; as
    /// [`Transport::session`].
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.socket?.session_of(TypeId::of::<T>())?.downcast_ref()
    }

    /// Whether nobody between the two ends can read or change what passes; as
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

/// What a protocol may ask of a socket, whatever its kind.
trait SocketControl {
    fn peer_address(&self) -> Option<SocketAddr>;
    fn local_address(&self) -> Option<SocketAddr>;
    fn negotiated(&self) -> Option<&[u8]>;
    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any>;
    fn is_secure(&self) -> bool;
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
    ) -> Transport<'a> {
        Transport { input, output, socket: Some(socket), status: Some(status) }
    }

    /// A transport without a socket: for tests of a protocol's parts, and for layers that run a
    /// protocol on buffers of their own.
    pub fn detached(input: &'a mut Buf, output: &'a mut Output) -> Transport<'a> {
        Transport { input, output, socket: None, status: None }
    }

    /// What else there is to know of the connection, in a value that may be kept while input and
    /// output are borrowed.
    #[doc(alias = "addresses")]
    #[inline]
    pub fn connection(&self) -> ConnectionInfo<'a> {
        ConnectionInfo { socket: self.socket }
    }

    /// The address of the peer; `None` where there is none (Unix sockets). It costs a system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// The address at this end; `None` where there is none. It costs a system call.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// The protocol that a wrapping socket has agreed on in its handshake; `None` where nothing was
    /// negotiated.
    #[doc(alias = "ALPN")]
    pub fn negotiated(&self) -> Option<&[u8]> {
        self.socket?.negotiated()
    }

    /// What a wrapping socket tells of its handshake, the certificate of the peer, say, as a `T`:
    /// each kind of wrapper has a type of its own for it, and where one is inside another, both are
    /// asked. `None` on other sockets, and where the transport has none.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection().session()
    }

    /// Whether nobody between the two ends can read or change what passes: so it is on a wrapping
    /// socket that encrypts, and on no other.
    #[doc(alias = "TLS")]
    pub fn is_secure(&self) -> bool {
        self.connection().is_secure()
    }

    /// Whether nothing is read or handed out at present, because more of the output waits than
    /// [`output_high_water`](crate::StreamConfig::output_high_water), and it is not yet down to
    /// half of that.
    ///
    /// A deadline runs on meanwhile, though what it is for may be in `input` already: a `timeout`
    /// that finds this true had better wait on. The peer is watched by
    /// [`flush_timeout`](crate::StreamConfig::flush_timeout).
    #[inline]
    pub fn is_input_held(&self) -> bool {
        // While the protocol waits for no input, nobody else looks whether the output has come
        // down.
        self.status.as_ref().is_some_and(|status| {
            status.flags.has(Flags::IS_GATED)
                && self.output.len() > status.config.output_high_water / 2
        })
    }

    /// Says whether one message is being collected in memory, whole, and what comes is part of it:
    /// then an event may read up to [`collect_budget`](crate::StreamConfig::collect_budget) of it.
    /// At first it is not. For messages of which a limit says how long they may be.
    ///
    /// Without a stream behind the transport this does nothing.
    #[inline]
    pub fn set_collecting(&mut self, yes: bool) {
        if let Some(status) = &mut self.status {
            status.flags.set(Flags::IS_COLLECTING, yes);
        }
    }

    /// Goes on within other limits: of a protocol that this one becomes, as HTTP does on an
    /// upgrade.
    ///
    /// [`StreamConfig::standard`] changes nothing. What a configuration leaves open
    /// ([`held`](StreamConfig::held), [`on_abort`](StreamConfig::on_abort)) is as it was, for which
    /// a copy of it is made; where many connections are to share it, say both. The options of the
    /// socket (`nodelay`, `keepalive`, the sizes of the system's buffers) stay as they are. Without
    /// a stream behind the transport this does nothing.
    pub fn set_config(&mut self, config: Arc<StreamConfig>) {
        if let Some(status) = &mut self.status {
            status.set_config(config);
        }
    }

    /// Ends our side of the connection after all that was written: the peer reads it, then the end.
    /// Reading goes on.
    ///
    /// What is written after this is refused.
    #[doc(alias = "half-close")]
    #[doc(alias = "SHUT_WR")]
    pub fn shutdown_write(&mut self) {
        // From `Told` there is no way back: the socket would be told twice.
        if self.output.end() == End::Open {
            self.output.set_end(End::Wanted);
        }
    }

    /// Sends small writes at once (`true`, the default) or gathers them for a while.
    ///
    /// # Errors
    ///
    /// What the system says; the connection goes on as it was.
    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.socket.map_or(Ok(()), |socket| socket.set_nodelay(yes))
    }

    /// Has the system probe a peer that has been silent for `idle`; `None` turns it off.
    ///
    /// # Errors
    ///
    /// What the system says; the connection goes on as it was.
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
