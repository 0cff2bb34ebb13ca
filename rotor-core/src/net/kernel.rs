//! The kernel's sockets, through mio. They are types of our own, so that each is made through the scope and none by
//! going round it.

use std::any::TypeId;
use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mio::event::Source;
use mio::{Interest, Registry, Token};
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use super::cannot_listen::{CannotListen, UnixName};
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

/// A read stops short of an urgent byte, and only Linux tells of one ([`EventSet::URGENT`](crate::EventSet::URGENT)).
const SHORT_READ_DRAINS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Whether a kind of socket reads straight into the kernel's memory and never looks at the buffer that it is lent.
///
/// Only such may be lent memory that was not written before; the types are named here, so that no other can claim it.
pub fn is_plain<S: 'static>() -> bool {
    TypeId::of::<S>() == TypeId::of::<TcpStream>() || TypeId::of::<S>() == TypeId::of::<UnixStream>()
}

/// Refuses, with both names, what the loop's backend cannot serve.
fn check<C>(scope: &Scope<'_, C>, what: &str) -> io::Result<()> {
    scope.backend().expect::<MioHandle>(what).map(drop)
}

/// A kernel socket of one kind: the mio type inside, a source, a descriptor, made of one of the standard library.
macro_rules! kernel_socket {
    ($(#[$doc:meta])* $name:ident($mio:ty), $std:ty, $called:literal) => {
        $(#[$doc])*
        pub struct $name($mio);

        impl $name {
            /// Takes over a socket that the process was given or has opened by other means, and makes it
            /// non-blocking: for `LISTEN_FDS`, for one that several loops share, for options that are not offered here.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                check(scope, $called)?;
                socket.set_nonblocking(true)?;
                Ok($name(<$mio>::from_std(socket)))
            }
        }

        impl Source for $name {
            fn register(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
                self.0.register(registry, token, interest)
            }

            fn reregister(&mut self, registry: &Registry, token: Token, interest: Interest) -> io::Result<()> {
                self.0.reregister(registry, token, interest)
            }

            fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
                self.0.deregister(registry)
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.0.as_fd()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

kernel_socket! {
    /// A TCP connection.
    TcpStream(mio::net::TcpStream), net::TcpStream, "a TCP socket"
}
kernel_socket! {
    /// What takes TCP connections.
    TcpListener(mio::net::TcpListener), net::TcpListener, "a TCP listener"
}
kernel_socket! {
    /// UDP datagrams.
    UdpSocket(mio::net::UdpSocket), net::UdpSocket, "a UDP socket"
}
kernel_socket! {
    /// A connection by a Unix socket.
    UnixStream(mio::net::UnixStream), unix::UnixStream, "a Unix socket"
}
kernel_socket! {
    /// What takes connections by a Unix socket.
    UnixListener(mio::net::UnixListener), unix::UnixListener, "a Unix listener"
}
kernel_socket! {
    /// Datagrams by a Unix socket.
    UnixDatagram(mio::net::UnixDatagram), unix::UnixDatagram, "a Unix datagram socket"
}

/// Reads, by the system call itself: the C library's function is a place where a thread can be cancelled, and prepares for
/// that at every call of a process with several threads.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn receive(socket: &mut (impl AsFd + Read), buffer: &mut [u8]) -> io::Result<usize> {
    let (count, _) = rustix::net::recv(socket, buffer, rustix::net::RecvFlags::empty())?;
    Ok(count)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn receive(socket: &mut (impl AsFd + Read), buffer: &mut [u8]) -> io::Result<usize> {
    socket.read(buffer)
}

/// Writes, as `receive` reads. A peer that is gone is an error, and no signal.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[inline]
fn send(socket: &mut (impl AsFd + Write), bytes: &[u8]) -> io::Result<usize> {
    Ok(rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
#[inline]
fn send(socket: &mut (impl AsFd + Write), bytes: &[u8]) -> io::Result<usize> {
    socket.write(bytes)
}

macro_rules! read_and_write {
    ($name:ident) => {
        impl Read for $name {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                receive(&mut self.0, buffer)
            }
        }

        impl Write for $name {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                send(&mut self.0, bytes)
            }

            fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                self.0.write_vectored(slices)
            }

            /// Nothing: what was written is with the kernel.
            #[inline]
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

read_and_write!(TcpStream);
read_and_write!(UnixStream);

impl StreamSocket for TcpStream {
    type Target = SocketAddr;
    const SHORT_READ_DRAINS: bool = SHORT_READ_DRAINS;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<TcpStream> {
        check(scope, "a TCP socket")?;
        let socket = mio::net::TcpStream::connect(*target)?;
        // An urgent byte stays in its place among the others.
        SockRef::from(&socket).set_out_of_band_inline(true)?;
        Ok(TcpStream(socket))
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.0.peer_addr().ok()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.0.set_nodelay(yes)
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
    const SHORT_READ_DRAINS: bool = SHORT_READ_DRAINS;

    fn connect<C>(target: &PathBuf, scope: &Scope<'_, C>) -> io::Result<UnixStream> {
        check(scope, "a Unix socket")?;
        mio::net::UnixStream::connect(target).map(UnixStream)
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.0.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.0.take_error()
    }

    fn is_connected(&self) -> bool {
        self.0.peer_addr().is_ok()
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn send_file<S: AsFd>(socket: &mut S, file: &File, offset: u64, count: usize) -> io::Result<usize> {
    let mut offset = offset;
    Ok(rustix::fs::sendfile(socket, file, Some(&mut offset), count)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn send_file(socket: &mut impl Write, file: &File, offset: u64, count: usize) -> io::Result<usize> {
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
        TcpListener::from_std(listen(*address, options)?, scope)
    }

    fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        self.0.accept().map(|(socket, address)| (TcpStream(socket), Some(address)))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.0.local_addr().ok()
    }
}

/// Opens a TCP listener as `options` say. An error names the address.
pub(super) fn listen(address: SocketAddr, options: &ListenOptions) -> io::Result<net::TcpListener> {
    listen_inet(address, options).map_err(CannotListen::on(&address))
}

fn listen_inet(address: SocketAddr, options: &ListenOptions) -> io::Result<net::TcpListener> {
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
        let socket = listen_unix(address, options).map_err(CannotListen::on(&address.display()))?;
        UnixListener::from_std(socket, scope)
    }

    fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        self.0.accept().map(|(socket, _)| (UnixStream(socket), None))
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

fn listen_unix(path: &Path, options: &ListenOptions) -> io::Result<unix::UnixListener> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(backlog(options))?;
    Ok(socket.into())
}

impl DatagramSocket for UdpSocket {
    type Address = SocketAddr;

    fn bind<C>(address: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UdpSocket> {
        check(scope, "a UDP socket")?;
        mio::net::UdpSocket::bind(*address).map(UdpSocket).map_err(CannotListen::on(address))
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.0.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.0.send_to(datagram, *target)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

impl DatagramSocket for UnixDatagram {
    type Address = unix::SocketAddr;

    fn bind<C>(address: &unix::SocketAddr, scope: &Scope<'_, C>) -> io::Result<UnixDatagram> {
        check(scope, "a Unix datagram socket")?;
        let socket = unix::UnixDatagram::bind_addr(address).map_err(CannotListen::on(&UnixName(address)))?;
        UnixDatagram::from_std(socket, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.0.recv_from(buffer)
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
        self.0.send_to(datagram, path)
    }

    fn local_address(&self) -> io::Result<unix::SocketAddr> {
        self.0.local_addr()
    }
}
