//! `LoopKind`: which main loop it is, for who makes the loops of others' programs.

use std::io;
use std::net::TcpListener as StdListener;

use crate::backend::Backend;
use crate::config::Config;
use crate::mio_backend::Mio;
use crate::net::{Inet, IpNet, Net, TcpListener};
use crate::scope::Scope;

/// A kind of main loop: what its loops wait with, and the sockets that go with that.
///
/// Who makes loops for the programs of others takes one, and opens a backend of it on each thread:
/// `rotor::http::server::Serve::loop_kind` does. [`MioKind`] is the default one; `rotor-uring` has
/// another. Who makes a loop of their own needs none of this:
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
    /// What the loops wait with.
    type Backend: Backend;
    /// The sockets that go with it.
    type Net: IpNet;

    /// Opens a backend for a loop with these limits, on the thread that is to run it.
    ///
    /// # Errors
    ///
    /// Why the system gives none: no descriptor is left, or it forbids this kind.
    fn open(&self, config: &Config) -> io::Result<Self::Backend>;

    /// Makes a listener of a loop of this kind of one that is open already: one of several that
    /// share a port, or one that another process has opened.
    ///
    /// # Errors
    ///
    /// [`Unsupported`](io::ErrorKind::Unsupported) where the kind has no such sockets, or the loop
    /// is of another kind; else the system's error. The listener is closed.
    fn take_listener<C>(
        &self,
        listener: StdListener,
        scope: &Scope<'_, C>,
    ) -> io::Result<<Self::Net as Net>::Listener>;
}

/// The kind of loop that [`Loop::new`](crate::Loop::new) makes: on the kernel's readiness queue,
/// through mio.
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
