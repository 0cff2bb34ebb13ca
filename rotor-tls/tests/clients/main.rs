//! Clients: their settings, the servers they accept, and how they report a refused server.

mod judge;
#[path = "../kit/mod.rs"]
mod kit;
mod raw_server;
mod revocation;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use judge::judge;
use kit::{
    Issuer, Lines, Log, Test, add_client, add_server, exchange, exchange_by, nonzero_counters,
};
use raw_server::RawServer;
use rcgen::{ExtendedKeyUsagePurpose, IsCa};
use rotor_core::net::StreamSocket;
use rotor_core::with_causes;
use rotor_stream::Stream;
use rotor_stream::testing::{Scripted, ScriptedSocket, Target, TestLoop, pair};
use rotor_tls::{
    CertificateFault, ClientCertificates, DangerAcceptAnyCertificate, Identity, Roots, TlsClient,
    TlsClientConfig, TlsError, TlsServer, TlsServerConfig, TlsStream, Versions,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn client(config: TlsClientConfig) -> TlsClient {
    TlsClient::new(config).expect("it is well made")
}

/// Exchanges one line over a connection of the two. Returns what each end logs.
fn meet(server: &TlsServer, client: &TlsClient, name: &str) -> Vec<String> {
    let mut test = Test::new(Log::new());
    test.advance(3 * DAY);
    let a = add_server(&mut test, server);
    let b = add_client(&mut test, client, name, 1);
    exchange(&mut test, &a, &b);
    assert!(a.is_dropped() && b.is_dropped());
    std::mem::take(test.context_mut())
}

fn is_well(log: &[String]) -> bool {
    log.iter().any(|line| line == "LINE 1")
}

#[test]
fn errors_about_settings_name_the_cause_and_a_remedy() {
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_for(&["localhost"]);
    let rubbish = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let rows: Vec<(Result<TlsClientConfig, rotor_tls::TlsConfigError>, &str)> = vec![
        (Ok(TlsClientConfig::new(Roots::none())), "no root to check certificates with"),
        (Ok(TlsClientConfig::new(issuer.roots()).alpn(&[b""])), "1 to 255 bytes"),
        (Ok(TlsClientConfig::new(issuer.roots()).alpn(&[&[b'a'; 256]])), "1 to 255 bytes"),
        (Ok(TlsClientConfig::new(issuer.roots()).alpn(&[&[b'a'; 255]])), ""),
        (Roots::none().pem(b"nothing").map(TlsClientConfig::new), "has no certificate"),
        (Roots::none().pem(key.as_bytes()).map(TlsClientConfig::new), "has no certificate"),
        (Roots::none().pem_file("/no/such/file").map(TlsClientConfig::new), "cannot read /no/such"),
        (
            Roots::none().pem(&[chain.as_bytes(), rubbish].concat()).map(TlsClientConfig::new),
            "certificate 2 in the roots that were given cannot be used; it must be of X.509",
        ),
        (
            Identity::from_pem(key.as_bytes(), chain.as_bytes())
                .map(|identity| TlsClientConfig::new(issuer.roots()).identity(identity)),
            "has no certificate",
        ),
    ];
    for (config, expected) in rows {
        let made = config.and_then(TlsClient::new);
        let said = made.map_or_else(|error| with_causes(&error).to_string(), |_| String::new());
        assert!(said.contains(expected) && said.is_empty() == expected.is_empty(), "{said}");
    }
}

#[cfg(feature = "webpki-roots")]
#[test]
fn the_web_roots_are_available() {
    let roots = Roots::none().webpki();
    assert!(roots.len() > 50, "{roots:?}");
    assert!(is_refused(&meet(
        &Issuer::new().server(),
        &client(TlsClientConfig::new(roots)),
        "localhost"
    )));
}

#[cfg(feature = "webpki-roots")]
fn is_refused(log: &[String]) -> bool {
    log.iter().any(|line| line.contains("UnknownIssuer"))
}

#[test]
fn server_names_are_parsed_like_hosts_of_urls() {
    let tls = Issuer::new().client();
    for (name, expected) in [
        ("localhost", Some("localhost")),
        ("Example.COM", Some("example.com")),
        ("example.com.", Some("example.com")),
        ("127.0.0.1", Some("127.0.0.1")),
        ("127.0.0.1.", Some("127.0.0.1")),
        ("[::1]", Some("::1")),
        ("::1", Some("::1")),
        ("", None),
        (".", None),
        ("a b", None),
        ("*.example.com", None),
        ("example.com:443", None),
        ("exämple.com", None),
        ("[::1", None),
    ] {
        let target = tls.to_host(name, 443);
        assert_eq!(target.as_ref().ok().map(|target| target.name()), expected, "{name}");
        match target {
            // A resolver tries no search list for a name with a dot at its end.
            Ok(target) => {
                let is_complete = name == "example.com.";
                let host = format!("{}{}", target.name(), if is_complete { "." } else { "" });
                assert_eq!(&*target.address().name, host);
            }
            Err(error) => assert!(error.to_string().contains(&format!("{name:?}")), "{error}"),
        }
    }
}

#[test]
fn targets_are_equal_if_address_name_and_client_are() {
    let issuer = Issuer::new();
    let (tls, other) = (issuer.client(), issuer.client());
    let target = tls.to_host("example.com", 443).expect("a name");
    for (same, that) in [
        (true, tls.to_host("EXAMPLE.com", 443)),
        (true, tls.to(target.address().clone(), "example.com.")),
        (false, tls.to_host("example.com.", 443)),
        (true, tls.clone().to_host("example.com", 443)),
        (false, tls.to_host("example.org", 443)),
        (false, tls.to_host("example.com", 8443)),
        (false, tls.to(target.address().clone(), "example.org")),
        (false, other.to_host("example.com", 443)),
    ] {
        let that = that.expect("a name");
        assert_eq!(target == that, same, "{that:?}");
        assert_eq!(target.cmp(&that), that.cmp(&target).reverse());
    }
    // Without one of its protocols, it is another target, and the same one each time.
    let config = TlsClientConfig::new(issuer.roots()).alpn(&[b"h2", b"x", b"http/1.1"]);
    let several = TlsClient::new(config).expect("it is well made");
    let at = SocketAddr::from(([192, 0, 2, 1], 443));
    let target = several.to(at, "example.com").expect("a name");
    let without = |protocol: &[u8]| TlsStream::<ScriptedSocket>::without(target.clone(), protocol);
    let http1 = without(b"h2").expect("two are left");
    assert!(http1 != target && without(b"x").is_some_and(|other| other != http1));
    assert!(without(b"h2").is_some_and(|again| again == http1));
    assert!(without(b"h3").is_none(), "it is not offered");
    let offers = |protocol| TlsStream::<ScriptedSocket>::may_agree_on(&http1, protocol);
    assert_eq!([&b"h2"[..], b"x", b"http/1.1"].map(offers), [false, true, true]);
    let only = issuer.client().to(at, "example.com").expect("a name");
    assert!(TlsStream::<ScriptedSocket>::without(only, b"lines").is_none(), "no other is left");
}

#[test]
fn each_certificate_fault_is_reported() {
    use CertificateFault::*;
    let issuer = Issuer::new();
    let date = |year| rcgen::date_time_ymd(year, 1, 1);
    let rows: Vec<(&str, (String, String), Option<CertificateFault>)> = vec![
        ("localhost", issuer.pem_for(&["localhost"]), None),
        ("LocalHost.", issuer.pem_for(&["localhost"]), None),
        ("a.example.com", issuer.pem_for(&["*.example.com"]), None),
        ("127.0.0.1", issuer.pem_for(&["127.0.0.1"]), None),
        ("[::1]", issuer.pem_for(&["::1"]), None),
        ("localhost", issuer.pem_for(&["localhost.example.com"]), Some(WrongName)),
        ("example.com", issuer.pem_for(&["*.example.com"]), Some(WrongName)),
        ("a.b.example.com", issuer.pem_for(&["*.example.com"]), Some(WrongName)),
        ("127.0.0.1", issuer.pem_for(&["localhost"]), Some(WrongName)),
        ("127.0.0.2", issuer.pem_for(&["127.0.0.1"]), Some(WrongName)),
        ("localhost", Issuer::new().pem_for(&["localhost"]), Some(UnknownIssuer)),
        (
            "localhost",
            issuer.pem_with(&["localhost"], |params| params.not_after = date(1970)),
            Some(Expired),
        ),
        (
            "localhost",
            issuer.pem_with(&["localhost"], |params| params.not_before = date(2099)),
            Some(NotYetValid),
        ),
        (
            "localhost",
            issuer.pem_with(&["localhost"], |params| {
                params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
            }),
            Some(WrongPurpose),
        ),
        (
            "localhost",
            issuer.pem_with(&["localhost"], |params| {
                params.is_ca = IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            }),
            Some(WrongPurpose),
        ),
    ];
    for (name, (chain, key), expected) in rows {
        let tls = client(TlsClientConfig::new(issuer.roots()).alpn(&[b"lines"]));
        let judgement = judge(&tls, name, &chain, &key);
        assert_eq!(judgement, Some(expected.map_or(Ok(()), |fault| Err(Some(fault)))), "{name}");
        assert_eq!(tls.counters().failed_by_peer(), u64::from(expected.is_some()));
        // One type, whose name warns against its use, accepts all of them.
        let tls = client(TlsClientConfig::new(DangerAcceptAnyCertificate));
        assert_eq!(judge(&tls, name, &chain, &key), Some(Ok(())));
    }
}

#[test]
fn a_client_that_accepts_any_certificate_still_checks_its_key() {
    let issuer = Issuer::new();
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut test = Test::new(Log::new());
        let tls = client(TlsClientConfig::new(DangerAcceptAnyCertificate));
        let peer = add_client(&mut test, &tls, "localhost", 1);
        let (chain, _) = issuer.pem_for(&["localhost"]);
        let (_, other_key) = issuer.pem_for(&["localhost"]);
        RawServer::new(&[version], &chain, &other_key).talk(&mut test, &peer);
        let log = test.context().join("\n");
        assert!(log.contains("BadSignature"), "{log}");
    }
}

