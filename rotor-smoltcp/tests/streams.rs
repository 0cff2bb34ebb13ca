//! Connections between two stacks: the bytes written are read, ends and failures are reported, no
//! edge is lost.
#![forbid(unsafe_code)]

mod rig;

use std::io::{ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::time::Duration;

use rig::{CLIENT, Rig, SERVER, config, fill, not_yet, read_on, six, text};
use rotor_core::net::{Listener, StreamSocket};
use rotor_core::{EventSet, Time};
use rotor_smoltcp::{Congestion, Medium, MemoryConfig};

#[test]
fn bytes_arrive_on_both_mediums_and_ip_versions() {
    for medium in [Medium::Ip, Medium::Ethernet] {
        for ip in [SERVER, six(1)] {
            let mut rig = Rig::on(MemoryConfig::new().medium(medium));
            let mut listener = rig.server.listen_on((ip, 80).into(), 8);
            let (mut server, mut client) = rig.pair_by(&mut listener, (ip, 80).into());
            assert_eq!(client.peer_address(), Some((ip, 80).into()));
            assert_eq!(server.peer_address(), client.local_address());
            assert_eq!(server.local_address(), Some((ip, 80).into()));
            let slices = [IoSlice::new(b"a question"), IoSlice::new(b", in two parts")];
            assert_eq!(client.write_vectored(&slices).expect("there is room"), 24);
            assert_eq!(rig.read(&mut server, Some(24)), b"a question, in two parts");
            server.write_all(b"an answer").expect("there is room");
            assert_eq!(rig.read(&mut client, Some(9)), b"an answer");
        }
    }
}

#[test]
fn a_side_that_has_ended_still_reads_and_both_ends_are_reported() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    client.write_all(b"the last words").expect("there is room");
    client.shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!(client.write(b"more").expect_err("it has ended").kind(), ErrorKind::BrokenPipe);
    rig.server.take_events();
    assert_eq!(rig.read(&mut server, None), b"the last words");
    let told =
        rig.server.take_events().into_iter().fold(EventSet::EMPTY, |all, events| all | events);
    assert!(told.contains(EventSet::READABLE | EventSet::READ_CLOSED), "{told:?}");
    server.write_all(b"an answer all the same").expect("there is room");
    drop(server);
    assert_eq!(rig.read(&mut client, None), b"an answer all the same");
    drop(client);
    rig.pass(Duration::from_secs(60));
    let (server, client) = (rig.server.stats(), rig.client.stats());
    assert_eq!((server.connections, client.connections), (0, 0), "TIME-WAIT is over");
    assert_eq!((server.reset, client.reset, server.lingered_too_long), (0, 0, 0));
}

#[test]
fn a_dropped_stream_sends_its_buffered_bytes() {
    let mut rig = Rig::on(MemoryConfig::new().latency(Duration::from_millis(10)));
    let (server, mut client) = rig.pair();
    let sent = text(60_000);
    assert_eq!(fill(&mut client, &sent), sent.len());
    drop(client);
    let mut server = server;
    assert_eq!(rig.read(&mut server, None), sent);
}

#[test]
fn a_reset_is_reported_once_and_earlier_bytes_are_read() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    client.write_all(b"last words").expect("there is room");
    server.write_all(b"nobody reads this").expect("there is room");
    rig.until(|rig| rig.server.take_events().iter().any(|events| events.is_readable()));
    rig.turn();
    // A reset, since there are unread bytes.
    drop(client);
    rig.until(|rig| rig.server.take_events().iter().any(|events| events.contains(EventSet::ERROR)));
    assert_eq!(rig.server.stats().reset, 1);
    assert!(!server.is_connected() && server.peer_address().is_none());
    let mut chunk = [0; 10];
    assert_eq!(server.read(&mut chunk).expect("it came before"), 10);
    let error = server.read(&mut chunk).expect_err("it was reset");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    assert_eq!(server.read(&mut chunk).expect("it was said"), 0);
    assert_eq!(server.write(b"x").expect_err("nobody is there").kind(), ErrorKind::BrokenPipe);
}

