//! `LoopKind`: a kind of main loop, for libraries that make loops for other programs.

use std::io;
use std::net::TcpListener as StdListener;

use crate::backend::Backend;
use crate::config::Config;
use crate::mio_backend::Mio;
use crate::net::{Inet, IpNet, Net, TcpListener};
use crate::scope::Scope;

/// A kind of main loop: its backend, and the sockets that work with that backend.
///
/// A library that makes loops for other programs takes a value of such a type, and opens a backend
/// on each thread, as `rotor::http::server::Serve::loop_kind` does. [`MioKind`] is the default
/// kind; `rotor-uring` has another one. A program that makes its loops itself does not need this:
/// [`Loop::with_backend`](crate::Loop::with_backend) takes any backend.
///
/// ```
/// # use rotor_core as rotor;
/// use rotor::net::{IpNet, ListenOptions, Listener, Net};
/// use rotor::{Config, Loop, LoopKind, Machine, Response};
///
/// // A machine for each connection could be here.
/// struct Door<L>(L);
///
/// impl<L: Listener> Machine for Door<L> {
///     type Context = ();
///     type Seed = ();
/// }
///
/// type Listens<K> = <<K as LoopKind>::Net as Net>::Listener;
///
/// fn open<K: LoopKind>(kind: &K) -> Result<Loop<Door<Listens<K>>, K::Backend>, rotor::BoxError> {
///     let config = Config::new();
///     let mut creator = Loop::with_backend(kind.open(&config)?, &config)?;
///     let address = "127.0.0.1:0".parse()?;
///     creator.add_machine_with(|scope| {
///         Response::attempt(|| {
///             let listener = Listens::<K>::bind(&address, &ListenOptions::new(), scope)?;
///             Ok(Response::ok(Door(listener)))
///         })
///     })?;
///     Ok(creator)
/// }
///
/// open(&rotor::MioKind)?;
/// # Ok::<(), rotor::BoxError>(())
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a kind of main loop",
    note = "`MioKind` is the default one, and `rotor_uring::UringKind` that of io_uring"
)]
pub trait LoopKind: Clone + Send + 'static {
    /// The backend of the loops.
    type Backend: Backend;
    /// The sockets that work with the backend.
    type Net: IpNet;

    /// Opens a backend for a loop with these limits, on the thread that will run the loop.
    ///
    /// # Errors
    ///
    /// Returns the system's error if it provides no backend: no descriptor is left, or the system
    /// forbids this kind.
    fn open(&self, config: &Config) -> io::Result<Self::Backend>;

    /// Turns a listener that is open already into one for a loop of this kind: for example one of
    /// several that share a port, or one that another process has opened.
    ///
    /// # Errors
    ///
    /// Fails with [`Unsupported`](io::ErrorKind::Unsupported) if this kind has no such sockets or
    /// the loop is of another kind, and otherwise with the system's error. The listener is closed.
    fn take_listener<C>(
        &self,
        listener: StdListener,
        scope: &Scope<'_, C>,
    ) -> io::Result<<Self::Net as Net>::Listener>;
}

/// The kind of loop that [`Loop::new`](crate::Loop::new) makes: on the kernel's readiness queue,
/// through mio. It is the default.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MioKind;

impl LoopKind for MioKind {
    type Backend = Mio;
    type Net = Inet;

    fn open(&self, config: &Config) -> io::Result<Mio> {
        Ok(Mio::new(config.events_len())?.offload_pool(config.pool().clone()))
    }

    fn take_listener<C>(
        &self,
        listener: StdListener,
        scope: &Scope<'_, C>,
    ) -> io::Result<TcpListener> {
        TcpListener::from_std(listener, scope)
    }
}
