//! A header that is sent, and the bytes behind it, on scripted sockets.

mod kit;

use std::net::SocketAddr;

use kit::{Log, Test, WhoAmI, add_server, config};
use rotor_proxy_protocol::{ProxyHeader, ProxyProtocol, ProxyStream, ProxyTarget, Version};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, Target, pair};

fn header(version: Version) -> ProxyHeader {
    let (source, destination) = (([192, 0, 2, 1], 5), ([198, 51, 100, 1], 443));
    ProxyHeader::proxied(version, source.into(), destination.into())
}

fn sender(test: &mut Test, header: &ProxyHeader, before: impl FnOnce(&Peer)) -> Peer {
    let (socket, peer) = pair(test.world());
    before(&peer);
    test.add(|scope| Stream::connected(ProxyStream::sending(socket, header), (), scope));
    peer
}

#[test]
fn the_header_is_sent_before_the_protocol_begins() {
    for version in [Version::V1, Version::V2] {
        let mut test = Test::new(Log::new());
        let peer = sender(&mut test, &header(version), |_| {});
        test.settle();
        assert_eq!(peer.take_received(), header(version).to_bytes());
        peer.send(b"hello\n");
        test.settle();
        assert_eq!(peer.take_received(), b"- - hello\n");
    }
}

#[test]
fn a_header_sent_byte_by_byte_arrives_complete() {
    let mut test = Test::new(Log::new());
    let peer = sender(&mut test, &header(Version::V1), |peer| peer.limit_room(0));
    let mut received = Vec::new();
    peer.send(b"hello\n");
    for _ in 0..200 {
        test.settle();
        received.extend(peer.take_received());
        peer.make_room(1);
    }
    assert_eq!(received, [&header(Version::V1).to_bytes()[..], b"- - hello\n"].concat());
}

#[test]
fn a_sent_header_is_accepted_by_the_receiver() {
    let mut test = Test::new(Log::new());
    let behind = ProxyProtocol::new(config());
    let server = add_server(&mut test, &behind, Some("10.0.0.1"));
    let balancer = sender(&mut test, &header(Version::V2), |_| {});
    test.settle();
    server.send(&balancer.take_received());
    server.send(b"hello\n");
    test.settle();
    assert_eq!(server.take_received(), b"192.0.2.1:5 198.51.100.1:443 hello\n");
}

#[test]
fn a_target_is_connected_to_by_its_address() {
    let mut test = Test::new(Log::new());
    let address = SocketAddr::from(([203, 0, 113, 1], 80));
    test.world().target(address, Target::Accepts);
    let target = ProxyTarget::new(address, header(Version::V2));
    test.add(|scope| Stream::<WhoAmI, ProxyStream<_>>::connect(&target, (), scope));
    test.settle();
    assert_eq!(test.context()[..], ["-"], "connected, and nothing was received");
}
