//! `TlsServer`: the identities and settings of a server, for all its listeners.

use std::fmt;
use std::sync::Arc;

use super::config::{ClientCertificates, TlsServerConfig};
use super::pending_hello::PendingHello;
use super::shared::ServerShared;
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;
use crate::identity::Identity;
use crate::stream::TlsStream;

/// The identities and settings of a server. It is a handle: its clones belong to the same server,
/// and all its listeners, loops and threads can use them.
///
/// For HTTPS, `rotor::http::server::Serve::over` takes it: `Serve::new(address).over(tls)` is a
/// program with threads and a graceful end. A program that makes its loop itself binds a
/// [`TlsListener`](crate::TlsListener) in place of its listener:
///
/// ```no_run
/// # use std::net::SocketAddr;
/// # use rotor_core::Scope;
/// # use rotor_core::net::{ListenOptions, Listener, TcpListener};
/// # use rotor_tls::{Identity, TlsListener, TlsServer, TlsServerConfig};
/// # fn listen(address: SocketAddr, scope: &Scope<'_, ()>) -> Result<(), Box<dyn std::error::Error>> {
/// let identity = Identity::from_pem_files("site.crt", "site.key")?;
/// let tls = TlsServer::new(TlsServerConfig::new(identity))?;
/// let listener = TlsListener::<TcpListener>::bind(&tls.at(address), &ListenOptions::new(), scope)?;
/// // Later, from any thread:
/// tls.reload(&[Identity::from_pem_files("site.crt", "site.key")?])?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "TlsAcceptor")]
#[doc(alias = "ServerConfig")]
pub struct TlsServer {
    pub(super) shared: Arc<ServerShared>,
}

impl TlsServer {
    /// Makes a server with these settings.
    ///
    /// # Errors
    ///
    /// What is wrong with the settings, and how to correct it.
    pub fn new(config: TlsServerConfig) -> Result<TlsServer, TlsConfigError> {
        Ok(TlsServer { shared: Arc::new(ServerShared::new(config)?) })
    }

    /// Makes the server's end of a connection that exists already.
    #[doc(alias = "accept")]
    #[doc(alias = "STARTTLS")]
    pub fn wrap<S>(&self, socket: S) -> TlsStream<S> {
        TlsStream::server(socket, PendingHello::new(self.shared.clone()))
    }

    /// Replaces the identities for all handshakes that begin from now on, on every loop; the first
    /// one is the default. Open connections, tickets and settings stay as they are. It may be
    /// called from any thread.
    ///
    /// # Errors
    ///
    /// [`TlsConfigError::NoIdentity`]; nothing has changed.
    #[doc(alias = "rotate certificates")]
    pub fn reload(&self, identities: &[Identity]) -> Result<(), TlsConfigError> {
        self.shared.reload(identities)
    }

    /// Replaces what is required of clients, such as the roots of their certificates and the
    /// [revocation lists](crate::Roots#revocation-lists), for all handshakes that begin from now on,
    /// on every loop. Open connections and all other settings
    /// stay as they are. Tickets that were issued before are not accepted any more, unless they
    /// belong to [`TicketKeys`](crate::TicketKeys) and nothing has changed: a client that is no
    /// longer accepted cannot resume its session. It may be called from any thread.
    ///
    /// # Errors
    ///
    /// [`TlsConfigError::NoRoots`], or an error of rustls; nothing has changed.
    #[doc(alias = "rotate roots")]
    #[doc(alias = "CRL")]
    pub fn reload_client_certificates(
        &self,
        which: ClientCertificates,
    ) -> Result<(), TlsConfigError> {
        self.shared.reload_client_certificates(which)
    }

    /// Returns the counters of all connections of this server.
    pub fn counters(&self) -> &Arc<TlsCounters> {
        &self.shared.counters
    }
}

impl fmt::Debug for TlsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsServer").finish_non_exhaustive()
    }
}
