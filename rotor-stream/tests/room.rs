//! A listener that has no slot, descriptor or place for a connection: the connections that have
//! been idle longest make room.

use std::io::{self, Write};
use std::time::Duration;

use rotor_core::{Config, Scope, Time};
use rotor_stream::testing::{Door, Peer, ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, Exception, Fatal, Intent, Matched, Protocol, Stream, Transport,
};

const SECOND: Duration = Duration::from_secs(1);
const NO_DESCRIPTOR: i32 = 24;

/// Echoes each line, and is idle afterwards. The context records how connections were lost.
struct Lines {
    idle_since: Time,
}

impl Lines {
    fn next_line(scope: &Scope<'_, Vec<String>>) -> Intent<Lines> {
        Intent::of(Lines { idle_since: scope.now() }).delimiter(b"\n", 1024).no_deadline()
    }
}

impl Protocol for Lines {
    type Context = Vec<String>;
    type Seed = ();

    fn create(_: (), _: &mut Transport<'_>, scope: &mut Scope<'_, Vec<String>>) -> Intent<Self> {
        Lines::next_line(scope)
    }

    fn bytes_read(
        self,
        line: Matched,
        transport: &mut Transport<'_>,
        scope: &mut Scope<'_, Vec<String>>,
    ) -> Intent<Self> {
        let text = transport.input[..line.len()].to_vec();
        line.consume(transport.input);
        transport.output.write_all(&text).expect("an output that is open takes all");
        Lines::next_line(scope)
    }

    fn exception(
        self,
        _: Exception,
        _: &mut Transport<'_>,
        _: &mut Scope<'_, Vec<String>>,
    ) -> Intent<Self> {
        Intent::done()
    }

    fn fatal(self, error: Fatal, scope: &mut Scope<'_, Vec<String>>) {
        scope.push(error.to_string());
    }

    fn idle(&self, input: &[u8]) -> Option<Time> {
        input.is_empty().then_some(self.idle_since)
    }

    fn make_room(&mut self, transport: &mut Transport<'_>, _: &mut Scope<'_, Vec<String>>) {
        transport.output.write_all(b"bye\n").expect("an output that is open takes all");
    }
}

type Server = Accept<Stream<Lines, ScriptedSocket>, ScriptedListener>;

struct Test {
    test_loop: TestLoop<Server>,
    door: Door,
}

impl Test {
    fn new(config: Config, accept: AcceptConfig) -> Test {
        let mut test_loop = TestLoop::with_config(Vec::new(), config);
        let (listener, door) = listener(test_loop.world());
        test_loop.add(|scope| Accept::listen(listener, (), accept, scope));
        Test { test_loop, door }
    }

    /// With slots for this many connections.
    fn slots(slots: usize) -> Test {
        Test::new(Config::new().machines_max(1 + slots), AcceptConfig::new())
    }

    /// Connections made one second apart.
    fn connect(&mut self, count: usize) -> Vec<Peer> {
        let connect = |_| {
            self.test_loop.advance(SECOND);
            let peer = self.door.connect();
            self.test_loop.settle();
            peer
        };
        (0..count).map(connect).collect()
    }

    fn is_served(&mut self, peer: &Peer) -> bool {
        peer.send(b"hello\n");
        self.test_loop.settle();
        peer.take_received() == b"hello\n"
    }

    fn made_room(&mut self) -> u64 {
        self.test_loop.instance().stats().read().made_room
    }

    /// How connections were lost since the last call of this function.
    fn take_losses(&mut self) -> Vec<String> {
        std::mem::take(self.test_loop.context_mut())
    }
}

const MADE_ROOM: &str =
    "the connection was closed, as the longest idle one, to make room for another";

#[test]
fn the_longest_idle_connection_makes_room_for_a_waiting_one() {
    let mut test = Test::slots(3);
    let old = test.connect(3);
    assert!(test.is_served(&old[0]));
    test.test_loop.advance(2 * SECOND);
    let new = test.connect(1);
    assert!(old[1].is_ended() && old[1].is_dropped(), "an end, and the slot is free at once");
    assert_eq!(old[1].take_received(), b"bye\n");
    assert!(!old[0].is_dropped() && !old[2].is_dropped());
    assert!(test.is_served(&new[0]));
    assert_eq!((test.made_room(), test.take_losses()), (1, vec![MADE_ROOM.to_string()]));
    assert!(test.test_loop.failures().is_empty());
}

#[test]
fn no_connection_is_closed_while_none_waits() {
    let mut test = Test::slots(3);
    let old = test.connect(3);
    test.test_loop.advance(1_000 * SECOND);
    assert!(old.iter().all(|peer| test.is_served(peer)), "as many as there are slots");
    let mut limited = Test::new(Config::new(), AcceptConfig::new().connections_max(2));
    let old = limited.connect(2);
    limited.test_loop.advance(1_000 * SECOND);
    assert!(old.iter().all(|peer| limited.is_served(peer)), "as many as there may be");
    assert_eq!((test.made_room(), limited.made_room()), (0, 0));
    assert_eq!(test.test_loop.instance().next_deadline(), None, "and nobody looks");
}

