//! `UringTcpStream` and `UringUnixStream`: connections.

use std::fmt;
use std::fs::File;
use std::io::{self, IoSlice, Read, Write};
use std::net::{self, Shutdown, SocketAddr};
use std::os::unix::net as unix;
use std::path::PathBuf;
use std::time::Duration;

use rotor_core::net::{ReadBuf, StreamSocket};
use rotor_core::{BackendHandle, Interest, Scope, Source, Token};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockAddr, SockRef, Socket, TcpKeepalive, Type};

use crate::backend::UringHandle;
use crate::driver::SocketKind;
use crate::socket_handle::SocketHandle;

/// A TCP connection on io_uring.
pub struct UringTcpStream {
    handle: SocketHandle,
}

/// A Unix stream connection on io_uring.
pub struct UringUnixStream {
    handle: SocketHandle,
}

const TCP: &str = "a TCP socket of io_uring";
const UNIX: &str = "a Unix socket of io_uring";

/// The methods of both types.
macro_rules! stream {
    ($name:ident, $std:ty, $what:ident) => {
        impl $name {
            /// Takes over a connection that the process was given or has opened by other means.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket
            /// is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                UringHandle::of(scope, $what)?;
                socket.set_nonblocking(true)?;
                let kind = match socket.peer_addr() {
                    Ok(_) => SocketKind::Stream,
                    Err(_) => SocketKind::Connecting,
                };
                Ok($name::from_handle(SocketHandle::new(socket.into(), kind, $what, scope)?))
            }

            /// Creates the stream that a listener of the same ring has accepted.
            pub(crate) fn from_handle(handle: SocketHandle) -> $name {
                $name { handle }
            }

            /// Reads or sets an option of the socket.
            fn with_socket<T>(
                &self,
                call: impl FnOnce(SockRef<'_>) -> io::Result<T>,
            ) -> io::Result<T> {
                self.handle.driver().with_fd(self.handle.id(), |fd| call(SockRef::from(&fd)))
            }
        }

        impl Read for $name {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let mut count = 0;
                let mut buf = ReadBuf::new(buffer, &mut count);
                self.handle.driver().read(self.handle.id(), &mut buf)?;
                Ok(count)
            }
        }

        impl Write for $name {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.handle.driver().write(self.handle.id(), &[IoSlice::new(bytes)])
            }

            fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
                self.handle.driver().write(self.handle.id(), slices)
            }

            /// Does nothing: what was written will be sent, as if the kernel had it.
            #[inline]
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        impl Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.handle.register(backend, token, interest, $what)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                self.handle.deregister(backend, $what)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.handle)
            }
        }
    };
}

/// The largest buffer size that is requested, in bytes: setsockopt(2) takes an `int`.
const BUFFER_BYTES_MAX: usize = i32::MAX as usize;

/// The shortest and the longest idle time before a keep-alive probe. The system counts whole
/// seconds, and refuses 0 and more than these (tcp(7), `TCP_KEEPIDLE`; `MAX_TCP_KEEPIDLE` of
/// Linux).
const KEEPALIVE: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(32_767)];

/// The methods of `StreamSocket` that are the same for both types.
macro_rules! shared_methods {
    () => {
        const READS_UNSEEN: bool = true;

        #[inline]
        fn read_unseen(&mut self, buf: &mut ReadBuf<'_>) -> io::Result<()> {
            self.handle.driver().read(self.handle.id(), buf)
        }

        /// Sends our end after everything that was written; if that fails, the next read reports
        /// it.
        fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
            self.handle.driver().shutdown(self.handle.id(), how)
        }

        fn take_error(&self) -> io::Result<Option<io::Error>> {
            self.handle.driver().take_error(self.handle.id())
        }

        fn is_connected(&self) -> bool {
            self.with_socket(|socket| socket.peer_addr()).is_ok()
        }

        /// Registering reports what arrived before.
        fn holds_input(&self) -> bool {
            false
        }

        #[inline]
        fn short_read_drains(&self) -> bool {
            self.handle.driver().is_drained(self.handle.id())
        }

        #[inline]
        fn held_bytes(&self) -> usize {
            self.handle.driver().held_bytes(self.handle.id())
        }

        fn set_send_buffer(&self, bytes: usize) -> io::Result<()> {
            self.with_socket(|socket| socket.set_send_buffer_size(bytes.min(BUFFER_BYTES_MAX)))
        }

        fn set_receive_buffer(&self, bytes: usize) -> io::Result<()> {
            self.with_socket(|socket| socket.set_recv_buffer_size(bytes.min(BUFFER_BYTES_MAX)))
        }

        fn send_file(&mut self, file: &File, offset: u64, count: usize) -> io::Result<usize> {
            let sent = self.handle.driver().send_with(self.handle.id(), |fd| {
                rotor_core::net::send_file_by_kernel(fd, file, offset, count)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                    copy_file_chunk(self, file, offset, count)
                }
                other => other,
            }
        }
    };
}

