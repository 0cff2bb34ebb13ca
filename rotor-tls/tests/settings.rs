//! Identities and their files, names, tickets, offload.

mod kit;

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kit::{Issuer, Log, RawClient, Test, add_client, add_server, connected, exchange};
use rotor_core::with_causes;
use rotor_test_kit::Directory;
use rotor_tls::{
    ClientCertificates, Identity, Offload, Roots, TicketKeys, Tickets, TlsClient, TlsClientConfig,
    TlsConfigError, TlsServer, TlsServerConfig, UnknownName,
};
use rustls::HandshakeKind;

#[test]
fn errors_about_files_name_the_file_and_a_remedy() {
    let directory = Directory::create();
    let issuer = Issuer::new();
    let (chain, key) = issuer.pem_for(&["localhost"]);
    let (_, other_key) = issuer.pem_for(&["localhost"]);
    let damaged = chain.replacen("MII", "M*I", 1);
    let missing = directory.join("missing.pem");
    let empty = directory.file("empty.pem", "");
    let encrypted =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let old_encrypted = "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00\n\nAAAA\n-----END RSA PRIVATE KEY-----\n";
    let rubbish = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let chain = directory.file("chain.pem", &chain);
    let key = directory.file("key.pem", &key);
    for (chain, key, place, expected) in [
        (&missing, &key, "missing.pem", "No such file"),
        (&chain, &missing, "missing.pem", "No such file"),
        (&empty, &key, "empty.pem", "has no certificate; it should hold"),
        (&chain, &empty, "empty.pem", "has no private key; it should hold"),
        (&key, &chain, "key.pem", "has no certificate"),
        (&chain, &chain, "chain.pem", "the two files may be exchanged"),
        (&directory.file("damaged.pem", &damaged), &key, "damaged.pem", "has a damaged section"),
        (&chain, &directory.file("1.pem", encrypted), "1.pem", "decrypt it with `openssl pkey"),
        (&chain, &directory.file("2.pem", old_encrypted), "2.pem", "decrypt it with `openssl pkey"),
        (&chain, &directory.file("3.pem", rubbish), "3.pem", "cannot be used; RSA of 2048 bits"),
        (
            &directory.file("4.pem", no_certificate),
            &key,
            "the first certificate in ",
            "4.pem cannot be used; it must be of X.509",
        ),
        (
            &chain,
            &directory.file("5.pem", &other_key),
            "5.pem",
            "is not that of the first certificate in",
        ),
    ] {
        let error = Identity::from_pem_files(chain, key).expect_err("it is wrong");
        let text = with_causes(&error).to_string();
        assert!(text.contains(place) && text.contains(expected), "{text}");
        assert_eq!(format!("{error:?}"), text);
    }
    let identity = Identity::from_pem_files(&chain, &key).expect("they are right");
    assert_eq!(identity.names().collect::<Vec<_>>(), ["localhost"]);
    // One file with both.
    let both = [chain, key].map(|path| fs::read_to_string(path).expect("it is there")).concat();
    let both = directory.file("both.pem", &both);
    assert!(Identity::from_pem_files(&both, &both).is_ok());
}

#[test]
fn invalid_settings_are_refused() {
    let issuer = Issuer::new();
    let with = |change: fn(TlsServerConfig) -> TlsServerConfig| {
        TlsServer::new(change(TlsServerConfig::new(issuer.identity(&["a.example"])))).err()
    };
    assert!(matches!(with(|c| c.alpn(&[b""])), Some(TlsConfigError::Protocol(_))));
    assert!(matches!(with(|c| c.alpn(&[&[b'x'; 256]])), Some(TlsConfigError::Protocol(_))));
    assert!(with(|c| c.alpn(&[&[b'x'; 255]])).is_none());
    let nobody =
        |c: TlsServerConfig| c.client_certificates(ClientCertificates::Required(Roots::none()));
    assert!(matches!(with(nobody), Some(TlsConfigError::NoRoots)));
}

/// The certificate that a server presents for a name.
fn presented_certificate(server: &TlsServer, name: &str) -> Vec<u8> {
    presented_certificate_to(server, kit::trusting_client(), name)
}

fn presented_certificate_to(
    server: &TlsServer,
    config: rustls::ClientConfig,
    name: &str,
) -> Vec<u8> {
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, server);
    let mut client = RawClient::new(config, name);
    client.talk(&mut test, &peer);
    client.tls.peer_certificates().expect("it has shown one")[0].to_vec()
}

