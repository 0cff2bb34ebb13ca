//! `TlsServerConfig`: what a server presents, and what it requires of clients.

use std::path::Path;
use std::sync::Arc;

use rustls::ServerConfig;
use rustls::server::NoServerSessionStorage;
use rustls::version::{TLS12, TLS13};

use super::names::{Names, UnknownName};
use super::tickets::Tickets;
use crate::clock::LoopClock;
use crate::config_error::TlsConfigError;
use crate::identity::Identity;
use crate::key_log_file::KeyLogFile;
use crate::provider::{provider, sha256};
use crate::roots::Roots;
use crate::versions::Versions;

/// What a server presents to its clients and requires of them.
///
/// ```no_run
/// # use rotor_tls::{Identity, TlsConfigError, TlsServer, TlsServerConfig};
/// # fn main() -> Result<(), TlsConfigError> {
/// let site = Identity::from_pem_files("site.crt", "site.key")?;
/// let other = Identity::from_pem_files("other.crt", "other.key")?;
/// let tls = TlsServer::new(TlsServerConfig::new(site).identity(other).alpn(&[b"http/1.1"]))?;
/// # Ok(())
/// # }
/// ```
///
/// Sessions are resumed by [tickets](Tickets) only. A client of TLS 1.2 that does not support
/// tickets, and presents the identifier of its session instead (RFC 5246 §7.4.1.2), makes a full
/// handshake: otherwise the server would have to keep all sessions in a store that its loops share
/// and lock, and that other processes do not have. All clients of TLS 1.3 support tickets (RFC 8446
/// §2.2).
#[derive(Clone, Debug)]
#[must_use]
pub struct TlsServerConfig {
    pub(super) identities: Vec<Identity>,
    protocols: Vec<Vec<u8>>,
    pub(super) client_certificates: ClientCertificates,
    versions: Versions,
    tickets: Tickets,
    pub(super) unknown: UnknownName,
    pub(super) offload: Offload,
    pub(super) handshakes_max: usize,
    key_log: Option<Arc<KeyLogFile>>,
}

/// Whether the server requests certificates from its clients.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
#[doc(alias = "mTLS")]
#[doc(alias = "mutual TLS")]
pub enum ClientCertificates {
    /// No certificate is requested.
    #[default]
    None,
    /// A certificate is requested, but a client need not have one. If it presents one, that must
    /// come from one of these issuers.
    Optional(Roots),
    /// A client must present a certificate from one of these issuers.
    Required(Roots),
}

impl ClientCertificates {
    pub(super) fn are_required(&self) -> bool {
        matches!(self, ClientCertificates::Required(_))
    }

    /// Returns a digest of what is required of clients.
    fn digest(&self) -> [u8; 32] {
        match self {
            ClientCertificates::None => sha256(&[b"none"]),
            ClientCertificates::Optional(roots) => sha256(&[b"optional", &roots.digest()]),
            ClientCertificates::Required(roots) => sha256(&[b"required", &roots.digest()]),
        }
    }
}

/// Which thread makes signatures.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Offload {
    /// Always the loop's own thread.
    Never,
    /// For RSA keys, a thread of the loop's pool ([`Scope::offload`](rotor_core::Scope::offload)):
    /// an RSA signature takes 0.5 to 1 ms, in which a loop could serve a hundred requests. If the
    /// pool is full, the loop's own thread.
    #[default]
    SlowKeys,
}

impl TlsServerConfig {
    /// Makes the configuration of a server with this identity, which is also shown to clients that
    /// request no name.
    pub fn new(identity: Identity) -> TlsServerConfig {
        TlsServerConfig {
            identities: vec![identity],
            protocols: Vec::new(),
            client_certificates: ClientCertificates::default(),
            versions: Versions::default(),
            tickets: Tickets::default(),
            unknown: UnknownName::default(),
            offload: Offload::default(),
            handshakes_max: 16 * 1024,
            key_log: None,
        }
    }

    /// Adds an identity for clients that request one of its names.
    #[doc(alias = "SNI")]
    #[doc(alias = "virtual hosts")]
    pub fn identity(mut self, identity: Identity) -> TlsServerConfig {
        self.identities.push(identity);
        self
    }

    /// Sets the names of the protocols that the server speaks, the preferred one first: `http/1.1`,
    /// `h2` (which `rotor-http` speaks with its feature `http2`).
    ///
    /// Default: none, and clients are served whatever protocols they offer. If any are set, a
    /// client that offers only others is refused with `no_application_protocol` (RFC 7301 §3.2).
    #[doc(alias = "ALPN")]
    pub fn alpn(mut self, protocols: &[&[u8]]) -> TlsServerConfig {
        self.protocols = protocols.iter().map(|name| name.to_vec()).collect();
        self
    }

