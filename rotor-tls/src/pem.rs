//! Reading certificates, revocation lists and keys from PEM files.

use std::fs;
use std::path::Path;

use rustls::pki_types::pem::{self, PemObject, SectionKind};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};

use crate::config_error::TlsConfigError;

/// Reads a file. Errors contain its path.
pub(crate) fn read(path: &Path) -> Result<(String, Vec<u8>), TlsConfigError> {
    let place = path.display().to_string();
    match fs::read(path) {
        Ok(bytes) => Ok((place, bytes)),
        Err(error) => Err(TlsConfigError::Read(place, error)),
    }
}

/// Returns all certificates in order; at least one.
pub(crate) fn certificates(
    place: &str,
    bytes: &[u8],
) -> Result<Vec<CertificateDer<'static>>, TlsConfigError> {
    sections(place, bytes, TlsConfigError::NoCertificate)
}

/// Returns all revocation lists in order; at least one.
pub(crate) fn revocation_lists(
    place: &str,
    bytes: &[u8],
) -> Result<Vec<CertificateRevocationListDer<'static>>, TlsConfigError> {
    sections(place, bytes, TlsConfigError::NoRevocationList)
}

/// Returns all sections of a kind, or the error `none` if there are none.
fn sections<T: PemObject>(
    place: &str,
    bytes: &[u8],
    none: fn(String) -> TlsConfigError,
) -> Result<Vec<T>, TlsConfigError> {
    match T::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>() {
        Ok(sections) if sections.is_empty() => Err(none(place.into())),
        Ok(sections) => Ok(sections),
        Err(error) => Err(TlsConfigError::Pem(place.into(), error.into())),
    }
}

/// Returns the first private key.
pub(crate) fn key(place: &str, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsConfigError> {
    match PrivateKeyDer::from_pem_slice(bytes) {
        Ok(key) => Ok(key),
        Err(pem::Error::NoItemsFound) if contains(bytes, b"ENCRYPTED PRIVATE KEY-----") => {
            Err(TlsConfigError::EncryptedKey(place.into()))
        }
        Err(pem::Error::NoItemsFound) if holds_certificate(bytes) => {
            Err(TlsConfigError::CertificateForKey(place.into()))
        }
        Err(pem::Error::NoItemsFound) => Err(TlsConfigError::NoKey(place.into())),
        // The old format has a line that says that the key is encrypted (RFC 1421 §4.6.1.1).
        Err(_) if contains(bytes, b"Proc-Type: 4,ENCRYPTED") => {
            Err(TlsConfigError::EncryptedKey(place.into()))
        }
        Err(error) => Err(TlsConfigError::Pem(place.into(), error.into())),
    }
}

fn holds_certificate(bytes: &[u8]) -> bool {
    <(SectionKind, Vec<u8>)>::pem_slice_iter(bytes)
        .any(|item| matches!(item, Ok((SectionKind::Certificate, _))))
}

fn contains(bytes: &[u8], text: &[u8]) -> bool {
    bytes.windows(text.len()).any(|window| window == text)
}
