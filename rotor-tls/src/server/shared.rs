//! `Shared`: what all connections of a server share.

use std::sync::{Arc, PoisonError, RwLock};

use rotor_core::Permits;
use rustls::ServerConfig;

use super::config::{Offload, TlsServerConfig};
use super::names::{Names, UnknownName};
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;
use crate::identity::Identity;

pub(crate) struct Shared {
    /// Read once for each handshake.
    current: RwLock<Arc<Current>>,
    pub(super) counters: Arc<TlsCounters>,
    /// Places among the handshakes that may be under way.
    pub(super) handshakes: Permits,
}

/// What later handshakes are made with.
pub(super) struct Current {
    pub(super) config: Arc<ServerConfig>,
    names: Arc<Names>,
    unknown: UnknownName,
    offload: Offload,
}

impl Shared {
    pub(super) fn new(config: &TlsServerConfig) -> Result<Shared, TlsConfigError> {
        let (unknown, offload) = (config.unknown, config.offload);
        let names = names(&config.identities, unknown)?;
        let built = Arc::new(config.build(names.clone())?);
        let current = Current { config: built, names, unknown, offload };
        Ok(Shared {
            current: RwLock::new(Arc::new(current)),
            counters: Arc::default(),
            handshakes: Permits::new(config.handshakes_max),
        })
    }

    pub(super) fn current(&self) -> Arc<Current> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts other identities in the place of those that are shown; all else stays.
    pub(super) fn reload(&self, identities: &[Identity]) -> Result<(), TlsConfigError> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let Current { unknown, offload, .. } = **current;
        let names = names(identities, unknown)?;
        let mut config = ServerConfig::clone(&current.config);
        config.cert_resolver = names.clone();
        *current = Arc::new(Current { config: Arc::new(config), names, unknown, offload });
        Ok(())
    }
}

fn names(identities: &[Identity], unknown: UnknownName) -> Result<Arc<Names>, TlsConfigError> {
    if identities.is_empty() {
        return Err(TlsConfigError::NoIdentity);
    }
    Ok(Arc::new(Names::new(identities, unknown)))
}

impl Current {
    /// Whether a client may ask for that name.
    pub(super) fn serves(&self, name: &str) -> bool {
        self.names.serves(name)
    }

    /// Whether another thread is to sign for it.
    pub(super) fn is_slow(&self, name: Option<&str>) -> bool {
        self.offload == Offload::SlowKeys && self.names.is_slow(name)
    }
}
