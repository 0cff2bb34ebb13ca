//! Handshakes that miss their deadline: the peer is told of the end, and the alert arrives.

mod kit;

use std::time::Duration;

use kit::{Issuer, Log, RawClient, Test, add_client, add_server, connected};
use rotor_stream::testing::Peer;
use rotor_tls::ClientCertificates;

/// An unencrypted `close_notify`, a warning (RFC 8446 §6).
const CLOSE_NOTIFY: [u8; 7] = [21, 3, 3, 0, 2, 1, 0];

const LATE: Duration = Duration::from_secs(11);

/// Our side has ended, and waits until the peer has read that.
fn assert_lingers(test: &mut Test, peer: &Peer) {
    assert!(peer.is_ended() && !peer.is_dropped());
    peer.send(b"what was on its way");
    test.settle();
    assert_eq!(peer.unread_len(), 0, "or a reset might overtake the alert");
    peer.end();
    test.settle();
    assert!(peer.is_dropped());
}

#[test]
fn a_slow_client_gets_close_notify() {
    let issuer = Issuer::new();
    let hello = RawClient::new(issuer.raw_config(), "localhost").take_records();
    for sent in [1, 5, 6, 100, hello.len() - 1] {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        peer.send(&hello[..sent]);
        test.advance(LATE);
        assert_eq!(peer.take_received(), CLOSE_NOTIFY, "{sent} bytes of a hello");
        assert_eq!(*test.context(), ["the handshake took too long"]);
        assert_eq!((server.counters().late(), server.counters().handshakes_now()), (1, 0));
        assert_lingers(&mut test, &peer);
        assert_eq!(server.counters().late(), 1, "counted once");
    }
}

#[test]
fn a_client_that_sent_no_tls_is_closed_without_an_answer() {
    let issuer = Issuer::new();
    for said in [&b""[..], b"G", b"POST"] {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        peer.send(said);
        test.advance(LATE);
        assert!(peer.is_dropped());
        assert_eq!(peer.take_received(), b"");
        assert_eq!(server.counters().late(), 1);
    }
}

#[test]
fn close_notify_after_the_servers_flight_can_be_read_by_the_client() {
    let issuer = Issuer::new();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        let mut client = RawClient::new(issuer.raw_config_of(&[version]), "localhost");
        peer.send(&client.take_records());
        test.settle();
        let flight = peer.take_received();
        client.receive(&flight);
        assert!(!client.is_closed && flight.len() > 300);
        // The client's answer is lost in transit.
        test.advance(LATE);
        let last = peer.take_received();
        client.receive(&last);
        assert!(client.failure.is_none(), "{:?}", client.failure);
        let is_old = version.version == rustls::ProtocolVersion::TLSv1_2;
        assert_eq!(last == CLOSE_NOTIFY, is_old, "in clear");
        // A rustls client takes an unencrypted alert for no more than a warning.
        assert_eq!(client.is_closed, !is_old);
        assert_eq!(server.counters().late(), 1);
        assert_lingers(&mut test, &peer);
    }
}

#[test]
fn an_alert_waits_for_an_unsent_flight() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    peer.limit_room(100);
    peer.send(&client.take_records());
    test.advance(LATE);
    assert!(!peer.is_ended());
    for _ in 0..20 {
        peer.make_room(100);
        test.settle();
    }
    client.receive(&peer.take_received());
    assert!(client.is_closed, "{:?}", client.failure);
    assert_lingers(&mut test, &peer);
}

#[test]
fn a_client_that_waits_for_a_permit_gets_close_notify() {
    let issuer = Issuer::new();
    let server = issuer.server_with(|config| config.handshakes_max(1));
    let mut test = Test::new(Log::new());
    let peers = [(); 2].map(|()| {
        let peer = add_server(&mut test, &server);
        peer.send(&RawClient::new(issuer.raw_config(), "localhost").take_records());
        test.settle();
        peer
    });
    assert_eq!(peers[1].received_len(), 0);
    test.advance(LATE);
    assert_eq!(peers[1].take_received(), CLOSE_NOTIFY);
    assert_eq!(server.counters().late(), 2);
}

#[test]
fn a_client_sends_close_notify_to_a_silent_server() {
    let issuer = Issuer::new();
    let tls = issuer.client();
    for answered in [&b""[..], b"\x16\x03\x03\0\x7a\x02"] {
        let mut test = Test::new(Log::new());
        let peer = add_client(&mut test, &tls, "localhost", 1);
        test.settle();
        let hello = peer.take_received();
        assert_eq!(hello[0], 22);
        peer.send(answered);
        test.advance(LATE);
        assert_eq!(*test.context(), ["the handshake took too long"]);
        assert_eq!(peer.take_received(), CLOSE_NOTIFY);
        assert_lingers(&mut test, &peer);
    }
    assert_eq!(tls.counters().late(), 2);
}

#[test]
fn close_notify_is_omitted_if_it_cannot_be_encrypted() {
    let issuer = Issuer::new();
    let asks = ClientCertificates::Required(issuer.roots());
    let server = issuer.server_with(|config| config.client_certificates(asks));
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    peer.send(&RawClient::new(issuer.raw_config(), "localhost").take_records());
    test.settle();
    assert!(peer.take_received().len() > 500);
    test.advance(LATE);
    assert!(peer.is_dropped());
    assert_eq!(peer.take_received(), b"");
    assert_eq!(server.counters().late(), 1);
}

/// When a session of TLS 1.2 is resumed, the server's Finished comes first (RFC 5246 §7.3) and is
/// encrypted. Unencrypted data behind it would be a broken record.
#[test]
fn nothing_unencrypted_follows_the_finished_of_a_resumed_session() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let config = issuer.raw_config_of(&[&rustls::version::TLS12]);
    let mut test = Test::new(Log::new());
    let _first = connected(&mut test, &server, config.clone());
    let peer = add_server(&mut test, &server);
    let mut client = RawClient::new(config, "localhost");
    peer.send(&client.take_records());
    test.settle();
    client.receive(&peer.take_received());
    assert_eq!(client.tls.handshake_kind(), Some(rustls::HandshakeKind::Resumed));
    // The client's answer is lost in transit.
    test.advance(LATE);
    assert_eq!(peer.take_received(), b"");
    assert!(peer.is_dropped());
    assert_eq!(server.counters().late(), 1);
}
