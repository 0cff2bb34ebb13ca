//! What the kernel's sockets have in common, as macros: a type around mio's, made through the
//! scope.

use std::io;

use crate::mio_backend::MioHandle;
use crate::scope::Scope;

/// Refuses what the loop's backend cannot serve; the error has both names.
pub(super) fn check<C>(scope: &Scope<'_, C>, what: &str) -> io::Result<()> {
    scope.backend().expect::<MioHandle>(what).map(drop)
}

/// The most bytes of a buffer that a socket is asked for: setsockopt(2) takes an int, and would make
/// nearly nothing of some of the larger numbers. The system has limits of its own below.
pub(super) const BUFFER_BYTES_MAX: usize = i32::MAX as usize;

/// A kernel socket of one kind: the mio type inside, a source, a descriptor, made of one of the
/// standard library; and, for some, what is known of it, as was asked of that.
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
                check(scope, $called)?;
                // std opens its sockets blocking, a service manager in any mode.
                socket.set_nonblocking(true)?;
                $(let $known = $ask(&socket);)*
                Ok($name { socket: <$mio>::from_std(socket).into(), $($known),* })
            }

            /// Gives the socket to what is no machine of this loop: a thread, a child process, a
            /// loop of another kind. No event tells of it any more, if `scope` is of the loop that
            /// it is registered with. It stays non-blocking, until `set_nonblocking(false)`.
            ///
            /// # Errors
            ///
            /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend, or that no
            /// descriptor is left: for a moment it takes a second one. The socket is closed.
            pub fn into_std<C>(mut self, scope: &Scope<'_, C>) -> io::Result<$std> {
                let given = self.as_fd().try_clone_to_owned()?;
                // Before the first descriptor is closed, which would not do it: the other one is of
                // the same socket (epoll(7)).
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

/// A stream: it is deregistered when its descriptor is closed, if no other names the same socket.
/// Streams are many and hardly ever shared, so none pays for the other case.
macro_rules! closing_deregisters {
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

/// A socket that may be shared, and deregisters itself before it is closed ([`Registered`]).
///
/// [`Registered`]: crate::net::registered::Registered
macro_rules! deregisters_itself {
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

/// A byte stream that is read and written by system calls of our own.
macro_rules! read_and_write {
    ($name:ident) => {
        impl $name {
            /// Reads as far as the vector has room, and appends what came.
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

            /// Does nothing: what was written is with the kernel already.
            #[inline]
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
    };
}

pub(super) use {closing_deregisters, deregisters_itself, kernel_socket, read_and_write};
