//! What a ticket is worth: where other client certificates are asked for, and when.

mod kit;

use std::time::Duration;

use kit::{Issuer, Log, RawClient, Test, serve};
use rotor_tls::{ClientCertificates, Identity, TicketKeys, Tickets, TlsServer, TlsServerConfig};
use rustls::HandshakeKind;
use rustls::client::{Resumption, Tls12Resumption};
use rustls::version::{TLS12, TLS13};

const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

fn server(issuer: &Issuer, tickets: Tickets, clients: ClientCertificates) -> TlsServer {
    let (chain, key) = issuer.pem_for(&NAMES);
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("it is right");
    let config = TlsServerConfig::new(identity).tickets(tickets).client_certificates(clients);
    TlsServer::new(config.alpn(&[b"lines"])).expect("it is right")
}

/// Says a line to a server; how the handshake was, or `None` where the client was not let in.
fn says(
    test: &mut Test,
    server: &TlsServer,
    config: &rustls::ClientConfig,
    name: &str,
) -> Option<HandshakeKind> {
    let peer = serve(test, server);
    let mut client = RawClient::new(config.clone(), name);
    client.talk(test, &peer);
    if client.failure.is_none() {
        client.write(b"hi\n");
        client.talk(test, &peer);
    }
    peer.reset();
    test.settle();
    test.context_mut().clear();
    (client.plain == b"HI\n").then(|| client.tls.handshake_kind().expect("it is over"))
}

#[test]
fn a_ticket_is_no_substitute_for_a_certificate_that_its_server_did_not_ask_for() {
    let issuer = Issuer::new();
    let others = Issuer::new();
    for version in [&TLS13, &TLS12] {
        for name in NAMES {
            for first in [
                ClientCertificates::None,
                ClientCertificates::Optional(issuer.roots()),
                ClientCertificates::Optional(others.roots()),
            ] {
                let keys = Tickets::Keys(TicketKeys::new(&[[1; 32]]));
                let mut test = Test::new(Log::new());
                let config = issuer.raw_config_of(&[version]);
                let one = server(&issuer, keys.clone(), first);
                assert_eq!(says(&mut test, &one, &config, name), Some(HandshakeKind::Full));
                assert_eq!(says(&mut test, &one, &config, name), Some(HandshakeKind::Resumed));
                let clients = ClientCertificates::Required(issuer.roots());
                let other = server(&issuer, keys, clients);
                assert_eq!(says(&mut test, &other, &config, name), None, "{version:?}, {name}");
                let counters = other.counters();
                assert_eq!((counters.resumed(), counters.failed_by_peer()), (0, 1));
            }
        }
    }
}

#[test]
fn a_ticket_is_no_substitute_for_a_certificate_of_another_issuer() {
    let (issuer, others) = (Issuer::new(), Issuer::new());
    let (chain, key) = issuer.pem_for(&["a client"]);
    let config = issuer.raw_config_with(&chain, &key);
    let keys = Tickets::Keys(TicketKeys::new(&[[1; 32]]));
    let required = |roots| server(&issuer, keys.clone(), ClientCertificates::Required(roots));
    let one = required(issuer.roots());
    let mut test = Test::new(Log::new());
    assert_eq!(says(&mut test, &one, &config, "localhost"), Some(HandshakeKind::Full));
    let same = required(issuer.roots());
    assert_eq!(says(&mut test, &same, &config, "localhost"), Some(HandshakeKind::Resumed));
    assert_eq!(says(&mut test, &required(others.roots()), &config, "localhost"), None);
}

#[test]
fn a_session_is_not_resumed_by_its_identifier() {
    let issuer = Issuer::new();
    for (resumption, comes_back) in [
        (Tls12Resumption::SessionIdOrTickets, HandshakeKind::Resumed),
        (Tls12Resumption::SessionIdOnly, HandshakeKind::Full),
    ] {
        let mut config = issuer.raw_config_of(&[&TLS12]);
        config.resumption = Resumption::in_memory_sessions(8).tls12_resumption(resumption);
        let server = server(&issuer, Tickets::Fresh, ClientCertificates::None);
        let mut test = Test::new(Log::new());
        assert_eq!(says(&mut test, &server, &config, "localhost"), Some(HandshakeKind::Full));
        assert_eq!(says(&mut test, &server, &config, "localhost"), Some(comes_back));
    }
}

#[test]
fn a_client_that_comes_back_all_the_time_is_asked_again_in_the_end() {
    let issuer = Issuer::new();
    for version in [&TLS13, &TLS12] {
        for tickets in [Tickets::Fresh, Tickets::Keys(TicketKeys::new(&[[1; 32]]))] {
            let server = server(&issuer, tickets.clone(), ClientCertificates::None);
            let config = issuer.raw_config_of(&[version]);
            let mut test = Test::new(Log::new());
            test.advance(Duration::from_secs(365 * 24 * 60 * 60));
            let mut kinds = Vec::new();
            for _ in 0..5 {
                kinds.extend(says(&mut test, &server, &config, "localhost"));
                test.advance(Duration::from_secs(5 * 60 * 60));
            }
            // Twelve hours after the first, and not after the last.
            use HandshakeKind::{Full, Resumed};
            let expected = [Full, Resumed, Resumed, Full, Resumed];
            assert_eq!(kinds, expected, "{version:?}, {tickets:?}");
        }
    }
}
