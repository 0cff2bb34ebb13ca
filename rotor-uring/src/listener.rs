//! `UringTcpListener` and `UringUnixListener`: accept connections.

use std::fmt;
use std::io;
use std::net::{self, SocketAddr};
use std::os::fd::BorrowedFd;
use std::os::unix::net as unix;
use std::path::PathBuf;

use rotor_core::net::{ListenError, ListenOptions, Listener, listen_unix};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::backend::UringHandle;
use crate::driver::SocketKind;
use crate::socket_handle::SocketHandle;
use crate::stream::{UringTcpStream, UringUnixStream};

/// A TCP listener on io_uring.
pub struct UringTcpListener(SocketHandle);

/// A Unix listener on io_uring.
pub struct UringUnixListener(SocketHandle);

const TCP: &str = "a TCP listener of io_uring";
const UNIX: &str = "a Unix listener of io_uring";

/// The methods of both types.
macro_rules! listener {
    ($name:ident, $std:ty, $what:ident) => {
        impl $name {
            /// Takes over a listener that the process was given or has opened by other means, or
            /// that several loops share ([`TcpListeners`](rotor_core::net::TcpListeners)).
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket
            /// is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                UringHandle::of(scope, $what)?;
                socket.set_nonblocking(true)?;
                Ok($name(SocketHandle::new(socket.into(), SocketKind::Direct, $what, scope)?))
            }
        }

        impl Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.0.register(backend, token, interest, $what)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                self.0.deregister(backend, $what)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.0)
            }
        }
    };
}

listener!(UringTcpListener, net::TcpListener, TCP);
listener!(UringUnixListener, unix::UnixListener, UNIX);

impl Listener for UringTcpListener {
    type Address = SocketAddr;
    type Socket = UringTcpStream;

    fn bind<C>(
        address: &SocketAddr,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<UringTcpListener> {
        let opened = UringHandle::of(scope, TCP)?.open(|| listen_inet(address, options));
        let socket = opened.map_err(ListenError::on(address))?;
        Ok(UringTcpListener(SocketHandle::new(socket.into(), SocketKind::Direct, TCP, scope)?))
    }

    fn accept(&mut self) -> io::Result<(UringTcpStream, Option<SocketAddr>)> {
        let (fd, peer) = self.0.driver().accept(self.0.id())?;
        let peer = peer.and_then(|peer| SocketAddr::try_from(peer).ok());
        Ok((UringTcpStream::from_handle(self.0.on_same_ring(fd, SocketKind::Stream)), peer))
    }

    fn has_waiting(&self) -> bool {
        self.0.driver().has_waiting(self.0.id())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        let address = |fd: BorrowedFd<'_>| SockRef::from(&fd).local_addr();
        self.0.driver().with_fd(self.0.id(), address).ok()?.as_socket()
    }
}

impl Listener for UringUnixListener {
    type Address = PathBuf;
    type Socket = UringUnixStream;

    fn bind<C>(
        address: &PathBuf,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<UringUnixListener> {
        let opened = UringHandle::of(scope, UNIX)?.open(|| listen_unix(address, options));
        UringUnixListener::from_std(opened?, scope)
    }

    fn accept(&mut self) -> io::Result<(UringUnixStream, Option<SocketAddr>)> {
        let (fd, _) = self.0.driver().accept(self.0.id())?;
        // The peer's address is at most a path, and usually empty.
        Ok((UringUnixStream::from_handle(self.0.on_same_ring(fd, SocketKind::Stream)), None))
    }

    fn has_waiting(&self) -> bool {
        self.0.driver().has_waiting(self.0.id())
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

/// Binds and listens like rotor's other TCP listeners: addresses with connections in TIME-WAIT can
/// be reused, and urgent bytes stay in their place among the others.
fn listen_inet(address: &SocketAddr, options: &ListenOptions) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(*address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    socket.set_reuse_address(true)?;
    if options.is_reuse_port() {
        socket.set_reuse_port(true)?;
    }
    socket.set_out_of_band_inline(true)?;
    socket.bind(&(*address).into())?;
    socket.listen(backlog(options))?;
    Ok(socket)
}

/// listen(2) takes an `int`, and limits it to the system's maximum by itself.
fn backlog(options: &ListenOptions) -> i32 {
    i32::try_from(options.backlog_len()).unwrap_or(i32::MAX)
}
