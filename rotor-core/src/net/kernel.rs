//! The kernel's sockets, through mio. They are types of our own, so that each is made through the
//! scope and none by going round it.

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
use super::registered::Registered;
use super::{DatagramSocket, ListenOptions, Listener, Net, StreamSocket};
use crate::{BackendHandle, MioHandle, Scope};

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

/// Whether a short read of plain TCP drains it. A read stops short of an urgent byte, and only
/// Linux tells of one ([`EventSet::URGENT`](crate::EventSet::URGENT)).
const SHORT_READ_OF_TCP_DRAINS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// Whether a kind of socket reads straight into the kernel's memory and never looks at the buffer
/// that it is lent.
///
/// Only such may be lent memory that was not written before; the types are named here, so that no
/// other can claim it.
pub fn is_plain<S: 'static>() -> bool {
    TypeId::of::<S>() == TypeId::of::<TcpStream>()
        || TypeId::of::<S>() == TypeId::of::<UnixStream>()
}

/// Refuses, with both names, what the loop's backend cannot serve.
fn check<C>(scope: &Scope<'_, C>, what: &str) -> io::Result<()> {
    scope.backend().expect::<MioHandle>(what).map(drop)
}

/// A kernel socket of one kind: the mio type inside, a source, a descriptor, made of one of the
/// standard library; and, for some, what was asked of that.
macro_rules! kernel_socket {
    ($(#[$doc:meta])* $name:ident($mio:ty as $held:ty $(, $known:ident = $ask:path)?), $std:ty, $called:literal) => {
        $(#[$doc])*
        pub struct $name {
            socket: $held,
            $($known: bool,)?
        }

        impl $name {
            /// Takes over a socket that the process was given or has opened by other means, and
            /// makes it non-blocking: for `LISTEN_FDS`, for one that several loops share, for
            /// options that are not offered here.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket
            /// is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                check(scope, $called)?;
                socket.set_nonblocking(true)?;
                $(let $known = $ask(&socket);)?
                Ok($name { socket: <$mio>::from_std(socket).into(), $($known)? })
            }
        }

        impl AsFd for $name {
            fn as_fd(&self) -> BorrowedFd<'_> {
                self.socket.as_fd()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.socket.fmt(f)
            }
        }
    };
}

/// A socket that closing deregisters, as long as its descriptor is the only one.
macro_rules! closing_deregisters {
    ($name:ident) => {
        impl Source for $name {
            fn register(
                &mut self,
                registry: &Registry,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.socket.register(registry, token, interest)
            }

            fn reregister(
                &mut self,
                registry: &Registry,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.socket.reregister(registry, token, interest)
            }

            fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
                self.socket.deregister(registry)
            }
        }
    };
}

/// A socket that may be shared, and deregisters itself before it is closed.
macro_rules! deregisters_itself {
    ($name:ident, $called:literal) => {
        impl crate::Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: crate::Token,
                interest: crate::Interest,
            ) -> io::Result<()> {
                self.socket.register(backend.expect($called)?, token, interest)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                self.socket.deregister(backend.expect($called)?)
            }
        }
    };
}

kernel_socket! {
    /// A TCP connection.
    TcpStream(mio::net::TcpStream as mio::net::TcpStream, short_read_drains = is_given), net::TcpStream, "a TCP socket"
}
kernel_socket! {
    /// What takes TCP connections.
    TcpListener(mio::net::TcpListener as Registered<mio::net::TcpListener>, makes_plain_tcp = is_plain_tcp), net::TcpListener, "a TCP listener"
}
kernel_socket! {
    /// UDP datagrams.
    UdpSocket(mio::net::UdpSocket as Registered<mio::net::UdpSocket>), net::UdpSocket, "a UDP socket"
}
kernel_socket! {
    /// A connection by a Unix socket.
    UnixStream(mio::net::UnixStream as mio::net::UnixStream), unix::UnixStream, "a Unix socket"
}
kernel_socket! {
    /// What takes connections by a Unix socket.
    UnixListener(mio::net::UnixListener as Registered<mio::net::UnixListener>), unix::UnixListener, "a Unix listener"
}
kernel_socket! {
    /// Datagrams by a Unix socket.
    UnixDatagram(mio::net::UnixDatagram as Registered<mio::net::UnixDatagram>), unix::UnixDatagram, "a Unix datagram socket"
}

closing_deregisters!(TcpStream);
closing_deregisters!(UnixStream);
deregisters_itself!(TcpListener, "a TCP listener");
deregisters_itself!(UdpSocket, "a UDP socket");
deregisters_itself!(UnixListener, "a Unix listener");
deregisters_itself!(UnixDatagram, "a Unix datagram socket");

/// A stream that was made elsewhere may have been given layers that end a read early (the kernel's
/// TLS at each record), and may be given them later, by whoever made it: its short reads say
/// nothing.
fn is_given(_: &net::TcpStream) -> bool {
    false
}

