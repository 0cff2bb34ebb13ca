//! A server behind balancers, on scripted sockets: which headers it trusts, and what ends a
//! connection.

mod kit;

use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Duration;

use kit::{Log, Test, WhoAmI, add_server, config, nonzero_counters};
use rotor_proxy_protocol::{ProxyHeader, ProxyProtocol, ProxyStream, Untrusted, Version, Versions};
use rotor_stream::testing::{Scripted, TestLoop, pair};
use rotor_stream::{PeerConnections, Stream};

const BALANCER: Option<&str> = Some("10.1.2.3");

fn header(version: Version, source: &str) -> Vec<u8> {
    let source: SocketAddr = source.parse().expect("an address");
    ProxyHeader::proxied(version, source, SocketAddr::from(([198, 51, 100, 1], 443))).to_bytes()
}

/// The outcome of these pieces: the server's answers, its log, its counters.
fn outcome(
    behind: &ProxyProtocol,
    from: Option<&str>,
    pieces: &[&[u8]],
) -> (String, Log, Vec<(&'static str, u64)>) {
    let mut test = Test::new(Log::new());
    test.world().narrow_edges();
    let peer = add_server(&mut test, behind, from);
    for piece in pieces {
        peer.send(piece);
        test.settle();
    }
    peer.end();
    test.settle();
    assert!(peer.is_dropped() && test.machines() == 0);
    let answer = String::from_utf8(peer.take_received()).expect("it is text");
    (answer, test.context().clone(), nonzero_counters(behind))
}

#[test]
fn a_header_is_parsed_in_any_split_and_no_later_byte_is_lost() {
    for version in [Version::V1, Version::V2] {
        let bytes = [&header(version, "192.0.2.1:5")[..], b"one\ntwo\n"].concat();
        let expected = "192.0.2.1:5 198.51.100.1:443 one\n192.0.2.1:5 198.51.100.1:443 two\n";
        let check = |pieces: &[&[u8]]| {
            let behind = ProxyProtocol::new(config());
            let (answer, log, counts) = outcome(&behind, BALANCER, pieces);
            assert_eq!(answer, expected, "{pieces:?}");
            assert_eq!(log, [format!("{version:?}"), "ended".into()]);
            assert_eq!(counts, [("proxied", 1)]);
        };
        check(&[&bytes]);
        check(&bytes.chunks(1).collect::<Vec<_>>());
        for cut in 1..bytes.len() {
            let (first, second) = bytes.split_at(cut);
            check(&[first, second]);
        }
    }
}

#[test]
fn the_result_is_the_same_with_reads_of_one_byte() {
    let behind = ProxyProtocol::new(config());
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &behind, BALANCER);
    peer.limit_reads(1);
    peer.send(&[&header(Version::V2, "[2001:db8::1]:5")[..], b"one\n"].concat());
    test.settle();
    assert!(peer.take_received().starts_with(b"[2001:db8::1]:5 "));
    // The bytes that were read ahead no longer delay others.
    peer.send(b"two\n");
    test.settle();
    assert!(peer.take_received().ends_with(b" two\n"));
}

#[test]
fn reads_and_writes_fail_before_the_header_is_complete() {
    let test = Test::new(Log::new());
    let (socket, peer) = pair::<false>(test.world());
    let from = "10.1.2.3:5".parse().ok();
    let mut stream = ProxyProtocol::new(config()).wrap(socket, from);
    peer.send(&header(Version::V2, "192.0.2.1:5"));
    let is_early = |error: &std::io::Error| error.kind() == ErrorKind::NotConnected;
    assert!(stream.read(&mut [0; 9]).is_err_and(|error| is_early(&error)));
    assert!(stream.write(b"hello").is_err_and(|error| is_early(&error)));
    // An empty read asks whether the socket is connected: the inner socket answers.
    assert!(!stream.read(&mut []).is_err_and(|error| is_early(&error)));
    assert_eq!(peer.unread_len(), header(Version::V2, "192.0.2.1:5").len());
}

#[test]
fn local_and_unknown_connections_have_no_client_address() {
    for (bytes, name) in [
        (ProxyHeader::local().to_bytes(), "local"),
        (ProxyHeader::unknown(Version::V1).to_bytes(), "unknown"),
        (ProxyHeader::unknown(Version::V2).to_bytes(), "unknown"),
    ] {
        let behind = ProxyProtocol::new(config());
        let (answer, _, counts) = outcome(&behind, BALANCER, &[&bytes, b"hello\n"]);
        // A scripted socket has no address.
        assert_eq!((&*answer, counts), ("- - hello\n", vec![(name, 1)]));
    }
}

