//! `CertificateFault`: what is wrong with a certificate that the peer has shown.

use rustls::{CertificateError, Error};

use crate::error::TlsError;

/// What is wrong with the certificate of a peer; [`TlsError::certificate_fault`] says it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CertificateFault {
    /// None was shown. The peer's fault.
    Missing,
    /// Neither it nor an issuer of it is among the roots: the peer's fault, which may
    /// have forgotten to send an issuer in between, or another one than it should be
    /// answers; or the roots lack one.
    UnknownIssuer,
    /// It is for other names than the one that was asked for: the peer's fault, or the
    /// caller's, who asked the wrong one.
    WrongName,
    /// It was valid, until some time ago. The peer's fault, or the clock here is wrong.
    Expired,
    /// It will be valid at some time. The clock here or there is wrong.
    NotYetValid,
    /// Its issuer has taken it back.
    Revoked,
    /// It is for something else: for clients where a server shows it, an issuer's own, or with
    /// extensions that must be understood and are not.
    WrongPurpose,
    /// It is no certificate, or its signature is not its issuer's, or of a kind that nobody trusts
    /// any more. The peer's fault.
    Invalid,
}

impl TlsError {
    /// Returns what is wrong with the certificate of the peer, where that is the error.
    ///
    /// ```
    /// # use rotor_tls::{CertificateFault, TlsError};
    /// fn has_expired(error: &TlsError) -> bool {
    ///     error.certificate_fault() == Some(CertificateFault::Expired)
    /// }
    /// ```
    pub fn certificate_fault(&self) -> Option<CertificateFault> {
        let TlsError::Certificate(cause) = self else { return None };
        Some(match cause.downcast_ref()? {
            Error::InvalidCertificate(error) => of(error),
            Error::NoCertificatesPresented => CertificateFault::Missing,
            _ => CertificateFault::Invalid,
        })
    }
}

fn of(error: &CertificateError) -> CertificateFault {
    use CertificateError::*;
    match error {
        UnknownIssuer => CertificateFault::UnknownIssuer,
        NotValidForName | NotValidForNameContext { .. } => CertificateFault::WrongName,
        Expired | ExpiredContext { .. } => CertificateFault::Expired,
        NotValidYet | NotValidYetContext { .. } => CertificateFault::NotYetValid,
        Revoked => CertificateFault::Revoked,
        InvalidPurpose | InvalidPurposeContext { .. } | UnhandledCriticalExtension => {
            CertificateFault::WrongPurpose
        }
        // rustls has no name for it: an issuer's certificate, shown as one of a server.
        Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => {
            CertificateFault::WrongPurpose
        }
        _ => CertificateFault::Invalid,
    }
}
