//! Listeners for HTTP.

use rotor_core::net::{ListenOptions, Listener};
use rotor_core::{Response as MachineResponse, Scope};
use rotor_stream::{Accept, AcceptConfig};

use super::connection::{HttpSeed, HttpStream};
use super::handler::Server;

/// A listener for HTTP and its connections, as a machine.
pub type HttpAccept<S, L> = Accept<HttpStream<S, <L as Listener>::Socket>, L>;

/// Opens an address and serves HTTP on it. This is a shortcut for [`Accept::bind`] with
/// [`ListenOptions::new`] and the limits of [`AcceptConfig::new`].
///
/// With other options or limits, `Accept::bind(address, &options, seed, config, scope)` makes the
/// same machine.
///
/// # Errors
///
/// If the address cannot be opened, the returned value contains the system's error: the address is
/// in use, or is not an address of this machine, or no descriptor is left. Nothing is left open.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
/// use rotor::net::TcpListener;
/// use rotor::{Config, Loop};
/// use rotor::http::Status;
/// use rotor::http::server::{
///     self, Head, HttpAccept, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
/// };
///
/// struct Hello;
///
/// impl Server for Hello {
///     type Context = ();
///     type Seed = ();
///     type Upgrade = NoUpgrade<()>;
///
///     fn headers_received(
///         _: (),
///         _: &Head<'_>,
///         response: &mut Response<'_>,
///         _: &mut Scope<'_, ()>,
///     ) -> Next<Self> {
///         response.reply(Status::OK, "text/plain", b"Hello, World!").into()
///     }
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let mut creator = Loop::<HttpAccept<Hello, TcpListener>>::new(&Config::new())?;
/// let address = "127.0.0.1:0".parse()?;
/// creator.add_machine_with(|scope| {
///     server::bind(&address, HttpSeed::new((), ServerConfig::new()), scope)
/// })?;
/// # Ok(())
/// # }
/// ```
pub fn bind<S: Server, L: Listener, C>(
    address: &L::Address,
    seed: HttpSeed<S>,
    scope: &mut Scope<'_, C>,
) -> MachineResponse<HttpAccept<S, L>> {
    Accept::bind(address, &ListenOptions::new(), seed, AcceptConfig::new(), scope)
}

/// Serves HTTP on an open listener. This is a shortcut for [`Accept::listen`] with the limits of
/// [`AcceptConfig::new`].
pub fn listen<S: Server, L: Listener, C>(
    listener: L,
    seed: HttpSeed<S>,
    scope: &mut Scope<'_, C>,
) -> MachineResponse<HttpAccept<S, L>> {
    Accept::listen(listener, seed, AcceptConfig::new(), scope)
}