/// Whether what a listener accepts is plain TCP; a listener that was made elsewhere may be one of
/// Multipath TCP, which looks the same.
fn is_plain_tcp(listener: &net::TcpListener) -> bool {
    SHORT_READ_OF_TCP_DRAINS && has_protocol_tcp(listener)
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn has_protocol_tcp(listener: &net::TcpListener) -> bool {
    matches!(SockRef::from(listener).protocol(), Ok(Some(Protocol::TCP)))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn has_protocol_tcp(_: &net::TcpListener) -> bool {
    false
}

/// Reads, by the system call itself: the C library's function is a place where a thread can be
/// cancelled, and prepares for that at every call of a process with several threads.
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

/// Writes from several places, as `send` does from one.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn send_vectored(socket: &mut (impl AsFd + Write), slices: &[IoSlice<'_>]) -> io::Result<usize> {
    use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};
    Ok(sendmsg(socket, slices, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn send_vectored(socket: &mut (impl AsFd + Write), slices: &[IoSlice<'_>]) -> io::Result<usize> {
    socket.write_vectored(slices)
}

macro_rules! read_and_write {
    ($name:ident) => {
        impl Read for $name {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                receive(&mut self.socket, buffer)
            }
        }

        impl Write for $name {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                send(&mut self.socket, bytes)
            }

            fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                send_vectored(&mut self.socket, slices)
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

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<TcpStream> {
        check(scope, "a TCP socket")?;
        let socket = mio::net::TcpStream::connect(*target)?;
        // An urgent byte stays in its place among the others.
        SockRef::from(&socket).set_out_of_band_inline(true)?;
        Ok(TcpStream { socket, short_read_drains: SHORT_READ_OF_TCP_DRAINS })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    fn is_connected(&self) -> bool {
        match self.socket.peer_addr() {
            Ok(_) => true,
            // macOS, of a peer that was there and has hung up by now.
            Err(error) => error.kind() == io::ErrorKind::InvalidInput,
        }
    }

    fn holds_input(&self) -> bool {
        false
    }

    #[inline]
    fn short_read_drains(&self) -> bool {
        self.short_read_drains
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.socket.set_nodelay(yes)
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        let socket = SockRef::from(self);
        match idle {
            Some(idle) => socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle)),
            None => socket.set_keepalive(false),
        }
    }

    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes)
    }

    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes)
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        SockRef::from(self).set_tcp_notsent_lowat(bytes)
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

impl StreamSocket for UnixStream {
    type Target = PathBuf;

    fn connect<C>(target: &PathBuf, scope: &Scope<'_, C>) -> io::Result<UnixStream> {
        check(scope, "a Unix socket")?;
        mio::net::UnixStream::connect(target).map(|socket| UnixStream { socket })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    fn take_error(&self) -> io::Result<Option<io::Error>> {
        self.socket.take_error()
    }

    fn is_connected(&self) -> bool {
        self.socket.peer_addr().is_ok()
    }

    fn holds_input(&self) -> bool {
        false
    }

    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes)
    }

    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes)
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

/// Has the kernel send a piece of a file. It cannot where the file has no pages (`EINVAL`) or the
/// call is not to be had (`ENOSYS`); sendfile(2) says to copy then. Nor may it where SIGPIPE would
/// be raised.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn send_file<S: AsFd + Write>(
    socket: &mut S,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use rustix::io::Errno;
    if !super::sigpipe::is_ignored() {
        return super::read_and_write(socket, file, offset, count);
    }
    match rustix::fs::sendfile(&*socket, file, Some(&mut { offset }), count) {
        Err(Errno::INVAL | Errno::NOSYS) => super::read_and_write(socket, file, offset, count),
        other => Ok(other?),
    }
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
        let (socket, address) = self.socket.accept()?;
        Ok((TcpStream { socket, short_read_drains: self.makes_plain_tcp }, Some(address)))
    }

    fn has_waiting(&self) -> bool {
        is_readable(self)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// Whether a listener has a connection in its queue; accept(2) says that this is how to ask.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn is_readable(listener: &impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    !matches!(poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&at_once)), Ok(0))
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn is_readable(_: &impl AsFd) -> bool {
    true
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

    fn bind<C>(
        address: &PathBuf,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<UnixListener> {
        check(scope, "a Unix listener")?;
        let socket = listen_unix(address, options).map_err(CannotListen::on(&address.display()))?;
        UnixListener::from_std(socket, scope)
    }

    fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        self.socket.accept().map(|(socket, _)| (UnixStream { socket }, None))
    }

    fn has_waiting(&self) -> bool {
        is_readable(self)
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
        mio::net::UdpSocket::bind(*address)
            .map(|socket| UdpSocket { socket: socket.into() })
            .map_err(CannotListen::on(address))
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.socket.recv_from(buffer)
    }

    fn send_to(&mut self, datagram: &[u8], target: &SocketAddr) -> io::Result<usize> {
        self.socket.send_to(datagram, *target)
    }

    fn connect(&mut self, peer: &SocketAddr) -> io::Result<()> {
        self.socket.connect(*peer)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.socket.send(datagram)
    }

    fn local_address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }
}

impl DatagramSocket for UnixDatagram {
    type Address = unix::SocketAddr;

    fn bind<C>(address: &unix::SocketAddr, scope: &Scope<'_, C>) -> io::Result<UnixDatagram> {
        check(scope, "a Unix datagram socket")?;
        let socket =
            unix::UnixDatagram::bind_addr(address).map_err(CannotListen::on(&UnixName(address)))?;
        UnixDatagram::from_std(socket, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.socket.recv_from(buffer)
    }

    /// # Errors
    ///
    /// Also `InvalidInput` for an address without a path: there is nobody to send to.
    fn send_to(&mut self, datagram: &[u8], target: &unix::SocketAddr) -> io::Result<usize> {
        self.socket.send_to(datagram, path_of(target)?)
    }

    /// # Errors
    ///
    /// Also `InvalidInput` for an address without a path.
    fn connect(&mut self, peer: &unix::SocketAddr) -> io::Result<()> {
        self.socket.connect(path_of(peer)?)
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.socket.send(datagram)
    }

    fn local_address(&self) -> io::Result<unix::SocketAddr> {
        self.socket.local_addr()
    }
}

fn path_of(address: &unix::SocketAddr) -> io::Result<&Path> {
    address.as_pathname().ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            "a Unix datagram is sent to a path; this address has none",
        )
    })
}
