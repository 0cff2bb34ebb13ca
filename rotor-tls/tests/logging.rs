//! What is logged of handshakes that fail. A separate test program, since a process has one log.

mod kit;

use std::sync::Mutex;
use std::time::Duration;

use kit::{Issuer, Log as Lines, Test, add_client, add_server, exchange};
use log::{Level, LevelFilter, Log, Metadata, Record};
use rotor_tls::{ClientCertificates, Identity, Roots, TlsClient, TlsClientConfig};
use rustls::pki_types::CertificateRevocationListDer;
use rustls::pki_types::pem::PemObject;

static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Warnings;

impl Log for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.level() <= Level::Warn
    }
    fn log(&self, record: &Record<'_>) {
        if self.enabled(record.metadata()) {
            WARNINGS.lock().expect("no test panics with it").push(record.args().to_string());
        }
    }
    fn flush(&self) {}
}

/// The list with another signature.
fn with_wrong_signature(list: &str) -> Vec<u8> {
    let list = CertificateRevocationListDer::from_pem_slice(list.as_bytes());
    let mut list = list.expect("it is well made").to_vec();
    *list.last_mut().expect("it has a signature") ^= 1;
    list
}

/// Peers come as often as they like, and most of their faults are theirs alone.
#[test]
fn handshakes_that_fail_because_of_this_side_are_logged_once_in_a_while() {
    log::set_logger(&Warnings).expect("there is no other");
    log::set_max_level(LevelFilter::Trace);
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_with(&["client"], |params| params.serial_number = Some(7.into()));
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("it is right");
    let config = TlsClientConfig::new(issuer.roots()).alpn(&[b"lines"]).identity(identity);
    let client = TlsClient::new(config).expect("it is well made");
    let pem = |list: String| issuer.roots().crl_pem(list.as_bytes());
    let wrong = with_wrong_signature(&issuer.revoke(&[], 9));
    // The clients come on the fourth of January 1970.
    let mut day = Duration::from_secs(3 * 24 * 60 * 60);
    for (roots, words) in [
        (pem(issuer.revoke(&[], 9)), None),
        (pem(issuer.revoke(&[7], 9)), None),
        (Ok(Roots::none().pem(Issuer::new().pem().as_bytes()).expect("it is well made")), None),
        (pem(Issuer::new().revoke(&[], 9)), Some("UnknownRevocationStatus")),
        (pem(issuer.revoke(&[], 3)), Some("revocation list expired")),
        (issuer.roots().crl_der(wrong), Some("BadSignature")),
    ] {
        let required = ClientCertificates::Required(roots.expect("the list is well made"));
        let server = issuer.server_with(|config| config.client_certificates(required));
        let mut test = Test::new(Lines::new());
        test.advance(day);
        day += Duration::from_secs(20);
        for _ in 0..3 {
            let (a, b) =
                (add_server(&mut test, &server), add_client(&mut test, &client, "localhost", 1));
            exchange(&mut test, &a, &b);
        }
        let warnings = std::mem::take(&mut *WARNINGS.lock().expect("no test panics with it"));
        assert_eq!(warnings.len(), usize::from(words.is_some()), "{words:?}: {warnings:?}");
        for warning in warnings {
            assert!(warning.contains(words.unwrap_or_default()), "{warning}");
        }
    }
}
