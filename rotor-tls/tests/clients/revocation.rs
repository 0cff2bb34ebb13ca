//! Revoked certificates, of servers and of clients.

use rotor_core::with_causes;
use rotor_test_kit::Directory;
use rotor_tls::{
    CertificateFault, ClientCertificates, Identity, Roots, TicketKeys, Tickets, TlsClient,
    TlsClientConfig, TlsConfigError, TlsServer,
};

use crate::judge::judge;
use crate::kit::Issuer;
use crate::{client, meet};

/// A certificate with this serial number, and its key, in PEM.
fn numbered(issuer: &Issuer, serial: u64) -> (String, String) {
    issuer.pem_with(&["localhost"], |params| params.serial_number = Some(serial.into()))
}

fn with_lists(issuer: &Issuer, lists: &[String]) -> Roots {
    lists.iter().fold(issuer.roots(), |roots, list| {
        roots.crl_pem(list.as_bytes()).expect("it is well made")
    })
}

#[test]
fn a_client_checks_servers_against_the_lists_of_their_issuers() {
    use CertificateFault::*;
    let (issuer, other) = (Issuer::new(), Issuer::new());
    // Clients connect on the fourth of January 1970.
    let rows = [
        (vec![], 7, Ok(())),
        (vec![issuer.revoke(&[], 9)], 7, Ok(())),
        (vec![issuer.revoke(&[7, 9], 9)], 7, Err(Some(Revoked))),
        (vec![issuer.revoke(&[7, 9], 9)], 8, Ok(())),
        (vec![issuer.revoke(&[7, 9], 9)], 9, Err(Some(Revoked))),
        (vec![issuer.revoke(&[9], 3)], 7, Err(Some(RevocationUnknown))),
        (vec![other.revoke(&[7], 9)], 7, Err(Some(RevocationUnknown))),
        (vec![other.revoke(&[7], 9), issuer.revoke(&[], 9)], 7, Ok(())),
        (vec![other.revoke(&[7], 9) + &issuer.revoke(&[7], 9)], 7, Err(Some(Revoked))),
    ];
    for (at, (lists, serial, expected)) in rows.into_iter().enumerate() {
        let roots = with_lists(&issuer, &lists);
        let tls = client(TlsClientConfig::new(roots).alpn(&[b"lines"]));
        let (chain, key) = numbered(&issuer, serial);
        assert_eq!(judge(&tls, "localhost", &chain, &key), Some(expected), "row {at}");
    }
}

#[test]
fn every_issuer_between_a_peer_and_its_root_needs_a_list() {
    let root = Issuer::new();
    let middle = root.below(5);
    let (chain, key) = numbered(&middle, 7);
    let chain = chain + &middle.pem();
    for (lists, expected) in [
        (vec![root.revoke(&[], 9)], Err(Some(CertificateFault::RevocationUnknown))),
        (vec![middle.revoke(&[], 9)], Err(Some(CertificateFault::RevocationUnknown))),
        (vec![middle.revoke(&[], 9), root.revoke(&[], 9)], Ok(())),
        (vec![middle.revoke(&[], 9), root.revoke(&[5], 9)], Err(Some(CertificateFault::Revoked))),
    ] {
        let tls = client(TlsClientConfig::new(with_lists(&root, &lists)).alpn(&[b"lines"]));
        assert_eq!(judge(&tls, "localhost", &chain, &key), Some(expected), "{lists:?}");
    }
}

/// A client of the server that presents a certificate with this number.
fn presenting(issuer: &Issuer, serial: u64) -> TlsClient {
    let (chain, key) = numbered(issuer, serial);
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("it is right");
    client(TlsClientConfig::new(issuer.roots()).alpn(&[b"lines"]).identity(identity))
}

fn is_served(server: &TlsServer, client: &TlsClient) -> bool {
    let log = meet(server, client, "localhost");
    let is_served = log.iter().any(|line| line == "LINE 1");
    let text = "the certificate of the peer was not accepted: ";
    assert_eq!(log.iter().any(|line| line.contains(text)), !is_served, "{log:?}");
    is_served
}