#[test]
fn a_port_without_a_listener_refuses_connections() {
    let mut rig = Rig::new();
    for target in [SocketAddr::from((SERVER, 81)), (six(1), 81).into()] {
        let mut client = rig.client.connect(target);
        let mut refused = None;
        rig.until(|_| {
            refused = client.has_connected().err();
            refused.is_some()
        });
        assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::ConnectionRefused));
        let told = rig.client.take_events();
        assert!(told.iter().any(|events| events.contains(EventSet::ERROR)), "{told:?}");
    }
}

#[test]
fn connecting_to_an_unused_address_times_out_as_configured() {
    let patient = config(2).connect_timeout(Duration::from_secs(20));
    let mut rig = Rig::with(MemoryConfig::new().lost(1_000), config(1), patient);
    let mut client = rig.client.connect((SERVER, 80).into());
    rig.pass(Duration::from_secs(19));
    assert!(!client.has_connected().expect("it is under way"));
    let mut failed = None;
    rig.until(|_| {
        failed = client.has_connected().err();
        failed.is_some()
    });
    assert_eq!(failed.map(|error| error.kind()), Some(ErrorKind::TimedOut));
    let passed = rig.clock.now() - rotor_core::Time::ZERO;
    assert!((20..40).contains(&passed.as_secs()), "{passed:?}");
}

#[test]
fn targets_without_a_route_are_refused_immediately_on_ethernet() {
    let routed = || {
        config(1).route([192, 0, 2, 0].into(), 24, CLIENT).route(
            [0x2001, 0xdb8, 0, 0, 0, 0, 0, 0].into(),
            32,
            six(2),
        )
    };
    let within: [SocketAddr; 2] =
        [([192, 0, 2, 7], 80).into(), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 7], 80).into()];
    let outside: [SocketAddr; 2] =
        [([192, 0, 3, 7], 80).into(), ([0x2001, 0xdb9, 0, 0, 0, 0, 0, 7], 80).into()];
    let unreachable = Err(ErrorKind::NetworkUnreachable);
    for (medium, refused) in [(Medium::Ethernet, unreachable), (Medium::Ip, Ok(()))] {
        let mut rig = Rig::with(MemoryConfig::new().medium(medium), routed(), config(2));
        let mut connect = |target: SocketAddr| {
            rig.server.with(|scope| {
                let begun = rotor_smoltcp::SmoltcpTcpStream::connect(&target, scope);
                begun.map(drop).map_err(|error| error.kind())
            })
        };
        for target in within.into_iter().chain([(CLIENT, 80).into(), (six(2), 80).into()]) {
            assert_eq!(connect(target), Ok(()), "{target} on {medium:?}");
        }
        for target in outside {
            assert_eq!(connect(target), refused, "{target} on {medium:?}");
        }
    }
}

#[test]
fn invalid_targets_are_refused_immediately() {
    let mut rig = Rig::with(
        MemoryConfig::new(),
        rotor_smoltcp::StackConfig::new().address(SERVER, 24),
        config(2).connections_max(1),
    );
    let mut kind = |target: SocketAddr| {
        let connect = |scope: &mut rotor_core::Scope<'_, _>| {
            rotor_smoltcp::SmoltcpTcpStream::connect(&target, scope).map(drop)
        };
        rig.server.with(connect).expect_err("it cannot be").kind()
    };
    assert_eq!(kind((six(2), 80).into()), ErrorKind::NetworkUnreachable);
    assert_eq!(kind((CLIENT, 0).into()), ErrorKind::InvalidInput);
    assert_eq!(kind(([0, 0, 0, 0], 80).into()), ErrorKind::InvalidInput);
    // RFC 9293 §3.9.2.3; the last one is the broadcast address of its network.
    for group in [[224, 0, 0, 1], [255; 4], [10, 0, 0, 255]] {
        assert_eq!(kind((group, 80).into()), ErrorKind::InvalidInput, "{group:?}");
    }
    let _first = rig.client.connect((SERVER, 80).into());
    let second = rig.client.with(|scope| {
        rotor_smoltcp::SmoltcpTcpStream::connect(&(SERVER, 80).into(), scope).map(drop)
    });
    assert_eq!(second.expect_err("there is one").kind(), ErrorKind::OutOfMemory);
}

