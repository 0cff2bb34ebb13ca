//! `ServerShared`: what all connections of a server share.

use std::sync::{Arc, PoisonError, RwLock};

use rotor_core::Permits;
use rustls::ServerConfig;

use super::config::{Offload, TlsServerConfig};
use super::names::{Names, UnknownName};
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;
use crate::identity::Identity;

pub(crate) struct ServerShared {
    /// Read once for each handshake.
    current: RwLock<Arc<CurrentConfig>>,
    pub(super) counters: Arc<TlsCounters>,
    /// Places for the handshakes that may be under way.
    pub(super) handshakes: Permits,
}

/// What new handshakes use.
pub(super) struct CurrentConfig {
    pub(super) config: Arc<ServerConfig>,
    names: Arc<Names>,
    unknown: UnknownName,
    offload: Offload,
    /// Whether clients must present certificates.
    pub(super) requires_certificate: bool,
}

impl ServerShared {
    pub(super) fn new(config: &TlsServerConfig) -> Result<ServerShared, TlsConfigError> {
        let (unknown, offload) = (config.unknown, config.offload);
        let names = build_names(&config.identities, unknown)?;
        let built = Arc::new(config.build(names.clone())?);
        let requires_certificate = config.client_certificates.are_required();
        let current =
            CurrentConfig { config: built, names, unknown, offload, requires_certificate };
        Ok(ServerShared {
            current: RwLock::new(Arc::new(current)),
            counters: Arc::default(),
            handshakes: Permits::new(config.handshakes_max),
        })
    }

    pub(super) fn current(&self) -> Arc<CurrentConfig> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the protocols that are offered by ALPN, the preferred one first.
    pub(super) fn protocols(&self) -> Vec<Vec<u8>> {
        self.current().config.alpn_protocols.clone()
    }

    /// Replaces the identities; everything else stays.
    pub(super) fn reload(&self, identities: &[Identity]) -> Result<(), TlsConfigError> {
        let current = self.current();
        let CurrentConfig { unknown, offload, requires_certificate, .. } = *current;
        let names = build_names(identities, unknown)?;
        let mut config = ServerConfig::clone(&current.config);
        config.cert_resolver = names.clone();
        let config = Arc::new(config);
        let next =
            Arc::new(CurrentConfig { config, names, unknown, offload, requires_certificate });
        // Locked only now, because handshakes of all loops wait for this lock. Two simultaneous
        // calls have the same effect as successive ones, since nothing else ever changes.
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = next;
        Ok(())
    }
}

fn build_names(
    identities: &[Identity],
    unknown: UnknownName,
) -> Result<Arc<Names>, TlsConfigError> {
    if identities.is_empty() {
        return Err(TlsConfigError::NoIdentity);
    }
    Ok(Arc::new(Names::new(identities, unknown)))
}

impl CurrentConfig {
    /// Returns whether a client may request that name.
    pub(super) fn serves(&self, name: &str) -> bool {
        self.names.serves(name)
    }

    /// Returns whether another thread should sign for that name.
    pub(super) fn is_slow(&self, name: Option<&str>) -> bool {
        self.offload == Offload::SlowKeys && self.names.is_slow(name)
    }
}
