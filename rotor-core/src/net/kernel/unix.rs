//! The kernel's Unix sockets: connections, listeners and datagrams.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net as unix;
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, SockRef, Socket, Type};

use super::socket::{
    BUFFER_BYTES_MAX, impl_read_and_write, impl_source_for_registered, impl_source_for_stream,
    kernel_socket, require_mio,
};
use super::system_calls::{
    accept_next, initially_false, is_readable, receive, receive_spare, send, send_file,
    send_vectored,
};
use super::tcp::backlog;
use crate::backend::{BackendHandle, Source};
use crate::event_set::Interest;
use crate::mio_backend::MioHandle;
use crate::net::datagram_socket::DatagramSocket;
use crate::net::family::Net;
use crate::net::listen_error::ListenError;
use crate::net::listen_options::ListenOptions;
use crate::net::listener::Listener;
use crate::net::registered::RegisteredSource;
use crate::net::stream_socket::StreamSocket;
use crate::scope::Scope;
use crate::token::Token;

/// The kernel's Unix sockets.
#[derive(Clone, Copy, Debug)]
pub struct Unix;

impl Net for Unix {
    type Stream = UnixStream;
    type Listener = UnixListener;
    type Datagram = UnixDatagram;
}

kernel_socket! {
    /// A connection through a Unix socket. On Linux, a target that begins with a zero byte is a name
    /// in the abstract namespace, which is not in the file system (unix(7)).
    UnixStream(mio::net::UnixStream as mio::net::UnixStream), unix::UnixStream, "a Unix socket"
}

kernel_socket! {
    /// A listener for connections through a Unix socket: at a path or, as for [`UnixStream`], with an
    /// abstract name.
    UnixListener(mio::net::UnixListener as RegisteredSource<mio::net::UnixListener>, checks_first = initially_false), unix::UnixListener, "a Unix listener"
}

kernel_socket! {
    /// Datagrams through a Unix socket.
    UnixDatagram(mio::net::UnixDatagram as RegisteredSource<mio::net::UnixDatagram>), unix::UnixDatagram, "a Unix datagram socket"
}

impl_source_for_stream!(UnixStream, "a Unix socket");
impl_read_and_write!(UnixStream);
impl_source_for_registered!(UnixListener, "a Unix listener");
impl_source_for_registered!(UnixDatagram, "a Unix datagram socket");

impl StreamSocket for UnixStream {
    type Target = PathBuf;

    fn connect<C>(target: &PathBuf, scope: &Scope<'_, C>) -> io::Result<UnixStream> {
        require_mio(scope, "a Unix socket")?;
        let address = stream_address(target)?;
        mio::net::UnixStream::connect_addr(&address).map(|socket| UnixStream { socket })
    }

    fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        self.socket.shutdown(how)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        // The peer has at most a path, which is not a `SocketAddr`.
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
        SockRef::from(self).set_send_buffer_size(bytes.min(BUFFER_BYTES_MAX))
    }

    fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
        SockRef::from(self).set_recv_buffer_size(bytes.min(BUFFER_BYTES_MAX))
    }

    fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
        send_file(self, file, offset, count)
    }
}

/// Returns the address of a target, because mio takes no path for a name in the abstract namespace.
fn stream_address(target: &Path) -> io::Result<unix::SocketAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::os::linux::net::SocketAddrExt;
        if let Some(name) = abstract_name(target) {
            return unix::SocketAddr::from_abstract_name(name);
        }
    }
    unix::SocketAddr::from_pathname(target)
}

/// Returns the name in the abstract namespace for which a path stands, without the zero byte at its
/// beginning.
fn abstract_name(path: &Path) -> Option<&[u8]> {
    path.as_os_str().as_bytes().strip_prefix(b"\0")
}

impl Listener for UnixListener {
    type Address = PathBuf;
    type Socket = UnixStream;