#[test]
fn a_silent_peer_times_out_only_when_it_owes_an_answer() {
    for (keeps_alive, writes) in [(true, false), (false, true), (false, false)] {
        let impatient = config(1).user_timeout(Duration::from_secs(30));
        let mut rig = Rig::with(MemoryConfig::new(), impatient, config(2));
        let (mut server, _client) = rig.pair();
        rig.pass(Duration::from_secs(1));
        if keeps_alive {
            server.set_keepalive(Some(Duration::from_secs(5))).expect("it is connected");
        }
        if writes {
            server.write_all(b"hello?").expect("there is room");
        }
        // The client's loop gets no more turns.
        let end = rig.clock.now() + Duration::from_secs(600);
        while rig.clock.now() < end && rig.clock.step_until(end) {
            rig.server.turn();
        }
        let error = server.take_error().expect("it can be asked").map(|error| error.kind());
        let owes = keeps_alive || writes;
        assert_eq!(error, owes.then_some(ErrorKind::TimedOut), "{keeps_alive} {writes}");
        assert_eq!(rig.server.stats().timed_out, u64::from(owes));
    }
}

#[test]
fn a_connection_that_was_reset_does_not_time_out() {
    let mut rig = Rig::new();
    let (server, mut client) = rig.pair();
    rig.pass(Duration::from_secs(1));
    client.write_all(b"thrown away").expect("there is room");
    client.reset().expect("it is one");
    rig.client.take_events();
    rig.pass(Duration::from_secs(6 * 60));
    let told = rig.client.take_events();
    assert!(told.iter().all(|events| !events.contains(EventSet::ERROR)), "{told:?}");
    assert_eq!(rig.client.stats().timed_out, 0);
    assert_eq!(rig.server.stats().reset, 1);
    drop((server, client));
}

#[test]
fn a_peer_that_answers_probes_stays_connected() {
    let impatient = config(1).user_timeout(Duration::from_secs(30));
    let mut rig = Rig::with(MemoryConfig::new(), impatient, config(2));
    let (server, _client) = rig.pair();
    server.set_keepalive(Some(Duration::from_secs(5))).expect("it is connected");
    rig.pass(Duration::from_secs(300));
    assert!(server.is_connected());
    assert!(rig.server.stats().received > 30, "{:?}", rig.server.stats());
}

#[test]
fn a_rarely_probed_connection_lasts_until_a_probe_is_unanswered() {
    let impatient = config(1).user_timeout(Duration::from_secs(30));
    let mut rig = Rig::with(MemoryConfig::new(), impatient, config(2));
    let (server, client) = rig.pair();
    server.set_keepalive(Some(Duration::from_secs(300))).expect("it is connected");
    rig.pass(Duration::from_secs(1_000));
    assert!(server.is_connected(), "{:?}", rig.server.stats());
    // The client's loop gets no more turns.
    let end = rig.clock.now() + Duration::from_secs(400);
    while rig.clock.now() < end && rig.clock.step_until(end) {
        rig.server.turn();
    }
    assert_eq!(rig.server.stats().timed_out, 1);
    drop(client);
}

#[test]
fn a_keepalive_time_below_a_second_counts_as_one() {
    for idle in [Duration::ZERO, Duration::from_nanos(1), Duration::from_secs(1)] {
        let mut rig = Rig::with(MemoryConfig::new(), config(1), config(2));
        let (server, client) = rig.pair();
        let before = rig.server.stats().received;
        server.set_keepalive(Some(idle)).expect("it is changed to the nearest");
        rig.pass(Duration::from_secs(30));
        let answers = rig.server.stats().received - before;
        assert!((20..=40).contains(&answers), "{answers} for {idle:?}");
        assert!(server.is_connected() && client.is_connected());
    }
}

#[test]
fn unlimited_timeouts_are_accepted() {
    let endless = config(1).connect_timeout(Duration::MAX).user_timeout(Duration::MAX);
    let endless = endless.half_open_timeout(Duration::MAX).linger(Duration::MAX);
    let mut rig = Rig::with(MemoryConfig::new(), endless.clone(), config(2));
    let (server, _client) = rig.pair();
    server.set_keepalive(Some(Duration::MAX)).expect("it is connected");
    rig.pass(Duration::from_secs(60));
    assert!(server.is_connected());
    let mut rig = Rig::with(MemoryConfig::new(), config(1), endless);
    let (_server, client) = rig.pair();
    rig.pass(Duration::from_secs(60));
    assert!(client.is_connected());
}

