//! `Net` and `IpNet`: a family of three kinds of socket, as one type parameter.

use std::net::SocketAddr;

use super::datagram_socket::DatagramSocket;
use super::listener::Listener;
use super::stream_socket::StreamSocket;

/// A family of sockets, for code that needs more than one kind and wants a single type parameter.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a family of sockets",
    note = "`rotor_core::net` has `Inet` and `Unix`; implement `Net` for an empty type to name three kinds of your own"
)]
pub trait Net: 'static {
    /// The byte streams.
    type Stream: StreamSocket;
    /// The listeners that accept such streams.
    type Listener: Listener<Socket = Self::Stream>;
    /// The datagram sockets.
    type Datagram: DatagramSocket;
}

/// A [`Net`] whose addresses consist of an IP address and a port. With it, a program that listens,
/// connects and exchanges datagrams needs one bound instead of one for each kind of socket.
///
/// [`Inet`](super::Inet) and the simulated network implement it. Every `Net` with such addresses
/// implements it automatically. Its sockets are those of [`Net`]: where the trait must be named, as
/// in an alias, write `<N as Net>::Stream`.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::net::{IpNet, Listener, ListenOptions};
/// use rotor::Scope;
/// use std::net::SocketAddr;
///
/// fn listen<N: IpNet, C>(address: SocketAddr, scope: &Scope<'_, C>) -> std::io::Result<N::Listener> {
///     N::Listener::bind(&address, &ListenOptions::new(), scope)
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a family of sockets with IP addresses",
    note = "`Inet` is one; a `Net` is one by itself when the addresses of all its sockets are `SocketAddr`"
)]
pub trait IpNet:
    Net<
        Stream: StreamSocket<Target = SocketAddr>,
        Listener: Listener<Address = SocketAddr>,
        Datagram: DatagramSocket<Address = SocketAddr>,
    >
{
}

impl<N> IpNet for N
where
    N: Net,
    N::Stream: StreamSocket<Target = SocketAddr>,
    N::Listener: Listener<Address = SocketAddr>,
    N::Datagram: DatagramSocket<Address = SocketAddr>,
{
}
