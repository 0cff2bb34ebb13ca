//! `SmoltcpUdpSocket`: UDP datagrams.

use std::fmt;
use std::io;
use std::net::SocketAddr;

use rotor_core::net::{DatagramSocket, ListenError};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};

use crate::stack::SocketKind;
use crate::stack_socket::StackSocket;

/// A UDP socket of a stack in user space.
///
/// The socket is not told if nobody receives a datagram (ICMP). A datagram that is longer than the
/// device's packets is refused (`EMSGSIZE`), because the stack neither makes nor accepts fragments.
/// A target or peer of the other version of IP, without a port, or without an address is refused
/// with `InvalidInput`.
pub struct SmoltcpUdpSocket(StackSocket);

const WHAT: &str = "a UDP socket of smoltcp";

impl Source for SmoltcpUdpSocket {
    fn register(
        &mut self,
        backend: &dyn BackendHandle,
        token: Token,
        interest: Interest,
    ) -> io::Result<()> {
        self.0.register(backend, token, interest, WHAT)
    }

    fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
        self.0.deregister(backend, WHAT)
    }
}

impl DatagramSocket for SmoltcpUdpSocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<SmoltcpUdpSocket> {
        let socket = StackSocket::new(SocketKind::Datagram, WHAT, scope, |stack| {
            stack.bind_datagrams(*address).map_err(ListenError::on(address))
        });
        socket.map(SmoltcpUdpSocket)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.stack().receive_from(self.0.id(), buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.0.stack().send_to(self.0.id(), datagram, Some(*target))
    }

    fn connect(&mut self, peer: &SocketAddr) -> io::Result<()> {
        self.0.stack().connect_datagrams(self.0.id(), *peer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.0.stack().send_to(self.0.id(), datagram, None)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.stack().datagram_address(self.0.id())
    }
}

impl fmt::Debug for SmoltcpUdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SmoltcpUdpSocket({:?})", self.0)
    }
}
