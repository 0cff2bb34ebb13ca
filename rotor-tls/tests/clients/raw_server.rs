//! The peer of a client under test: a server that uses rustls directly, with its own buffers.

use std::io::{Read, Write};
use std::sync::Arc;

use rotor_core::Machine;
use rotor_stream::testing::{Peer, TestLoop};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::{ServerConfig, ServerConnection, SupportedProtocolVersion};

/// Sends each line back in upper case.
pub(crate) struct RawServer {
    tls: ServerConnection,
    /// The decrypted bytes that it has read.
    pub(crate) plain: Vec<u8>,
}

/// Presents the given certificate, whether the key belongs to it or not.
#[derive(Debug)]
struct Shows(Arc<CertifiedKey>);

impl ResolvesServerCert for Shows {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.clone())
    }
}

impl RawServer {
    pub(crate) fn new(
        versions: &[&'static SupportedProtocolVersion],
        chain: &str,
        key: &str,
    ) -> RawServer {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let chain = CertificateDer::pem_slice_iter(chain.as_bytes()).map(|one| one.expect("fine"));
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).expect("fine");
        let key = provider.key_provider.load_private_key(key).expect("it is a key");
        let shows = Shows(Arc::new(CertifiedKey::new(chain.collect(), key)));
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .expect("they are versions")
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(shows));
        config.alpn_protocols = vec![b"lines".to_vec()];
        let tls = ServerConnection::new(Arc::new(config)).expect("it is well made");
        RawServer { tls, plain: Vec::new() }
    }

    /// Exchanges bytes with a client until neither sends anything.
    pub(crate) fn talk<M: Machine>(&mut self, test: &mut TestLoop<M>, peer: &Peer) {
        self.exchange_while(test, peer, |_| true);
    }

    /// Exchanges bytes until the handshake is complete.
    pub(crate) fn shake<M: Machine>(&mut self, test: &mut TestLoop<M>, peer: &Peer) {
        self.exchange_while(test, peer, |tls| tls.is_handshaking());
    }

    fn exchange_while<M: Machine>(
        &mut self,
        test: &mut TestLoop<M>,
        peer: &Peer,
        continues: impl Fn(&ServerConnection) -> bool,
    ) {
        while continues(&self.tls) {
            test.settle();
            let records = peer.take_received();
            self.receive(&records);
            let mut records_back = Vec::new();
            while self.tls.wants_write() {
                self.tls.write_tls(&mut records_back).expect("a vector takes all");
            }
            if records.is_empty() && records_back.is_empty() {
                return;
            }
            peer.send(&records_back);
        }
    }

    /// The records of its last bytes and its `close_notify`.
    pub(crate) fn final_records(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.tls.writer().write_all(bytes).expect("it takes all");
        self.tls.send_close_notify();
        let mut records = Vec::new();
        while self.tls.wants_write() {
            self.tls.write_tls(&mut records).expect("a vector takes all");
        }
        records
    }

    fn receive(&mut self, mut records: &[u8]) {
        while !records.is_empty() {
            self.tls.read_tls(&mut records).expect("a slice gives all");
            // It answers invalid records with an alert.
            if self.tls.process_new_packets().is_err() {
                return;
            }
            let mut plain = [0; 1024];
            while let Ok(count @ 1..) = self.tls.reader().read(&mut plain) {
                self.plain.extend(&plain[..count]);
                let line = plain[..count].to_ascii_uppercase();
                self.tls.writer().write_all(&line).expect("it takes all");
            }
        }
    }
}
