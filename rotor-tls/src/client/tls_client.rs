//! `TlsClient`: whom a client trusts, for all its connections.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;

use crate::clock::LoopClock;
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;
use crate::provider::provider;
use crate::roots::Roots;

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
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: Arc<ClientConfig>,
    counters: Arc<TlsCounters>,
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

    /// Returns what all connections of this client count.
    pub fn counters(&self) -> &Arc<TlsCounters> {
        &self.shared.counters
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}
