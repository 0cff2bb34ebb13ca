//! `TlsClientConfig`: what a client trusts, presents and offers.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::Resumption;
use rustls::sign::SingleCertAndKey;
use rustls::{ClientConfig, version};

use super::trust::{Trust, TrustKind};
use crate::clock::LoopClock;
use crate::config_error::TlsConfigError;
use crate::identity::Identity;
use crate::key_log_file::KeyLogFile;
use crate::provider::provider;
use crate::versions::Versions;

/// What a client trusts, presents and offers.
///
/// ```no_run
/// # use rotor_tls::{Identity, Roots, TlsClient, TlsClientConfig, TlsConfigError};
/// # fn main() -> Result<(), TlsConfigError> {
/// let roots = Roots::none().pem_file("our-ca.pem")?;
/// let ours = Identity::from_pem_files("client.crt", "client.key")?;
/// let tls = TlsClient::new(TlsClientConfig::new(roots).identity(ours).alpn(&[b"http/1.1"]))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[must_use]
#[doc(alias = "rustls::ClientConfig")]
pub struct TlsClientConfig {
    trust: Trust,
    identity: Option<Identity>,
    protocols: Vec<Vec<u8>>,
    versions: Versions,
    sessions_max: usize,
    key_log: Option<Arc<KeyLogFile>>,
}

/// The default for the number of servers whose sessions a client keeps.
const SESSIONS_MAX: usize = 256;

/// The maximum number of servers whose sessions a client keeps. rustls allocates the memory for all
/// of them at once, and panics if that is impossible.
const SESSIONS_MAX_LIMIT: usize = 64 * 1024;

/// The number of tickets that rustls keeps for each server. It divides the number of sessions by
/// this.
const TICKETS_PER_SERVER: usize = 8;

impl TlsClientConfig {
    /// Makes the configuration of a client that trusts these [`Roots`](crate::Roots). Each
    /// [`TlsTarget`](crate::TlsTarget) has the name that the server's certificate must contain.
    pub fn new(trust: impl Into<Trust>) -> TlsClientConfig {
        TlsClientConfig {
            trust: trust.into(),
            identity: None,
            protocols: Vec::new(),
            versions: Versions::default(),
            sessions_max: SESSIONS_MAX,
            key_log: None,
        }
    }

    /// Sets the certificate that is presented to servers that request one. Default: none. It is
    /// presented to every server that requests one, whichever that is. The loop's own thread signs
    /// for it, for which an RSA key takes 0.5 to 1 ms: with many connections, use another kind.
    #[doc(alias = "client certificate")]
    #[doc(alias = "mTLS")]
    pub fn identity(mut self, identity: Identity) -> TlsClientConfig {
        self.identity = Some(identity);
        self
    }

    /// Sets the names of the protocols that the client speaks, the preferred one first. Default:
    /// none, and nothing is negotiated. For HTTP, set `http/1.1`.
    ///
    /// A server that knows none of them ends the handshake
    /// ([`TlsError::Refused`](crate::TlsError::Refused)) or ignores them; then
    /// [`TlsSession::protocol`](crate::TlsSession::protocol) is `None`.
    #[doc(alias = "ALPN")]
    pub fn alpn(mut self, protocols: &[&[u8]]) -> TlsClientConfig {
        self.protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self
    }

    /// Sets the supported versions of TLS. Default: 1.2 and 1.3.
    pub fn versions(mut self, versions: Versions) -> TlsClientConfig {
        self.versions = versions;
        self
    }

    /// Sets for how many servers tickets are kept, with which later connections need no signature;
    /// 0 keeps none. Default: 256, with up to 8 tickets and some KiB each. Values above 65,536
    /// count as 65,536. The memory of the list, without tickets, is allocated at once.
    ///
    /// Servers are distinguished by their names. If there are more, the tickets of the server that
    /// was contacted first are dropped. All clones of the client share the tickets.
    ///
    /// The certificate of a resumed session is not checked again: if it has expired or was revoked
    /// meanwhile, that is noticed only when the ticket has expired, after a day or the time that
    /// the server sets.
    #[doc(alias = "resumption")]
    #[doc(alias = "session cache")]
    pub fn sessions_max(mut self, servers: usize) -> TlsClientConfig {
        self.sessions_max = servers.min(SESSIONS_MAX_LIMIT);
        self
    }

    /// Appends the secrets of all connections to this file, as
    /// [`TlsServerConfig::key_log_file`](crate::TlsServerConfig::key_log_file) does.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or created.
    #[doc(alias = "SSLKEYLOGFILE")]
    #[doc(alias = "Wireshark")]
    pub fn key_log_file(
        mut self,
        path: impl AsRef<Path>,
    ) -> Result<TlsClientConfig, TlsConfigError> {
        self.key_log = Some(KeyLogFile::open(path.as_ref())?);
        Ok(self)
    }

    /// Makes the configuration for rustls.
    pub(super) fn build(self) -> Result<ClientConfig, TlsConfigError> {
        if let Some(name) = self.protocols.iter().find(|name| !(1..=255).contains(&name.len())) {
            return Err(TlsConfigError::Protocol(name.clone()));
        }
        let versions: &[_] = match self.versions {
            Versions::Tls12And13 => &[&version::TLS13, &version::TLS12],
            Versions::Tls13 => &[&version::TLS13],
        };
        let builder = ClientConfig::builder_with_details(provider(), Arc::new(LoopClock))
            .with_protocol_versions(versions)
            .map_err(|error| TlsConfigError::Other(error.into()))?;
        let builder = match self.trust.0 {
            TrustKind::Roots(roots) => builder.with_webpki_verifier(roots.into_server_verifier()?),
            TrustKind::AnyCertificate(verifier) => {
                log::warn!("a TLS client is made that accepts any certificate of any server");
                builder.dangerous().with_custom_certificate_verifier(verifier)
            }
        };
        let mut built = match self.identity {
            Some(identity) => {
                builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(identity.key)))
            }
            None => builder.with_no_client_auth(),
        };
        built.alpn_protocols = self.protocols;
        if let Some(file) = self.key_log {
            built.key_log = file;
        }
        built.resumption = match self.sessions_max {
            0 => Resumption::disabled(),
            servers => Resumption::in_memory_sessions(servers * TICKETS_PER_SERVER),
        };
        Ok(built)
    }
}

impl fmt::Debug for TlsClientConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsClientConfig")
            .field("trust", &self.trust)
            .field("identity", &self.identity)
            .field("versions", &self.versions)
            .field("sessions_max", &self.sessions_max)
            .finish_non_exhaustive()
    }
}