#[test]
fn only_configured_networks_are_trusted() {
    for (from, is_believed) in [
        (Some("10.255.0.1"), true),
        (Some("::ffff:10.0.0.1"), true),
        (Some("11.0.0.1"), false),
        (Some("::1"), false),
        (None, false),
    ] {
        let bytes = [&header(Version::V2, "192.0.2.1:5")[..], b"one\n"].concat();
        let behind = ProxyProtocol::new(config());
        let (answer, log, counts) = outcome(&behind, from, &[&bytes]);
        if is_believed {
            assert_eq!(counts, [("proxied", 1)]);
            continue;
        }
        assert_eq!((&*answer, counts), ("", vec![("untrusted", 1)]), "{from:?}");
        let named = from.unwrap_or("a peer without an address");
        assert_eq!(log, [format!("connections from {named} are not trusted")]);
    }
    let behind = ProxyProtocol::new(config().trusts_unix(true));
    let (answer, ..) = outcome(&behind, None, &[&header(Version::V1, "192.0.2.1:5"), b"one\n"]);
    assert!(answer.starts_with("192.0.2.1:5 "));
}

#[test]
fn untrusted_connections_are_refused_without_a_read() {
    let behind = ProxyProtocol::new(config());
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &behind, Some("192.0.2.1"));
    peer.send(b"PROXY TCP4 10.0.0.1 10.0.0.2 1 2\r\n");
    test.settle();
    assert!(peer.is_dropped() && peer.operations().reads == 0);
}

#[test]
fn untrusted_connections_can_be_served_without_their_header() {
    let behind = ProxyProtocol::new(config().untrusted(Untrusted::Direct));
    let spoofed = [&header(Version::V1, "10.0.0.1:5")[..], b"one\n"].concat();
    let (answer, log, counts) = outcome(&behind, Some("192.0.2.1"), &[&spoofed]);
    assert_eq!(answer, "- - PROXY TCP4 10.0.0.1 198.51.100.1 5 443\r\n- - one\n");
    assert_eq!((log, counts), (vec!["-".into(), "ended".into()], vec![("direct", 1)]));
}

#[test]
fn an_invalid_header_ends_its_connection_and_is_counted() {
    let long = [b"PROXY UNKNOWN ", &[b'x'; 200][..]].concat();
    let damaged = {
        let header = ProxyHeader::proxied(
            Version::V2,
            ([192, 0, 2, 1], 1).into(),
            ([192, 0, 2, 2], 2).into(),
        );
        let mut bytes = header.with_checksum().expect("it fits").to_bytes();
        bytes[16] ^= 1;
        bytes
    };
    let cases: [(&[u8], &str); 6] = [
        (b"GET / HTTP/1.1\r\n\r\n", "no_header"),
        (b"PROXY TCP4 1.1.1.1 2.2.2.2 1\r\n", "broken"),
        (b"\r\n\r\n\0\r\nQUIT\n\x21\x11\xFF\xFF", "too_large"),
        (&long, "too_large"),
        (&damaged, "checksums"),
        (b"PROXY TCP4 1.1", "abandoned"),
    ];
    for (bytes, name) in cases {
        for piece in [1, usize::MAX] {
            let behind = ProxyProtocol::new(config());
            let pieces: Vec<&[u8]> = bytes.chunks(piece).collect();
            let (answer, log, counts) = outcome(&behind, BALANCER, &pieces);
            assert_eq!((&*answer, counts), ("", vec![(name, 1)]));
            assert_eq!(log.len(), 1, "{log:?}");
        }
    }
    let only = ProxyProtocol::new(config().versions(Versions::Only(Version::V2)));
    let (.., counts) = outcome(&only, BALANCER, &[&header(Version::V1, "192.0.2.1:5")]);
    assert_eq!(counts, [("unwanted_versions", 1)]);
}

#[test]
fn a_missing_header_times_out_like_a_handshake() {
    let behind = ProxyProtocol::new(config());
    let mut test = Test::new(Log::new());
    let peer = add_server(&mut test, &behind, BALANCER);
    // One byte per second does not extend the deadline.
    for byte in &header(Version::V1, "192.0.2.1:5")[..9] {
        peer.send(&[*byte]);
        test.settle();
        test.advance(Duration::from_secs(1));
    }
    assert!(!peer.is_dropped());
    test.advance(Duration::from_secs(1));
    assert!(peer.is_dropped());
    assert_eq!(test.context()[..], ["the handshake took too long"]);
    assert_eq!(nonzero_counters(&behind), [("late", 1)]);
}

#[test]
fn a_connection_that_is_lost_is_counted() {
    for kind in [ErrorKind::ConnectionReset, ErrorKind::TimedOut] {
        let behind = ProxyProtocol::new(config());
        let mut test = Test::new(Log::new());
        let peer = add_server(&mut test, &behind, BALANCER);
        peer.send(b"PROXY");
        peer.fail_read(kind);
        test.settle();
        assert!(peer.is_dropped());
        assert_eq!(nonzero_counters(&behind), [("abandoned", 1)]);
    }
}

