//! Sockets as machines see them: traits, and the kernel's sockets that implement them.
//!
//! **Every socket is made through the scope**, which knows the backend. So a machine that is
//! generic over its socket type runs on any backend, and a socket type of another backend gives
//! [`Unsupported`](std::io::ErrorKind::Unsupported) at once, with both names.
//!
//! | trait | the kernel's sockets | |
//! |--|--|--|
//! | [`StreamSocket`] | [`TcpStream`], [`UnixStream`] | bytes, both ways |
//! | [`Listener`] | [`TcpListener`], [`UnixListener`] | makes stream sockets |
//! | [`DatagramSocket`] | [`UdpSocket`], [`UnixDatagram`] | datagrams |
//! | [`Net`], [`IpNet`] | [`Inet`], [`Unix`] | a family of the three, as one type parameter |
//!
//! [`Accepted`] is implemented by machines that can be made from an accepted connection. [`Either`]
//! joins two kinds of socket. [`TcpListeners`] opens one address for several loops. A
//! [`ListenerLayer`] goes around a listener of any kind.

mod accepted;
mod datagram_socket;
mod either;
mod family;
mod forwarding;
mod kernel;
mod listen_error;
mod listen_options;
mod listener;
mod listener_layer;
mod listeners;
mod read_ahead;
mod read_buf;
mod registered;
#[cfg(any(target_os = "linux", target_os = "android"))]
mod sigpipe;
mod stream_socket;

pub use self::accepted::Accepted;
pub use self::datagram_socket::DatagramSocket;
pub use self::either::Either;
pub use self::family::{IpNet, Net};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use self::kernel::send_file_by_kernel;
pub use self::kernel::{Inet, TcpListener, TcpStream, UdpSocket, is_plain, read_spare};
#[cfg(unix)]
pub use self::kernel::{Unix, UnixDatagram, UnixListener, UnixStream, listen_unix};
pub use self::listen_error::ListenError;
pub use self::listen_options::ListenOptions;
pub use self::listener::Listener;
pub use self::listener_layer::ListenerLayer;
pub use self::listeners::TcpListeners;
pub use self::read_ahead::ReadAhead;
pub use self::read_buf::ReadBuf;
pub use self::stream_socket::StreamSocket;
