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

/// A protocol's connection while it is being called: its input, its output, and what else the
/// socket offers.
///
/// It does not name the kind of socket, so a protocol runs on any. Input and output are fields, so
/// that you can hold both at once.
pub struct Transport<'a> {
    /// The bytes that came in and have not been consumed.
    pub input: &'a mut Buf,
    /// What will be written: after the protocol has answered, or as soon as the socket takes it.
    ///
    /// You may put another [`Output`] in its place until
    /// [`shutdown_write`](Transport::shutdown_write); what the replaced one had noted is gone with
    /// it.
    pub output: &'a mut Output,
    socket: Option<&'a dyn SocketControl>,
    status: Option<&'a mut Status>,
    /// How many calls the protocol may still be given in this event, while there is one.
    calls_left: Option<&'a mut u32>,
}

/// What a protocol may know of its connection beside the bytes, in a value that can be kept while
/// input and output are borrowed.
///
/// Each address is asked for when it is wanted, which costs a system call.
#[doc(alias = "Addresses")]
#[doc(alias = "ConnectInfo")]
#[derive(Clone, Copy)]
pub struct ConnectionInfo<'a> {
    socket: Option<&'a dyn SocketControl>,
}

impl<'a> ConnectionInfo<'a> {
    /// Returns the address of the peer; `None` where there is none (Unix sockets), or when there is
    /// no connection any more.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// Returns the address at this end; `None` where there is none.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// Returns what a wrapping socket, or one inside it, tells of its handshake as a `T`; see
    /// [`Transport::session`].
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.socket?.session_of(TypeId::of::<T>())?.downcast_ref()
    }

    /// Returns whether nobody between the two ends can read or change what passes; see
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

    /// Makes a transport without a socket: for tests of a protocol's parts, and for layers that run
    /// a protocol on buffers of their own.
    pub fn detached(input: &'a mut Buf, output: &'a mut Output) -> Transport<'a> {
        Transport { input, output, socket: None, status: None, calls_left: None }
    }

    /// Returns what else there is to know of the connection, in a value that can be kept while
    /// input and output are borrowed.
    #[doc(alias = "addresses")]
    #[inline]
    pub fn connection(&self) -> ConnectionInfo<'a> {
        ConnectionInfo { socket: self.socket }
    }

    /// Returns the address of the peer; `None` where there is none (Unix sockets). It costs a
    /// system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket?.peer_address()
    }

    /// Returns the address at this end; `None` where there is none. It costs a system call.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket?.local_address()
    }

    /// Returns the protocol that a wrapping socket has agreed on in its handshake; `None` where
    /// nothing was negotiated.
    #[doc(alias = "ALPN")]
    pub fn negotiated(&self) -> Option<&[u8]> {
        self.socket?.negotiated()
    }

    /// Returns what a wrapping socket tells of its handshake as a `T`, for example the certificate
    /// of the peer.
    ///
    /// Each kind of wrapper has its own type for this, and where one is inside another, both are
    /// asked. `None` on other sockets, and where the transport has no socket.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection().session()
    }

    /// Returns whether nobody between the two ends can read or change what passes. This is so on a
    /// wrapping socket that encrypts, and on no other.
    #[doc(alias = "TLS")]
    pub fn is_secure(&self) -> bool {
        self.connection().is_secure()
    }

    /// Returns how many bytes wait for the system to take them: those of `output`, and what a
    /// wrapping socket (TLS) has made of earlier ones and still holds. Each time this gets smaller
    /// without a change of yours, the system has taken more, which it does for a peer that reads.
    ///
    /// It may grow as `output` shrinks: what is encrypted is longer.
    #[inline]
    pub fn unsent_len(&self) -> usize {
        self.output.len() + self.socket.map_or(0, |socket| socket.unsent_len())
    }

    /// Returns whether nothing is read or delivered at present, because more output waits than
    /// [`output_high_water`](crate::StreamConfig::output_high_water), and it is not yet down to
    /// half of that.
    ///
    /// A deadline runs on meanwhile, though what it is for may be in `input` already: a `timeout`
    /// that finds this `true` should go on waiting. The peer is watched by
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

    /// Sets whether one whole message is being collected in memory, and what comes is part of it.
    /// An event may then read up to [`collect_budget`](crate::StreamConfig::collect_budget) of it.
    /// Default: no. For messages whose length is limited.
    ///
    /// Without a stream behind the transport this does nothing.
    #[inline]
    pub fn set_collecting(&mut self, yes: bool) {
        if let Some(status) = &mut self.status {
            status.flags.set(Flags::IS_COLLECTING, yes);
        }
    }

    /// Says that this call does the work of so many more: they are counted against
    /// [`calls_budget`](crate::StreamConfig::calls_budget), so that the other machines get their
    /// turn as soon as if each had been a call of its own.
    ///
    /// For a protocol that takes many small messages in one call. What is in `input` when the
    /// budget is used up is delivered in the next turn. Outside of an event that delivers input,
    /// and without a stream behind the transport, this does nothing.
    #[inline]
    pub fn count_calls(&mut self, more: u32) {
        if let Some(calls_left) = &mut self.calls_left {
            **calls_left = calls_left.saturating_sub(more);
        }
    }

    /// Goes on within the limits of another protocol that this one becomes, as HTTP does on an
    /// upgrade.
    ///
    /// [`StreamConfig::standard`] changes nothing. What a configuration leaves open
    /// ([`held`](StreamConfig::held), [`on_abort`](StreamConfig::on_abort),
    /// [`count_octets`](StreamConfig::count_octets)) stays as it was; for that the configuration is
    /// copied, so where many connections share it, set all three. The options of the socket
    /// (`nodelay`, `keepalive`, the sizes of the system's buffers) stay as they are. Without a
    /// stream behind the transport this does nothing.
    pub fn set_config(&mut self, config: Arc<StreamConfig>) {
        if let Some(status) = &mut self.status {
            status.set_config(config);
        }
    }

    /// Ends our side of the connection after everything that was written: the peer reads that, then
    /// the end. Reading goes on.
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

    /// Sets whether small writes are sent at once (`true`, the default) or gathered for a while.
    ///
    /// # Errors
    ///
    /// The system's error; the connection goes on as it was.
    pub fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.socket.map_or(Ok(()), |socket| socket.set_nodelay(yes))
    }

    /// Has the system probe a peer that has been silent for `idle`; `None` turns this off.
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
