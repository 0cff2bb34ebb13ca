//! `TlsSession`: the result of a handshake.

use std::fmt;

use rustls::{HandshakeKind, ProtocolVersion};

use crate::engine::Engine;

/// What the two ends agreed on in their handshake, and the certificates of the peer.
///
/// A protocol gets it from [`Transport::session`](rotor_stream::Transport::session), an HTTP
/// handler from the `session` of a head.
///
/// ```
/// # use rotor_stream::Transport;
/// # use rotor_tls::TlsSession;
/// fn asked_for(transport: &Transport<'_>) -> Option<String> {
///     transport.session::<TlsSession>()?.server_name().map(str::to_owned)
/// }
/// ```
pub struct TlsSession {
    pub(crate) engine: Engine,
    pub(crate) server_name: Option<Box<str>>,
}

/// A version of TLS.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[non_exhaustive]
pub enum TlsVersion {
    /// TLS 1.2 (RFC 5246).
    Tls12,
    /// TLS 1.3 (RFC 8446).
    Tls13,
}

impl TlsSession {
    /// Returns the version of TLS.
    pub fn version(&self) -> TlsVersion {
        match self.engine.common().protocol_version() {
            Some(ProtocolVersion::TLSv1_2) => TlsVersion::Tls12,
            _ => TlsVersion::Tls13,
        }
    }

    /// Returns the name of the cipher suite in the IANA registry, as rustls writes it, for example
    /// `TLS13_AES_256_GCM_SHA384`.
    #[doc(alias = "cipher suite")]
    pub fn cipher(&self) -> &'static str {
        let suite = self.engine.common().negotiated_cipher_suite();
        suite.and_then(|suite| suite.suite().as_str()).unwrap_or("unknown")
    }

    /// Returns the server name that the client requested, in lower case. `None` if it requested
    /// none, or an address.
    #[doc(alias = "SNI")]
    pub fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Returns the certificates that the peer has presented and that were accepted, in DER, its own
    /// first. The list is empty if the server requested none, or the client had none.
    #[doc(alias = "peer_certificate")]
    #[doc(alias = "mTLS")]
    pub fn peer_certificates(&self) -> impl Iterator<Item = &[u8]> {
        let certificates = self.engine.common().peer_certificates();
        certificates.into_iter().flatten().map(|certificate| certificate.as_ref())
    }

    /// Returns whether this session resumes an earlier one, by a ticket.
    pub fn is_resumed(&self) -> bool {
        self.engine.common().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the name of the negotiated protocol.
    #[doc(alias = "ALPN")]
    pub fn protocol(&self) -> Option<&[u8]> {
        self.engine.common().alpn_protocol()
    }
}

impl fmt::Debug for TlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsSession")
            .field("version", &self.version())
            .field("cipher", &self.cipher())
            .field("server_name", &self.server_name)
            .field("is_resumed", &self.is_resumed())
            .finish_non_exhaustive()
    }
}
