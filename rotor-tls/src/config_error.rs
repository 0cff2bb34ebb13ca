//! `TlsConfigError`: why there is no server, or no client, with these settings.

use std::io;

use quick_error::quick_error;

use crate::error::Cause;

quick_error! {
    /// What is wrong with a certificate, a key, roots or a setting, and what to do about it. These
    /// errors are for whoever runs the program; nothing was changed.
    ///
    /// The text in each says where the data was read: the path of a file, or that it was given in
    /// memory.
    #[derive(Debug)]
    #[non_exhaustive]
    pub enum TlsConfigError {
        /// A file cannot be read.
        Read(path: String, error: io::Error) {
            display("cannot read {path}")
            source(error)
        }
        /// A section of PEM cannot be decoded.
        Pem(place: String, error: Cause) {
            display("{place} has a damaged section: fetch or make the file once more")
            source(&**error)
        }
        /// There is no certificate where one should be.
        NoCertificate(place: String) {
            display("{place} has no certificate; it should hold sections -----BEGIN CERTIFICATE-----, that of the server first")
        }
        /// There is no private key where one should be.
        NoKey(place: String) {
            display("{place} has no private key; it should hold a section -----BEGIN PRIVATE KEY-----")
        }
        /// There is a certificate where a private key should be.
        CertificateForKey(place: String) {
            display("{place} has certificates and no private key: the two files may be exchanged")
        }
        /// The private key is encrypted, and nobody can be asked for its passphrase.
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
            display("the first certificate in {place} cannot be used; it must be of X.509, version 3")
            source(&**error)
        }
        /// The private key is not that of the first certificate.
        Mismatch(certificate: String, key: String) {
            display("the key in {key} is not that of the first certificate in {certificate}: the server's own certificate comes first, then that of its issuer")
        }
        /// There is no identity to show.
        NoIdentity {
            display("a server needs at least one identity: a certificate and its key")
        }
        /// A protocol name (ALPN) is empty, or longer than 255 bytes (RFC 7301 §3.1).
        Protocol(name: Vec<u8>) {
            display("{:?} cannot be the name of a protocol: it must have 1 to 255 bytes", String::from_utf8_lossy(name))
        }
        /// There are no roots to check certificates with.
        NoRoots {
            display("there is no root to check certificates with: none would be accepted")
        }
        /// The system has no roots, or they cannot be read. With the feature `platform-roots`.
        #[cfg(feature = "platform-roots")]
        NoPlatformRoots(error: Option<Cause>) {
            display("the system has no roots that could be read: install its package ca-certificates, or name a file of them in SSL_CERT_FILE")
            source(error.as_deref().map(|error| error as &(dyn std::error::Error + 'static))?)
        }
        /// Something else, in the words of rustls.
        Other(error: Cause) {
            display("these settings cannot be used")
            source(&**error)
        }
    }
}
