//! Streams on TLS: both ends in memory, whole and byte by byte; closing, truncation, backpressure.

mod kit;

use kit::{Issuer, Log, RawClient, Test, add_client, add_server, connected, exchange, exchange_by};

#[test]
fn a_client_and_a_server_exchange_lines() {
    for piece in [usize::MAX, 1, 7, 100] {
        let issuer = Issuer::new();
        let (server, client) = (issuer.server(), issuer.client());
        let mut test = Test::new(Log::new());
        let a = add_server(&mut test, &server);
        let b = add_client(&mut test, &client, "localhost", 2);
        exchange_by(&mut test, &a, &b, piece);
        let mut log = std::mem::take(test.context_mut());
        log.sort();
        let expected = [
            "LINE 1",
            "LINE 2",
            "Tls13 lines localhost",
            "Tls13 lines localhost",
            "the peer has ended the stream",
        ];
        assert_eq!(log, expected, "by {piece}");
        assert!(a.is_dropped() && b.is_dropped());
        assert_eq!((server.counters().full(), client.counters().full()), (1, 1));
        assert_eq!(
            (server.counters().handshakes_now(), client.counters().handshakes_now()),
            (0, 0)
        );
    }
}

#[test]
fn a_client_resumes_its_session_with_a_ticket() {
    let issuer = Issuer::new();
    let (server, client) = (issuer.server(), issuer.client());
    for _ in 0..3 {
        let mut test = Test::new(Log::new());
        let a = add_server(&mut test, &server);
        let b = add_client(&mut test, &client, "localhost", 1);
        exchange(&mut test, &a, &b);
    }
    assert_eq!((server.counters().full(), server.counters().resumed()), (1, 2));
}

#[test]
fn an_old_client_is_served_with_tls_1_2() {
    let issuer = Issuer::new();
    let server = issuer.server();
    let mut test = Test::new(Log::new());
    let config = issuer.raw_config_of(&[&rustls::version::TLS12]);
    let (peer, mut client) = connected(&mut test, &server, config);
    client.write(b"one\ntwo\n");
    client.talk(&mut test, &peer);
    assert_eq!(client.plain, b"ONE\nTWO\n");
}

#[test]
fn each_side_ends_with_close_notify() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        let issuer = Issuer::new();
        let mut test = Test::new(Log::new());
        let (peer, mut client) =
            connected(&mut test, &issuer.server(), issuer.raw_config_of(&[version]));
        client.write(b"last\n");
        client.tls.send_close_notify();
        client.talk(&mut test, &peer);
        assert_eq!(*test.context(), ["the peer has ended the stream"]);
        assert_eq!(client.plain, b"LAST\n", "the other side may still be open");
        assert!(client.is_closed && peer.is_ended());
    }
}

#[test]
fn a_close_notify_with_the_last_flight_ends_the_stream() {
    for version in [&rustls::version::TLS13, &rustls::version::TLS12] {
        for has_ended in [false, true] {
            let issuer = Issuer::new();
            let server = issuer.server();
            let mut test = Test::new(Log::new());
            let peer = add_server(&mut test, &server);
            let mut client = RawClient::new(issuer.raw_config_of(&[version]), "localhost");
            peer.send(&client.take_records());
            test.settle();
            client.receive(&peer.take_received());
            client.tls.send_close_notify();
            peer.send(&client.take_records());
            if has_ended {
                peer.end();
            }
            test.settle();
            let log = test.context();
            assert_eq!(log[1..], ["the peer has ended the stream"], "{version:?}, {has_ended}");
            assert_eq!((server.counters().full(), server.counters().truncated()), (1, 0));
        }
    }
}

