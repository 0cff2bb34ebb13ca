//! `InheritedListeners`: the listeners with which the process was started (`LISTEN_FDS`), as
//! service managers pass them on.

use std::fmt;
use std::io;
use std::os::fd::{AsFd, IntoRawFd};

use listenfd::ListenFd;
use rotor_core::Scope;
use rotor_core::net::{TcpListener, UdpSocket, UnixDatagram, UnixListener};

/// The sockets with which the process was started, in the order of their descriptors: listeners,
/// and datagram sockets among them.
///
/// A service manager (systemd, or a supervisor that restarts without refusing connections) opens
/// the sockets and sets `LISTEN_FDS` to their number.
///
/// ```no_run
/// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
/// use rotor::net::{ListenOptions, Listener, TcpListener};
/// use rotor::Scope;
/// use rotor::stream::InheritedListeners;
/// use std::io;
///
/// fn listener<C>(scope: &Scope<'_, C>) -> io::Result<TcpListener> {
///     match InheritedListeners::from_env().take_tcp(0, scope)? {
///         Some(listener) => Ok(listener),
///         None => TcpListener::bind(&([0, 0, 0, 0], 80).into(), &ListenOptions::new(), scope),
///     }
/// }
/// ```
#[doc(alias = "HandedOver")]
#[doc(alias = "LISTEN_FDS")]
#[doc(alias = "socket activation")]
#[doc(alias = "systemd")]
pub struct InheritedListeners {
    listeners: ListenFd,
}

impl InheritedListeners {
    /// Takes the sockets named by the environment, if any. The variables are then removed from the
    /// environment, as far as the platform allows it. Call this once.
    ///
    /// What is not taken from this value stays open, but is kept from the processes that this one
    /// starts once the value is dropped.
    pub fn from_env() -> InheritedListeners {
        InheritedListeners { listeners: ListenFd::from_env() }
    }

    /// Returns the number of sockets at the beginning.
    pub fn len(&self) -> usize {
        self.listeners.len()
    }

    /// Returns whether there were no sockets.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes the listener at `index`, counted from 0, as a TCP listener. Returns `None` if there is
    /// none, or if it was taken already.
    ///
    /// # Errors
    ///
    /// The socket is not a listening TCP socket: the process was started with the wrong sockets, or
    /// with a single connection, as inetd and `Accept=yes` do (the latter is detected on Linux
    /// only). Or the loop's backend does not support the socket.
    pub fn take_tcp<C>(
        &mut self,
        index: usize,
        scope: &Scope<'_, C>,
    ) -> io::Result<Option<TcpListener>> {
        let listener = self.take_std_tcp(index)?;
        listener.map(|listener| TcpListener::from_std(listener, scope)).transpose()
    }

    /// Takes the listener at `index`, counted from 0, as a listener of the standard library.
    /// Returns `None` if there is none, or if it was taken already.
    ///
    /// Use this for several loops, before they are made:
    /// [`TcpListeners::from_std`](rotor_core::net::TcpListeners::from_std) makes a listener for
    /// each of them.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_core::*; pub use rotor_stream as stream; }
    /// use rotor::net::{ListenOptions, TcpListeners};
    /// use rotor::stream::InheritedListeners;
    /// use std::io;
    ///
    /// fn listeners(loops: usize) -> io::Result<TcpListeners> {
    ///     match InheritedListeners::from_env().take_std_tcp(0)? {
    ///         Some(listener) => TcpListeners::from_std(listener, loops),
    ///         None => TcpListeners::bind(([0, 0, 0, 0], 80).into(), &ListenOptions::new(), loops),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// The socket is not a listening TCP socket: the process was started with the wrong sockets, or
    /// with a single connection, as inetd and `Accept=yes` do.
    pub fn take_std_tcp(&mut self, index: usize) -> io::Result<Option<std::net::TcpListener>> {
        self.listeners.take_tcp_listener(index)?.map(require_listening).transpose()
    }

    /// Takes the listener at `index`, counted from 0, as a Unix listener. Returns `None` if there
    /// is none, or if it was taken already.
    ///
    /// # Errors
    ///
    /// As for [`take_tcp`](InheritedListeners::take_tcp).
    pub fn take_unix<C>(
        &mut self,
        index: usize,
        scope: &Scope<'_, C>,
    ) -> io::Result<Option<UnixListener>> {
        let listener =
            self.listeners.take_unix_listener(index)?.map(require_listening).transpose()?;
        listener.map(|listener| UnixListener::from_std(listener, scope)).transpose()
    }

    /// Takes the socket at `index`, counted from 0, as a UDP socket. Returns `None` if there is
    /// none, or if it was taken already.
    ///
    /// # Errors
    ///
    /// The socket is not a UDP socket (the process was started with the wrong sockets), or the
    /// loop's backend does not support it.
    #[doc(alias = "ListenDatagram")]
    pub fn take_udp<C>(
        &mut self,
        index: usize,
        scope: &Scope<'_, C>,
    ) -> io::Result<Option<UdpSocket>> {
        let socket = self.listeners.take_udp_socket(index)?;
        socket.map(|socket| UdpSocket::from_std(socket, scope)).transpose()
    }

    /// Takes the socket at `index`, counted from 0, as a Unix datagram socket. Returns `None` if
    /// there is none, or if it was taken already.
    ///
    /// # Errors
    ///
    /// As for [`take_udp`](InheritedListeners::take_udp).
    pub fn take_unix_datagram<C>(
        &mut self,
        index: usize,
        scope: &Scope<'_, C>,
    ) -> io::Result<Option<UnixDatagram>> {
        let socket = self.listeners.take_unix_datagram(index)?;
        socket.map(|socket| UnixDatagram::from_std(socket, scope)).transpose()
    }
}

/// Refuses a socket that does not listen, such as the connection with which inetd starts a process.
/// `listenfd` checks only the socket's type, and each attempt to accept would fail.
fn require_listening<S: AsFd>(socket: S) -> io::Result<S> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    if !rustix::net::sockopt::socket_acceptconn(&socket)? {
        let message = "the process was started with a socket that does not listen: a connection";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(socket)
}

/// Sets FD_CLOEXEC for the sockets that were not taken, as sd_listen_fds(3) does. `listenfd` sets it
/// when a socket is taken.
impl Drop for InheritedListeners {
    fn drop(&mut self) {
        // Only the number is dropped, so nothing is closed.
        fn keep_open<S: IntoRawFd>(taken: io::Result<Option<S>>) -> bool {
            taken.ok().flatten().map(IntoRawFd::into_raw_fd).is_some()
        }
        let sockets = &mut self.listeners;
        for index in 0..sockets.len() {
            let _is_socket = keep_open(sockets.take_tcp_listener(index))
                || keep_open(sockets.take_unix_listener(index))
                || keep_open(sockets.take_udp_socket(index))
                || keep_open(sockets.take_unix_datagram(index));
        }
    }
}

impl fmt::Debug for InheritedListeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "InheritedListeners({} listeners)", self.len())
    }
}
