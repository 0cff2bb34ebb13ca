//! An issuer of certificates and revocation lists.

use std::sync::Arc;

use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, CertifiedIssuer, IsCa,
    KeyIdMethod, KeyPair, RevokedCertParams,
};
use rotor_tls::{Identity, Roots, TlsClient, TlsClientConfig, TlsServer, TlsServerConfig};
use rustls::pki_types::CertificateDer;

/// An issuer of certificates.
pub(crate) struct Issuer {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Issuer {
    pub(crate) fn new() -> Issuer {
        let (params, key) = params_and_key();
        Issuer { issuer: CertifiedIssuer::self_signed(params, key).expect("it signs") }
    }

    /// An intermediate issuer, whose certificate has this serial number.
    pub(crate) fn below(&self, serial: u64) -> Issuer {
        let (mut params, key) = params_and_key();
        params.serial_number = Some(serial.into());
        let issuer = CertifiedIssuer::signed_by(params, key, &self.issuer).expect("it signs");
        Issuer { issuer }
    }

    /// Its own certificate, in PEM.
    pub(crate) fn pem(&self) -> String {
        self.issuer.pem()
    }

    /// The certificate chain and the key, in PEM.
    pub(crate) fn pem_for(&self, names: &[&str]) -> (String, String) {
        self.pem_with(names, |_| {})
    }

    pub(crate) fn pem_with(
        &self,
        names: &[&str],
        change: impl FnOnce(&mut CertificateParams),
    ) -> (String, String) {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let mut params = CertificateParams::new(names).expect("they are names");
        // The clock of the in-memory loop starts at 1970-01-01.
        params.not_before = rcgen::date_time_ymd(1970, 1, 1);
        change(&mut params);
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
        let certificate = params.signed_by(&key, &self.issuer).expect("it signs");
        (certificate.pem(), key.serialize_pem())
    }

    pub(crate) fn identity(&self, names: &[&str]) -> Identity {
        let (chain, key) = self.pem_for(names);
        Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("they are well made")
    }

    pub(crate) fn roots(&self) -> Roots {
        Roots::none().der(self.issuer.der().to_vec()).expect("it is well made")
    }

    /// A list of the certificates that are revoked, in PEM. The next one is due on this day of
    /// January 1970.
    pub(crate) fn revoke(&self, serials: &[u64], next: u8) -> String {
        let date = |day| rcgen::date_time_ymd(1970, 1, day);
        let revoked = serials.iter().map(|&serial| RevokedCertParams {
            serial_number: serial.into(),
            revocation_time: date(1),
            reason_code: None,
            invalidity_date: None,
        });
        let params = CertificateRevocationListParams {
            this_update: date(1),
            next_update: date(next),
            crl_number: 1.into(),
            issuing_distribution_point: None,
            revoked_certs: revoked.collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        params.signed_by(&self.issuer).expect("it signs").pem().expect("it is well made")
    }

    pub(crate) fn client(&self) -> TlsClient {
        let config = TlsClientConfig::new(self.roots()).alpn(&[b"lines"]);
        TlsClient::new(config).expect("it is well made")
    }

    /// A server named `localhost`.
    pub(crate) fn server(&self) -> TlsServer {
        self.server_with(|config| config)
    }

    pub(crate) fn server_with(
        &self,
        change: impl FnOnce(TlsServerConfig) -> TlsServerConfig,
    ) -> TlsServer {
        let config = TlsServerConfig::new(self.identity(&["localhost"])).alpn(&[b"lines"]);
        TlsServer::new(change(config)).expect("it is well made")
    }

    /// A configuration of rustls itself that trusts this issuer.
    pub(crate) fn raw_config(&self) -> rustls::ClientConfig {
        self.raw_config_of(&[&rustls::version::TLS13, &rustls::version::TLS12])
    }

    /// The same for a client that presents a certificate.
    pub(crate) fn raw_config_with(&self, chain: &str, key: &str) -> rustls::ClientConfig {
        use rustls::pki_types::PrivateKeyDer;
        use rustls::pki_types::pem::PemObject;
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("it is well made");
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|one| one.expect("fine"));
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("fine");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("there are versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain.collect(), key)
            .expect("they belong together")
    }

    pub(crate) fn raw_config_of(
        &self,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(self.issuer.der().clone()).expect("it is well made");
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("they are versions")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }
}

fn params_and_key() -> (CertificateParams, KeyPair) {
    let mut params = CertificateParams::new(Vec::new()).expect("no names");
    params.not_before = rcgen::date_time_ymd(1970, 1, 1);
    let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).expect("there is randomness");
    // Each issuer has its own name.
    let name = format!("issuer {:?}", &key.public_key_raw()[..8]);
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    (params, key)
}