#[test]
fn virtual_time_does_not_advance_to_an_unlimited_deadline() {
    let mut rig = Rig::with(MemoryConfig::new(), config(1).linger(Duration::MAX), config(2));
    let (server, client) = rig.pair();
    drop(server);
    // The peer does not end its side, and there is no limit for waiting for that.
    while rig.turn() {}
    assert!(rig.clock.now() < Time::ZERO + Duration::from_secs(60), "{rig:?}");
    assert_eq!((rig.server.stats().connections, rig.server.stats().lingered_too_long), (1, 0));
    drop(client);
    rig.until(|rig| rig.server.stats().connections == 0);
}

/// A writer that got `WouldBlock` is notified once there is room, however little is read at a time.
#[test]
fn no_edge_is_lost_between_a_full_writer_and_a_slow_reader() {
    for congestion in [Congestion::Cubic, Congestion::Off] {
        let small = |last| {
            config(last).receive_buffer_bytes(4_096).send_buffer_bytes(4_096).congestion(congestion)
        };
        let mut rig = Rig::with(MemoryConfig::new(), small(1), small(2));
        let (mut server, mut client) = rig.pair();
        let sent = text(100_000);
        let (mut taken, mut got) = (fill(&mut client, &sent), Vec::new());
        rig.client.take_events();
        let mut chunk = [0; 777];
        rig.until(|rig| {
            // Acts on events only.
            if rig.client.take_events().iter().any(|events| events.is_writable()) {
                taken += fill(&mut client, &sent[taken..]);
            }
            if rig.server.take_events().iter().any(|events| events.is_readable()) {
                while let Some(count) = not_yet(server.read(&mut chunk)) {
                    got.extend_from_slice(&chunk[..count]);
                }
            }
            got.len() == sent.len()
        });
        assert_eq!(got, sent);
    }
}

/// Without the update, the peer would notice the room only by a probe, a second or more later.
#[test]
fn a_read_of_a_full_window_sends_an_update_immediately() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    let (sent, mut taken, mut got) = (text(300_000), 0, Vec::new());
    for _ in 0..20 {
        taken += fill(&mut client, &sent[taken..]);
        rig.pass(Duration::from_millis(10));
    }
    read_on(&mut server, None, &mut got);
    assert_eq!(got.len(), 65_536, "the window was full");
    rig.pass(Duration::from_millis(30));
    read_on(&mut server, None, &mut got);
    assert_eq!(got.len(), 2 * 65_536, "as much again, of {taken}");
}

/// As far as its peer has room: a rest would wait for an acknowledgement and cost a third packet.
#[test]
fn a_large_response_is_sent_in_the_turn_that_wrote_it() {
    let roomy = config(2).receive_buffer_bytes(256 * 1024);
    let mut rig = Rig::with(MemoryConfig::new().mtu(65_535), config(1), roomy);
    let (mut server, mut client) = rig.pair();
    server.set_nodelay(true).expect("it is connected");
    let (head, body) = (text(8 * 1024), text(64 * 1024));
    let mut packets = Vec::new();
    // The first rounds open the congestion window.
    for _ in 0..4 {
        let before = rig.server.stats().sent;
        let slices = [IoSlice::new(&head), IoSlice::new(&body)];
        assert_eq!(server.write_vectored(&slices).expect("there is room"), 72 * 1024);
        rig.server.turn();
        packets.push(rig.server.stats().sent - before);
        assert!(rig.read(&mut client, Some(72 * 1024)) == [&head[..], &body].concat());
        // Everything is acknowledged.
        rig.pass(Duration::from_millis(100));
    }
    assert_eq!(packets.last(), Some(&2), "{packets:?}");
}

