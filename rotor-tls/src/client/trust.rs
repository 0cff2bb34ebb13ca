//! `Trust`: which issuers a client trusts; and the one type that accepts everything.

use std::fmt;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

use crate::provider::provider;
use crate::roots::Roots;

/// Which servers a client trusts: those whose certificate comes from an issuer in [`Roots`], or, in
/// tests, all of them ([`DangerAcceptAnyCertificate`]).
#[derive(Clone)]
pub struct Trust(pub(super) TrustKind);

#[derive(Clone)]
pub(super) enum TrustKind {
    Roots(Roots),
    AnyCertificate(Arc<AcceptAnyVerifier>),
}

/// **Dangerous: anyone between this client and the server can read and change everything.**
///
/// A client made with this instead of [`Roots`] accepts any certificate, from anyone, for any name,
/// expired or not. The connection is encrypted, but it is unknown for whom. Use it to try out a
/// server whose certificate you cannot get, on your own network. Each client made with it logs a
/// warning.
///
/// You do not need it for a server with a self-signed certificate, or one from your own issuer:
/// [`Roots::pem_file`] takes that certificate, or the issuer's.
///
/// ```
/// # use rotor_tls::{DangerAcceptAnyCertificate, TlsClient, TlsClientConfig, TlsConfigError};
/// # fn main() -> Result<(), TlsConfigError> {
/// let tls = TlsClient::new(TlsClientConfig::new(DangerAcceptAnyCertificate))?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[doc(alias = "insecure")]
#[doc(alias = "danger_accept_invalid_certs")]
#[doc(alias = "InsecureSkipVerify")]
#[doc(alias = "SSL_VERIFY_NONE")]
#[allow(clippy::exhaustive_structs, reason = "nothing can be added to it")]
pub struct DangerAcceptAnyCertificate;

impl From<Roots> for Trust {
    fn from(roots: Roots) -> Trust {
        Trust(TrustKind::Roots(roots))
    }
}

impl From<DangerAcceptAnyCertificate> for Trust {
    fn from(_: DangerAcceptAnyCertificate) -> Trust {
        Trust(TrustKind::AnyCertificate(Arc::new(AcceptAnyVerifier { provider: provider() })))
    }
}

impl fmt::Debug for Trust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            TrustKind::Roots(roots) => roots.fmt(f),
            TrustKind::AnyCertificate(_) => DangerAcceptAnyCertificate.fmt(f),
        }
    }
}

/// The verifier for rustls. It still checks that the server has the key of its certificate:
/// otherwise a handshake that was damaged on the way would pass for a good one.
pub(super) struct AcceptAnyVerifier {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AcceptAnyVerifier {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

impl fmt::Debug for AcceptAnyVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AcceptsAny")
    }
}
