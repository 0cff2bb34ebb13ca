//! `CertificateFault`: what is wrong with a peer's certificate.

use rustls::{CertificateError, Error};

use crate::error::TlsError;

/// What is wrong with a peer's certificate; see [`TlsError::certificate_fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CertificateFault {
    /// No certificate was presented. This is the peer's fault.
    Missing,
    /// Neither the certificate nor any of its issuers is among the roots. It is the peer's fault if
    /// it did not send an intermediate certificate, or if the wrong server answers; otherwise a
    /// root is missing.
    UnknownIssuer,
    /// The certificate is for other names than the requested one. This is the peer's fault, or the
    /// caller has requested the wrong name.
    WrongName,
    /// The certificate has expired. This is the peer's fault, or the clock here is wrong.
    Expired,
    /// The certificate is not valid yet. The clock here or there is wrong.
    NotYetValid,
    /// Its issuer has revoked it.
    Revoked,
    /// Whether it is revoked is unknown: there are [revocation lists](crate::Roots#revocation-lists),
    /// but none of its issuer, or that list has expired. A list is missing here, or the clock here
    /// is wrong.
    RevocationUnknown,
    /// The certificate has another purpose: a server presents a client certificate, or an issuer's,
    /// or the certificate has critical extensions that are not understood.
    WrongPurpose,
    /// The certificate is malformed, the signature is not its issuer's, or the signature is of a
    /// kind that is no longer trusted. This is the peer's fault.
    Invalid,
}

impl TlsError {
    /// Returns what is wrong with the peer's certificate, if that is the error.
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
            Error::InvalidCertificate(error) => fault_of(error),
            Error::NoCertificatesPresented => CertificateFault::Missing,
            _ => CertificateFault::Invalid,
        })
    }
}

fn fault_of(error: &CertificateError) -> CertificateFault {
    use CertificateError::*;
    match error {
        UnknownIssuer => CertificateFault::UnknownIssuer,
        NotValidForName | NotValidForNameContext { .. } => CertificateFault::WrongName,
        Expired | ExpiredContext { .. } => CertificateFault::Expired,
        NotValidYet | NotValidYetContext { .. } => CertificateFault::NotYetValid,
        Revoked => CertificateFault::Revoked,
        UnknownRevocationStatus | ExpiredRevocationList | ExpiredRevocationListContext { .. } => {
            CertificateFault::RevocationUnknown
        }
        InvalidPurpose | InvalidPurposeContext { .. } | UnhandledCriticalExtension => {
            CertificateFault::WrongPurpose
        }
        // rustls has no name for this: a server presents an issuer's certificate.
        Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => {
            CertificateFault::WrongPurpose
        }
        _ => CertificateFault::Invalid,
    }
}