#[test]
fn earlier_events_are_reported_on_registration() {
    let mut rig = Rig::new();
    let mut listener = rig.server.listen_on((SERVER, 80).into(), 8);
    let mut client = rig.client.connect((SERVER, 80).into());
    let mut server = None;
    rig.until(|_| {
        server = not_yet(listener.accept());
        server.is_some()
    });
    let mut server = server.expect("as asked").0;
    rig.until(|_| client.has_connected().expect("it is taken"));
    client.write_all(b"early").expect("there is room");
    client.shutdown(Shutdown::Write).expect("it is connected");
    rig.pass(Duration::from_millis(100));
    rig.server.take_events();
    rig.server.register(&mut server);
    rig.turn();
    let told = rig.server.take_events();
    assert!(told.iter().any(|events| events.contains(EventSet::READABLE | EventSet::READ_CLOSED)));
    // Registering again is an error; a socket can be moved to another machine.
    let again = rig.server.with(|scope| scope.register(&mut server, rotor_core::Interest::Both));
    assert_eq!(again.expect_err("it is registered").kind(), ErrorKind::AlreadyExists);
    rig.server.with(|scope| scope.deregister(&mut server)).expect("it is registered");
    rig.server.register(&mut server);
    rig.turn();
    assert!(!rig.server.take_events().is_empty(), "the other one knows of nothing");
    // It cannot be moved to another loop.
    let error = rig.client.with(|scope| scope.register(&mut server, rotor_core::Interest::Both));
    assert_eq!(error.expect_err("it is of another").kind(), ErrorKind::Unsupported);
}

#[test]
fn bytes_after_a_read_shutdown_cause_no_event_and_a_reset_if_dropped_unread() {
    let mut rig = Rig::new();
    let (mut server, mut client) = rig.pair();
    server.shutdown(Shutdown::Read).expect("it is connected");
    rig.server.take_events();
    assert_eq!(server.read(&mut [0; 9]).expect("nothing has arrived"), 0);
    client.write_all(b"in vain").expect("there is room");
    rig.pass(Duration::from_secs(1));
    assert_eq!(rig.server.take_events(), []);
    drop(server);
    rig.until(|_| client.take_error().expect("it can be asked").is_some());
    assert_eq!(rig.client.stats().reset, 1);
    // A stream without unread bytes, whose peer does not know yet that it is gone.
    let (server, mut client) = rig.pair();
    drop(server);
    rig.until(|rig| rig.client.take_events().iter().any(|events| events.is_closing()));
    client.write_all(b"too late").expect("there is room");
    rig.until(|_| client.take_error().expect("it can be asked").is_some());
}

#[test]
fn a_stalled_peer_does_not_keep_a_dropped_stream_alive() {
    let quick = config(1).linger(Duration::from_secs(3));
    let mut rig = Rig::with(MemoryConfig::new(), quick, config(2));
    let (mut server, _client) = rig.pair();
    let sent = text(1 << 20);
    let mut taken = 0;
    rig.until(|rig| {
        taken += fill(&mut server, &sent[taken..]);
        rig.pass(Duration::from_millis(500));
        rig.server.take_events().is_empty()
    });
    drop(server);
    assert_eq!(rig.server.stats().connections, 1);
    rig.pass(Duration::from_secs(5));
    let stats = rig.server.stats();
    assert_eq!((stats.connections, stats.lingered_too_long), (0, 1));
    assert_eq!(rig.client.stats().reset, 1);
}

#[test]
fn a_thousand_short_connections_leave_no_state() {
    let mut rig = Rig::new();
    let mut listener = rig.server.listen_on((SERVER, 80).into(), 8);
    for round in 0..1_000 {
        let (mut server, mut client) = rig.pair_by(&mut listener, (SERVER, 80).into());
        client.write_all(b"?").expect("there is room");
        assert_eq!(rig.read(&mut server, Some(1)), b"?");
        // The two sides take turns in ending first.
        if round % 2 == 0 { drop(server) } else { drop(client) }
    }
    drop(listener);
    rig.pass(Duration::from_secs(60));
    let (server, client) = (rig.server.stats(), rig.client.stats());
    assert_eq!((server.connections, client.connections, server.time_wait), (0, 0, 0));
    assert_eq!(server.accepted, 1_000);
}
