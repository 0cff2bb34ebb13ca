//! `UringUdpSocket` and `UringUnixDatagram`: datagrams.
//!
//! The kernel reports readiness through the ring, and each datagram takes a system call: the
//! machine passes its buffer when it reads, and each call has one result.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::unix::net as unix;

use rotor_core::net::{DatagramSocket, ListenError};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};

use crate::backend::UringHandle;
use crate::driver::SocketKind;
use crate::socket_handle::SocketHandle;

/// A UDP socket on io_uring.
pub struct UringUdpSocket(SocketHandle, net::UdpSocket);

/// A Unix datagram socket on io_uring.
pub struct UringUnixDatagram(SocketHandle, unix::UnixDatagram);

const UDP: &str = "a UDP socket of io_uring";
const UNIX: &str = "a Unix datagram socket of io_uring";

/// The methods of both types.
macro_rules! datagrams {
    ($name:ident, $std:ty, $address:ty, $what:ident) => {
        impl $name {
            /// Takes over a socket that the process was given or has opened by other means.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend. Otherwise,
            /// no descriptor is left: the socket needs a second one. The socket is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                let handle = UringHandle::of(scope, $what)?;
                socket.set_nonblocking(true)?;
                // Two descriptors of one socket: the driver's, which the kernel polls, and ours.
                let polled = handle.open(|| socket.try_clone())?.into();
                Ok($name(SocketHandle::new(polled, SocketKind::Direct, $what, scope)?, socket))
            }

            /// Makes a call that sends. If there is no room, an event will report when there is.
            fn send_with(
                &self,
                send: impl FnOnce(&$std) -> io::Result<usize>,
            ) -> io::Result<usize> {
                let result = send(&self.1);
                self.0.driver().await_room_if_full(self.0.id(), &result);
                result
            }
        }

        impl Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.0.register(backend, token, interest, $what)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                self.0.deregister(backend, $what)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.1.fmt(f)
            }
        }
    };
}

datagrams!(UringUdpSocket, net::UdpSocket, SocketAddr, UDP);
datagrams!(UringUnixDatagram, unix::UnixDatagram, unix::SocketAddr, UNIX);

impl DatagramSocket for UringUdpSocket {
    type Address = SocketAddr;

    #[expect(clippy::disallowed_methods, reason = "this is what the scope's sockets are made of")]
    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UringUdpSocket> {
        let opened = UringHandle::of(scope, UDP)?.open(|| net::UdpSocket::bind(address));
        let socket = opened.map_err(ListenError::on(address))?;
        UringUdpSocket::from_std(socket, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.1.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.send_with(|socket| socket.send_to(datagram, target))
    }

    fn connect(&mut self, peer: &SocketAddr) -> io::Result<()> {
        self.1.connect(peer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.send_with(|socket| socket.send(datagram))
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.1.local_addr()
    }
}

impl DatagramSocket for UringUnixDatagram {
    type Address = unix::SocketAddr;

    fn bind<C>(address: &unix::SocketAddr, scope: &Scope<'_, C>) -> io::Result<UringUnixDatagram> {
        let handle = UringHandle::of(scope, UNIX)?;
        let path = address.as_pathname().map(|path| path.display().to_string());
        let named = path.unwrap_or_else(|| format!("{address:?}"));
        let opened = handle.open(|| unix::UnixDatagram::bind_addr(address));
        let socket = opened.map_err(ListenError::on(&named))?;
        UringUnixDatagram::from_std(socket, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.1.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &unix::SocketAddr) -> io::Result<usize> {
        check_named(target)?;
        self.send_with(|socket| socket.send_to_addr(datagram, target))
    }

    fn connect(&mut self, peer: &unix::SocketAddr) -> io::Result<()> {
        check_named(peer)?;
        self.1.connect_addr(peer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.send_with(|socket| socket.send(datagram))
    }

    fn local_address(&self) -> io::Result<unix::SocketAddr> {
        self.1.local_addr()
    }
}

/// Checks that a Unix datagram can be sent to an address: that has a path or an abstract name
/// (unix(7)).
///
/// # Errors
///
/// `InvalidInput` if the address has neither.
fn check_named(address: &unix::SocketAddr) -> io::Result<()> {
    if address.is_unnamed() {
        let message = "a Unix datagram is sent to a path or a name; this address has neither";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(())
}
