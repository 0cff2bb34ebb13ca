//! `Roots`: the issuers that are trusted.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;

use crate::config_error::TlsConfigError;
use crate::pem;
use crate::provider::sha256;

/// The issuers that are trusted, and with them every certificate that they have signed.
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
    /// Returns an empty set, to which roots can be added.
    pub fn none() -> Roots {
        Roots { store: RootCertStore::empty() }
    }

    /// Adds the roots that Mozilla trusted when the crate `webpki-roots` was published: enough for
    /// servers on the public web, wherever the program runs. With the feature `webpki-roots`.
    ///
    /// They change a few times a year: run `cargo update` and build again.
    #[cfg(feature = "webpki-roots")]
    #[doc(alias = "Mozilla")]
    pub fn webpki(mut self) -> Roots {
        self.store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
        self
    }

    /// Adds the roots that the system trusts, which its administrator may have changed. They are in
    /// `/etc/ssl` and the other places where OpenSSL looks. If the environment has `SSL_CERT_FILE`
    /// or `SSL_CERT_DIR`, only those are read. With the feature `platform-roots`.
    ///
    /// This reads files, usually 200 KiB, so call it before the loop runs. Certificates that do not
    /// belong to an issuer are ignored, and the log says how many.
    ///
    /// # Errors
    ///
    /// If there are none at all, as in a container without `ca-certificates`.
    #[cfg(feature = "platform-roots")]
    #[doc(alias = "native roots")]
    #[doc(alias = "rustls-native-certs")]
    pub fn platform(mut self) -> Result<Roots, TlsConfigError> {
        let found = rustls_native_certs::load_native_certs();
        let (added, ignored) = self.store.add_parsable_certificates(found.certs);
        let mut errors = found.errors;
        if added == 0 {
            return Err(TlsConfigError::NoPlatformRoots(errors.pop().map(Into::into)));
        }
        for error in errors {
            log::warn!("some roots of the system cannot be read: {error}");
        }
        if ignored > 0 {
            log::warn!("{ignored} roots of the system are no certificates that can be used");
        }
        Ok(self)
    }

    /// Adds the certificates of a file in PEM.
    ///
    /// A server's self-signed certificate is its own root, unless it is marked as an issuer's: then
    /// the server is refused (`CaUsedAsEndEntity`,
    /// [`WrongPurpose`](crate::CertificateFault::WrongPurpose)). `openssl req -x509` marks it so
    /// without `-addext basicConstraints=critical,CA:FALSE`.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, has no certificate, or has a malformed one.
    pub fn pem_file(self, path: impl AsRef<Path>) -> Result<Roots, TlsConfigError> {
        let (place, bytes) = pem::read(path.as_ref())?;
        self.add_all(&place, pem::certificates(&place, &bytes)?)
    }

    /// Adds certificates in PEM.
    ///
    /// # Errors
    ///
    /// If there is no certificate, or a malformed one.
    pub fn pem(self, bytes: &[u8]) -> Result<Roots, TlsConfigError> {
        let place = "the roots that were given";
        self.add_all(place, pem::certificates(place, bytes)?)
    }

    /// Adds one certificate in DER.
    ///
    /// # Errors
    ///
    /// If it is not a certificate.
    pub fn der(self, certificate: Vec<u8>) -> Result<Roots, TlsConfigError> {
        self.add_all("the roots that were given", vec![CertificateDer::from(certificate)])
    }

    /// Returns whether there are no roots.
    pub fn is_empty(&self) -> bool {
        self.store.is_empty()
    }

    /// Returns how many roots there are.
    pub fn len(&self) -> usize {
        self.store.len()
    }

    fn add_all(
        mut self,
        place: &str,
        certificates: Vec<CertificateDer<'static>>,
    ) -> Result<Roots, TlsConfigError> {
        for (at, certificate) in certificates.into_iter().enumerate() {
            self.store.add(certificate).map_err(|error| {
                let place = format!("certificate {} in {place}", at + 1);
                TlsConfigError::Certificate(place, error.into())
            })?;
        }
        Ok(self)
    }

    /// Returns a digest of the roots, which does not depend on the order in which they were added.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let mut each: Vec<_> = self
            .store
            .roots
            .iter()
            .map(|root| {
                let constraints = root.name_constraints.as_ref().map(AsRef::as_ref);
                sha256(&[
                    root.subject.as_ref(),
                    root.subject_public_key_info.as_ref(),
                    constraints.unwrap_or_default(),
                ])
            })
            .collect();
        each.sort_unstable();
        each.dedup();
        sha256(&each.iter().map(|digest| &digest[..]).collect::<Vec<_>>())
    }

    /// Makes the store for rustls.
    pub(crate) fn into_store(self) -> Result<Arc<RootCertStore>, TlsConfigError> {
        if self.is_empty() { Err(TlsConfigError::NoRoots) } else { Ok(Arc::new(self.store)) }
    }
}

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.len())
    }
}
