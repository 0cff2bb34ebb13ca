//! The family of sockets, for machines that are generic over them.

use rotor_core::net::Net;

use crate::datagram::SmoltcpUdpSocket;
use crate::listener::SmoltcpTcpListener;
use crate::stream::SmoltcpTcpStream;

/// TCP and UDP of a stack in user space, like [`Inet`](rotor_core::net::Inet) of mio.
#[derive(Clone, Copy, Debug)]
pub struct SmoltcpInet;

impl Net for SmoltcpInet {
    type Stream = SmoltcpTcpStream;
    type Listener = SmoltcpTcpListener;
    type Datagram = SmoltcpUdpSocket;
}