stream!(UringTcpStream, net::TcpStream, TCP);
stream!(UringUnixStream, unix::UnixStream, UNIX);

impl StreamSocket for UringTcpStream {
    type Target = SocketAddr;

    fn connect<C>(target: &SocketAddr, scope: &Scope<'_, C>) -> io::Result<UringTcpStream> {
        let domain = Domain::for_address(*target);
        let socket = UringHandle::of(scope, TCP)?
            .open(|| Socket::new(domain, Type::STREAM, Some(Protocol::TCP)))?;
        socket.set_nonblocking(true)?;
        // An urgent byte stays in its place among the others.
        socket.set_out_of_band_inline(true)?;
        let kind = start_connect(&socket, &(*target).into())?;
        Ok(UringTcpStream::from_handle(SocketHandle::new(socket.into(), kind, TCP, scope)?))
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.with_socket(|socket| socket.peer_addr()).ok()?.as_socket()
    }

    fn local_address(&self) -> Option<SocketAddr> {
        self.with_socket(|socket| socket.local_addr()).ok()?.as_socket()
    }

    fn set_nodelay(&self, yes: bool) -> io::Result<()> {
        self.with_socket(|socket| socket.set_tcp_nodelay(yes))
    }

    fn set_keepalive(&self, idle: Option<Duration>) -> io::Result<()> {
        self.with_socket(|socket| match idle {
            Some(idle) => {
                let idle = idle.clamp(KEEPALIVE[0], KEEPALIVE[1]);
                socket.set_tcp_keepalive(&TcpKeepalive::new().with_time(idle))
            }
            None => socket.set_keepalive(false),
        })
    }

    fn reset(&mut self) -> io::Result<()> {
        self.handle.driver().reset(self.handle.id())
    }

    fn set_unsent_max(&self, bytes: u32) -> io::Result<()> {
        // 0 is the default of the system, which is no limit.
        self.with_socket(|socket| socket.set_tcp_notsent_lowat(bytes.max(1)))
    }

    shared_methods!();
}

impl StreamSocket for UringUnixStream {
    type Target = PathBuf;

    fn connect<C>(target: &PathBuf, scope: &Scope<'_, C>) -> io::Result<UringUnixStream> {
        let socket =
            UringHandle::of(scope, UNIX)?.open(|| Socket::new(Domain::UNIX, Type::STREAM, None))?;
        socket.set_nonblocking(true)?;
        let kind = start_connect(&socket, &SockAddr::unix(target)?)?;
        Ok(UringUnixStream::from_handle(SocketHandle::new(socket.into(), kind, UNIX, scope)?))
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        // It has at most a path, which is not a `SocketAddr`.
        None
    }

    fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    shared_methods!();
}

/// Begins to connect, and returns the state of the connection.
fn start_connect(socket: &Socket, target: &SockAddr) -> io::Result<SocketKind> {
    match socket.connect(target) {
        Ok(()) => Ok(SocketKind::Connecting),
        // In progress (connect(2)): an event will report the result.
        Err(error) if Errno::from_io_error(&error) == Some(Errno::INPROGRESS) => {
            Ok(SocketKind::Connecting)
        }
        Err(error) => Err(error),
    }
}

/// How many bytes of a file are copied at a time if the kernel cannot send it by itself.
const FILE_CHUNK: usize = 16 * 1024;

fn copy_file_chunk(
    socket: &mut impl Write,
    file: &File,
    offset: u64,
    count: usize,
) -> io::Result<usize> {
    use std::os::unix::fs::FileExt;
    let mut chunk = [0; FILE_CHUNK];
    let wanted = count.min(FILE_CHUNK);
    let read = file.read_at(&mut chunk[..wanted], offset)?;
    if read == 0 { Ok(0) } else { socket.write(&chunk[..read]) }
}