#[test]
fn a_client_presents_its_certificate_on_request() {
    let (issuer, people) = (Issuer::new(), Issuer::new());
    let server = |which| issuer.server_with(|config| config.client_certificates(which));
    let config = || TlsClientConfig::new(issuer.roots());
    let known = client(config().identity(people.identity(&["somebody"])));
    let unknown = client(config().identity(issuer.identity(&["somebody"])));
    let none = client(config());
    let asks = server(ClientCertificates::Optional(people.roots()));
    let wants = server(ClientCertificates::Required(people.roots()));
    let nothing = server(ClientCertificates::None);
    for (server, client, expected) in [
        (&nothing, &known, ""),
        (&asks, &none, ""),
        (&asks, &known, ""),
        (&wants, &known, ""),
        (&wants, &none, "alert CertificateRequired"),
        (&wants, &unknown, "alert UnknownCA"),
        (&asks, &unknown, "alert UnknownCA"),
    ] {
        let log = meet(server, client, "localhost");
        assert_eq!(is_well(&log), expected.is_empty(), "{log:?}");
        // In TLS 1.3 a client completes the handshake before the server has verified its
        // certificate.
        let heard = format!("the peer refused the connection: {expected}");
        assert!(expected.is_empty() || log.iter().any(|line| line.contains(&heard)), "{log:?}");
    }
}