#[test]
fn each_name_gets_its_own_certificate() {
    let issuer = Issuer::new();
    let identity = |names: &[&str]| {
        let (chain, key) = issuer.pem_for(names);
        Identity::from_pem(chain.as_bytes(), key.as_bytes()).expect("they are right")
    };
    let (first, exact, wild) = (
        identity(&["first.example"]),
        identity(&["A.wild.example", "b.example"]),
        identity(&["*.wild.example"]),
    );
    let config = TlsServerConfig::new(first.clone()).identity(wild.clone()).identity(exact.clone());
    let server = TlsServer::new(config).expect("they are right");
    let first = presented_certificate(&server, "first.example");
    let (exact, wild) = (
        presented_certificate(&server, "b.example"),
        presented_certificate(&server, "z.wild.example"),
    );
    assert!(first != exact && exact != wild && wild != first);
    for (name, expected) in [
        ("a.wild.example", &exact),
        ("A.WILD.example", &exact),
        ("b.wild.example", &wild),
        // A star stands for exactly one label.
        ("wild.example", &first),
        ("a.b.wild.example", &first),
        ("unknown.example", &first),
        ("192.0.2.1", &first),
    ] {
        assert!(presented_certificate(&server, name) == *expected, "{name}");
    }
}

/// The example of the guide: an ECDSA certificate, and an RSA certificate for old clients.
#[test]
fn a_certificate_is_chosen_by_the_clients_signature_schemes() {
    let first = Issuer::new().identity(&["localhost"]);
    let rsa = Identity::from_pem(RSA_CHAIN.as_bytes(), RSA_KEY.as_bytes()).expect("they are right");
    let other = Issuer::new().identity(&["other.example"]);
    let config = TlsServerConfig::new(first).identity(other).identity(rsa);
    let server = TlsServer::new(config).expect("they are right");
    let first = presented_certificate(&server, "localhost");
    // The default applies to unknown names as well.
    for name in ["localhost", "unknown.example"] {
        for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let is_first = |config| presented_certificate_to(&server, config, name) == first;
            assert!(is_first(kit::trusting_client_of(&[version])), "{name}, {version:?}");
            assert!(!is_first(kit::rsa_only_client(version)), "{name}, {version:?}");
        }
    }
    assert!(presented_certificate(&server, "other.example") != first);
}

/// Sends a line to a server. Returns the kind of handshake, or `None` if the server refused the
/// client.
fn first_line(
    server: &TlsServer,
    config: &rustls::ClientConfig,
    name: &str,
) -> Option<HandshakeKind> {
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, server);
    let mut client = RawClient::new(config.clone(), name);
    client.talk(&mut test, &peer);
    if client.failure.is_none() {
        client.write(b"hi\n");
        client.talk(&mut test, &peer);
    }
    (client.plain == b"HI\n").then(|| client.tls.handshake_kind().expect("it is over"))
}

#[test]
fn a_reload_keeps_the_other_settings() {
    let issuer = Issuer::new();
    let rsa = Identity::from_pem(RSA_CHAIN.as_bytes(), RSA_KEY.as_bytes()).expect("they are right");
    let asks = ClientCertificates::Required(issuer.roots());
    let server = issuer
        .server_with(|config| config.unknown_name(UnknownName::Refuse).client_certificates(asks));
    let (chain, key) = issuer.pem_for(&["a client"]);
    let known = issuer.raw_config_with(&chain, &key);
    let says = |config: &rustls::ClientConfig, name| first_line(&server, config, name);
    assert_eq!(says(&known, "localhost"), Some(HandshakeKind::Full));
    assert!(matches!(server.reload(&[]), Err(TlsConfigError::NoIdentity)));
    assert_eq!(says(&known, "localhost"), Some(HandshakeKind::Resumed));
    server.reload(&[issuer.identity(&["localhost", "other.example"])]).expect("there is one");
    // A reload keeps the tickets, the request for client certificates, and the handling of unknown
    // names.
    assert_eq!(says(&known, "localhost"), Some(HandshakeKind::Resumed));
    assert_eq!(says(&known, "other.example"), Some(HandshakeKind::Full));
    assert_eq!(says(&issuer.raw_config(), "localhost"), None, "it has no certificate");
    let before = server.counters().unknown_names();
    assert_eq!(says(&known, "unknown.example"), None);
    assert_eq!(server.counters().unknown_names(), before + 1);
    // A reload also changes which thread signs.
    assert_eq!(offload_attempts(&server), 0);
    server.reload(&[rsa]).expect("there is one");
    let _ = presented_certificate_to(&server, kit::trusting_client(), "localhost");
    assert_eq!(offload_attempts(&server), 1);
}