#[test]
fn no_connection_is_closed_for_a_descriptor_while_none_waits() {
    let mut test = Test::new(Config::new(), AcceptConfig::new());
    let old = test.connect(2);
    test.test_loop.advance(10 * SECOND);
    // A late edge: its connection has already been accepted, and the backlog is empty.
    test.door.fail(io::Error::from_raw_os_error(NO_DESCRIPTOR));
    test.test_loop.settle();
    test.test_loop.advance(10 * SECOND);
    assert!(old.iter().all(|peer| test.is_served(peer)));
    assert_eq!(test.made_room(), 0);
}

#[test]
fn a_listener_without_a_descriptor_does_not_pause_while_none_waits() {
    let mut test = Test::new(Config::new(), AcceptConfig::new().pause(3_600 * SECOND));
    let _old = test.connect(1);
    test.door.fail(io::Error::from_raw_os_error(NO_DESCRIPTOR));
    test.test_loop.settle();
    // A descriptor is closed elsewhere, and a new connection comes.
    let new = test.door.connect();
    test.test_loop.settle();
    assert!(test.is_served(&new));
}

#[test]
fn the_queue_is_polled_once_when_no_descriptor_is_left() {
    for is_one_waiting in [false, true] {
        let mut test = Test::new(Config::new(), AcceptConfig::new());
        test.door.fail(io::Error::from_raw_os_error(NO_DESCRIPTOR));
        let _waits = is_one_waiting.then(|| test.door.connect());
        test.test_loop.settle();
        assert_eq!(test.door.polls(), 1);
    }
}

#[test]
fn a_recently_active_connection_is_spared_for_two_seconds() {
    let mut test = Test::slots(2);
    let old: Vec<Peer> = (0..2).map(|_| test.door.connect()).collect();
    test.test_loop.settle();
    let new = test.door.connect();
    for _ in 0..19 {
        test.test_loop.advance(Duration::from_millis(100));
        assert!(old.iter().all(|peer| !peer.is_dropped()));
    }
    // The listener asks for room again every tenth of a second.
    test.test_loop.advance(Duration::from_millis(200));
    assert_eq!(old.iter().filter(|peer| peer.is_dropped()).count(), 1);
    assert!(test.is_served(&new));
}

#[test]
fn an_unlimited_minimum_idle_time_spares_every_connection() {
    let accept = AcceptConfig::new().idle_min(Duration::MAX);
    let mut test = Test::new(Config::new().machines_max(3), accept);
    let old = test.connect(2);
    let new = test.connect(1);
    test.test_loop.advance(1_000 * SECOND);
    assert!(old.iter().all(|peer| test.is_served(peer)) && !test.is_served(&new[0]));
}

#[test]
fn partial_messages_and_unread_answers_do_not_count_as_idle() {
    let mut test = Test::slots(3);
    let old = test.connect(3);
    old[0].send(b"hel");
    old[1].limit_room(2);
    old[1].send(b"hello\n");
    test.test_loop.advance(10 * SECOND);
    let _new = test.connect(2);
    let closed: Vec<bool> = old.iter().map(Peer::is_dropped).collect();
    assert_eq!(closed, [false, false, true]);
    old[0].send(b"lo\n");
    old[1].make_room(100);
    test.test_loop.settle();
    assert_eq!(
        (old[0].take_received(), old[1].take_received()),
        (b"hello\n".to_vec(), b"hello\n".to_vec())
    );
}

#[test]
fn a_connection_with_unreported_input_is_served_and_another_closed() {
    let mut test = Test::slots(3);
    let old = test.connect(3);
    test.test_loop.advance(10 * SECOND);
    // Just after the loop has decided to end it.
    old[0].before_read(|peer| peer.send(b"hello\n"));
    let new = test.connect(1);
    assert!(!old[0].is_dropped() && old[1].is_dropped());
    assert_eq!(old[0].take_received(), b"hello\n");
    assert!(test.is_served(&new[0]));
    assert_eq!(test.take_losses(), [MADE_ROOM]);
    // If the peer closes the connection at that moment, this is noticed, and its room is used.
    test.test_loop.advance(10 * SECOND);
    old[2].before_read(Peer::end);
    let newer = test.connect(1);
    assert!(old[2].is_dropped() && test.is_served(&newer[0]));
    assert!(test.take_losses().is_empty());
}

