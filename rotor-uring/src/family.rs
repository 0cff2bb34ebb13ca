//! The families of sockets: what a machine that is generic over them names.

use rotor_core::net::Net;

use crate::datagram::{UringUdpSocket, UringUnixDatagram};
use crate::listener::{UringTcpListener, UringUnixListener};
use crate::stream::{UringTcpStream, UringUnixStream};

/// TCP and UDP on io_uring, as [`Inet`](rotor_core::net::Inet) is on mio.
#[derive(Clone, Copy, Debug)]
pub struct UringInet;

/// Unix sockets on io_uring, as [`Unix`](rotor_core::net::Unix) is on mio.
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