#[test]
fn reloaded_client_certificates_apply_to_new_and_to_resumed_sessions() {
    let (old, new) = (Issuer::new(), Issuer::new());
    for tickets in [Tickets::Fresh, Tickets::Keys(TicketKeys::new(&[[1; 32]]))] {
        let required = |issuer: &Issuer| ClientCertificates::Required(issuer.roots());
        let server = old.server_with(|config| {
            config
                .unknown_name(UnknownName::Refuse)
                .tickets(tickets)
                .client_certificates(required(&old))
        });
        let client = |issuer: &Issuer| {
            let (chain, key) = issuer.pem_for(&["a client"]);
            old.raw_config_with(&chain, &key)
        };
        let [of_old, of_new] = [&old, &new].map(client);
        assert_eq!(first_line(&server, &of_old, "localhost"), Some(HandshakeKind::Full));
        assert_eq!(first_line(&server, &of_old, "localhost"), Some(HandshakeKind::Resumed));
        assert_eq!(first_line(&server, &of_new, "localhost"), None);
        let nobody = ClientCertificates::Required(Roots::none());
        let refused = server.reload_client_certificates(nobody);
        assert!(matches!(refused, Err(TlsConfigError::NoRoots)));
        assert_eq!(first_line(&server, &of_old, "localhost"), Some(HandshakeKind::Resumed));

        server.reload_client_certificates(required(&new)).expect("there is a root");
        // Other identities do not bring the old roots back.
        server.reload(&[old.identity(&["localhost", "other.example"])]).expect("there is one");
        assert_eq!(first_line(&server, &of_old, "localhost"), None, "nor is its ticket accepted");
        assert_eq!(first_line(&server, &of_new, "other.example"), Some(HandshakeKind::Full));
        assert_eq!(first_line(&server, &of_new, "other.example"), Some(HandshakeKind::Resumed));
        assert_eq!(first_line(&server, &old.raw_config(), "localhost"), None);

        server.reload_client_certificates(ClientCertificates::None).expect("nothing is wrong");
        let anybody = first_line(&server, &old.raw_config(), "other.example");
        assert_eq!(anybody, Some(HandshakeKind::Full), "the identities stay");
        assert_eq!(first_line(&server, &of_new, "unknown.example"), None, "so do the settings");
    }
}

#[test]
fn a_key_log_file_gets_the_secrets_of_the_connections_of_its_end() {
    let (issuer, directory) = (Issuer::new(), Directory::create());
    let [of_server, of_client] = ["server.keys", "client.keys"].map(|name| directory.join(name));
    let nowhere = directory.join("missing").join("keys");
    let client = || TlsClientConfig::new(issuer.roots()).alpn(&[b"lines"]).sessions_max(0);
    let error = client().key_log_file(&nowhere).expect_err("there is no such directory");
    let text = with_causes(&error).to_string();
    assert!(text.contains("missing/keys") && text.contains("No such file"), "{text}");

    let server = issuer.server_with(|config| config.key_log_file(&of_server).expect("it opens"));
    let client = TlsClient::new(client().key_log_file(&of_client).expect("it opens"));
    let client = client.expect("it is right");
    // What a restarted program writes comes after what there is.
    let silent = issuer.server();
    for (server, lines) in [(&server, 5), (&server, 10), (&silent, 10)] {
        let mut test = Test::new(Log::new());
        let ends = (add_server(&mut test, server), add_client(&mut test, &client, "localhost", 1));
        exchange(&mut test, &ends.0, &ends.1);
        let text = fs::read_to_string(&of_server).expect("it is there");
        assert_eq!(text.lines().count(), lines, "{text}");
        let other = fs::read_to_string(&of_client).expect("it is there");
        assert!(text.lines().all(|line| other.lines().any(|same| same == line)));
        // The label, 32 bytes of the client, and a secret of 32 or 48 bytes.
        let words: Vec<&str> = text.lines().next().expect("there is one").split(' ').collect();
        let lengths = [words[0].len(), words[1].len(), words[2].len()];
        assert_eq!((words.len(), lengths[1]), (3, 64), "{lengths:?}");
        assert!([64, 96].contains(&lengths[2]), "{lengths:?}");
        assert!(text.contains("SERVER_TRAFFIC_SECRET_0 "), "{text}");
    }
    let mode = fs::metadata(&of_server).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
}

/// The kind of handshake when a client of the first server connects to the second.
fn reconnect(servers: [&TlsServer; 2], issuer: &Issuer) -> HandshakeKind {
    let config = issuer.raw_config();
    let mut kinds = servers.map(|server| {
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, server, config.clone());
        client.write(b"ticket, please\n");
        client.talk(&mut test, &peer);
        assert_eq!(client.plain, b"TICKET, PLEASE\n");
        client.tls.handshake_kind().expect("it has completed the handshake")
    });
    kinds.reverse();
    kinds[0]
}

