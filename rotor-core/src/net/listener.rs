//! `Listener`: the trait of sockets that accept connections.

use std::io;
use std::net::SocketAddr;

use super::listen_options::ListenOptions;
use super::stream_socket::StreamSocket;
use crate::backend::Source;
use crate::scope::Scope;

/// A socket that accepts connections.
///
/// # A listener around another one
///
/// TLS, the PROXY protocol and layers of your own wrap a listener of any kind. The address of such
/// a listener consists of the address of the inner listener, in its own type, and what the layer
/// itself needs; [`bind`](Listener::bind) opens the inner listener and wraps it. So layers nest:
/// `TlsListener<ProxyListener<TcpListener>>` is bound to `tls.at(behind.at(address))`. A layer
/// forwards everything else, and wraps the accepted sockets if it changes what they do. Code that
/// opens listeners for other programs takes a [`ListenerLayer`](super::ListenerLayer).
///
/// ```
/// # use rotor_core as rotor;
/// use std::io;
/// use std::net::{IpAddr, Ipv4Addr, SocketAddr};
///
/// use rotor::net::{ListenOptions, Listener, TcpListener};
/// use rotor::{Scope, Source, rotor_forward_source};
///
/// /// Accepts connections of one host only.
/// struct OnlyFrom<L> {
///     host: IpAddr,
///     listener: L,
/// }
///
/// impl<L: Listener> Listener for OnlyFrom<L> {
///     /// The host, and where to listen.
///     type Address = (IpAddr, L::Address);
///     type Socket = L::Socket;
///
///     fn bind<C>(
///         (host, address): &(IpAddr, L::Address),
///         options: &ListenOptions,
///         scope: &Scope<'_, C>,
///     ) -> io::Result<OnlyFrom<L>> {
///         Ok(OnlyFrom { host: *host, listener: L::bind(address, options, scope)? })
///     }
///
///     fn accept(&mut self) -> io::Result<(L::Socket, Option<SocketAddr>)> {
///         let (socket, from) = self.listener.accept()?;
///         if from.is_none_or(|from| from.ip().to_canonical() != self.host) {
///             // An error of this connection only: the next one can be accepted.
///             return Err(io::ErrorKind::ConnectionAborted.into());
///         }
///         Ok((socket, from))
///     }
///
///     fn has_waiting(&self) -> bool {
///         self.listener.has_waiting()
///     }
///
///     fn local_address(&self) -> Option<SocketAddr> {
///         self.listener.local_address()
///     }
/// }
///
/// impl<L: Source> Source for OnlyFrom<L> {
///     rotor_forward_source!(listener);
/// }
///
/// fn listen<C>(scope: &Scope<'_, C>) -> io::Result<OnlyFrom<TcpListener>> {
///     let (host, any) = (Ipv4Addr::LOCALHOST, Ipv4Addr::UNSPECIFIED);
///     Listener::bind(&(host.into(), (any, 0).into()), &ListenOptions::new(), scope)
/// }
/// # let mut creator = rotor::Loop::<Never>::new(&rotor::Config::new())?;
/// # struct Never;
/// # impl rotor::Machine for Never {
/// #     type Context = ();
/// #     type Seed = ();
/// #     fn create(_: (), _: &mut Scope<'_, ()>) -> rotor::Response<Never> {
/// #         rotor::Response::done()
/// #     }
/// # }
/// # let ended = creator.add_machine_with(|scope| {
/// #     let mut listener = listen(scope).expect("it is bound");
/// #     let port = listener.local_address().expect("it has one").port();
/// #     let connect = || std::net::TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
/// #     let _client = connect();
/// #     listener.accept().expect("one of this host");
/// #     listener.host = Ipv4Addr::BROADCAST.into();
/// #     let _client = connect();
/// #     let kind = listener.accept().map(drop).expect_err("of another").kind();
/// #     assert_eq!(kind, io::ErrorKind::ConnectionAborted);
/// #     rotor::Response::done()
/// # });
/// # assert!(ended.is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a listener of rotor",
    note = "`rotor_core::net` has those of the kernel, which `from_std` makes of the standard library's"
)]
pub trait Listener: Source + Sized + 'static {
    /// The type of address to which such a listener is bound: a socket address, a path. For a
    /// listener around another one, it is the inner address together with what the layer needs.
    type Address;
    /// The type of socket that it accepts.
    type Socket: StreamSocket;

    /// Opens a listener on the address. The options are those of the innermost socket, however many
    /// layers are around it.
    ///
    /// A socket that is already open is not bound again: the kernel's listeners have `from_std`,
    /// and layers have a method that wraps a listener (`over` in rotor's layers).
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) on a loop of another backend; otherwise the
    /// system's error: for example, the address is in use, or does not belong to this computer, or
    /// no descriptor is left. The errors of the kernel's sockets have the kind of the system's
    /// error, name the address (`cannot listen on 127.0.0.1:80`), and have the system's error as
    /// their source; [`with_causes`](crate::with_causes) prints both.
    fn bind<C>(
        address: &Self::Address,
        options: &ListenOptions,
        scope: &Scope<'_, C>,
    ) -> io::Result<Self>;

    /// Accepts the next connection, and returns its socket and the peer's address, if it has one.
    ///
    /// A listener on `[::]` also gets connections over IPv4, unless the system is set otherwise. The
    /// addresses of their peers are IPv4-mapped (`::ffff:192.0.2.1`), so convert an address
    /// ([`to_canonical`](std::net::IpAddr::to_canonical)) before you compare it with others.
    ///
    /// # Errors
    ///
    /// `WouldBlock` if there is none. After an error of one connection (`ConnectionAborted`),
    /// accept the next one. After an error of this process (no descriptor left), the connection
    /// still waits: pause, then try again.
    fn accept(&mut self) -> io::Result<(Self::Socket, Option<SocketAddr>)>;

    /// Returns whether a connection waits to be accepted; `true`, the default, if that cannot be
    /// known. This is for a machine that cannot accept now and wants to know whether a client is
    /// waiting. A wrapper forwards it.
    fn has_waiting(&self) -> bool {
        true
    }

    /// Returns the address that the listener is bound to; `None` if there is none.
    fn local_address(&self) -> Option<SocketAddr>;
}