/// Behind two balancers in a row, each of which sends its own header.
#[test]
fn a_failure_inside_is_counted_by_both_layers() {
    type Nested = Stream<WhoAmI, ProxyStream<ProxyStream<Scripted<false>>>>;
    let first = header(Version::V2, "10.9.9.9:9");
    let second = header(Version::V1, "192.0.2.1:5");
    for (bytes, inner, outer) in [
        ([&first[..], &second, b"one\n"].concat(), "proxied", "proxied"),
        (b"nonsense".to_vec(), "no_header", "abandoned"),
        ([&first[..], b"nonsense"].concat(), "proxied", "no_header"),
    ] {
        let (within, around) = (ProxyProtocol::new(config()), ProxyProtocol::new(config()));
        let mut test = TestLoop::<Nested>::new(Log::new());
        let (socket, peer) = pair(test.world());
        let from = BALANCER.map(|ip| SocketAddr::new(ip.parse().expect("an address"), 9));
        let socket = around.wrap(within.wrap(socket, from), from);
        test.add(|scope| Stream::connected(socket, (), scope));
        peer.send(&bytes);
        peer.end();
        test.settle();
        assert_eq!(nonzero_counters(&within), [(inner, 1)]);
        assert_eq!(nonzero_counters(&around), [(outer, 1)]);
    }
}

#[test]
fn peers_are_limited_by_the_address_in_the_header() {
    let connections = PeerConnections::new(2).share();
    let behind = ProxyProtocol::new(config().per_peer(Some(connections.clone())));
    let mut test = Test::new(Log::new());
    let mut connect = |source: &str| {
        let peer = add_server(&mut test, &behind, BALANCER);
        peer.send(&header(Version::V2, source));
        test.settle();
        peer
    };
    let first = connect("192.0.2.1:1");
    let second = connect("192.0.2.1:2");
    let third = connect("192.0.2.1:3");
    assert!(!first.is_dropped() && !second.is_dropped() && third.is_dropped());
    assert!(!connect("192.0.2.2:1").is_dropped());
    first.end();
    assert!(!connect("192.0.2.1:4").is_dropped());
    assert_eq!(connections.of("192.0.2.1".parse().expect("an address")), 2);
    assert_eq!((behind.counters().too_many_of_peer(), connections.refused()), (1, 1));
    drop(test);
    assert_eq!(connections.peers_now(), 0);
}

#[test]
fn a_client_without_an_address_is_not_counted_as_the_balancer() {
    let connections = PeerConnections::new(1).share();
    let config = config().per_peer(Some(connections.clone())).untrusted(Untrusted::Direct);
    let behind = ProxyProtocol::new(config);
    let mut test = Test::new(Log::new());
    let mut connect = |from, header: Option<ProxyHeader>| {
        let peer = add_server(&mut test, &behind, from);
        header.iter().for_each(|header| peer.send(&header.to_bytes()));
        test.settle();
        peer
    };
    let nameless = [
        ProxyHeader::local(),
        ProxyHeader::unknown(Version::V1),
        ProxyHeader::unknown(Version::V2),
    ];
    for header in nameless.iter().chain(&nameless) {
        assert!(!connect(BALANCER, Some(header.clone())).is_dropped(), "{header:?}");
    }
    assert_eq!(connections.peers_now(), 0);
    // Without a header, the client's own address counts.
    let direct = Some("203.0.113.9");
    assert!(!connect(direct, None).is_dropped() && connect(direct, None).is_dropped());
}

#[test]
fn bytes_after_the_first_read_are_read_without_an_event() {
    // More than one read takes, on a socket whose short reads mean that it is empty.
    let mut test = TestLoop::<Stream<WhoAmI, ProxyStream<Scripted<true>>>>::new(Log::new());
    test.world().narrow_edges();
    let (socket, peer) = pair::<true>(test.world());
    let from = Some(SocketAddr::from(([10, 0, 0, 1], 1)));
    let behind = ProxyProtocol::new(config());
    let lines = "line\n".repeat(300);
    test.add(|scope| Stream::connected(behind.wrap(socket, from), (), scope));
    // The first event has passed. Bytes that arrive in one piece have one event, which the header
    // uses up.
    test.settle();
    peer.send(&[&header(Version::V2, "192.0.2.1:5")[..], lines.as_bytes()].concat());
    test.settle();
    let answers = peer.take_received();
    assert_eq!(answers.iter().filter(|byte| **byte == b'\n').count(), 300);
}
