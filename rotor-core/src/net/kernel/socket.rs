//! Macros for what the kernel's sockets have in common: a type around mio's, made through the
//! scope.

use std::io;

use crate::mio_backend::MioHandle;
use crate::scope::Scope;

/// Returns an error, which names both, if the loop's backend does not support kernel sockets.
pub(super) fn require_mio<C>(scope: &Scope<'_, C>, what: &str) -> io::Result<()> {
    scope.backend().expect::<MioHandle>(what).map(drop)
}

/// The largest buffer size that is set: setsockopt(2) takes an int, and would turn some larger
/// numbers into very small ones. The system's own limits are lower.
pub(super) const BUFFER_BYTES_MAX: usize = i32::MAX as usize;

/// Defines a kernel socket of one kind, from mio's type, the type of the standard library and its
/// name in errors: a source and a descriptor, which can be made from the standard library's socket.
/// Additional flags are determined from the standard library's socket when it is made.
macro_rules! kernel_socket {
    ($(#[$doc:meta])* $name:ident($mio:ty as $held:ty $(, $known:ident = $ask:path)*), $std:ty, $called:literal) => {
        $(#[$doc])*
        pub struct $name {
            socket: $held,
            $($known: bool,)*
        }

        impl $name {
            /// Takes over a socket that was passed to the process or opened by other means, and
            /// makes it non-blocking: for `LISTEN_FDS`, for a socket that several loops share, or
            /// for options that are not offered here.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; the socket
            /// is closed.
            pub fn from_std<C>(socket: $std, scope: &Scope<'_, C>) -> io::Result<$name> {
                require_mio(scope, $called)?;
                // std opens its sockets in blocking mode, and a service manager in either mode.
                socket.set_nonblocking(true)?;
                $(let $known = $ask(&socket);)*
                Ok($name { socket: <$mio>::from_std(socket).into(), $($known),* })
            }

            /// Gives the socket to other code than a machine of this loop: a thread, a child
            /// process, a loop of another kind. Its events are not reported any more, provided that
            /// `scope` belongs to the loop with which it is registered. It stays non-blocking until
            /// `set_nonblocking(false)` is called.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend, or the
            /// system's error if no descriptor is left: for a moment, a second one is needed. The
            /// socket is closed.
            pub fn into_std<C>(mut self, scope: &Scope<'_, C>) -> io::Result<$std> {
                let given = self.as_fd().try_clone_to_owned()?;
                // Deregistered before the first descriptor is closed. Closing it would not
                // deregister the socket, because the other descriptor refers to it as well
                // (epoll(7)).
                match scope.deregister(&mut self) {
                    // It was not registered.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    deregistered => deregistered?,
                }
                Ok(given.into())
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

/// Implements `Source` for a stream, which is deregistered when its descriptor is closed, if no
/// other one refers to the same socket. Streams are many and hardly ever shared, so they do not pay
/// for the other case.
macro_rules! impl_source_for_stream {
    ($name:ident, $called:literal) => {
        impl Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                backend.expect::<MioHandle>($called)?.register(&mut self.socket, token, interest)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                backend.expect::<MioHandle>($called)?.deregister(&mut self.socket)
            }
        }
    };
}

/// Implements `Source` for a socket that may be shared, and deregisters itself before it is closed
/// ([`RegisteredSource`]).
///
/// [`RegisteredSource`]: crate::net::registered::RegisteredSource
macro_rules! impl_source_for_registered {
    ($name:ident, $called:literal) => {
        impl Source for $name {
            fn register(
                &mut self,
                backend: &dyn BackendHandle,
                token: Token,
                interest: Interest,
            ) -> io::Result<()> {
                self.socket.register(backend.expect($called)?, token, interest)
            }

            fn deregister(&mut self, backend: &dyn BackendHandle) -> io::Result<()> {
                self.socket.deregister(backend.expect($called)?)
            }
        }
    };
}

/// Implements reading and writing of a byte stream by this crate's own system calls.
macro_rules! impl_read_and_write {
    ($name:ident) => {
        impl $name {
            /// Reads as many bytes as the vector has spare capacity, and appends them.
            pub(super) fn read_spare(&mut self, into: &mut Vec<u8>) -> io::Result<usize> {
                receive_spare(&mut self.socket, into)
            }
        }

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

            /// Does nothing: everything that was written is in the kernel already.
            #[inline]
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

pub(super) use {
    impl_read_and_write, impl_source_for_registered, impl_source_for_stream, kernel_socket,
};