#[test]
fn a_reloaded_list_ends_the_sessions_of_revoked_clients_too() {
    let issuer = Issuer::new();
    for tickets in [Tickets::Fresh, Tickets::Keys(TicketKeys::new(&[[1; 32]]))] {
        let required = |revoked: &[u64]| with_lists(&issuer, &[issuer.revoke(revoked, 9)]);
        let server = issuer.server_with(|config| {
            config
                .tickets(tickets)
                .client_certificates(ClientCertificates::Required(required(&[7])))
        });
        let [seven, eight] = [7, 8].map(|serial| presenting(&issuer, serial));
        let resumed = || server.counters().resumed();
        assert!(!is_served(&server, &seven) && is_served(&server, &eight));
        assert!(is_served(&server, &eight));
        assert_eq!((resumed(), server.counters().failed_by_peer()), (1, 1));

        for which in [ClientCertificates::Required, ClientCertificates::Optional] {
            let reload = |revoked: &[u64]| {
                let which = which(required(revoked));
                server.reload_client_certificates(which).expect("nothing is wrong");
            };
            reload(&[8]);
            assert!(is_served(&server, &seven) && !is_served(&server, &eight));
            reload(&[]);
            assert!(is_served(&server, &seven) && is_served(&server, &eight));
        }
    }
}

/// The first list of an issuer counts.
#[test]
fn lists_in_another_order_end_the_sessions_of_revoked_clients_too() {
    let issuer = Issuer::new();
    let lists = [issuer.revoke(&[], 9), issuer.revoke(&[8], 9)];
    let in_order = |order: [usize; 2]| {
        let lists = order.map(|at| lists[at].clone());
        ClientCertificates::Required(with_lists(&issuer, &lists))
    };
    let tickets = Tickets::Keys(TicketKeys::new(&[[1; 32]]));
    let server =
        issuer.server_with(|config| config.tickets(tickets).client_certificates(in_order([0, 1])));
    let eight = presenting(&issuer, 8);
    assert!(is_served(&server, &eight) && is_served(&server, &eight));
    assert_eq!(server.counters().resumed(), 1);
    server.reload_client_certificates(in_order([1, 0])).expect("nothing is wrong");
    assert!(!is_served(&server, &eight));
}

#[test]
fn errors_about_lists_name_the_file_and_a_remedy() {
    let directory = Directory::create();
    let issuer = Issuer::new();
    let list = issuer.revoke(&[7], 9);
    let rubbish = "-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n";
    for (name, text, expected) in [
        ("empty.crl", String::new(), "empty.crl has no revocation list; it should hold sections"),
        ("issuer.crt", issuer.pem(), "issuer.crt has no revocation list; it should hold sections"),
        ("1.crl", list.replacen("MI", "M*", 1), "1.crl has a damaged section"),
        ("2.crl", list.clone() + rubbish, "revocation list 2 in "),
        ("3.crl", rubbish.into(), "3.crl cannot be used; it must be a complete list of X.509"),
    ] {
        let path = directory.file(name, text);
        let error = issuer.roots().crl_pem_file(path).expect_err("it is wrong");
        let text = with_causes(&error).to_string();
        assert!(text.contains(expected), "{text}");
    }
    let error = issuer.roots().crl_pem_file(directory.join("missing.crl")).expect_err("no file");
    assert!(with_causes(&error).to_string().contains("missing.crl: No such file"), "{error:?}");
    let error = issuer.roots().crl_der(vec![1, 2, 3]).expect_err("it is no list");
    assert!(matches!(error, TlsConfigError::RevocationList(..)), "{error:?}");
    let path = directory.file("right.crl", list);
    let roots = Roots::none().crl_pem_file(path).expect("it is right");
    let error = TlsClient::new(TlsClientConfig::new(roots)).expect_err("there is no root");
    assert!(matches!(error, TlsConfigError::NoRoots), "{error:?}");
}
