//! The family of sockets: what a machine that is generic over them names.

use rotor_core::net::Net;

use crate::datagram::SmoltcpUdpSocket;
use crate::listener::SmoltcpTcpListener;
use crate::stream::SmoltcpTcpStream;

/// TCP and UDP of a stack in user space, as [`Inet`](rotor_core::net::Inet) is on mio.
#[derive(Clone, Copy, Debug)]
pub struct SmoltcpInet;

impl Net for SmoltcpInet {
    type Stream = SmoltcpTcpStream;
    type Listener = SmoltcpTcpListener;
    type Datagram = SmoltcpUdpSocket;
}
