//! `TlsConfigError`: why a server or a client cannot be made with some settings.

use std::{fmt, io};

use quick_error::quick_error;
use rotor_core::with_causes;

use crate::error::Cause;

quick_error! {
    /// What is wrong with a certificate, a key, roots or a setting, and how to correct it. These
    /// errors are for the operator of the program; nothing was changed.
    ///
    /// The text in each variant says where the data was read: the path of a file, or that it was
    /// passed in memory; if there are several certificates, also which one it is. `Debug` shows the
    /// message with its causes, because `main` prints the error that it returns with `Debug`.
    #[non_exhaustive]
    pub enum TlsConfigError {
        /// A file cannot be read.
        Read(path: String, error: io::Error) {
            display("cannot read {path}")
            source(error)
        }
        /// A file cannot be opened for writing.
        Write(path: String, error: io::Error) {
            display("cannot write to {path}")
            source(error)
        }
        /// A section of PEM text cannot be decoded.
        Pem(place: String, error: Cause) {
            display("{place} has a damaged section: fetch or make the file once more")
            source(&**error)
        }
        /// A certificate is missing.
        NoCertificate(place: String) {
            display("{place} has no certificate; it should hold sections -----BEGIN CERTIFICATE-----, that of the server first")
        }
        /// A private key is missing.
        NoKey(place: String) {
            display("{place} has no private key; it should hold a section -----BEGIN PRIVATE KEY-----")
        }
        /// There is a certificate instead of a private key.
        CertificateForKey(place: String) {
            display("{place} has certificates and no private key: the two files may be exchanged")
        }
        /// The private key is encrypted, and there is no way to get its passphrase.
        EncryptedKey(place: String) {
            display("the private key in {place} is encrypted; decrypt it with `openssl pkey -in KEY -out NEW`, and keep the new file from others")
        }
        /// The private key is of an unsupported kind.
        Key(place: String, error: Cause) {
            display("the private key in {place} cannot be used; RSA of 2048 bits or more, ECDSA (P-256, P-384) and Ed25519 can")
            source(&**error)
        }
        /// The certificate cannot be read.
        Certificate(place: String, error: Cause) {
            display("{place} cannot be used; it must be of X.509, version 3")
            source(&**error)
        }
        /// A revocation list is missing.
        NoRevocationList(place: String) {
            display("{place} has no revocation list; it should hold sections -----BEGIN X509 CRL-----")
        }
        /// A revocation list cannot be read.
        RevocationList(place: String, error: Cause) {
            display("{place} cannot be used; it must be a complete list of X.509, version 2, that says when the next one comes (nextUpdate)")
            source(&**error)
        }
        /// The private key does not belong to the first certificate.
        Mismatch(certificate: String, key: String) {
            display("the key in {key} is not that of the first certificate in {certificate}: the server's own certificate comes first, then that of its issuer")
        }
        /// The server has no identity.
        NoIdentity {
            display("a server needs at least one identity: a certificate and its key")
        }
        /// A protocol name (ALPN) is empty, or longer than 255 bytes (RFC 7301 §3.1).
        Protocol(name: Vec<u8>) {
            display("{:?} cannot be the name of a protocol: it must have 1 to 255 bytes", String::from_utf8_lossy(name))
        }
        /// There are no roots to check certificates against.
        NoRoots {
            display("there is no root to check certificates with: none would be accepted")
        }
        /// The system has no roots, or they cannot be read. With the feature `platform-roots`.
        #[cfg(feature = "platform-roots")]
        NoPlatformRoots(error: Option<Cause>) {
            display("the system has no roots that could be read: install its package ca-certificates, or name a file of them in SSL_CERT_FILE")
            source(error.as_deref().map(|error| error as &(dyn std::error::Error + 'static))?)
        }
        /// Another error of rustls.
        Other(error: Cause) {
            display("these settings cannot be used")
            source(&**error)
        }
    }
}

impl fmt::Debug for TlsConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", with_causes(self))
    }
}