    fn bind<C>(
        address: &PathBuf,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<UnixListener> {
        require_mio(scope, "a Unix listener")?;
        UnixListener::from_std(listen_unix(address, options)?, scope)
    }

    fn accept(&mut self) -> io::Result<(UnixStream, Option<SocketAddr>)> {
        // A peer usually has no address, and otherwise a path, so none is returned.
        let UnixListener { socket: listener, checks_first } = self;
        let (socket, _) =
            accept_next(checks_first, || is_readable(&**listener), || listener.accept())?;
        Ok((UnixStream { socket }, None))
    }

    fn has_waiting(&self) -> bool {
        is_readable(self)
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }
}

/// Opens a listening Unix socket at a path, with these options. For implementations of backends on
/// the kernel's sockets. [`UnixListener`] uses it for `bind`.
///
/// The path must be free: a file that an earlier process has left there is not removed. The file
/// stays when the socket is closed.
///
/// # Errors
///
/// [`ListenError`], which names the path and has the system's error as its source. Then nothing
/// listens at the path.
pub fn listen_unix(path: &Path, options: &ListenOptions) -> io::Result<unix::UnixListener> {
    open_unix(path, options).map_err(ListenError::on(&path.display()))
}

fn open_unix(path: &Path, options: &ListenOptions) -> io::Result<unix::UnixListener> {
    // Not std's `bind`, which also listens, with a backlog of its own.
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    if let Some(mode) = options.unix_mode {
        if abstract_name(path).is_some() {
            let message = "an abstract name has no mode: everybody may connect to it";
            return Err(io::Error::new(io::ErrorKind::Unsupported, message));
        }
        set_mode(&socket, mode)?;
    }
    socket.bind(&SockAddr::unix(path)?)?;
    socket.listen(backlog(options))?;
    Ok(socket.into())
}

/// Sets the mode before the socket is bound: `bind` makes the file with this mode, reduced by the
/// umask (unix(7)). Changing the mode by path would be too late, and would follow a link that was
/// put there.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_mode(socket: &Socket, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(socket, rustix::fs::Mode::from_raw_mode(mode))?)
}

/// On other systems it is unspecified what the mode of an unbound socket means (POSIX, `fchmod`),
/// and callers that set a mode rely on it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn set_mode(_: &Socket, _: u32) -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "the mode of a Unix socket is set on Linux only",
    ))
}

impl DatagramSocket for UnixDatagram {
    type Address = unix::SocketAddr;

    fn bind<C>(address: &unix::SocketAddr, scope: &Scope<'_, C>) -> io::Result<UnixDatagram> {
        require_mio(scope, "a Unix datagram socket")?;
        let socket =
            unix::UnixDatagram::bind_addr(address).map_err(ListenError::on(&UnixName(address)))?;
        UnixDatagram::from_std(socket, scope)
    }

    fn receive_from(&mut self, buffer: &mut [u8]) -> io::Result<(usize, unix::SocketAddr)> {
        self.socket.recv_from(buffer)
    }

    /// # Errors
    ///
    /// Also `InvalidInput` if the address has neither a path nor an abstract name (unix(7)): such a
    /// socket cannot be reached.
    fn send_to(&mut self, datagram: &[u8], target: &unix::SocketAddr) -> io::Result<usize> {
        match target.as_pathname() {
            Some(path) => self.socket.send_to(datagram, path),
            None => SockRef::from(&*self).send_to(datagram, &abstract_address(target)?),
        }
    }

    /// # Errors
    ///
    /// Also `InvalidInput` if the address has neither a path nor an abstract name.
    fn connect(&mut self, peer: &unix::SocketAddr) -> io::Result<()> {
        match peer.as_pathname() {
            Some(path) => self.socket.connect(path),
            None => SockRef::from(&*self).connect(&abstract_address(peer)?),
        }
    }

    fn send(&mut self, datagram: &[u8]) -> io::Result<usize> {
        self.socket.send(datagram)
    }

    fn local_address(&self) -> io::Result<unix::SocketAddr> {
        self.socket.local_addr()
    }
}

/// Converts an address in the abstract namespace to socket2's type, because mio sends to paths
/// only.
fn abstract_address(address: &unix::SocketAddr) -> io::Result<SockAddr> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    {
        use std::ffi::OsStr;
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let Some(name) = address.as_abstract_name() {
            return SockAddr::unix(OsStr::from_bytes(&[b"\0", name].concat()));
        }
    }
    let message =
        format!("a Unix datagram is sent to a path or a name, and {address:?} is neither");
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Prints the address of a Unix socket: its path, if it has one, otherwise its debug form.
struct UnixName<'a>(&'a unix::SocketAddr);

impl fmt::Display for UnixName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_pathname() {
            Some(path) => path.display().fmt(f),
            None => write!(f, "{:?}", self.0),
        }
    }
}
