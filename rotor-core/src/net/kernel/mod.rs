//! The kernel's sockets, through mio. They are types of this crate, so that they can only be made
//! through the scope.

mod socket;
mod system_calls;
mod tcp;
mod udp;
#[cfg(unix)]
mod unix;

use std::any::{Any, TypeId};
use std::io;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub use self::system_calls::send_file_by_kernel;
pub(super) use self::tcp::listen;
pub use self::tcp::{TcpListener, TcpStream};
pub use self::udp::UdpSocket;
#[cfg(unix)]
pub use self::unix::{Unix, UnixDatagram, UnixListener, UnixStream, listen_unix};
use super::family::Net;

/// The kernel's TCP and UDP sockets.
#[derive(Clone, Copy, Debug)]
pub struct Inet;

impl Net for Inet {
    type Stream = TcpStream;
    type Listener = TcpListener;
    type Datagram = UdpSocket;
}

/// Returns whether reads of this kind of socket only let the kernel write into the buffer, so that
/// its old content is never read.
///
/// Only such sockets may be lent memory with old content. The types are listed here, so that no
/// other type can claim this.
pub fn is_plain<S: 'static>() -> bool {
    #[cfg(unix)]
    if TypeId::of::<S>() == TypeId::of::<UnixStream>() {
        return true;
    }
    TypeId::of::<S>() == TypeId::of::<TcpStream>()
}

/// Reads once from a [plain](is_plain) socket, at most as many bytes as the vector has spare
/// capacity, and appends them. The spare capacity need not be initialized. Returns `None` for any
/// other socket, from which nothing was read.
pub fn read_spare<S: 'static>(socket: &mut S, into: &mut Vec<u8>) -> Option<io::Result<usize>> {
    let socket: &mut dyn Any = socket;
    if let Some(stream) = socket.downcast_mut::<TcpStream>() {
        return Some(stream.read_spare(into));
    }
    #[cfg(unix)]
    if let Some(stream) = socket.downcast_mut::<UnixStream>() {
        return Some(stream.read_spare(into));
    }
    None
}
