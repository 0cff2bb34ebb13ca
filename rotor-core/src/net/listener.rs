//! `Listener`: what takes connections, as machines see it.

use std::io;
use std::net::SocketAddr;

use super::listen_options::ListenOptions;
use super::stream_socket::StreamSocket;
use crate::backend::Source;
use crate::scope::Scope;

/// What takes connections.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a listener of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait Listener: Source + Sized + 'static {
    /// What such a listener is bound to: a socket address, a path.
    type Address;
    /// What it makes.
    type Socket: StreamSocket;

    /// Opens the address for connections.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; else what the
    /// system says: the address is in use, or not this machine's, no descriptor left. Those of the
    /// kernel's sockets have the kind of the system's error, name the address (`cannot listen on
    /// 127.0.0.1:80`), and have the system's error as their source;
    /// [`with_causes`](crate::with_causes) prints both.
    fn bind<C>(
        address: &Self::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self>;

    /// Accepts the next connection, and returns where it comes from, if that has an address.
    ///
    /// # Errors
    ///
    /// `WouldBlock` when there is none. What names one connection (`ConnectionAborted`) is past: go
    /// on. What names this process (no descriptor left) leaves the connection waiting: pause, then
    /// go on.
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Returns whether a connection waits to be accepted, as far as that can be known; true, the
    /// default, where it cannot. For a machine that cannot accept now and wants to know whether
    /// somebody minds. A wrapper forwards it.
    fn has_waiting(&self) -> bool {
        true
    }

    /// Returns the address that it is bound to; `None` where there is none.
    fn local_address(&self) -> Option<SocketAddr>;
}
