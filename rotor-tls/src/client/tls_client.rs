//! `TlsClient`: a client's settings, for all its connections.

use std::fmt;
use std::sync::Arc;

use rustls::ClientConfig;

use super::config::TlsClientConfig;
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;

/// A client's settings and the sessions that it can continue: a handle, whose clones are the same
/// client, for all its connections, loops and threads.
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
    /// Whether it offers this protocol in its handshakes.
    pub(super) fn offers(&self, protocol: &[u8]) -> bool {
        self.shared.config.alpn_protocols.iter().any(|own| own == protocol)
    }

    /// A client with these settings.
    ///
    /// # Errors
    ///
    /// What is wrong with them, and what to do about it.
    pub fn new(config: TlsClientConfig) -> Result<TlsClient, TlsConfigError> {
        let shared = Shared { config: Arc::new(config.build()?), counters: Arc::default() };
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
