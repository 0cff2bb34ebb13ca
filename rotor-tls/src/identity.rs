//! `Identity`: a certificate, its key, and the names it is for.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::config_error::TlsConfigError;
use crate::pem;
use crate::provider::provider;

/// The identity of a server or a client: a chain of certificates, and the private key of the first
/// one.
///
/// A server may have several identities. It uses the one whose certificate contains the name that
/// the client requests. If several contain that name, it uses the first one whose signatures the
/// client supports, so put an ECDSA key before an RSA key for old clients.
///
/// ```no_run
/// # use rotor_tls::{Identity, TlsConfigError};
/// # fn main() -> Result<(), TlsConfigError> {
/// let identity = Identity::from_pem_files("site.crt", "site.key")?.with_ocsp_file("site.ocsp")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "CertifiedKey")]
pub struct Identity {
    pub(crate) key: Arc<CertifiedKey>,
    names: Arc<[Box<str>]>,
}

impl Identity {
    /// Reads the chain and the key from two PEM files, which may be the same file. They are read
    /// now; later changes of the files have no effect until they are read again.
    ///
    /// # Errors
    ///
    /// What is wrong with a file; the error contains its path.
    pub fn from_pem_files(
        chain: impl AsRef<Path>,
        key: impl AsRef<Path>,
    ) -> Result<Identity, TlsConfigError> {
        let (chain_place, chain) = pem::read(chain.as_ref())?;
        let (key_place, key) = pem::read(key.as_ref())?;
        let chain = pem::certificates(&chain_place, &chain)?;
        let key = pem::key(&key_place, &key)?;
        Identity::new(&chain_place, chain, &key_place, key)
    }

    /// Reads the chain and the key from memory, in PEM.
    ///
    /// # Errors
    ///
    /// What is wrong with the chain or the key.
    pub fn from_pem(chain: &[u8], key: &[u8]) -> Result<Identity, TlsConfigError> {
        let chain = pem::certificates("the chain that was given", chain)?;
        let key = pem::key("the key that was given", key)?;
        Identity::new("the chain that was given", chain, "the key that was given", key)
    }

    /// Reads the chain, which begins with the server's own certificate, and the key from memory, in
    /// DER: PKCS #8, PKCS #1 (RSA) or SEC 1 (ECDSA).
    ///
    /// # Errors
    ///
    /// What is wrong with the chain or the key.
    pub fn from_der(chain: Vec<Vec<u8>>, key: Vec<u8>) -> Result<Identity, TlsConfigError> {
        let (chain_place, key_place) = ("the chain that was given", "the key that was given");
        if chain.is_empty() {
            return Err(TlsConfigError::NoCertificate(chain_place.into()));
        }
        let chain = chain.into_iter().map(CertificateDer::from).collect();
        let key = PrivateKeyDer::try_from(key)
            .map_err(|error| TlsConfigError::Key(key_place.into(), error.into()))?;
        Identity::new(chain_place, chain, key_place, key)
    }

    fn new(
        chain_place: &str,
        chain: Vec<CertificateDer<'static>>,
        key_place: &str,
        key: PrivateKeyDer<'static>,
    ) -> Result<Identity, TlsConfigError> {
        let names = dns_names(&chain[0]).map_err(|error| {
            let place = format!("the first certificate in {chain_place}");
            TlsConfigError::Certificate(place, error.into())
        })?;
        let key = provider()
            .key_provider
            .load_private_key(key)
            .map_err(|error| TlsConfigError::Key(key_place.into(), error.into()))?;
        let key = CertifiedKey::new(chain, key);
        match key.keys_match() {
            // Some keys do not expose their public part, so this cannot be checked.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {}
            Err(_) => return Err(TlsConfigError::Mismatch(chain_place.into(), key_place.into())),
        }
        Ok(Identity { key: Arc::new(key), names })
    }

    /// Makes a server also present this response: the issuer's statement that the certificate is
    /// not revoked (OCSP, RFC 6960), in DER. The client checks it; it is not checked here.
    #[doc(alias = "OCSP stapling")]
    pub fn with_ocsp(mut self, response: Vec<u8>) -> Identity {
        let mut key = CertifiedKey::clone(&self.key);
        key.ocsp = Some(response);
        self.key = Arc::new(key);
        self
    }

    /// Reads such a response from a file, as written by `openssl ocsp -respout`. It is valid for
    /// some days, so fetch it regularly, and [reload](crate::TlsServer::reload).
    ///
    /// # Errors
    ///
    /// If the file cannot be read.
    pub fn with_ocsp_file(self, path: impl AsRef<Path>) -> Result<Identity, TlsConfigError> {
        let (_, response) = pem::read(path.as_ref())?;
        Ok(self.with_ocsp(response))
    }

    /// Returns the host names in the certificate, in lower case; `*.example.com` matches all names
    /// with one label more than `example.com`.
    #[doc(alias = "subjectAltName")]
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(|name| &**name)
    }

    /// Returns whether a signature takes so long that a loop should not wait for it: half a
    /// millisecond or more for RSA, and at most a twentieth of that for all other keys.
    pub(crate) fn is_slow(&self) -> bool {
        self.key.key.algorithm() == SignatureAlgorithm::RSA
    }
}

/// Returns the host names in a certificate (RFC 6125 §6.4: those of its extension, not its
/// subject).
fn dns_names(certificate: &CertificateDer<'_>) -> Result<Arc<[Box<str>]>, webpki::Error> {
    let certificate = webpki::EndEntityCert::try_from(certificate)?;
    Ok(certificate.valid_dns_names().map(|name| name.to_ascii_lowercase().into()).collect())
}

/// Does not print the key.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("names", &self.names).finish_non_exhaustive()
    }
}
