//! `Roots`: the issuers that are trusted.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::client::WebPkiServerVerifier;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};
use rustls::server::{ClientCertVerifierBuilder, WebPkiClientVerifier};
use webpki::OwnedCertRevocationList;

use crate::config_error::TlsConfigError;
use crate::pem;
use crate::provider::{provider, sha256};

/// The issuers that are trusted, and with them every certificate that they have signed, except those
/// that are on one of their revocation lists.
///
/// ```no_run
/// # use rotor_tls::{Roots, TlsConfigError};
/// # fn main() -> Result<(), TlsConfigError> {
/// let ours = Roots::none().pem_file("our-ca.pem")?.crl_pem_file("our-ca.crl")?;
/// # Ok(())
/// # }
/// ```
///
/// # Revocation lists
///
/// If there is a revocation list (CRL, RFC 5280 §5), all are required: each certificate between a
/// peer and its root, the peer's own included, needs a list of its issuer that has not expired
/// (`nextUpdate`). Otherwise it is not accepted
/// ([`RevocationUnknown`](crate::CertificateFault::RevocationUnknown)), and the log has a warning, at
/// most one in ten seconds. So replace the lists before they expire: on a server with
/// [`TlsServer::reload_client_certificates`](crate::TlsServer::reload_client_certificates), and for
/// servers that are contacted by a new [`TlsClient`](crate::TlsClient).
///
/// If an issuer has several lists, the first counts, unless they are for different parts of its
/// certificates. Its name tells which lists are its own, so an issuer that gets a new key needs a new
/// name, too. The signature of a list is verified in handshakes, with the key that has signed the
/// certificate; if it is wrong, they fail with [`TlsError::Here`](crate::TlsError::Here). Delta lists
/// are not supported. Without any list, nothing is checked.
#[derive(Clone)]
#[doc(alias = "trust anchors")]
#[doc(alias = "RootCertStore")]
#[must_use]
pub struct Roots {
    store: RootCertStore,
    revocation_lists: Vec<CertificateRevocationListDer<'static>>,
}

impl Roots {
    /// Returns an empty set, to which roots can be added.
    pub fn none() -> Roots {
        Roots { store: RootCertStore::empty(), revocation_lists: Vec::new() }
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

    /// Adds the revocation lists of a file in PEM (`-----BEGIN X509 CRL-----`).
    ///
    /// # Errors
    ///
    /// If the file cannot be read, has no revocation list, or has one that is malformed or not
    /// supported.
    #[doc(alias = "CRL")]
    #[doc(alias = "ssl_crl")]
    pub fn crl_pem_file(self, path: impl AsRef<Path>) -> Result<Roots, TlsConfigError> {
        let (place, bytes) = pem::read(path.as_ref())?;
        self.add_revocation_lists(&place, pem::revocation_lists(&place, &bytes)?)
    }

    /// Adds revocation lists in PEM.
    ///
    /// # Errors
    ///
    /// If there is no revocation list, or one that is malformed or not supported.
    pub fn crl_pem(self, bytes: &[u8]) -> Result<Roots, TlsConfigError> {
        let lists = pem::revocation_lists(GIVEN_LISTS, bytes)?;
        self.add_revocation_lists(GIVEN_LISTS, lists)
    }

    /// Adds one revocation list in DER, as issuers publish them.
    ///
    /// # Errors
    ///
    /// If it is malformed or not supported.
    pub fn crl_der(self, list: Vec<u8>) -> Result<Roots, TlsConfigError> {
        self.add_revocation_lists(GIVEN_LISTS, vec![CertificateRevocationListDer::from(list)])
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

    fn add_revocation_lists(
        mut self,
        place: &str,
        lists: Vec<CertificateRevocationListDer<'static>>,
    ) -> Result<Roots, TlsConfigError> {
        for (at, list) in lists.into_iter().enumerate() {
            // rustls reads them again later, but does not know where they come from.
            OwnedCertRevocationList::from_der(&list).map_err(|error| {
                let place = format!("revocation list {} in {place}", at + 1);
                TlsConfigError::RevocationList(place, error.into())
            })?;
            self.revocation_lists.push(list);
        }
        Ok(self)
    }

    /// Returns a digest of the roots, which does not depend on the order in which they were added,
    /// and of the revocation lists, where the order matters.
    pub(crate) fn digest(&self) -> [u8; 32] {
        let roots = self.store.roots.iter().map(|root| {
            let constraints = root.name_constraints.as_ref().map(AsRef::as_ref);
            sha256(&[
                root.subject.as_ref(),
                root.subject_public_key_info.as_ref(),
                constraints.unwrap_or_default(),
            ])
        });
        let mut each: Vec<_> = roots.collect();
        each.sort_unstable();
        each.dedup();
        // Of several lists of an issuer, the first counts.
        let lists = self.revocation_lists.iter();
        each.extend(lists.map(|list| sha256(&[b"revoked", list.as_ref()])));
        sha256(&each.iter().map(|digest| &digest[..]).collect::<Vec<_>>())
    }

    /// Makes what checks servers' certificates.
    pub(crate) fn into_server_verifier(self) -> Result<Arc<WebPkiServerVerifier>, TlsConfigError> {
        let (store, lists) = self.into_parts()?;
        WebPkiServerVerifier::builder_with_provider(store, provider())
            .with_crls(lists)
            .enforce_revocation_expiration()
            .build()
            .map_err(|error| TlsConfigError::Other(error.into()))
    }

    /// Begins to make what checks clients' certificates.
    pub(crate) fn into_client_verifier(self) -> Result<ClientCertVerifierBuilder, TlsConfigError> {
        let (store, lists) = self.into_parts()?;
        Ok(WebPkiClientVerifier::builder_with_provider(store, provider())
            .with_crls(lists)
            .enforce_revocation_expiration())
    }

    fn into_parts(self) -> Result<Parts, TlsConfigError> {
        if self.is_empty() {
            return Err(TlsConfigError::NoRoots);
        }
        Ok((Arc::new(self.store), self.revocation_lists))
    }
}

type Parts = (Arc<RootCertStore>, Vec<CertificateRevocationListDer<'static>>);

/// Where lists come from that are not in a file.
const GIVEN_LISTS: &str = "the revocation lists that were given";

impl fmt::Debug for Roots {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Roots({})", self.len())
    }
}
