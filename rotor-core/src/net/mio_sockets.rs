//! The kernel's sockets, through mio.

use std::any::TypeId;
use std::fs::File;
use std::io;
use std::net::{Shutdown, SocketAddr};
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::time::Duration;

use mio::net::{TcpListener, TcpStream, UdpSocket, UnixDatagram, UnixListener, UnixStream};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::{DatagramSocket, ListenOptions, Listener, Net, StreamSocket};
use crate::{MioHandle, Scope};

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

/// Whether a kind of socket reads straight into the kernel's memory and never looks at the buffer that it is lent.
///
/// Only such may be lent memory that was not written before; the types are named here, so that no other can claim it.
pub fn is_plain<S: 'static>() -> bool {
    TypeId::of::<S>() == TypeId::of::<TcpStream>() || TypeId::of::<S>() == TypeId::of::<UnixStream>()
}

/// A socket that the process was given or has opened by other means, made into one of a loop.
///
/// For `LISTEN_FDS`, for a listener that several loops share, and for options that are not offered here.
pub trait Adopt: Sized {
    /// The standard library's type of such a socket.
    type Std;

    /// Takes the socket over and makes it non-blocking.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket is closed.
    fn adopt<C>(socket: Self::Std, scope: &Scope<'_, C>) -> io::Result<Self>;
}

/// Refuses, with both names, what the loop's backend cannot serve.
fn check<C>(scope: &Scope<'_, C>, what: &str) -> io::Result<()> {
    scope.backend().expect::<MioHandle>(what).map(drop)
}

macro_rules! adopt {
    ($mio:ty, $std:ty, $name:literal) => {
        impl Adopt for $mio {
            type Std = $std;
            fn adopt<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<Self> {
                check(scope, $name)?;
                socket.set_nonblocking(true)?;
                Ok(<$mio>::from_std(socket))
            }
        }
    };
}

adopt!(TcpStream, std::net::TcpStream, "a TCP socket");
adopt!(TcpListener, std::net::TcpListener, "a TCP listener");
adopt!(UdpSocket, std::net::UdpSocket, "a UDP socket");
adopt!(UnixStream, unix::UnixStream, "a Unix socket");
adopt!(UnixListener, unix::UnixListener, "a Unix listener");
adopt!(UnixDatagram, unix::UnixDatagram, "a Unix datagram socket");

impl StreamSocket for TcpStream {
    type Target = SocketAddr;
    const SHORT_READ_DRAINS: bool = true;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<TcpStream> {
        check(scope, "a TCP socket")?;
        let socket = TcpStream::connect(*target)?;
        // An urgent byte stays in its place among the others.
        SockRef::from(&socket).set_out_of_band_inline(true)?;
        Ok(socket)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        TcpStream::shutdown(self, how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.peer_addr().ok()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.local_addr().ok()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        TcpStream::take_error(self)
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        TcpStream::set_nodelay(self, yes)
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let socket = SockRef::from(self);
        match idle {
            Some(idle) => socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle)),
            None => socket.set_keepalive(false),
        }
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

impl StreamSocket for UnixStream {
    type Target = PathBuf;
    const SHORT_READ_DRAINS: bool = true;

    fn connect<C>(target: &PathBuf, scope: &Scope<'_, C>) -> io::Result<UnixStream> {
        check(scope, "a Unix socket")?;
        UnixStream::connect(target)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        UnixStream::shutdown(self, how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        UnixStream::take_error(self)
    }

    fn is_connected(&self) -> bool {
        self.peer_addr().is_ok()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn send_file<S: std::os::fd::AsFd>(
    socket: &mut S,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    let mut offset = offset;
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), count)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn send_file(socket: &mut impl io::Write, file: &File, offset: u64, count: usize) -> io::Result<usize> {
    super::read_and_write(socket, file, offset, count)
}

impl Listener for TcpListener {
    type Address = SocketAddr;
    type Socket = TcpStream;

    fn bind<C>(
        address: &SocketAddr,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<TcpListener> {
        check(scope, "a TCP listener")?;
        TcpListener::adopt(listen(*address, options)?, scope)
    }

    fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        TcpListener::accept(self).map(|(socket, address)| (socket, Some(address)))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.local_addr().ok()
    }
}

/// Opens a TCP listener as `options` say.
pub(super) fn listen(address: SocketAddr, options: &ListenOptions) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if options.reuse_port {
        reuse_port(&socket)?;
    }
    // Accepted sockets inherit it.
    socket.set_out_of_band_inline(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog(options))?;
    Ok(socket.into())
}

fn backlog(options: &ListenOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

#[cfg(not(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin")))]
fn reuse_port(socket: &Socket) -> io::Result<()> {
    socket.set_reuse_port(true)
}

#[cfg(any(target_os = "solaris", target_os = "illumos", target_os = "cygwin"))]
fn reuse_port(_: &Socket) -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "this system has no SO_REUSEPORT"))
}

impl Listener for UnixListener {
    type Address = PathBuf;
    type Socket = UnixStream;

    fn bind<C>(address: &PathBuf, options: &ListenOptions, scope: &Scope<'_, C>) -> io::Result<UnixListener> {
        check(scope, "a Unix listener")?;
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.bind(&SockAddr::unix(address)?)?;
        socket.listen(backlog(options))?;
        UnixListener::adopt(socket.into(), scope)
    }

    fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        UnixListener::accept(self).map(|(socket, _)| (socket, None))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

impl DatagramSocket for UdpSocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UdpSocket> {
        check(scope, "a UDP socket")?;
        UdpSocket::bind(*address)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        UdpSocket::send_to(self, datagram, *target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.local_addr()
    }
}

impl DatagramSocket for UnixDatagram {
    type Address = unix::SocketAddr;

    fn bind<C>(address: &unix::SocketAddr, scope: &Scope<'_, C>) -> io::Result<UnixDatagram> {
        check(scope, "a Unix datagram socket")?;
        UnixDatagram::adopt(unix::UnixDatagram::bind_addr(address)?, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.recv_from(buffer)
    }

    /// # Errors
    ///
    /// Also `InvalidInput` for an address without a path: there is nobody to send to.
    fn send_to(&mut self, datagram: &[u8], target: &unix::SocketAddr) -> io::Result<usize> {
        let path = target.as_pathname().ok_or_else(|| {
            io::Error::new(
                io::ErrorKind::InvalidInput,
                "a Unix datagram is sent to a path; this address has none",
            )
        })?;
        UnixDatagram::send_to(self, datagram, path)
    }

    fn local_address(&self) -> io::Result<unix::SocketAddr> {
        self.local_addr()
    }
}
