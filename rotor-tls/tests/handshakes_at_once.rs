//! Many concurrent handshakes: they do not delay other connections, they wait for each other, and
//! new identities do not disturb them.

mod kit;

use std::time::Duration;

use kit::{Issuer, Log, RawClient, Test, add_server, connected, nonzero_counters};

#[test]
fn a_thousand_incomplete_handshakes_do_not_delay_others() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let config = rotor_core::Config::new().machines_max(2048);
    let mut test = Test::with_config(Log::new(), config);
    let mut peers = Vec::new();
    for number in 0..1024 {
        let peer = add_server(&mut test, &server);
        let hello = RawClient::new(issuer.raw_config(), "localhost").take_records();
        // Nothing, a part of a hello, or all of it.
        peer.send(&hello[..[0, 100, hello.len()][number % 3]]);
        peers.push(peer);
    }
    test.settle();
    assert_eq!(server.counters().handshakes_now(), 1024);
    let (peer, mut client) = connected(&mut test, &server, issuer.raw_config());
    client.write(b"me\n");
    client.talk(&mut test, &peer);
    assert_eq!(client.plain, b"ME\n");
    test.advance(Duration::from_secs(11));
    assert!(peers.iter().step_by(3).all(|peer| peer.is_dropped()), "who has said nothing");
    assert!(peers.iter().all(|peer| peer.is_dropped() || peer.is_ended()));
    test.advance(Duration::from_secs(2));
    assert!(peers.iter().all(|peer| peer.is_dropped()), "nobody stays to hear the rest");
    assert_eq!(nonzero_counters(server.counters()), [("full", 1), ("late", 1024)]);
}

#[test]
fn handshakes_beyond_the_limit_wait_for_others() {
    let issuer = Issuer::new();
    let server = issuer.server_with(|config| config.handshakes_max(2));
    let mut test = Test::new(Log::new());
    let mut all: Vec<_> = (0..5)
        .map(|_| {
            let peer = add_server(&mut test, &server);
            let mut client = RawClient::new(issuer.raw_config(), "localhost");
            peer.send(&client.take_records());
            test.settle();
            (peer, client)
        })
        .collect();
    let answered: Vec<bool> = all.iter().map(|(peer, _)| peer.received_len() > 0).collect();
    assert_eq!(answered, [true, true, false, false, false]);
    assert_eq!((server.counters().waited(), server.counters().handshakes_now()), (3, 5));
    for (peer, client) in &mut all {
        client.receive(&peer.take_received());
        client.write(b"x\n");
        client.talk(&mut test, peer);
        assert_eq!(client.plain, b"X\n", "its turn has come");
    }
    assert_eq!(nonzero_counters(server.counters()), [("full", 5), ("waited", 3)]);
}

#[test]
fn a_client_that_left_while_it_waited_gets_no_handshake() {
    let issuer = Issuer::new();
    let server = issuer.server_with(|config| config.handshakes_max(1));
    let mut test = Test::new(Log::new());
    let mut all: Vec<_> = (0..4)
        .map(|_| {
            let peer = add_server(&mut test, &server);
            let mut client = RawClient::new(issuer.raw_config(), "localhost");
            peer.send(&client.take_records());
            test.settle();
            (peer, client)
        })
        .collect();
    all[1].0.end();
    all[2].0.reset();
    test.settle();
    for at in [0, 3] {
        let (peer, client) = &mut all[at];
        client.receive(&peer.take_received());
        client.talk(&mut test, peer);
    }
    assert!(all[1..3].iter().all(|(peer, _)| peer.received_len() == 0 && peer.is_dropped()));
    assert_eq!(nonzero_counters(server.counters()), [("full", 2), ("abandoned", 2), ("waited", 3)]);
}

#[test]
fn identities_are_reloaded_under_load_and_no_request_fails() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let (peer, mut client) = connected(&mut test, &server, issuer.raw_config());
    let peer_in_midst = add_server(&mut test, &server);
    let mut in_midst = RawClient::new(issuer.raw_config(), "localhost");
    peer_in_midst.send(&in_midst.take_records());
    test.settle();

    assert!(server.reload(&[]).is_err(), "all or nothing");
    let before = client.tls.peer_certificates().expect("it has shown one")[0].clone();
    for round in 0..50 {
        let identity = issuer.identity(&["localhost"]);
        server.reload(&[identity]).expect("there is one");
        let (_, other) = connected(&mut test, &server, issuer.raw_config());
        let now = &other.tls.peer_certificates().expect("it has shown one")[0];
        assert_ne!(*now, before, "round {round}");
        client.write(b"still\n");
        client.talk(&mut test, &peer);
    }
    assert_eq!(client.plain, b"STILL\n".repeat(50));
    in_midst.talk(&mut test, &peer_in_midst);
    let shown = &in_midst.tls.peer_certificates().expect("it has shown one")[0];
    assert_eq!(*shown, before, "it began before");
    assert_eq!(nonzero_counters(server.counters()), [("full", 52)]);
}