#[test]
fn sessions_are_shared_only_by_clones() {
    let issuer = Issuer::new();
    let config = || TlsClientConfig::new(issuer.roots());
    let first = client(config());
    for (second, name, resumed) in [
        (first.clone(), "localhost", 1),
        (client(config()), "localhost", 0),
        (first.clone(), "localhost.", 1),
        (first.clone(), "127.0.0.1", 0),
    ] {
        let server =
            TlsServer::new(TlsServerConfig::new(issuer.identity(&["localhost", "127.0.0.1"])));
        let server = server.expect("it is well made");
        assert!(is_well(&meet(&server, &first, "localhost")));
        assert!(is_well(&meet(&server, &second, name)));
        assert_eq!(server.counters().resumed(), resumed, "{name}");
    }
}

#[test]
fn sessions_are_kept_for_a_limited_number_of_servers() {
    const MAX: usize = 4;
    let issuer = Issuer::new();
    for (sessions_max, servers, resumed) in
        [(0, 1, 0), (MAX, MAX, MAX), (MAX, MAX + 1, 0), (usize::MAX, MAX, MAX)]
    {
        let names: Vec<String> = (0..servers).map(|number| format!("server-{number}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let server = TlsServer::new(TlsServerConfig::new(issuer.identity(&names)));
        let server = server.expect("it is well made");
        let tls = client(TlsClientConfig::new(issuer.roots()).sessions_max(sessions_max));
        for _ in 0..2 {
            for name in &names {
                assert!(is_well(&meet(&server, &tls, name)));
            }
        }
        let resumed_count = server.counters().resumed() as usize;
        assert_eq!(resumed_count, resumed, "{sessions_max} for {servers}");
    }
}

#[test]
fn both_ends_report_that_they_have_nothing_in_common() {
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_for(&["localhost"]);
    let config = || TlsClientConfig::new(issuer.roots());
    let all = [&rustls::version::TLS12, &rustls::version::TLS13];
    for (config, versions, expected) in [
        (
            config().versions(Versions::Tls13),
            &all[..1],
            "refused the connection: alert ProtocolVersion",
        ),
        (config().alpn(&[b"else"]), &all, "refused the connection: alert NoApplicationProtocol"),
        (config().versions(Versions::Tls13), &all, ""),
        (config(), &all[..1], ""),
        (config(), &all[1..], ""),
    ] {
        let mut test = Test::new(Log::new());
        let peer = add_client(&mut test, &client(config), "localhost", 1);
        let mut server = RawServer::new(versions, &chain, &key);
        server.talk(&mut test, &peer);
        let log = test.context().join("\n");
        assert!(log.contains(expected), "{log}");
        assert_eq!(server.plain.is_empty(), !expected.is_empty(), "{log}");
    }
}

#[test]
fn a_server_without_tls_is_detected_at_each_split() {
    let issuer = Issuer::new();
    for (bytes, expected) in [
        (
            &b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"[..],
            "the server speaks plain HTTP",
        ),
        (b"SSH-2.0-OpenSSH_9.9\r\n", "the peer does not speak TLS"),
        (b"\x15\x03\x01\x00\x02\x02\x46", "the peer refused the connection: alert ProtocolVersion"),
        (
            b"\x15\x03\x03\x00\x02\x02\x28",
            "the peer refused the connection: alert HandshakeFailure",
        ),
        (b"\x16\x03\x03\x00\x04\x0f\xff\xff\xff", "the peer violated TLS"),
    ] {
        for cut in 0..bytes.len() {
            let tls = issuer.client();
            let mut test = Test::new(Log::new());
            let peer = add_client(&mut test, &tls, "localhost", 1);
            test.settle();
            peer.send(&bytes[..cut]);
            test.settle();
            peer.send(&bytes[cut..]);
            test.settle();
            let log = test.context().join("\n");
            assert!(
                log.starts_with("the handshake has failed: ") && log.contains(expected),
                "{cut}: {log}"
            );
            // The socket stays open for the alert, until the peer has read it.
            peer.end();
            test.settle();
            assert!(peer.is_dropped());
        }
    }
}

/// Neither as late, nor as under way: there is nobody to shake hands with.
#[test]
fn an_attempt_that_does_not_connect_counts_as_no_handshake() {
    let issuer = Issuer::new();
    let address = SocketAddr::from(([192, 0, 2, 1], 443));
    for (target, expected) in [
        (Target::Fails(ErrorKind::ConnectionRefused), "cannot connect: connection refused"),
        (Target::Hangs, "connecting took too long"),
    ] {
        let tls = issuer.client();
        let mut test = Test::new(Log::new());
        test.world().target(address, target);
        let server = tls.to(address, "localhost").expect("it is a name");
        test.add(|scope| Stream::connect(&server, Some(1), scope));
        assert_eq!(tls.counters().handshakes_now(), 0, "{expected}");
        test.settle();
        test.advance(Duration::from_secs(60));
        assert_eq!(*test.context(), [expected]);
        assert_eq!(nonzero_counters(tls.counters()), []);
    }
}

#[test]
fn a_server_that_is_silent_or_goes_away_fails_the_handshake() {
    let issuer = Issuer::new();
    let tls = issuer.client();
    let mut test = Test::new(Log::new());
    let peer = add_client(&mut test, &tls, "localhost", 1);
    test.settle();
    test.advance(Duration::from_secs(11));
    assert_eq!(*test.context(), ["the handshake took too long"]);
    assert!(peer.is_ended());
    assert_eq!(tls.counters().late(), 1);

    let mut test = Test::new(Log::new());
    let peer = add_client(&mut test, &tls, "localhost", 1);
    test.settle();
    peer.end();
    test.settle();
    assert!(test.context()[0].starts_with("the handshake has failed: "), "{:?}", test.context());
    assert_eq!(tls.counters().abandoned(), 1);
}

/// Uses a socket whose short reads prove that it is empty, like the kernel's. There, no event comes
/// for a `close_notify` among the bytes already read: the connection itself stays open.
#[test]
fn a_close_notify_with_the_last_bytes_is_reported_on_an_open_socket() {
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_for(&["localhost"]);
    for versions in [&[&rustls::version::TLS12], &[&rustls::version::TLS13]] {
        let target = issuer.client().to((), "localhost").expect("it is a name");
        let mut test = TestLoop::<Stream<Lines, TlsStream<Scripted<true>>>>::new(Log::new());
        let (socket, peer) = pair(test.world());
        let socket = TlsStream::client(socket, &target);
        test.add(|scope| Stream::connected(socket, Some(3), scope));
        let mut server = RawServer::new(versions, &chain, &key);
        server.shake(&mut test, &peer);
        peer.send(&server.final_records(b"bye\n"));
        test.settle();
        let log = test.context();
        assert!(
            log.ends_with(&["bye".into(), "the peer has ended the stream".into()]),
            "{versions:?}: {log:?}"
        );
    }
}

#[test]
fn a_client_certificate_arrives_byte_by_byte() {
    let issuer = Issuer::new();
    let server = issuer.server_with(|config| {
        config.client_certificates(ClientCertificates::Required(issuer.roots()))
    });
    let tls = client(TlsClientConfig::new(issuer.roots()).identity(issuer.identity(&["me"])));
    for piece in [1, 13] {
        let mut test = Test::new(Log::new());
        let a = add_server(&mut test, &server);
        let b = add_client(&mut test, &tls, "localhost", 1);
        exchange_by(&mut test, &a, &b, piece);
        assert!(is_well(test.context()), "{:?}", test.context());
    }
}

#[test]
fn the_danger_type_is_visible_in_debug_output() {
    let config = TlsClientConfig::new(DangerAcceptAnyCertificate);
    assert!(format!("{config:?}").contains("DangerAcceptAnyCertificate"));
    let error = TlsError::PlainHttpServer;
    assert!(error.certificate_fault().is_none());
}

#[test]
fn a_bad_record_after_our_end_ends_the_connection_without_a_panic() {
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_for(&["localhost"]);
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let mut test = Test::new(Log::new());
        let peer = add_client(&mut test, &issuer.client(), "localhost", 1);
        RawServer::new(&[version], &chain, &key).talk(&mut test, &peer);
        assert!(peer.is_ended() && !peer.is_dropped(), "it waits for the other end");
        peer.send(&[&[23, 3, 3, 0, 40][..], &[7; 40]].concat());
        test.settle();
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
        assert_eq!(test.failures(), [""; 0]);
    }
}