#[test]
fn an_end_without_close_notify_is_reported_as_truncated() {
    let issuer = Issuer::new();
    let server = issuer.server();
    for half_a_record in [false, true] {
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, &server, issuer.raw_config());
        client.write(b"whole\n");
        client.talk(&mut test, &peer);
        client.write(b"cut\n");
        let records = client.take_records();
        if half_a_record {
            peer.send(&records[..records.len() - 1]);
        }
        peer.end();
        test.settle();
        assert_eq!(
            *test.context(),
            ["the connection was aborted before the peer ended the stream"]
        );
        assert_eq!(client.plain, b"WHOLE\n");
        assert!(peer.is_dropped());
    }
    assert_eq!(server.counters().truncated(), 2);
}

#[test]
fn a_reset_counts_once_as_an_end_without_close_notify() {
    for (how, has_closed, expected) in [
        ("read", false, 1),
        ("write", false, 1),
        ("write, then read", false, 1),
        ("read", true, 0),
        ("write", true, 0),
    ] {
        let issuer = Issuer::new();
        let server = issuer.server();
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, &server, issuer.raw_config());
        client.write(b"line\n");
        if has_closed {
            client.tls.send_close_notify();
        }
        if how.starts_with("write") {
            peer.fail_writes(std::io::ErrorKind::BrokenPipe);
        }
        peer.send(&client.take_records());
        if how.ends_with("read") {
            peer.reset();
        }
        test.settle();
        assert!(peer.is_dropped(), "{how}");
        let counters = server.counters();
        assert_eq!((counters.full(), counters.abandoned()), (1, 0), "{how}");
        assert_eq!(counters.truncated(), expected, "{how}, {has_closed}");
    }
}

#[test]
fn data_in_the_last_flight_of_the_handshake_is_read() {
    let issuer = Issuer::new();
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = add_server(&mut test, &issuer.server());
    let mut client = RawClient::new(issuer.raw_config(), "localhost");
    peer.send(&client.take_records());
    test.settle();
    client.receive(&peer.take_received());
    client.write(b"at once\n");
    peer.send(&client.take_records());
    test.settle();
    client.receive(&peer.take_received());
    assert_eq!(client.plain, b"AT ONCE\n");
}

#[test]
fn tickets_are_sent_with_the_first_response_and_close_notify_with_the_last() {
    let issuer = Issuer::new();
    let server = issuer.server();
    for room_at_once in [usize::MAX, 100, 0] {
        let takes_all = room_at_once == usize::MAX;
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &server);
        let config = issuer.raw_config_of(&[&rustls::version::TLS13]);
        let mut client = RawClient::new(config, "localhost");
        peer.send(&client.take_records());
        test.settle();
        client.receive(&peer.take_received());
        let writes = peer.operations().writes;
        peer.limit_room(room_at_once);
        client.write(b"at once\n");
        client.tls.send_close_notify();
        peer.send(&client.take_records());
        test.settle();
        assert_eq!(peer.is_ended(), takes_all, "the end comes behind the bytes");
        assert!(peer.operations().writes == writes + 1 || !takes_all, "it took several writes");
        peer.make_room(1 << 20);
        test.settle();
        client.receive(&peer.take_received());
        assert_eq!((&client.plain[..], client.is_closed), (&b"AT ONCE\n"[..], true));
        assert!(peer.is_ended() && client.tls.tls13_tickets_received() == 2);
    }
}

#[test]
fn long_lines_arrive_in_pieces_of_any_size() {
    let line = [b"x".repeat(200_000), b"\n".to_vec()].concat();
    for (piece, room) in [(usize::MAX, usize::MAX), (1000, usize::MAX), (20_000, 5000)] {
        let issuer = Issuer::new();
        let mut test = Test::new(Log::new());
        let (peer, mut client) = connected(&mut test, &issuer.server(), issuer.raw_config());
        client.tls.set_buffer_limit(None);
        client.write(&line);
        for piece in client.take_records().chunks(piece) {
            peer.send(piece);
            test.settle();
        }
        peer.limit_room(room.min(1 << 20));
        test.settle();
        for _ in 0..200 {
            client.receive(&peer.take_received());
            peer.make_room(room.min(1 << 20));
            test.settle();
        }
        assert!(client.plain == line.to_ascii_uppercase(), "{} bytes", client.plain.len());
    }
}
