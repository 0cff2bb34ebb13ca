//! The kernel's TCP sockets: connections and listeners.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

use super::socket::{
    BUFFER_BYTES_MAX, impl_read_and_write, impl_source_for_registered, impl_source_for_stream,
    kernel_socket, require_mio,
};
use super::system_calls::{
    accept_next, initially_false, is_readable, receive, receive_spare, send, send_file,
    send_vectored,
};
use crate::backend::{BackendHandle, Source};
use crate::event_set::Interest;
use crate::mio_backend::MioHandle;
use crate::net::listen_error::ListenError;
use crate::net::listen_options::ListenOptions;
use crate::net::listener::Listener;
use crate::net::registered::RegisteredSource;
use crate::net::stream_socket::StreamSocket;
use crate::scope::Scope;
use crate::token::Token;

/// Whether a short read of plain TCP means that the socket is empty. A read stops before an urgent
/// byte, which only Linux reports ([`EventSet::URGENT`](crate::EventSet::URGENT)).
const SHORT_READ_OF_TCP_DRAINS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The shortest and the longest silence after which a peer can be probed: the system counts whole
/// seconds, and refuses zero and numbers above this (tcp(7), `TCP_KEEPIDLE`; `MAX_TCP_KEEPIDLE` of
/// Linux).
const KEEPALIVE_RANGE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(32_767)];

kernel_socket! {
    /// A TCP connection.
    TcpStream(mio::net::TcpStream as mio::net::TcpStream, short_read_drains = short_read_never_drains), net::TcpStream, "a TCP socket"
}

kernel_socket! {
    /// A listener for TCP connections.
    TcpListener(mio::net::TcpListener as RegisteredSource<mio::net::TcpListener>, makes_plain_tcp = is_plain_tcp, checks_first = initially_false), net::TcpListener, "a TCP listener"
}

impl_source_for_stream!(TcpStream, "a TCP socket");
impl_read_and_write!(TcpStream);
impl_source_for_registered!(TcpListener, "a TCP listener");

/// A stream that was made elsewhere may have layers that end a read early (the kernel's TLS does at
/// each record), or may get them later. So a short read does not mean that it is empty.
fn short_read_never_drains(_: &net::TcpStream) -> bool {
    false
}

/// Returns whether a listener accepts plain TCP. One that was made elsewhere may be for Multipath
/// TCP, which looks the same.
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

impl StreamSocket for TcpStream {
    type Target = SocketAddr;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<TcpStream> {
        require_mio(scope, "a TCP socket")?;
        // This does not block (connect(2), EINPROGRESS): an event comes later.
        let socket = mio::net::TcpStream::connect(*target)?;
        // Urgent bytes stay in their place among the others.
        SockRef::from(&socket).set_out_of_band_inline(true)?;
        Ok(TcpStream { socket, short_read_drains: SHORT_READ_OF_TCP_DRAINS })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    /// Sets a linger time of zero: the kernel then sends a reset when the socket is closed
    /// (socket(7), `SO_LINGER`).
    fn reset(&mut self) -> io::Result<()> {
        SockRef::from(&self.socket).set_linger(Some(Duration::ZERO))
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
            // macOS returns this error if the peer was connected and has hung up by now.
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
            Some(idle) => {
                let idle = idle.clamp(KEEPALIVE_RANGE[0], KEEPALIVE_RANGE[1]);
                socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))
            }
            None => socket.set_keepalive(false),
        }
    }

    fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_send_buffer_size(bytes.min(BUFFER_BYTES_MAX))
    }

    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes.min(BUFFER_BYTES_MAX))
    }

    #[cfg(any(target_os = "linux", target_os = "android"))]
    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        // 0 is the default of the system, which is no limit.
        SockRef::from(self).set_tcp_notsent_lowat(bytes.max(1))
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

impl Listener for TcpListener {
    type Address = SocketAddr;
    type Socket = TcpStream;

    fn bind<C>(
        address: &SocketAddr,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<TcpListener> {
        require_mio(scope, "a TCP listener")?;
        TcpListener::from_std(listen(*address, options)?, scope)
    }

    fn accept(&mut self) -> io::Result<(TcpStream, Option<SocketAddr>)> {
        let TcpListener { socket: listener, checks_first, .. } = self;
        let (socket, address) =
            accept_next(checks_first, || is_readable(&**listener), || listener.accept())?;
        // Determined once for the listener: for each connection it would take one more system call.
        Ok((TcpStream { socket, short_read_drains: self.makes_plain_tcp }, Some(address)))
    }

    fn has_waiting(&self) -> bool {
        is_readable(self)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()
    }
}

/// Opens a TCP listener with these options. An error names the address.
pub(in crate::net) fn listen(
    address: SocketAddr,
    options: &ListenOptions,
) -> io::Result<net::TcpListener> {
    listen_inet(address, options).map_err(ListenError::on(&address))
}

fn listen_inet(address: SocketAddr, options: &ListenOptions) -> io::Result<net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    // Without this, a restarted server could not bind while connections of its predecessor are in
    // TIME-WAIT.
    socket.set_reuse_address(true)?;
    // Set before `bind`, when the kernel checks it (socket(7)).
    if options.reuse_port {
        reuse_port(&socket)?;
    }
    // Accepted sockets inherit it.
    socket.set_out_of_band_inline(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog(options))?;
    Ok(socket.into())
}

pub(super) fn backlog(options: &ListenOptions) -> i32 {
    // listen(2) takes an int, and reduces it to the limit of the system.
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