    /// Sets whether the server requests certificates from its clients. Default:
    /// [`ClientCertificates::None`].
    #[doc(alias = "client_auth")]
    pub fn client_certificates(mut self, which: ClientCertificates) -> TlsServerConfig {
        self.client_certificates = which;
        self
    }

    /// Sets what happens to clients that request an unknown name. Default:
    /// [`UnknownName::ShowDefault`].
    pub fn unknown_name(mut self, what: UnknownName) -> TlsServerConfig {
        self.unknown = what;
        self
    }

    /// Sets the supported versions of TLS. Default: [`Versions::Tls12And13`].
    pub fn versions(mut self, versions: Versions) -> TlsServerConfig {
        self.versions = versions;
        self
    }

    /// Sets how sessions are resumed. Default: [`Tickets::Fresh`].
    pub fn tickets(mut self, tickets: Tickets) -> TlsServerConfig {
        self.tickets = tickets;
        self
    }

    /// Sets which thread makes signatures. Default: [`Offload::SlowKeys`].
    pub fn offload(mut self, offload: Offload) -> TlsServerConfig {
        self.offload = offload;
        self
    }

    /// Sets how many handshakes may be under way at a time, on all loops together, counted from the
    /// complete hello of the client to the end of the handshake. At least 1; default 16,384, which
    /// takes about 150 MiB. Further handshakes wait in order, for at most
    /// [`handshake_timeout`](rotor_stream::StreamConfig::handshake_timeout); that of a client which
    /// has left meanwhile is not begun.
    pub fn handshakes_max(mut self, handshakes: usize) -> TlsServerConfig {
        self.handshakes_max = handshakes.max(1);
        self
    }

    /// Appends the secrets of all connections to this file, in the format of NSS, so that Wireshark
    /// can decrypt a recording of them. Default: to none. To do as browsers and curl
    /// do, pass the value of the environment variable `SSLKEYLOGFILE`, if it is set.
    ///
    /// This is for finding faults: whoever can read the file can read these connections. It grows
    /// with each handshake, which waits until the file is written.
    ///
    /// # Errors
    ///
    /// If the file cannot be opened or created. If it cannot be written later, the log says so once.
    #[doc(alias = "SSLKEYLOGFILE")]
    #[doc(alias = "Wireshark")]
    pub fn key_log_file(
        mut self,
        path: impl AsRef<Path>,
    ) -> Result<TlsServerConfig, TlsConfigError> {
        self.key_log = Some(KeyLogFile::open(path.as_ref())?);
        Ok(self)
    }

    /// Makes the configuration for rustls.
    pub(super) fn build(&self, names: Arc<Names>) -> Result<ServerConfig, TlsConfigError> {
        if let Some(name) = self.protocols.iter().find(|name| !(1..=255).contains(&name.len())) {
            return Err(TlsConfigError::Protocol(name.clone()));
        }
        let versions: &[_] = match self.versions {
            Versions::Tls12And13 => &[&TLS13, &TLS12],
            Versions::Tls13 => &[&TLS13],
        };
        let builder = ServerConfig::builder_with_details(provider(), Arc::new(LoopClock))
            .with_protocol_versions(versions)
            .map_err(|error| TlsConfigError::Other(error.into()))?;
        let verifier = match &self.client_certificates {
            ClientCertificates::None => None,
            ClientCertificates::Optional(roots) => {
                Some(roots.clone().into_client_verifier()?.allow_unauthenticated().build())
            }
            ClientCertificates::Required(roots) => {
                Some(roots.clone().into_client_verifier()?.build())
            }
        };
        let builder = match verifier {
            None => builder.with_no_client_auth(),
            Some(verifier) => builder.with_client_cert_verifier(
                verifier.map_err(|error| TlsConfigError::Other(error.into()))?,
            ),
        };
        let mut config = builder.with_cert_resolver(names);
        config.alpn_protocols.clone_from(&self.protocols);
        if let Some(file) = &self.key_log {
            config.key_log = file.clone();
        }
        // Not for data: none is sent during a handshake. Without it, rustls could not encrypt the
        // `close_notify` of a handshake that takes too long.
        config.send_half_rtt_data = true;
        // Sessions are stored in their tickets only; the docs of the type say why.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        self.tickets.apply(self.client_certificates.digest(), &mut config)?;
        Ok(config)
    }
}
