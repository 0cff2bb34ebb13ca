//! When a ticket is accepted: after changes of the requested client certificates, and over time.

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::{Issuer, Log, RawClient, Test, add_server};
use rotor_tls::{ClientCertificates, Identity, TicketKeys, Tickets, TlsServer, TlsServerConfig};
use rustls::client::{
    ClientSessionMemoryCache, ClientSessionStore, Resumption, Tls12ClientSessionValue,
    Tls12Resumption, Tls13ClientSessionValue,
};
use rustls::pki_types::ServerName;
use rustls::version::{TLS12, TLS13};
use rustls::{HandshakeKind, NamedGroup};

const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

fn server(issuer: &Issuer, tickets: Tickets, clients: ClientCertificates) -> TlsServer {
    let (chain, key) = issuer.pem_for(&NAMES);
    let identity = Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("it is right");
    let config = TlsServerConfig::new(identity).tickets(tickets).client_certificates(clients);
    TlsServer::new(config.alpn(&[b"lines"])).expect("it is right")
}

/// Sends a line to a server. Returns the kind of handshake, or `None` if the server refused the
/// client.
fn connect_and_send(
    test: &mut Test,
    server: &TlsServer,
    config: &rustls::ClientConfig,
    name: &str,
) -> Option<HandshakeKind> {
    let peer = add_server(test, server);
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
fn a_ticket_without_a_certificate_is_refused_if_one_is_required() {
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
                assert_eq!(
                    connect_and_send(&mut test, &one, &config, name),
                    Some(HandshakeKind::Full)
                );
                assert_eq!(
                    connect_and_send(&mut test, &one, &config, name),
                    Some(HandshakeKind::Resumed)
                );
                let clients = ClientCertificates::Required(issuer.roots());
                let other = server(&issuer, keys, clients);
                assert_eq!(
                    connect_and_send(&mut test, &other, &config, name),
                    None,
                    "{version:?}, {name}"
                );
                let counters = other.counters();
                assert_eq!((counters.resumed(), counters.failed_by_peer()), (0, 1));
            }
        }
    }
}

#[test]
fn a_ticket_is_refused_by_a_server_with_other_client_roots() {
    let (issuer, others) = (Issuer::new(), Issuer::new());
    let (chain, key) = issuer.pem_for(&["a client"]);
    let config = issuer.raw_config_with(&chain, &key);
    let keys = Tickets::Keys(TicketKeys::new(&[[1; 32]]));
    let required = |roots| server(&issuer, keys.clone(), ClientCertificates::Required(roots));
    let one = required(issuer.roots());
    let mut test = Test::new(Log::new());
    assert_eq!(connect_and_send(&mut test, &one, &config, "localhost"), Some(HandshakeKind::Full));
    let same = required(issuer.roots());
    assert_eq!(
        connect_and_send(&mut test, &same, &config, "localhost"),
        Some(HandshakeKind::Resumed)
    );
    assert_eq!(connect_and_send(&mut test, &required(others.roots()), &config, "localhost"), None);
}

#[test]
fn a_session_is_not_resumed_by_its_identifier() {
    let issuer = Issuer::new();
    for (resumption, reconnect) in [
        (Tls12Resumption::SessionIdOrTickets, HandshakeKind::Resumed),
        (Tls12Resumption::SessionIdOnly, HandshakeKind::Full),
    ] {
        let mut config = issuer.raw_config_of(&[&TLS12]);
        config.resumption = Resumption::in_memory_sessions(8).tls12_resumption(resumption);
        let server = server(&issuer, Tickets::Fresh, ClientCertificates::None);
        let mut test = Test::new(Log::new());
        assert_eq!(
            connect_and_send(&mut test, &server, &config, "localhost"),
            Some(HandshakeKind::Full)
        );
        assert_eq!(connect_and_send(&mut test, &server, &config, "localhost"), Some(reconnect));
    }
}

#[test]
fn a_session_ends_after_its_lifetime_despite_resumptions() {
    let issuer = Issuer::new();
    for version in [&TLS13, &TLS12] {
        for tickets in [Tickets::Fresh, Tickets::Keys(TicketKeys::new(&[[1; 32]]))] {
            let server = server(&issuer, tickets.clone(), ClientCertificates::None);
            let config = issuer.raw_config_of(&[version]);
            let mut test = Test::new(Log::new());
            test.advance(Duration::from_secs(365 * 24 * 60 * 60));
            let mut kinds = Vec::new();
            for _ in 0..5 {
                kinds.extend(connect_and_send(&mut test, &server, &config, "localhost"));
                test.advance(Duration::from_secs(5 * 60 * 60));
            }
            // A full handshake is due twelve hours after the first handshake, not after the last.
            use HandshakeKind::{Full, Resumed};
            let expected = [Full, Resumed, Resumed, Full, Resumed];
            assert_eq!(kinds, expected, "{version:?}, {tickets:?}");
        }
    }
}

/// Keeps sessions without the name of their server, so a client offers any ticket to any name.
#[derive(Debug)]
struct NamelessStore(ClientSessionMemoryCache);

impl ClientSessionStore for NamelessStore {
    fn set_kx_hint(&self, _: ServerName<'static>, _: NamedGroup) {}
    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        None
    }
    fn set_tls12_session(&self, _: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.0.set_tls12_session(any_name(), value);
    }
    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.0.tls12_session(&any_name())
    }
    fn remove_tls12_session(&self, _: &ServerName<'static>) {
        self.0.remove_tls12_session(&any_name());
    }
    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        self.0.insert_tls13_ticket(any_name(), value);
    }
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.0.take_tls13_ticket(&any_name())
    }
}

fn any_name() -> ServerName<'static> {
    ServerName::try_from("any").expect("it is a name")
}

#[test]
fn a_session_that_a_ticket_did_not_resume_has_its_whole_lifetime() {
    let issuer = Issuer::new();
    for version in [&TLS13, &TLS12] {
        let server = server(&issuer, Tickets::Fresh, ClientCertificates::None);
        let mut config = issuer.raw_config_of(&[version]);
        let store = NamelessStore(ClientSessionMemoryCache::new(8));
        config.resumption = Resumption::store(Arc::new(store));
        let mut test = Test::new(Log::new());
        let hours = |count: u64| Duration::from_secs(count * 60 * 60);
        let mut kinds = Vec::new();
        // The second handshake is a full one, because its ticket belongs to another name.
        for (name, pause) in
            [("localhost", hours(5)), ("127.0.0.1", hours(8)), ("127.0.0.1", hours(0))]
        {
            kinds.extend(connect_and_send(&mut test, &server, &config, name));
            test.advance(pause);
        }
        use HandshakeKind::{Full, Resumed};
        assert_eq!(kinds, [Full, Full, Resumed], "{version:?}");
    }
}
