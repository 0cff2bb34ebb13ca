//! Connections of one peer that exceed its limit.

use std::net::SocketAddr;

use rotor_core::{Config, Scope};
use rotor_stream::testing::{Peer, ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, Intent, Matched, PeerConnections, Protocol, Stream, Transport,
};

/// Waits; the context counts how many were made.
struct WaitingProtocol;

impl Protocol for WaitingProtocol {
    type Context = u32;
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, u32>) -> Intent<Self> {
        **scope += 1;
        Intent::of(WaitingProtocol).bytes(1).no_deadline()
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, u32>) -> Intent<Self> {
        Intent::done()
    }
}

type Server = Accept<Stream<WaitingProtocol, ScriptedSocket>, ScriptedListener>;

fn from(text: &str) -> SocketAddr {
    SocketAddr::new(text.parse().expect("an address"), 40_000)
}

fn open_flags(peers: &[Peer]) -> Vec<bool> {
    peers.iter().map(|peer| !peer.is_dropped()).collect()
}

#[test]
fn each_peer_gets_at_most_its_number_of_connections() {
    let connections = PeerConnections::new(2).share();
    let mut test = TestLoop::<Server>::new(0);
    let (first, door) = listener(test.world());
    let (second, other_door) = listener(test.world());
    for listener in [first, second] {
        let config = AcceptConfig::new().per_peer(Some(connections.clone()));
        test.add(|scope| Accept::listen(listener, (), config, scope));
    }
    let mut peers = vec![
        door.connect_from(from("2001:db8::1")),
        door.connect_from(from("2001:db8::2")),
        // From the same /64 prefix, at another listener, which shares the count with the first.
        other_door.connect_from(from("2001:db8::3")),
        door.connect_from(from("2001:db8:0:1::1")),
        // Its peer address is unknown.
        door.connect(),
    ];
    test.settle();
    // There are two listeners; the places go to the first connections.
    let open = open_flags(&peers).iter().filter(|is_open| **is_open).count();
    assert_eq!((open, *test.context(), connections.refused()), (4, 4, 1));

    let closed = peers.iter().position(Peer::is_dropped).expect("one was refused");
    assert!(closed < 3);
    peers.remove(closed);
    peers[0].end();
    test.settle();
    assert!(peers[0].is_dropped());
    let again = door.connect_from(from("2001:db8::4"));
    let too_many = door.connect_from(from("2001:db8::5"));
    test.settle();
    assert!(!again.is_dropped() && too_many.is_dropped());
    drop(test);
    assert_eq!(connections.peers_now(), 0, "all were given back");
}

#[test]
fn a_peer_flooding_connections_uses_no_slots_of_others() {
    let connections = PeerConnections::new(1).share();
    let mut test = TestLoop::<Server>::with_config(0, Config::new().machines_max(3));
    let (listener, door) = listener(test.world());
    let config =
        AcceptConfig::new().connections_max(2).accept_budget(8).per_peer(Some(connections.clone()));
    test.add(|scope| Accept::listen(listener, (), config, scope));
    let flood: Vec<Peer> = (0..1_000).map(|_| door.connect_from(from("192.0.2.1"))).collect();
    let other = door.connect_from(from("192.0.2.2"));
    test.settle();
    assert_eq!(open_flags(&flood).iter().filter(|is_open| **is_open).count(), 1);
    assert!(!other.is_dropped(), "the second slot is for the other peer");
    assert_eq!((*test.context(), connections.refused(), test.failures().len()), (2, 999, 0));
}
