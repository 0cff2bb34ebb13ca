//! `Either`: two kinds of socket as one type, for a server on TCP and on Unix sockets, or with and
//! without TLS.

use std::any::{Any, TypeId};
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use super::datagram_socket::DatagramSocket;
use super::listen_options::ListenOptions;
use super::listener::Listener;
use super::read_buf::ReadBuf;
use super::stream_socket::StreamSocket;
use crate::backend::BackendHandle;
use crate::backend::Source;
use crate::event_set::Interest;
use crate::scope::Scope;
use crate::token::Token;

/// One of two kinds of socket, of target, or of address.
///
/// Values are ordered by kind first, and values of different kinds are never equal. So a pool that
/// is keyed by such targets never mixes targets with and without TLS.
#[doc(alias = "MaybeTls")]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Either<A, B> {
    /// The first kind.
    A(A),
    /// The second kind.
    B(B),
}

macro_rules! delegate {
    ($self:ident, $socket:ident => $call:expr) => {
        match $self {
            Either::A($socket) => $call,
            Either::B($socket) => $call,
        }
    };
}

impl<A: Read, B: Read> Read for Either<A, B> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        delegate!(self, socket => socket.read(buffer))
    }
}

impl<A: Write, B: Write> Write for Either<A, B> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        delegate!(self, socket => socket.write(bytes))
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        delegate!(self, socket => socket.write_vectored(slices))
    }

    fn flush(&mut self) -> io::Result<()> {
        delegate!(self, socket => socket.flush())
    }
}

impl<A: Source, B: Source> Source for Either<A, B> {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        delegate!(self, socket => socket.register(backend, token, interest))
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        delegate!(self, socket => socket.deregister(backend))
    }
}

impl<A: StreamSocket, B: StreamSocket> StreamSocket for Either<A, B> {
    type Target = Either<A::Target, B::Target>;

    fn connect<C>(target: &Self::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
        Ok(match target {
            Either::A(target) => Either::A(A::connect(target, scope)?),
            Either::B(target) => Either::B(B::connect(target, scope)?),
        })
    }

    fn may_agree_on(target: &Self::Target, protocol: &[u8]) -> bool {
        match target {
            Either::A(target) => A::may_agree_on(target, protocol),
            Either::B(target) => B::may_agree_on(target, protocol),
        }
    }

    fn without(target: Self::Target, protocol: &[u8]) -> Option<Self::Target> {
        Some(match target {
            Either::A(target) => Either::A(A::without(target, protocol)?),
            Either::B(target) => Either::B(B::without(target, protocol)?),
        })
    }

    const READS_UNSEEN: bool = A::READS_UNSEEN && B::READS_UNSEEN;

    #[inline]
    fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
        delegate!(self, socket => socket.read_unseen(buf))
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        delegate!(self, socket => socket.shutdown(how))
    }

    fn reset(&mut self) -> io::Result<()> {
        delegate!(self, socket => socket.reset())
    }

    fn write_last(&mut self, bytes: &[u8]) -> io::Result<usize> {
        delegate!(self, socket => socket.write_last(bytes))
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        delegate!(self, socket => socket.peer_address())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        delegate!(self, socket => socket.local_address())
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        delegate!(self, socket => socket.take_error())
    }

    fn is_connected(&self) -> bool {
        delegate!(self, socket => socket.is_connected())
    }

    fn has_connected(&mut self) -> io::Result<bool> {
        delegate!(self, socket => socket.has_connected())
    }

    fn handshake<C>(&mut self, scope: &Scope<'_, C>) -> io::Result<()> {
        delegate!(self, socket => socket.handshake(scope))
    }

    fn handshake_has_drained(&self) -> bool {
        delegate!(self, socket => socket.handshake_has_drained())
    }

    fn cancel_handshake(&mut self) -> bool {
        delegate!(self, socket => socket.cancel_handshake())
    }

    fn negotiated(&self) -> Option<&[u8]> {
        delegate!(self, socket => socket.negotiated())
    }

    fn session(&self) -> Option<&dyn Any> {
        delegate!(self, socket => socket.session())
    }

    fn session_of(&self, wanted: TypeId) -> Option<&dyn Any> {
        delegate!(self, socket => socket.session_of(wanted))
    }

    fn is_secure(&self) -> bool {
        delegate!(self, socket => socket.is_secure())
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        delegate!(self, socket => socket.set_nodelay(yes))
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        delegate!(self, socket => socket.set_keepalive(idle))
    }

    fn holds_input(&self) -> bool {
        delegate!(self, socket => socket.holds_input())
    }

    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        delegate!(self, socket => socket.set_send_buffer(bytes))
    }

    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        delegate!(self, socket => socket.set_receive_buffer(bytes))
    }

    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        delegate!(self, socket => socket.set_unsent_max(bytes))
    }

    #[inline]
    fn short_read_drains(&self) -> bool {
        delegate!(self, socket => socket.short_read_drains())
    }

    #[inline]
    fn read_cost(&self) -> usize {
        delegate!(self, socket => socket.read_cost())
    }

    fn wants_read(&self) -> bool {
        delegate!(self, socket => socket.wants_read())
    }

    fn wants_write(&self) -> bool {
        delegate!(self, socket => socket.wants_write())
    }

    #[inline]
    fn awaits_rest(&self) -> bool {
        delegate!(self, socket => socket.awaits_rest())
    }

    #[inline]
    fn unsent_len(&self) -> usize {
        delegate!(self, socket => socket.unsent_len())
    }

    #[inline]
    fn held_bytes(&self) -> usize {
        delegate!(self, socket => socket.held_bytes())
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        delegate!(self, socket => socket.send_file(file, offset, count))
    }
}

