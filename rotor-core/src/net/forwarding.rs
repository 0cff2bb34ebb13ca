//! `rotor_forward_source!` and `rotor_forward_socket!`: the methods that a wrapping socket forwards to
//! its inner socket.

/// Defines the methods of a [`Source`](crate::Source) that only wraps another one: it is registered
/// and deregistered as that one is. Call it in the `impl`, with the name of the field that contains
/// the inner source, or its number.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::{Source, rotor_forward_source};
///
/// /// A socket, and who made it.
/// struct Named<S> {
///     inner: S,
///     name: String,
/// }
///
/// impl<S: Source> Source for Named<S> {
///     rotor_forward_source!(inner);
/// }
///
/// struct Wrapper<S>(S);
///
/// impl<S: Source> Source for Wrapper<S> {
///     rotor_forward_source!(0);
/// }
/// # fn is_source<S: Source>() {}
/// # is_source::<Wrapper<Named<rotor_core::net::TcpListener>>>();
/// ```
#[macro_export]
macro_rules! rotor_forward_source {
    ($inner:tt) => {
        fn register(
            &mut self,
            backend: &dyn $crate::BackendHandle,
            token: $crate::Token,
            interest: $crate::Interest,
        ) -> ::std::io::Result<()> {
            $crate::Source::register(&mut self.$inner, backend, token, interest)
        }

        fn deregister(&mut self, backend: &dyn $crate::BackendHandle) -> ::std::io::Result<()> {
            $crate::Source::deregister(&mut self.$inner, backend)
        }
    };
}

/// Defines the methods of a [`StreamSocket`](crate::net::StreamSocket) that a wrapper normally
/// forwards to its inner socket: how it connects, the error that the system keeps for it, a reset,
/// what a read costs, and its options. Call it in the `impl`, with the name of the field that
/// contains the inner socket.
///
/// If a later version of the trait has a new option, the macro forwards that too, so an existing
/// wrapper does not lose it.
///
/// ```
/// # use std::io::{self, Read, Write};
/// # use std::net::{Shutdown, SocketAddr};
/// # use rotor_core as rotor;
/// use rotor::net::StreamSocket;
/// use rotor::{Scope, Source, rotor_forward_socket, rotor_forward_source};
///
/// /// Counts what is written.
/// struct Counted<S> {
///     inner: S,
///     written: usize,
/// }
///
/// impl<S: Write> Write for Counted<S> {
///     fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
///         let count = self.inner.write(bytes)?;
///         self.written += count;
///         Ok(count)
///     }
/// #   fn flush(&mut self) -> io::Result<()> { self.inner.flush() }
/// }
/// # impl<S: Read> Read for Counted<S> {
/// #     fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> { self.inner.read(buffer) }
/// # }
///
/// impl<S: Source> Source for Counted<S> {
///     rotor_forward_source!(inner);
/// }
///
/// impl<S: StreamSocket> StreamSocket for Counted<S> {
///     type Target = S::Target;
///
///     fn connect<C>(target: &S::Target, scope: &Scope<'_, C>) -> io::Result<Self> {
///         Ok(Counted { inner: S::connect(target, scope)?, written: 0 })
///     }
///
///     rotor_forward_socket!(inner);
///
///     // And the other methods, as this wrapper needs them.
/// #   fn shutdown(&mut self, how: Shutdown) -> io::Result<()> { self.inner.shutdown(how) }
/// #   fn peer_address(&self) -> Option<SocketAddr> { self.inner.peer_address() }
/// #   fn local_address(&self) -> Option<SocketAddr> { self.inner.local_address() }
/// }
/// # fn is_socket<S: StreamSocket>() {}
/// # is_socket::<Counted<rotor_core::net::TcpStream>>();
/// ```
#[macro_export]
macro_rules! rotor_forward_socket {
    ($inner:ident) => {
        $crate::__rotor_forward_socket_options! { $inner }

        fn reset(&mut self) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::reset(&mut self.$inner)
        }

        fn read_cost(&self) -> usize {
            $crate::net::StreamSocket::read_cost(&self.$inner)
        }
    };
}

/// The part of `rotor_forward_socket!` that is also right for TLS, which implements the rest
/// itself: it sends an alert before a reset, and counts its own records.
#[doc(hidden)]
#[macro_export]
macro_rules! __rotor_forward_socket_options {
    ($inner:ident) => {
        fn take_error(&self) -> ::std::io::Result<::std::option::Option<::std::io::Error>> {
            $crate::net::StreamSocket::take_error(&self.$inner)
        }

        fn is_connected(&self) -> bool {
            $crate::net::StreamSocket::is_connected(&self.$inner)
        }

        fn has_connected(&mut self) -> ::std::io::Result<bool> {
            $crate::net::StreamSocket::has_connected(&mut self.$inner)
        }

        fn set_nodelay(&self, yes: bool) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::set_nodelay(&self.$inner, yes)
        }

        fn set_keepalive(
            &self,
            idle: ::std::option::Option<::std::time::Duration>,
        ) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::set_keepalive(&self.$inner, idle)
        }

        fn set_send_buffer(&self, bytes: usize) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::set_send_buffer(&self.$inner, bytes)
        }

        fn set_receive_buffer(&self, bytes: usize) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::set_receive_buffer(&self.$inner, bytes)
        }

        fn set_unsent_max(&self, bytes: u32) -> ::std::io::Result<()> {
            $crate::net::StreamSocket::set_unsent_max(&self.$inner, bytes)
        }
    };
}
