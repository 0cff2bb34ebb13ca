//! The client's side: whom it trusts, and where it connects to.

mod target;

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;

use crate::clock::LoopClock;
use crate::config_error::TlsConfigError;
use crate::counters::{TlsCounters, UnderWay};
use crate::engine::Engine;
use crate::error::TlsError;
use crate::incoming::Incoming;
use crate::live::{Live, Shaking};
use crate::provider::provider;
use crate::roots::Roots;

pub use self::target::{NameError, TlsTarget};
use crate::stream::TlsStream;

/// What a client trusts and asks for.
#[derive(Clone, Debug)]
#[must_use]
pub struct TlsClientConfig {
    roots: Roots,
    protocols: Vec<Vec<u8>>,
}

impl TlsClientConfig {
    /// A client that trusts these issuers.
    pub fn new(roots: Roots) -> TlsClientConfig {
        TlsClientConfig { roots, protocols: Vec::new() }
    }

    /// Sets the names of the protocols that are spoken, the preferred one first. Default: none.
    #[doc(alias = "ALPN")]
    pub fn alpn(mut self, protocols: &[&[u8]]) -> TlsClientConfig {
        self.protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self
    }
}

/// A client's settings: a handle, whose clones are the same client, for all its connections, loops
/// and threads.
#[derive(Clone)]
#[doc(alias = "TlsConnector")]
#[doc(alias = "ClientConfig")]
pub struct TlsClient {
    shared: Arc<Shared>,
}

struct Shared {
    config: Arc<ClientConfig>,
    counters: Arc<TlsCounters>,
}

/// A connection of a client that has said nothing yet. It has no engine before it is connected:
/// many addresses may be tried.
pub(crate) struct ClientStart {
    client: TlsClient,
    name: ServerName<'static>,
    under_way: UnderWay,
}

impl TlsClient {
    /// A client with these settings.
    ///
    /// # Errors
    ///
    /// What is wrong with them, and what to do about it.
    pub fn new(config: TlsClientConfig) -> Result<TlsClient, TlsConfigError> {
        if let Some(name) = config.protocols.iter().find(|name| !(1..=255).contains(&name.len())) {
            return Err(TlsConfigError::Protocol(name.clone()));
        }
        let builder = ClientConfig::builder_with_details(provider(), Arc::new(LoopClock))
            .with_safe_default_protocol_versions()
            .map_err(|error| TlsConfigError::Other(error.into()))?;
        let mut built =
            builder.with_root_certificates(config.roots.into_store()?).with_no_client_auth();
        built.alpn_protocols = config.protocols;
        let shared = Shared { config: Arc::new(built), counters: Arc::default() };
        Ok(TlsClient { shared: Arc::new(shared) })
    }

    /// A server at an address, which must show a certificate for this name: what a [`TlsStream`]
    /// connects to.
    ///
    /// # Errors
    ///
    /// [`NameError`] where that is neither the name of a host nor an address.
    pub fn to<A>(&self, address: A, name: &str) -> Result<TlsTarget<A>, NameError> {
        TlsTarget::new(self.clone(), address, name)
    }

    /// The client's end of a connection that is there already, with a server of this name.
    ///
    /// # Errors
    ///
    /// As for [`to`](TlsClient::to).
    #[doc(alias = "STARTTLS")]
    pub fn wrap<S>(&self, socket: S, name: &str) -> Result<TlsStream<S>, NameError> {
        let target = self.to((), name)?;
        Ok(TlsStream::client(socket, target.start()))
    }

    /// Returns what all connections of this client count.
    pub fn counters(&self) -> &Arc<TlsCounters> {
        &self.shared.counters
    }
}

impl ClientStart {
    /// Makes a connection of it, which has its hello to send.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn into_live(self) -> Result<Box<Live>, (UnderWay, TlsError)> {
        let ClientStart { client, name, under_way } = self;
        let asked_for = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase().into()),
            _ => None,
        };
        let engine = match Engine::client(client.shared.config.clone(), name) {
            Ok(engine) => engine,
            Err(error) => return Err((under_way, error.into())),
        };
        let shaking = Shaking { under_way, _permit: None, is_slow: false };
        Ok(Live::new(engine, asked_for, Incoming::default(), shaking))
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}
