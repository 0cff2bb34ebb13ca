//! `DatagramSocket`: datagrams, as machines see them.

use std::io;

use crate::backend::Source;
use crate::scope::Scope;

/// What sends and receives datagrams.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a datagram socket of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait DatagramSocket: Source + Sized + 'static {
    /// Where datagrams come from and go to.
    type Address;

    /// Opens the address.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`](super::Listener::bind).
    fn bind<C>(address: &Self::Address, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Takes one datagram; what does not fit into `buffer` is lost, and nothing says so. Who needs
    /// to know gives a buffer of one byte more than it takes: a datagram that fills it is too long.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none: the only one that ends a machine's reading, since the next
    /// datagram causes an event only after it. After any other the socket is as good as before, and
    /// more may be waiting: call again, as often as the machine's budget allows.
    ///
    /// * `Interrupted`: a signal came, and nothing was taken (`EINTR`; recv(2)).
    /// * `ConnectionRefused`, and what else the network reports (`HostUnreachable`): nobody took a
    ///   datagram that was *sent* earlier (udp(7)). Linux reports that to sockets which are
    ///   connected or ask for it, other systems also to others; it does not say which datagram, and
    ///   a forged ICMP message can cause it.
    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)>;

    /// Sends one datagram, whole or not at all.
    ///
    /// # Errors
    ///
    /// In each case the datagram was not sent, and the socket is as good as before.
    ///
    /// * `WouldBlock`: the system has no room for it. An event follows if the socket was registered
    ///   for writing; most protocols drop the datagram instead, since the network may lose it as
    ///   well.
    /// * `Interrupted`: a signal came first (`EINTR`; send(2)).
    /// * `ConnectionRefused`: of an *earlier* datagram, as for
    ///   [`receive_from`](DatagramSocket::receive_from).
    /// * What names this datagram: too long for the protocol (`EMSGSIZE`), no route to `target`
    ///   (`NetworkUnreachable`), forbidden (`PermissionDenied`). To send it again does not help.
    fn send_to(&mut self, datagram: &[u8], target: &Self::Address) -> io::Result<usize>;

    /// Ties the socket to one peer, as connect(2) does with datagrams: nothing is sent. From now on
    /// [`send`](DatagramSocket::send) sends to it, the system throws away what others send, and a
    /// datagram that nobody there takes is a `ConnectionRefused` soon after, where the system
    /// knows. [`send_to`](DatagramSocket::send_to) is of no more use: some systems refuse it.
    ///
    /// What others sent before stays in the queue, so whoever relies on the sender still looks at
    /// it.
    ///
    /// # Errors
    ///
    /// What the system says (no route, `NetworkUnreachable`); by default `Unsupported`: this kind
    /// of socket has no peer. It is as good as before.
    fn connect(&mut self, peer: &Self::Address) -> io::Result<()> {
        let _ = peer;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram to the peer that the socket is [connected](DatagramSocket::connect) to,
    /// whole or not at all.
    ///
    /// # Errors
    ///
    /// As for [`send_to`](DatagramSocket::send_to). Without a peer: what the system says to that;
    /// by default `NotConnected`.
    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        let _ = datagram;
        Err(io::ErrorKind::NotConnected.into())
    }

    /// Returns the address that it is bound to.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn local_address(&self) -> io::Result<Self::Address>;
}
