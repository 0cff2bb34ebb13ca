//! The kernel's sockets, through mio. They are types of our own, so that each is made through the
//! scope and none by going round it.

mod socket;
mod system_calls;
mod tcp;
mod udp;
mod unix;

use std::any::{Any, TypeId};
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use self::system_calls::send_file_by_kernel;
pub(super) use self::tcp::listen;
pub use self::tcp::{TcpListener, TcpStream};
pub use self::udp::UdpSocket;
pub use self::unix::{UnixDatagram, UnixListener, UnixStream};
use super::family::Net;

/// The kernel's TCP and UDP sockets.
#[derive(Clone, Copy, Debug)]
pub struct Inet;

/// The kernel's Unix sockets.
#[derive(Clone, Copy, Debug)]
pub struct Unix;

impl Net for Inet {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagram = UdpSocket;
}

impl Net for Unix {
    type Stream = UnixStream;
    type Listener = UnixListener;
    type Datagram = UnixDatagram;
}

/// Returns whether a kind of socket reads straight into the kernel's memory and never looks at the
/// buffer that it is lent.
///
/// Only such may be lent memory that was not written before; the types are named here, so that no
/// other can claim it.
pub fn is_plain<S: 'static>() -> bool {
    TypeId::of::<S>() == TypeId::of::<TcpStream>()
        || TypeId::of::<S>() == TypeId::of::<UnixStream>()
}

/// Reads once from a [plain](is_plain) socket, as far as the vector has room behind its bytes, and
/// appends what came: memory that was never written need not be filled first. `None` of any other
/// socket, from which nothing was read.
pub fn read_spare<S: 'static>(socket: &mut S, into: &mut Vec<u8>) -> Option<io::Result<usize>> {
    let socket: &mut dyn Any = socket;
    if let Some(stream) = socket.downcast_mut::<TcpStream>() {
        return Some(stream.read_spare(into));
    }
    Some(socket.downcast_mut::<UnixStream>()?.read_spare(into))
}
