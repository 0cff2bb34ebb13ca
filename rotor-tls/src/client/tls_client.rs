//! `TlsClient`: the settings of a client, for all its connections.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::ClientConfig;

use super::config::TlsClientConfig;
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;

/// The settings of a client and the sessions that it can resume. It is a handle: its clones belong
/// to the same client, and all its connections, loops and threads can use them.
#[derive(Clone)]
#[doc(alias = "TlsConnector")]
#[doc(alias = "ClientConfig")]
pub struct TlsClient {
    pub(super) shared: Arc<ClientShared>,
}

pub(super) struct ClientShared {
    pub(super) config: Arc<ClientConfig>,
    counters: Arc<TlsCounters>,
    /// The same client with fewer protocols, by those it still offers. Each is made once, so that
    /// connections to the same target can be shared.
    with_fewer_protocols: Mutex<BTreeMap<Protocols, Arc<ClientShared>>>,
}

type Protocols = Vec<Vec<u8>>;

impl ClientShared {
    fn new(config: ClientConfig, counters: Arc<TlsCounters>) -> Arc<ClientShared> {
        Arc::new(ClientShared {
            config: Arc::new(config),
            counters,
            with_fewer_protocols: Mutex::default(),
        })
    }
}

impl TlsClient {
    /// Returns whether the client offers this protocol in its handshakes.
    pub(super) fn offers(&self, protocol: &[u8]) -> bool {
        self.shared.config.alpn_protocols.iter().any(|own| own == protocol)
    }

    /// Returns the same client without this protocol. `None` if it does not offer this protocol, or
    /// no other: without any protocol, a client would not say what it wants.
    pub(super) fn without(&self, protocol: &[u8]) -> Option<TlsClient> {
        let offered = &self.shared.config.alpn_protocols;
        let left: Protocols = offered.iter().filter(|own| *own != protocol).cloned().collect();
        if left.is_empty() || left.len() == offered.len() {
            return None;
        }
        // A poisoned lock is fine: changes under it are always complete.
        let mut known =
            self.shared.with_fewer_protocols.lock().unwrap_or_else(PoisonError::into_inner);
        let shared = known.entry(left.clone()).or_insert_with(|| {
            let mut config = ClientConfig::clone(&self.shared.config);
            config.alpn_protocols = left;
            ClientShared::new(config, self.shared.counters.clone())
        });
        Some(TlsClient { shared: shared.clone() })
    }

    /// Makes a client with these settings.
    ///
    /// # Errors
    ///
    /// What is wrong with the settings, and how to correct it.
    pub fn new(config: TlsClientConfig) -> Result<TlsClient, TlsConfigError> {
        Ok(TlsClient { shared: ClientShared::new(config.build()?, Arc::default()) })
    }

    /// Returns the counters of all connections of this client.
    pub fn counters(&self) -> &Arc<TlsCounters> {
        &self.shared.counters
    }
}

impl fmt::Debug for TlsClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClient").finish_non_exhaustive()
    }
}
