//! `ProxyProtocol`: a server behind balancers.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::config::ProxyProtocolConfig;
use crate::counters::ProxyCounters;
use crate::header_receiver::HeaderReceiver;
use crate::shared::Shared;
use crate::stream::ProxyStream;

/// A server behind balancers that speak the PROXY protocol. This is a handle for all its listeners,
/// loops and threads; clones share settings and counters.
///
/// ```no_run
/// # use std::net::SocketAddr;
/// # use rotor_core::Scope;
/// # use rotor_core::net::{ListenOptions, Listener, TcpListener};
/// # use rotor_proxy_protocol::{ProxyListener, ProxyProtocol, ProxyProtocolConfig};
/// # fn listen(address: SocketAddr, scope: &Scope<'_, ()>) -> Result<(), Box<dyn std::error::Error>> {
/// let behind = ProxyProtocol::new(ProxyProtocolConfig::new(["10.1.0.0/16".parse()?]));
/// let listener =
///     ProxyListener::<TcpListener>::bind(&behind.at(address), &ListenOptions::new(), scope)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "accept-proxy")]
#[doc(alias = "proxy_protocol")]
pub struct ProxyProtocol {
    pub(crate) shared: Arc<Shared>,
}

impl ProxyProtocol {
    /// Creates a handle with these settings.
    pub fn new(config: ProxyProtocolConfig) -> ProxyProtocol {
        ProxyProtocol { shared: Arc::new(Shared { config, counters: Arc::default() }) }
    }

    /// Wraps an accepted connection. `from` is its address as returned by
    /// [`Listener::accept`](rotor_core::net::Listener::accept), or `None` for a connection without
    /// an address.
    #[doc(alias = "accept")]
    pub fn wrap<S>(&self, socket: S, from: Option<SocketAddr>) -> ProxyStream<S> {
        ProxyStream::receiving(socket, HeaderReceiver::new(self.shared.clone(), from))
    }

    /// Returns the counters of all its connections.
    pub fn counters(&self) -> &Arc<ProxyCounters> {
        &self.shared.counters
    }
}

impl fmt::Debug for ProxyProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProxyProtocol").field(&self.shared.config).finish()
    }
}
