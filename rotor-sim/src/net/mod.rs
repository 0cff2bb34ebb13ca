//! The simulated network: byte streams, listeners and datagrams between the hosts of a simulation.
//!
//! | | addresses | paths |
//! |--|--|--|
//! | byte streams | [`SimTcpStream`] | [`SimUnixStream`] |
//! | their listeners | [`SimTcpListener`] | [`SimUnixListener`] |
//! | datagrams | [`SimUdpSocket`] | [`SimUnixDatagram`] |
//! | the family | [`SimNet`] | [`SimUnix`] |
//!
//! Each host has one address, [`Sim::address`](crate::Sim::address). To bind or connect to the
//! unspecified or the loopback address means the host itself. There is no route to addresses of
//! IPv6: connecting and sending to one fails with
//! [`NetworkUnreachable`](std::io::ErrorKind::NetworkUnreachable). An IPv4-mapped address
//! (`::ffff:10.0.0.1`) is the IPv4 address.
//!
//! Paths name sockets of the same host only. After the end of a socket, connecting to its path is
//! refused, as if its file was still there; but the path can be bound again.

mod address;
mod datagram;
mod listener;
mod ownership;
mod stream;

use std::net::SocketAddr;
use std::path::PathBuf;

use rotor_core::net::Net;

pub use address::Address;
pub use datagram::SimDatagram;
pub use listener::SimListener;
pub use stream::SimStream;

pub use crate::world::Place;

/// A simulated TCP stream.
pub type SimTcpStream = SimStream<SocketAddr>;
/// A simulated Unix stream.
pub type SimUnixStream = SimStream<PathBuf>;
/// A simulated TCP listener.
pub type SimTcpListener = SimListener<SocketAddr>;
/// A simulated Unix listener.
pub type SimUnixListener = SimListener<PathBuf>;
/// A simulated UDP socket.
pub type SimUdpSocket = SimDatagram<SocketAddr>;
/// A simulated Unix datagram socket.
pub type SimUnixDatagram = SimDatagram<PathBuf>;

/// The simulated TCP and UDP sockets, as a family.
#[derive(Clone, Copy, Debug)]
pub struct SimNet;

/// The simulated Unix sockets, as a family.
#[derive(Clone, Copy, Debug)]
pub struct SimUnix;

impl Net for SimNet {
    type Stream = SimTcpStream;
    type Listener = SimTcpListener;
    type Datagram = SimUdpSocket;
}

impl Net for SimUnix {
    type Stream = SimUnixStream;
    type Listener = SimUnixListener;
    type Datagram = SimUnixDatagram;
}
