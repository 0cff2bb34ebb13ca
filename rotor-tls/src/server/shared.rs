//! `ServerShared`: what all connections of a server share.

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use rotor_core::Permits;
use rustls::ServerConfig;

use super::config::{ClientCertificates, Offload, TlsServerConfig};
use super::names::{Names, UnknownName};
use crate::config_error::TlsConfigError;
use crate::counters::TlsCounters;
use crate::identity::Identity;

pub(crate) struct ServerShared {
    /// Read once for each handshake.
    current: RwLock<Arc<CurrentConfig>>,
    /// The settings, without identities. Locked by whoever replaces `current`, so that two of them
    /// do not undo each other's changes.
    settings: Mutex<TlsServerConfig>,
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
    pub(super) fn new(mut settings: TlsServerConfig) -> Result<ServerShared, TlsConfigError> {
        // Not kept there: keys that were replaced must not stay in memory.
        let identities = mem::take(&mut settings.identities);
        let names = build_names(&identities, settings.unknown)?;
        let current = CurrentConfig::new(&settings, names)?;
        Ok(ServerShared {
            current: RwLock::new(Arc::new(current)),
            counters: Arc::default(),
            handshakes: Permits::new(settings.handshakes_max),
            settings: Mutex::new(settings),
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
        let _settings = self.lock_settings();
        let current = self.current();
        let CurrentConfig { unknown, offload, requires_certificate, .. } = *current;
        let names = build_names(identities, unknown)?;
        let mut config = ServerConfig::clone(&current.config);
        config.cert_resolver = names.clone();
        let config = Arc::new(config);
        self.set_current(CurrentConfig { config, names, unknown, offload, requires_certificate });
        Ok(())
    }

    /// Replaces what is required of clients; everything else stays, except for keys of tickets that
    /// do not depend on it.
    pub(super) fn reload_client_certificates(
        &self,
        which: ClientCertificates,
    ) -> Result<(), TlsConfigError> {
        let mut settings = self.lock_settings();
        let next = settings.clone().client_certificates(which);
        let names = self.current().names.clone();
        self.set_current(CurrentConfig::new(&next, names)?);
        *settings = next;
        Ok(())
    }

    fn lock_settings(&self) -> MutexGuard<'_, TlsServerConfig> {
        self.settings.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks only for the replacement itself, because handshakes of all loops wait for this lock.
    fn set_current(&self, next: CurrentConfig) {
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(next);
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
    fn new(settings: &TlsServerConfig, names: Arc<Names>) -> Result<CurrentConfig, TlsConfigError> {
        Ok(CurrentConfig {
            config: Arc::new(settings.build(names.clone())?),
            names,
            unknown: settings.unknown,
            offload: settings.offload,
            requires_certificate: settings.client_certificates.are_required(),
        })
    }

    /// Returns whether a client may request that name.
    pub(super) fn serves(&self, name: &str) -> bool {
        self.names.serves(name)
    }

    /// Returns whether another thread should sign for that name.
    pub(super) fn is_slow(&self, name: Option<&str>) -> bool {
        self.offload == Offload::SlowKeys && self.names.is_slow(name)
    }
}
