//! The families of sockets, for machines that are generic over them.

use rotor_core::net::Net;

use crate::datagram::{UringUdpSocket, UringUnixDatagram};
use crate::listener::{UringTcpListener, UringUnixListener};
use crate::stream::{UringTcpStream, UringUnixStream};

/// TCP and UDP on io_uring, like [`Inet`](rotor_core::net::Inet) of mio.
#[derive(Clone, Copy, Debug)]
pub struct UringInet;

/// Unix sockets on io_uring, like [`Unix`](rotor_core::net::Unix) of mio.
#[derive(Clone, Copy, Debug)]
pub struct UringUnix;

impl Net for UringInet {
    type Stream = UringTcpStream;
    type Listener = UringTcpListener;
    type Datagram = UringUdpSocket;
}

impl Net for UringUnix {
    type Stream = UringUnixStream;
    type Listener = UringUnixListener;
    type Datagram = UringUnixDatagram;
}
