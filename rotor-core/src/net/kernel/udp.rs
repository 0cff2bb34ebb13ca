//! The kernel's UDP sockets.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use super::socket::{impl_source_for_registered, kernel_socket, require_mio};
use crate::backend::{BackendHandle, Source};
use crate::event_set::Interest;
use crate::net::datagram_socket::DatagramSocket;
use crate::net::listen_error::ListenError;
use crate::net::registered::RegisteredSource;
use crate::scope::Scope;
use crate::token::Token;

kernel_socket! {
    /// A UDP socket.
    UdpSocket(mio::net::UdpSocket as RegisteredSource<mio::net::UdpSocket>), net::UdpSocket, "a UDP socket"
}

impl_source_for_registered!(UdpSocket, "a UDP socket");

impl DatagramSocket for UdpSocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UdpSocket> {
        require_mio(scope, "a UDP socket")?;
        mio::net::UdpSocket::bind(*address)
            .map(|socket| UdpSocket { socket: socket.into() })
            .map_err(ListenError::on(address))
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.socket.send_to(datagram, *target)
    }

    fn connect(&mut self, peer: &SocketAddr) -> io::Result<()> {
        self.socket.connect(*peer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.socket.send(datagram)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}