impl<A: Listener, B: Listener> Listener for Either<A, B> {
    type Address = Either<A::Address, B::Address>;
    type Socket = Either<A::Socket, B::Socket>;

    fn bind<C>(
        address: &Self::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self> {
        Ok(match address {
            Either::A(address) => Either::A(A::bind(address, options, scope)?),
            Either::B(address) => Either::B(B::bind(address, options, scope)?),
        })
    }

    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)> {
        match self {
            Either::A(listener) => {
                listener.accept().map(|(socket, address)| (Either::A(socket), address))
            }
            Either::B(listener) => {
                listener.accept().map(|(socket, address)| (Either::B(socket), address))
            }
        }
    }

    fn has_waiting(&self) -> bool {
        delegate!(self, listener => listener.has_waiting())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        delegate!(self, listener => listener.local_address())
    }
}

impl<A: DatagramSocket, B: DatagramSocket> DatagramSocket for Either<A, B> {
    type Address = Either<A::Address, B::Address>;

    fn bind<C>(address: &Self::Address, scope: &Scope<'_, C>) -> io::Result<Self> {
        Ok(match address {
            Either::A(address) => Either::A(A::bind(address, scope)?),
            Either::B(address) => Either::B(B::bind(address, scope)?),
        })
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)> {
        match self {
            Either::A(socket) => {
                socket.receive_from(buffer).map(|(len, from)| (len, Either::A(from)))
            }
            Either::B(socket) => {
                socket.receive_from(buffer).map(|(len, from)| (len, Either::B(from)))
            }
        }
    }

    /// # Errors
    ///
    /// Also `InvalidInput` if the address is of the other kind.
    fn send_to(&mut self, datagram: &[u8], target: &Self::Address) -> io::Result<usize> {
        match (self, target) {
            (Either::A(socket), Either::A(target)) => socket.send_to(datagram, target),
            (Either::B(socket), Either::B(target)) => socket.send_to(datagram, target),
            _ => Err(kind_mismatch()),
        }
    }

    /// # Errors
    ///
    /// Also `InvalidInput` if the address is of the other kind.
    fn connect(&mut self, peer: &Self::Address) -> io::Result<()> {
        match (self, peer) {
            (Either::A(socket), Either::A(peer)) => socket.connect(peer),
            (Either::B(socket), Either::B(peer)) => socket.connect(peer),
            _ => Err(kind_mismatch()),
        }
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        delegate!(self, socket => socket.send(datagram))
    }

    fn local_address(&self) -> io::Result<Self::Address> {
        match self {
            Either::A(socket) => socket.local_address().map(Either::A),
            Either::B(socket) => socket.local_address().map(Either::B),
        }
    }
}

fn kind_mismatch() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidInput,
        "the address is of one kind and the socket of the other",
    )
}
