//! Invalid input, instead of TLS and in the middle of it. Each kind ends its own connection, is
//! answered with an alert if the peer would understand one, and has its own counter.

mod kit;

use std::sync::Arc;
use std::time::Duration;

use kit::{
    Issuer, Log, RawClient, Test, add_client, add_server, connected, exchange, nonzero_counters,
};
use rotor_tls::{ClientCertificates, TlsServer, UnknownName, Versions};
use rustls::{AlertDescription, Error, SignatureScheme};

/// What a server answers to these bytes, and what it logs.
fn answer(tls: &TlsServer, bytes: &[u8], piece: usize) -> (Vec<u8>, Log) {
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = add_server(&mut test, tls);
    for piece in bytes.chunks(piece) {
        peer.send(piece);
        test.settle();
    }
    assert!(peer.is_ended(), "our side ends behind the answer");
    assert_eq!(peer.unread_len(), 0, "or a reset might overtake the answer");
    peer.end();
    test.settle();
    assert!(peer.is_dropped());
    assert_eq!(test.machines(), 0);
    (peer.take_received(), test.context().clone())
}

fn alert(which: AlertDescription) -> Vec<u8> {
    vec![21, 3, 3, 0, 2, 2, which.into()]
}

#[test]
fn plain_http_gets_an_http_response() {
    for request in
        ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /x HTTP/1.0\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n"]
    {
        for piece in [usize::MAX, 1, 3] {
            let server = Issuer::new().server();
            let (answer, log) = answer(&server, request.as_bytes(), piece);
            let answer = String::from_utf8(answer).expect("it is text");
            assert!(answer.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{answer}");
            let (head, body) = answer.split_once("\r\n\r\n").expect("a head ends");
            assert!(head.contains(&format!("Content-Length: {}\r\n", body.len())), "{head}");
            assert_eq!(
                log,
                [
                    "the handshake has failed: the client speaks plain HTTP, but this port expects HTTPS"
                ]
            );
            assert_eq!(nonzero_counters(server.counters()), [("plain_http", 1)]);
        }
    }
}

#[test]
fn other_protocols_get_an_alert() {
    for bytes in [
        &b"\0\0\0\0\0\0\0\0"[..],
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"EHLO mail.example\r\n",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n",
        b"\x80\x2e\x01\x00\x02\x00\x15\x00\x00\x00\x10",
        b"\xff\xd8\xff\xe0",
        b"get / HTTP/1.1\r\n\r\n",
        b"\x17\x03\x03\x00\x10aaaaaaaaaaaaaaaa",
    ] {
        let server = Issuer::new().server();
        let (answer, log) = answer(&server, bytes, 1);
        assert_eq!(answer, alert(AlertDescription::DecodeError), "{}", bytes.escape_ascii());
        assert_eq!(log, ["the handshake has failed: the peer does not speak TLS"]);
        assert_eq!(nonzero_counters(server.counters()), [("not_tls", 1)]);
    }
}

#[test]
fn records_without_a_hello_violate_the_protocol() {
    for (bytes, expected) in [
        // Longer than any record.
        (&b"\x16\x03\x01\xff\xff"[..], AlertDescription::DecodeError),
        // Another message first: a ServerHello, a Finished.
        (b"\x16\x03\x03\0\x04\x02\0\0\0", AlertDescription::DecodeError),
        (b"\x16\x03\x03\0\x04\x14\0\0\0", AlertDescription::UnexpectedMessage),
        // An empty hello.
        (b"\x16\x03\x01\0\x04\x01\0\0\0", AlertDescription::DecodeError),
    ] {
        let server = Issuer::new().server();
        let (answer, log) = answer(&server, bytes, usize::MAX);
        assert_eq!(answer, alert(expected), "{}: {log:?}", bytes.escape_ascii());
        assert!(log[0].starts_with("the handshake has failed: the peer violated TLS: "), "{log:?}");
        assert_eq!(nonzero_counters(server.counters()), [("failed_by_peer", 1)]);
    }
}

#[test]
fn a_hello_has_a_maximum_length() {
    let server = Issuer::new().server();
    // A hello that is announced as too long, and one that arrives one byte per record.
    let announced = b"\x16\x03\x01\0\x04\x01\x01\0\0".to_vec();
    let dripping: Vec<u8> = [1, 0, 0xff, 0xfc]
        .into_iter()
        .chain([0; 12_000])
        .flat_map(|byte| [22, 3, 1, 0, 1, byte])
        .collect();
    for bytes in [announced, dripping] {
        let (answer, log) = answer(&server, &bytes, 1000);
        assert_eq!(answer, alert(AlertDescription::DecodeError));
        assert_eq!(log, ["the handshake has failed: the ClientHello is too long"]);
    }
    assert_eq!(nonzero_counters(server.counters()), [("hellos_too_large", 2)]);
}

/// Connects a rustls client to a server. Returns the client's failure, and what the server logs.
fn meet(server: &TlsServer, config: rustls::ClientConfig, name: &str) -> (Option<Error>, Log) {
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, server);
    let mut client = RawClient::new(config, name);
    client.talk(&mut test, &peer);
    // The client's last records, such as an alert.
    peer.send(&client.take_records());
    test.settle();
    if client.failure.is_some() {
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
    }
    (client.failure.clone(), test.context().clone())
}

