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
    /// The type of address from and to which datagrams are sent.
    type Address;

    /// Opens a socket on the address.
    ///
    /// # Errors
    ///
    /// As for [`Listener::bind`](super::Listener::bind).
    fn bind<C>(address: &Self::Address, scope: &Scope<'_, C>) -> io::Result<Self>;

    /// Receives one datagram, and returns its length and sender. If it does not fit into `buffer`,
    /// the rest is lost silently. To detect that, use a buffer that is one byte longer than the
    /// longest datagram that you accept: a datagram that fills it is too long.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none. This is the only error after which a machine must stop
    /// reading, since only after it does the next datagram cause an event. After any other error
    /// the socket works as before, and more datagrams may be waiting: call again, as often as the
    /// machine's budget allows.
    ///
    /// * `Interrupted`: a signal arrived, and nothing was received (`EINTR`; recv(2)).
    /// * `ConnectionRefused`, and other errors that the network reports (`HostUnreachable`): a
    ///   datagram that was *sent* earlier could not be delivered (udp(7)). Linux reports this to
    ///   sockets that are connected or have requested it, other systems also to others. The error
    ///   does not say which datagram it was, and a forged ICMP message can cause it.
    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, Self::Address)>;

    /// Sends one datagram, either whole or not at all, and returns its length.
    ///
    /// # Errors
    ///
    /// In each case the datagram was not sent, and the socket works as before.
    ///
    /// * `WouldBlock`: the system has no room for it. An event follows if the socket is registered
    ///   for writing. Most protocols drop the datagram instead, since the network may lose it as
    ///   well.
    /// * `Interrupted`: a signal came first (`EINTR`; send(2)).
    /// * `ConnectionRefused`: the error of an *earlier* datagram, as for
    ///   [`receive_from`](DatagramSocket::receive_from).
    /// * An error of this datagram: it is too long for the protocol (`EMSGSIZE`), there is no route
    ///   to `target` (`NetworkUnreachable`), or it is forbidden (`PermissionDenied`). Sending it
    ///   again does not help.
    fn send_to(&mut self, datagram: &[u8], target: &Self::Address) -> io::Result<usize>;

    /// Connects the socket to one peer, as connect(2) does for datagram sockets; nothing is sent.
    /// From now on [`send`](DatagramSocket::send) sends to that peer, and the system discards
    /// datagrams from others. If nothing receives datagrams at that address, `ConnectionRefused` is
    /// returned later, provided that the system learns of it. Do not use
    /// [`send_to`](DatagramSocket::send_to) any more: some systems refuse it.
    ///
    /// Datagrams that others sent before stay in the queue, so if you rely on the sender, still
    /// check it.
    ///
    /// # Errors
    ///
    /// The system's error (no route, `NetworkUnreachable`). The default returns `Unsupported`: this
    /// kind of socket cannot be connected. The socket works as before.
    fn connect(&mut self, peer: &Self::Address) -> io::Result<()> {
        let _ = peer;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Sends one datagram, either whole or not at all, to the peer to which the socket is
    /// [connected](DatagramSocket::connect).
    ///
    /// # Errors
    ///
    /// As for [`send_to`](DatagramSocket::send_to). If the socket is not connected, the system's
    /// error; the default returns `NotConnected`.
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
