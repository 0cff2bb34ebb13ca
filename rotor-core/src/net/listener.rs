//! `Listener`: the trait of sockets that accept connections.

use std::io;
use std::net::SocketAddr;

use super::listen_options::ListenOptions;
use super::stream_socket::StreamSocket;
use crate::backend::Source;
use crate::scope::Scope;

/// A socket that accepts connections.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a listener of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait Listener: Source + Sized + 'static {
    /// The type of address that such a listener is bound to: a socket address, a path.
    type Address;
    /// The type of socket that it accepts.
    type Socket: StreamSocket;

    /// Opens a listener on the address.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend. Else the system's
    /// error: for example the address is in use, or not this machine's, or no descriptor is left.
    /// The errors of the kernel's sockets have the kind of the system's error, name the address
    /// (`cannot listen on 127.0.0.1:80`), and have the system's error as their source;
    /// [`with_causes`](crate::with_causes) prints both.
    fn bind<C>(
        address: &Self::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self>;

    /// Accepts the next connection, and returns its socket and the peer's address, if it has one.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none. After an error of one connection (`ConnectionAborted`), go
    /// on. After an error of this process (no descriptor left), the connection still waits: pause,
    /// then go on.
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Returns whether a connection waits to be accepted, as far as that can be known; `true`, the
    /// default, if it cannot. For a machine that cannot accept now and wants to know whether
    /// anybody waits for it. A wrapper forwards it.
    fn has_waiting(&self) -> bool {
        true
    }

    /// Returns the address that the listener is bound to; `None` if there is none.
    fn local_address(&self) -> Option<SocketAddr>;
}
