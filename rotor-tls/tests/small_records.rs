//! Tiny records, messages in pieces, and repeated messages: the server accepts a useful amount of
//! them, and no more.

mod kit;

use kit::{Issuer, Log, RawClient, Test, add_server, connected, nonzero_counters};
use rotor_tls::EMPTY_BYTES_MAX;
use rustls::crypto::cipher::{OutboundChunks, OutboundPlainMessage};
use rustls::{ConnectionTrafficSecrets, ContentType, ProtocolVersion};

#[test]
fn records_of_one_byte_are_read() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut config = issuer.raw_config();
    config.max_fragment_size = Some(32 + 6);
    let mut test = Test::new(Log::new());
    let (peer, mut client) = connected(&mut test, &server, config);
    for _ in 0..2000 {
        client.write(b"x");
    }
    client.write(b"\n");
    peer.send(&client.take_records());
    test.settle();
    client.receive(&peer.take_received());
    assert_eq!(client.plain.len(), 2001);
}

/// Makes TLS 1.3 data records, each with `padding` bytes of padding, using the keys of a client
/// that has completed the handshake.
fn sealing(client: RawClient) -> impl FnMut(&[u8], usize) -> Vec<u8> {
    let suite = client.tls.negotiated_cipher_suite().and_then(|suite| suite.tls13());
    let suite = suite.expect("it speaks TLS 1.3");
    let secrets = client.tls.dangerous_extract_secrets().expect("it is set so");
    let (mut number, secrets) = secrets.tx;
    let (key, iv) = match secrets {
        ConnectionTrafficSecrets::Aes128Gcm { key, iv }
        | ConnectionTrafficSecrets::Aes256Gcm { key, iv }
        | ConnectionTrafficSecrets::Chacha20Poly1305 { key, iv } => (key, iv),
        _ => panic!("there are no others"),
    };
    let mut encrypter = suite.aead_alg.encrypter(key, iv);
    move |data, padding| {
        // The type is the last byte that is not zero (RFC 8446 §5.4).
        let payload = [data, &[ContentType::ApplicationData.into()], &vec![0; padding]].concat();
        let message = OutboundPlainMessage {
            typ: ContentType::Unknown(0),
            version: ProtocolVersion::TLSv1_2,
            payload: OutboundChunks::Single(&payload),
        };
        let record = encrypter.encrypt(message, number).expect("it is short");
        number += 1;
        record.encode()
    }
}

#[test]
fn consecutive_empty_records_are_limited_by_number_and_bytes() {
    for (padding, row, error) in [
        (0, 32, "the peer violated TLS: "),
        (16_000, EMPTY_BYTES_MAX / 16_023, "the peer sent too many empty records"),
    ] {
        let issuer = Issuer::new();
        let server = issuer.server();
        let mut config = issuer.raw_config();
        config.enable_secret_extraction = true;
        let mut test = Test::new(Log::new());
        let (peer, client) = connected(&mut test, &server, config);
        let mut seal = sealing(client);
        for _ in 0..3 {
            peer.send(&(0..row).flat_map(|_| seal(b"", padding)).collect::<Vec<u8>>());
            test.settle();
            peer.send(&seal(b"line\n", padding));
            test.settle();
            assert!(!peer.take_received().is_empty(), "{padding}: {:?}", test.context());
        }
        assert!(!peer.is_ended());
        peer.send(&(0..=row).flat_map(|_| seal(b"", padding)).collect::<Vec<u8>>());
        test.settle();
        assert!(peer.is_ended());
        let log = test.context().join("\n");
        assert!(log.contains(error), "{padding}: {log}");
        assert_eq!(server.counters().broken(), 1);
    }
}

/// In TLS 1.2 the client's part of the handshake is unencrypted.
#[test]
fn a_handshake_in_the_smallest_records_stays_within_its_limit() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    let config = issuer.raw_config_of(&[&rustls::version::TLS12]);
    peer.send(&RawClient::new(config, "localhost").take_records());
    test.settle();
    assert!(peer.received_len() > 0, "it waits for the rest of the handshake");
    // The longest possible message (RFC 5246 §7.4.7), one byte per record.
    let mut message = vec![16, 0, 0xff, 0xff];
    message.resize(4 + 0xffff, 7);
    let records: Vec<u8> = message.iter().flat_map(|byte| record(22, &[*byte])).collect();
    let (within, beyond) = records.split_at(EMPTY_BYTES_MAX);
    peer.send(within);
    test.settle();
    assert!(!peer.is_ended());
    peer.send(beyond);
    test.settle();
    assert!(peer.is_ended());
    let log = test.context().join("\n");
    assert!(log.contains("the peer sent too many empty records"), "{log}");
    assert_eq!(nonzero_counters(server.counters()), [("failed_by_peer", 1)]);
}

#[test]
fn key_updates_are_followed_and_floods_of_them_are_refused() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let (peer, mut client) = connected(&mut test, &server, issuer.raw_config());
    for _ in 0..100 {
        client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
        client.write(b"new key\n");
        client.talk(&mut test, &peer);
    }
    assert_eq!(client.plain, b"NEW KEY\n".repeat(100));
    assert_eq!(client.failure, None);
    for _ in 0..100 {
        client.tls.refresh_traffic_keys().expect("it is TLS 1.3");
    }
    client.talk(&mut test, &peer);
    let log = test.context().join("\n");
    assert!(log.contains("the peer violated TLS: "), "{log}");
    assert_eq!(server.counters().broken(), 1);
}

/// An unencrypted record of this type.
fn record(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = (payload.len() as u16).to_be_bytes();
    [&[kind, 3, 3, len[0], len[1]], payload].concat()
}

#[test]
fn a_handshake_succeeds_in_the_smallest_pieces_and_records() {
    let issuer = Issuer::new();
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    let hello = client.take_records();
    for fragment_bytes in [1, 4, hello.len().div_ceil(64), 16_000] {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        let mut client = RawClient::new(issuer.raw_config(), "localhost");
        let hello = client.take_records();
        for fragment in hello[5..].chunks(fragment_bytes) {
            for byte in record(22, fragment) {
                peer.send(&[byte]);
                test.settle();
            }
        }
        client.talk(&mut test, &peer);
        client.write(b"hi\n");
        client.talk(&mut test, &peer);
        assert_eq!(client.plain, b"HI\n", "{fragment_bytes}: {:?}", client.failure);
        assert_eq!(nonzero_counters(server.counters()), [("full", 1)]);
    }
}

#[test]
fn a_flood_of_alerts_is_not_answered_endlessly() {
    let issuer = Issuer::new();
    let server = issuer.server();
    // Before the hello is answered: unencrypted warnings, which RFC 8446 §6 no longer defines.
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    peer.send(&client.take_records());
    test.settle();
    let answer_len = peer.take_received().len();
    for _ in 0..10_000 {
        peer.send(&record(21, &[1, 90]));
    }
    test.settle();
    peer.end();
    test.settle();
    assert!(peer.received_len() < answer_len && peer.is_dropped());
    assert_eq!(test.machines(), 0);
    assert_eq!(server.counters().failed_by_peer() + server.counters().abandoned(), 1);

    // A fatal alert ends the handshake immediately.
    let server = issuer.server();
    let (mut test, mut client) =
        (Test::new(Log::new()), RawClient::new(issuer.raw_config(), "localhost"));
    let peer = add_server(&mut test, &server);
    peer.send(&client.take_records());
    peer.send(&record(21, &[2, 40]));
    test.settle();
    assert!(peer.is_dropped());
    assert_eq!(nonzero_counters(server.counters()), [("refused_by_peer", 1)]);
}