#[test]
fn a_returned_descriptor_is_used_at_once() {
    for idle in [true, false] {
        let mut test = Test::new(Config::new(), AcceptConfig::new());
        let old = test.connect(1);
        if idle {
            test.test_loop.advance(10 * SECOND);
        }
        test.door.fail(io::Error::from_raw_os_error(NO_DESCRIPTOR));
        let new = test.door.connect();
        test.test_loop.settle();
        assert_eq!(old[0].is_dropped(), idle);
        assert_eq!(
            test.is_served(&new),
            idle,
            "the pause is cut short by a descriptor, and by nothing else"
        );
        test.test_loop.advance(Duration::from_millis(101));
        assert_eq!(new.received_len(), if idle { 0 } else { 6 });
    }
}

#[test]
fn a_listener_at_its_limit_closes_only_its_own_connections() {
    let mut test = Test::new(Config::new(), AcceptConfig::new().connections_max(2));
    let (other_listener, other_door) = listener(test.test_loop.world());
    test.test_loop.add(|scope| Accept::listen(other_listener, (), AcceptConfig::new(), scope));
    let older = other_door.connect();
    test.test_loop.settle();
    let old = test.connect(2);
    test.test_loop.advance(10 * SECOND);
    let new = test.connect(1);
    assert!(old[0].is_dropped() && !old[1].is_dropped());
    assert!(test.is_served(&new[0]) && test.is_served(&older));
}

#[test]
fn a_flood_is_accepted_in_a_few_turns_and_closes_only_idle_connections() {
    const MANY: usize = 400;
    let mut test = Test::slots(MANY);
    let old: Vec<Peer> = (0..MANY).map(|_| test.door.connect()).collect();
    test.test_loop.advance(10 * SECOND);
    let new: Vec<Peer> = (0..MANY / 2).map(|_| test.door.connect()).collect();
    let are_let_in = (0..29).any(|_| {
        test.test_loop.turn();
        test.door.waiting() == 0
    });
    assert!(are_let_in, "{} still wait after 29 turns", test.door.waiting());
    assert!(new.iter().all(|peer| test.is_served(peer)));
    let closed = old.iter().filter(|peer| peer.is_dropped()).count();
    assert!((MANY / 2..=MANY / 2 + MANY / 8).contains(&closed), "{closed}");
}

#[test]
fn hardly_more_connections_are_closed_than_wait() {
    const MANY: usize = 150;
    for waiting in [1, 2, 3, 4, 5, 7, 10, 20, 50, 100] {
        let mut test = Test::slots(MANY);
        let old: Vec<Peer> = (0..MANY).map(|_| test.door.connect()).collect();
        test.test_loop.advance(10 * SECOND);
        let new: Vec<Peer> = (0..waiting).map(|_| test.door.connect()).collect();
        test.test_loop.settle();
        assert!(new.iter().all(|peer| test.is_served(peer)), "{waiting} wait");
        let closed = old.iter().filter(|peer| peer.is_dropped()).count();
        assert!((waiting..=waiting + waiting / 4).contains(&closed), "{closed} for {waiting}");
    }
}

#[test]
fn listeners_sharing_a_queue_close_at_most_one_extra_connection_each() {
    // Like loops that share a listening socket: each makes room among its own connections, and the
    // faster one accepts the new connection.
    let mut test = Test::slots(3);
    let old = test.connect(3);
    test.test_loop.advance(10 * SECOND);
    let new = test.door.connect();
    let is_one_closed = (0..30).any(|_| {
        test.test_loop.turn();
        old.iter().any(Peer::is_dropped)
    });
    assert!(is_one_closed, "nobody makes room");
    assert!(test.door.accept_elsewhere(), "room is made before the connection is accepted");
    test.test_loop.settle();
    let closed = |peers: &[Peer]| peers.iter().filter(|peer| peer.is_dropped()).count();
    assert_eq!(closed(&old), 1, "closed for one that another listener took");
    assert!(new.is_dropped(), "elsewhere");
    let next = test.connect(1);
    assert!(test.is_served(&next[0]));
    assert_eq!(closed(&old), 1, "which is the room of the next one");
}

#[test]
fn a_connection_that_is_held_without_a_slot_asks_for_one() {
    // Each listener spawns one machine per event; the second spawn of the first listener waits, and
    // the other listener takes its slot.
    let config = Config::new().machines_max(4).spawns_per_event(1);
    let mut test = Test::new(config, AcceptConfig::new().idle_min(Duration::ZERO));
    let (other_listener, other_door) = listener(test.test_loop.world());
    let never = AcceptConfig::new().idle_min(Duration::MAX);
    test.test_loop.add(|scope| Accept::listen(other_listener, (), never, scope));
    let peers = [test.door.connect(), test.door.connect()];
    let other = other_door.connect();
    test.test_loop.settle();
    assert!(test.is_served(&peers[1]), "it was held");
    assert!(peers[0].is_dropped() || other.is_dropped());
}
