//! `CertificateFault`: what is wrong with a peer's certificate.

use rustls::{CertificateError, Error};

use crate::error::TlsError;

/// What is wrong with a peer's certificate; see [`TlsError::certificate_fault`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum CertificateFault {
    /// None was shown. The peer's fault.
    Missing,
    /// Neither the certificate nor an issuer of it is among the roots. The peer's fault if it
    /// forgot to send an intermediate issuer, or if another server than the expected one answers;
    /// otherwise the roots lack one.
    UnknownIssuer,
    /// The certificate is for other names than the one that was asked for. The peer's fault, or
    /// that of the caller, who asked the wrong one.
    WrongName,
    /// The certificate has expired. The peer's fault, or the clock here is wrong.
    Expired,
    /// The certificate is not valid yet. The clock here or there is wrong.
    NotYetValid,
    /// Its issuer has revoked it.
    Revoked,
    /// It has another purpose: a server shows one for clients, or an issuer's own, or it has
    /// extensions that must be understood and are not.
    WrongPurpose,
    /// It is malformed, its signature is not its issuer's, or the signature is of a kind that is no
    /// longer trusted. The peer's fault.
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
        // rustls has no name for this: an issuer's certificate, shown as a server's.
        Other(other) if other.0.to_string().contains("CaUsedAsEndEntity") => {
            CertificateFault::WrongPurpose
        }
        _ => CertificateFault::Invalid,
    }
}
