//! `Roots`: whose certificates are trusted.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::config_error::TlsConfigError;
use crate::pem;

/// The issuers whose certificates are trusted, with those that they have signed.
///
/// ```no_run
/// # use rotor_tls::{Roots, TlsConfigError};
/// # fn main() -> Result<(), TlsConfigError> {
/// let ours = Roots::none().pem_file("our-ca.pem")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "trust anchors")]
#[doc(alias = "RootCertStore")]
#[must_use]
pub struct Roots {
    pub(crate) store: RootCertStore,
}

impl Roots {
    /// Nobody, to which others are added.
    pub fn none() -> Roots {
        Roots { store: RootCertStore::empty() }
    }

    /// Adds the certificates of a file in PEM.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, has none, or one that is no certificate.
    pub fn pem_file(self, path: impl AsRef<Path>) -> Result<Roots, TlsConfigError> {
        let (place, bytes) = pem::read(path.as_ref())?;
        self.add_all(&place, pem::certificates(&place, &bytes)?)
    }

    /// Adds certificates in PEM.
    ///
    /// # Errors
    ///
    /// When there is none, or one that is no certificate.
    pub fn pem(self, bytes: &[u8]) -> Result<Roots, TlsConfigError> {
        let place = "the roots that were given";
        self.add_all(place, pem::certificates(place, bytes)?)
    }

    /// Adds one certificate in DER.
    ///
    /// # Errors
    ///
    /// When it is no certificate.
    pub fn der(self, certificate: Vec<u8>) -> Result<Roots, TlsConfigError> {
        self.add_all("the roots that were given", vec![CertificateDer::from(certificate)])
    }

    /// Returns whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Returns how many there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    fn add_all(
        mut self,
        place: &str,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Result<Roots, TlsConfigError> {
        for certificate in certificates {
            self.store
                .add(certificate)
                .map_err(|error| TlsConfigError::Certificate(place.into(), error.into()))?;
        }
        Ok(self)
    }

    /// As rustls wants them.
    pub(crate) fn into_store(self) -> Result<Arc<RootCertStore>, TlsConfigError> {
        if self.is_empty() { Err(TlsConfigError::NoRoots) } else { Ok(Arc::new(self.store)) }
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.len())
    }
}