#[test]
fn a_ticket_is_accepted_wherever_its_key_is_known() {
    use HandshakeKind::{Full, Resumed};
    let issuer = Issuer::new();
    let server = |tickets: Tickets| issuer.server_with(|config| config.tickets(tickets));
    let fresh = server(Tickets::Fresh);
    assert_eq!(reconnect([&fresh, &fresh], &issuer), Resumed);
    assert_eq!(reconnect([&fresh, &server(Tickets::Fresh)], &issuer), Full, "another process");
    let off = server(Tickets::Off);
    assert_eq!(reconnect([&off, &off], &issuer), Full);

    let keys = TicketKeys::new(&[[1; 32]]);
    let here = server(Tickets::Keys(keys.clone()));
    assert_eq!(reconnect([&here, &here], &issuer), Resumed);
    let elsewhere = |keys: &[[u8; 32]]| server(Tickets::Keys(TicketKeys::new(keys)));
    assert_eq!(reconnect([&here, &elsewhere(&[[1; 32]])], &issuer), Resumed);
    assert_eq!(reconnect([&here, &elsewhere(&[[2; 32], [1; 32]])], &issuer), Resumed);
    assert_eq!(reconnect([&here, &elsewhere(&[[2; 32]])], &issuer), Full);
    assert_eq!(reconnect([&here, &elsewhere(&[])], &issuer), Full);
    let old = elsewhere(&[[1; 32]]);
    keys.set(&[[2; 32], [1; 32]]);
    assert_eq!(reconnect([&old, &here], &issuer), Resumed, "of yesterday");
    assert_eq!(reconnect([&here, &old], &issuer), Full, "of today: the other has not heard of it");
    keys.set(&[[2; 32]]);
    assert_eq!(reconnect([&old, &here], &issuer), Full, "forgotten");
}

#[test]
fn an_ocsp_response_is_stapled_on_request() {
    let issuer = Issuer::new();
    let directory = Directory::create();
    let path = directory.file("site.ocsp", "what the issuer says");
    let identity = issuer.identity(&["localhost"]);
    let stapled = identity.clone().with_ocsp_file(&path).expect("it is there");
    assert!(identity.with_ocsp_file(directory.join("none")).is_err());
    let server = TlsServer::new(TlsServerConfig::new(stapled)).expect("it is right");
    let mut test = Test::new(Log::new());
    let (config, staples) = kit::collecting_staples();
    let _ = connected(&mut test, &server, config);
    assert_eq!(*staples.lock().expect("nobody panicked"), [b"what the issuer says"]);
}

/// An RSA key and its certificate, made once with openssl: nothing here can make them.
const RSA_CHAIN: &str = include_str!("kit/rsa.crt");
const RSA_KEY: &str = include_str!("kit/rsa.key");

/// How many steps were meant for other threads, whether or not there was room for them.
fn offload_attempts(server: &TlsServer) -> u64 {
    server.counters().offloaded() + server.counters().not_offloaded()
}

#[test]
fn rsa_signatures_are_made_by_the_pool_and_others_by_the_loop() {
    let rsa = Identity::from_pem(RSA_CHAIN.as_bytes(), RSA_KEY.as_bytes()).expect("they are right");
    let ecc = Issuer::new().identity(&["localhost"]);
    for (identity, offload, expected) in
        [(&rsa, Offload::SlowKeys, 1), (&rsa, Offload::Never, 0), (&ecc, Offload::SlowKeys, 0)]
    {
        let config = TlsServerConfig::new(identity.clone()).offload(offload);
        let server = TlsServer::new(config).expect("it is right");
        for versions in [&rustls::version::TLS13, &rustls::version::TLS12] {
            let before = offload_attempts(&server);
            let mut test = Test::new(Log::new());
            let (peer, mut client) =
                connected(&mut test, &server, kit::trusting_client_of(&[versions]));
            client.write(b"hi\n");
            client.talk(&mut test, &peer);
            assert_eq!(client.plain, b"HI\n");
            assert_eq!(offload_attempts(&server) - before, expected, "{offload:?}");
        }
        assert_eq!((server.counters().full(), server.counters().handshakes_now()), (2, 0));
    }
}

#[test]
fn a_retried_hello_is_offloaded_twice() {
    let rsa = Identity::from_pem(RSA_CHAIN.as_bytes(), RSA_KEY.as_bytes()).expect("they are right");
    let server = TlsServer::new(TlsServerConfig::new(rsa)).expect("it is right");
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &server);
    // The client sends a key share of a group that the server does not know.
    let mut client = RawClient::new(kit::retrying_client(), "localhost");
    client.talk(&mut test, &peer);
    assert_eq!(client.tls.handshake_kind(), Some(HandshakeKind::FullWithHelloRetryRequest));
    assert_eq!((offload_attempts(&server), server.counters().full()), (2, 1));
}