#[test]
fn a_client_with_nothing_in_common_gets_an_alert() {
    let issuer = Issuer::new();
    let old = issuer.raw_config_of(&[&rustls::version::TLS12]);
    let server = issuer.server_with(|config| config.versions(Versions::Tls13));
    let (failure, log) = meet(&server, old, "localhost");
    assert_eq!(failure, Some(Error::AlertReceived(AlertDescription::ProtocolVersion)));
    assert!(
        log[0].contains("there is no version, cipher or protocol that both ends support: "),
        "{log:?}"
    );
    assert_eq!(nonzero_counters(server.counters()), [("failed_by_peer", 1)]);

    let mut other_protocol = issuer.raw_config();
    other_protocol.alpn_protocols = vec![b"h2".to_vec()];
    let server = issuer.server();
    let (failure, log) = meet(&server, other_protocol, "localhost");
    assert_eq!(failure, Some(Error::AlertReceived(AlertDescription::NoApplicationProtocol)));
    assert!(
        log[0].contains("there is no version, cipher or protocol that both ends support: "),
        "{log:?}"
    );
    assert_eq!(nonzero_counters(server.counters()), [("failed_by_peer", 1)]);

    // Cipher suites of TLS 1.2 for RSA keys, and a server with an Ed25519 key.
    let mut provider = rustls::crypto::ring::default_provider();
    provider.cipher_suites.retain(|suite| {
        suite.suite() == rustls::CipherSuite::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
    });
    let rsa_only = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .expect("it fits the ciphers")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let server = issuer.server();
    let (failure, log) = meet(&server, rsa_only, "localhost");
    assert_eq!(failure, Some(Error::AlertReceived(AlertDescription::HandshakeFailure)));
    assert!(
        log[0].contains("there is no version, cipher or protocol that both ends support: "),
        "{log:?}"
    );

    // Cipher suites that fit the key, but no signature scheme that it supports.
    let mut provider = rustls::crypto::ring::default_provider();
    let algorithms = &mut provider.signature_verification_algorithms;
    let others =
        algorithms.mapping.iter().filter(|(scheme, _)| *scheme != SignatureScheme::ED25519);
    algorithms.mapping = others.copied().collect::<Vec<_>>().leak();
    let checks_others = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&rustls::version::TLS12])
        .expect("it fits the ciphers")
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    let (failure, log) = meet(&server, checks_others, "localhost");
    assert_eq!(failure, Some(Error::AlertReceived(AlertDescription::HandshakeFailure)));
    assert!(
        log[0].contains("there is no version, cipher or protocol that both ends support: "),
        "{log:?}"
    );
    assert_eq!(nonzero_counters(server.counters()), [("failed_by_peer", 2)]);
}

#[test]
fn an_unknown_name_gets_the_default_certificate_or_is_refused() {
    let issuer = Issuer::new();
    let (failure, log) = meet(&issuer.server(), issuer.raw_config(), "other.example");
    assert!(matches!(failure, Some(Error::InvalidCertificate(_))), "{failure:?}");
    assert_eq!(
        log,
        ["the handshake has failed: the peer refused the connection: alert BadCertificate"]
    );

    let server = issuer.server_with(|config| config.unknown_name(UnknownName::Refuse));
    let (failure, log) = meet(&server, issuer.raw_config(), "Other.example");
    assert_eq!(failure, Some(Error::AlertReceived(AlertDescription::UnrecognisedName)));
    assert_eq!(
        log,
        [
            "the handshake has failed: there is no certificate for \"other.example\", the name that the client asked for"
        ]
    );
    assert_eq!(nonzero_counters(server.counters()), [("unknown_names", 1)]);
    // Known names, and clients that send no name.
    for name in ["localhost", "LOCALHOST"] {
        assert_eq!(meet(&server, issuer.raw_config(), name).0, None);
    }
    let (failure, _) = meet(&server, issuer.raw_config(), "192.0.2.1");
    assert!(matches!(failure, Some(Error::InvalidCertificate(_))), "it is shown one: {failure:?}");
}

