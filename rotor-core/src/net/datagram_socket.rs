//! `DatagramSocket`: the trait of datagram sockets.

use std::io;

use crate::backend::Source;
use crate::scope::Scope;

/// A socket that sends and receives datagrams.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a datagram socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait DatagramSocket: Source + Sized + 'static {
    /// The type of address that datagrams come from and go to.
    type Address;

    /// Opens a socket on the address.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`](super::Listener::bind).
    fn bind<C>(address: &Self::Address, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Takes one datagram, and returns its length and sender. What does not fit into `buffer` is
    /// lost, silently. If you need to know, give a buffer of one byte more than you accept: a
    /// datagram that fills it is too long.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none. This is the only error that ends a machine's reading, since
    /// only after it does the next datagram cause an event. After any other error the socket works
    /// as before, and more datagrams may be waiting: call again, as often as the machine's budget
    /// allows.
    ///
    /// * `Interrupted`: a signal came, and nothing was taken (`EINTR`; recv(2)).
    /// * `ConnectionRefused`, and what else the network reports (`HostUnreachable`): nobody took a
    ///   datagram that was *sent* earlier (udp(7)). Linux reports that to sockets that are
    ///   connected or ask for it, other systems also to others. It does not say which datagram it
    ///   was, and a forged ICMP message can cause it.
    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)>;

    /// Sends one datagram, whole or not at all, and returns its length.
    ///
    /// # Errors
    ///
    /// In each case the datagram was not sent, and the socket works as before.
    ///
    /// * `WouldBlock`: the system has no room for it. An event follows if the socket is registered
    ///   for writing. Most protocols drop the datagram instead, since the network may lose it as
    ///   well.
    /// * `Interrupted`: a signal came first (`EINTR`; send(2)).
    /// * `ConnectionRefused`: reported of an *earlier* datagram, as for
    ///   [`receive_from`](DatagramSocket::receive_from).
    /// * An error of this datagram: it is too long for the protocol (`EMSGSIZE`), there is no route
    ///   to `target` (`NetworkUnreachable`), or it is forbidden (`PermissionDenied`). Sending it
    ///   again does not help.
    fn send_to(&mut self, datagram: &[u8], target: &Self::Address) -> io::Result<usize>;

    /// Ties the socket to one peer, as connect(2) does with datagram sockets; nothing is sent. From
    /// now on [`send`](DatagramSocket::send) sends to that peer, and the system throws away what
    /// others send. A datagram that nobody there takes soon causes `ConnectionRefused`, if the
    /// system learns of it. Do not use [`send_to`](DatagramSocket::send_to) any more: some systems
    /// refuse it.
    ///
    /// What others sent before stays in the queue, so if you rely on the sender, still check it.
    ///
    /// # Errors
    ///
    /// The system's error (no route, `NetworkUnreachable`). By default `Unsupported`: this kind of
    /// socket has no peer. The socket works as before.
    fn connect(&mut self, peer: &Self::Address) -> io::Result<()> {
        let _ = peer;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram, whole or not at all, to the peer that the socket is
    /// [connected](DatagramSocket::connect) to.
    ///
    /// # Errors
    ///
    /// As for [`send_to`](DatagramSocket::send_to). Without a peer, the system's error; by default
    /// `NotConnected`.
    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        let _ = datagram;
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Returns the address that the socket is bound to.
    ///
    /// # Errors
    ///
    /// The system's error.
    fn local_address(&self) -> io::Result<Self::Address>;
}
