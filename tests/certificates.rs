//! Certificate files of a test, from an issuer that no system trusts. They are removed when the
//! test ends.

use std::path::PathBuf;
use std::process::Command;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rotor_test_kit::Directory;

/// A directory with the certificate of an issuer, and a certificate for some names with its key.
pub(crate) struct Certificates {
    directory: Directory,
}

#[allow(dead_code, reason = "some suites have clients alone")]
impl Certificates {
    /// Creates a certificate for these names or addresses.
    pub(crate) fn for_names(names: &[&str]) -> Certificates {
        let directory = Directory::create();
        let mut params = CertificateParams::new(Vec::new()).expect("no names");
        // Each issuer has its own name.
        let name = directory.display().to_string();
        params.distinguished_name.push(rcgen::DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("there is randomness");
        let issuer = CertifiedIssuer::self_signed(params, key).expect("it signs");
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let key = KeyPair::generate().expect("there is randomness");
        let certificate = CertificateParams::new(names).expect("they are names");
        let certificate = certificate.signed_by(&key, &issuer).expect("it signs");
        let files = [
            ("issuer.crt", issuer.pem()),
            ("site.crt", certificate.pem()),
            ("site.key", key.serialize_pem()),
        ];
        for (name, pem) in files {
            directory.file(name, pem);
        }
        Certificates { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// Makes a server present the certificate.
    pub(crate) fn shown_by(&self, mut server: Command) -> Command {
        server.env("TLS_CERTIFICATE", self.path("site.crt")).env("TLS_KEY", self.path("site.key"));
        server
    }

    /// Makes a client trust this issuer only.
    pub(crate) fn trusted_by(&self, mut client: Command) -> Command {
        client.env("SSL_CERT_FILE", self.path("issuer.crt")).env_remove("SSL_CERT_DIR");
        client
    }
}