#[test]
fn a_client_reports_what_is_wrong_with_a_servers_certificate() {
    let issuer = Issuer::new();
    let expired = issuer.pem_with(&["localhost"], |params| {
        params.not_after = rcgen::date_time_ymd(1970, 1, 2);
    });
    let early = issuer.pem_with(&["localhost"], |params| {
        params.not_before = rcgen::date_time_ymd(1980, 1, 1);
    });
    let other_name = issuer.pem_for(&["other.example"]);
    let other_issuer = Issuer::new().pem_for(&["localhost"]);
    for ((chain, key), server_hears, expected) in [
        (expired, "CertificateExpired", "certificate expired"),
        (early, "CertificateExpired", "certificate not valid yet"),
        (other_name, "BadCertificate", "certificate not valid for name \"localhost\""),
        (other_issuer, "UnknownCA", "UnknownIssuer"),
    ] {
        let identity =
            rotor_tls::Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("fine");
        let config = rotor_tls::TlsServerConfig::new(identity);
        let (server, client) = (TlsServer::new(config).expect("fine"), issuer.client());
        let mut test = Test::new(Log::new());
        test.advance(Duration::from_secs(3 * 24 * 60 * 60));
        let a = add_server(&mut test, &server);
        let b = add_client(&mut test, &client, "localhost", 1);
        exchange(&mut test, &a, &b);
        let log = test.context().join("\n");
        let of_client = "the handshake has failed: the certificate of the peer was not accepted: ";
        assert!(log.contains(of_client) && log.contains(expected), "{log}");
        let of_server = "the handshake has failed: the peer refused the connection: alert ";
        assert!(log.contains(&format!("{of_server}{server_hears}")), "{log}");
        assert_eq!(nonzero_counters(client.counters()), [("failed_by_peer", 1)]);
        assert_eq!(nonzero_counters(server.counters()), [("refused_by_peer", 1)]);
        assert!(a.is_dropped() && b.is_dropped());
    }
}

#[test]
fn client_certificates_are_checked_as_configured() {
    let issuer = Issuer::new();
    let clients = Issuer::new();
    for (which, without, other) in [
        (ClientCertificates::Optional(clients.roots()), true, false),
        (ClientCertificates::Required(clients.roots()), false, false),
        (ClientCertificates::None, true, true),
    ] {
        let server = issuer.server_with(|config| config.client_certificates(which.clone()));
        assert_eq!(
            meet(&server, issuer.raw_config(), "localhost").0.is_none(),
            without,
            "{which:?}"
        );
        for (from, is_well) in [(&clients, true), (&issuer, other)] {
            let (chain, key) = from.pem_for(&["a.client"]);
            let config = issuer.raw_config_with(&chain, &key);
            let before = server.counters().failed_by_peer();
            let (failure, log) = meet(&server, config, "localhost");
            assert_eq!(failure.is_none(), is_well, "{which:?}: {failure:?} {log:?}");
            if !is_well {
                assert!(log[0].contains("the certificate of the peer was not accepted"), "{log:?}");
                assert_eq!(server.counters().failed_by_peer(), before + 1);
            }
        }
    }
}

#[test]
fn a_reset_at_each_step_ends_that_connection_only() {
    let issuer = Issuer::new();
    for at in 0.. {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        let mut client = RawClient::new(issuer.raw_config(), "localhost");
        let mut sent = 0;
        // Hello, Finished, a line: byte by byte, up to the byte at which the connection is reset.
        let mut is_over = false;
        for step in 0..3 {
            let mut records = client.take_records();
            if step == 2 {
                client.write(b"a line\n");
                records = client.take_records();
            }
            for byte in records {
                if sent == at {
                    break;
                }
                sent += 1;
                peer.send(&[byte]);
                test.settle();
                is_over = step == 2;
            }
            client.receive(&peer.take_received());
        }
        peer.reset();
        test.settle();
        assert!(peer.is_dropped() && test.machines() == 0, "at {at}");
        assert_eq!(server.counters().handshakes_now(), 0);
        let ends: u64 = nonzero_counters(server.counters())
            .iter()
            .filter(|(name, _)| ["full", "abandoned"].contains(name))
            .map(|(_, count)| count)
            .sum();
        assert_eq!(ends, 1, "at {at}: {:?}", server.counters());
        if is_over && sent < at {
            return;
        }
    }
}

#[test]
fn corrupted_records_are_not_passed_on() {
    let issuer = Issuer::new();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, &server, issuer.raw_config_of(&[version]));
        client.write(b"first\n");
        let first = client.take_records();
        client.write(b"second\n");
        let mut second = client.take_records();
        *second.last_mut().expect("it is not empty") ^= 1;
        // Both arrive in one piece. The first line is passed to the protocol, but its answer is not
        // sent.
        peer.send(&[first, second].concat());
        test.settle();
        client.receive(&peer.take_received());
        assert_eq!(client.plain, b"", "nothing follows an alert");
        assert_eq!(client.failure, Some(Error::AlertReceived(AlertDescription::BadRecordMac)));
        let log = test.context().join("\n");
        let expected = "reading has failed: the peer violated TLS: cannot decrypt peer's message";
        assert_eq!(log, expected);
        assert_eq!(server.counters().broken(), 1);
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
    }
}
