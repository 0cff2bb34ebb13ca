//! `Persistent`: connects, waits, reconnects, and reports its state to others.

mod probe;

use std::cell::RefCell;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use probe::{Event, Log, Probe, echo_lines, seed};
use rotor_core::{Compose2, Config, Infallible, Loop, Machine, Response, Scope};
use rotor_stream::testing::{Memory, Peer, ScriptedSocket, Target, TestLoop, World};
use rotor_stream::{Link, Persistent, PersistentSeed, StreamConfig};

type Client = Persistent<Probe, ScriptedSocket>;

/// A machine that watches a link and records its state.
struct Watcher(Link);

impl Machine for Watcher {
    type Context = Log;
    type Seed = Infallible;
    fn wakeup(self, scope: &mut Scope<'_, Log>) -> Response<Self, Infallible> {
        let state = if self.0.is_up() { "up" } else { "down" };
        scope.push(state.to_string());
        Response::keep(self)
    }
}

fn address() -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 6379))
}

fn persistent(target: Target) -> (TestLoop<Compose2<Client, Watcher>>, Link) {
    let link = Link::new();
    let mut test = TestLoop::new(Log::new());
    test.world().target(address(), target);
    let watched = link.clone();
    test.add(move |scope: &mut Scope<'_, Log>| {
        watched.watch(scope.notifier());
        Response::ok(Compose2::B(Watcher(watched)))
    });
    let seed =
        PersistentSeed::new(address(), seed(StreamConfig::new(), echo_lines)).link(link.clone());
    test.add(|scope| Persistent::new(seed, scope).map(Compose2::A, |seed| seed));
    (test, link)
}

#[test]
fn an_ended_connection_is_reestablished_and_watchers_are_notified() {
    let (mut test, link) = persistent(Target::Accepts);
    assert!(link.is_up());
    assert_eq!(*test.context(), ["create", "up"]);
    let peers = test.world().take_connections();
    peers[0].send(b"one\n");
    test.settle();
    assert_eq!(peers[0].take_received(), b"one\n");
    peers[0].end();
    test.settle();
    assert!(!link.is_up() && peers[0].is_dropped());
    assert_eq!(test.context().last().expect("calls"), "down");
    test.advance(Duration::from_millis(49));
    assert!(!link.is_up(), "half of the first wait is certain");
    test.advance(Duration::from_millis(53));
    assert!(link.is_up());
    let peers = test.world().take_connections();
    peers[0].send(b"two\n");
    test.settle();
    assert_eq!(peers[0].take_received(), b"two\n");
}

#[test]
fn a_notifier_of_one_connection_wakes_the_next_one() {
    let mut test = TestLoop::<Client>::new(Log::new());
    test.world().target(address(), Target::Accepts);
    let notifiers = Rc::new(RefCell::new(Vec::new()));
    let kept = notifiers.clone();
    let seed = seed(StreamConfig::new(), move |me, event, transport, scope| {
        if let Event::Create = event {
            kept.borrow_mut().push(scope.notifier());
        }
        echo_lines(me, event, transport, scope)
    });
    test.add(|scope| Persistent::new(PersistentSeed::new(address(), seed), scope));
    test.settle();
    let first = notifiers.borrow()[0].clone();
    test.world().take_connections()[0].end();
    test.settle();
    let calls = test.context().len();
    assert!(first.wakeup(), "the machine is there");
    test.settle();
    assert_eq!(test.context().len(), calls, "no protocol is there to be woken");
    test.advance(Duration::from_millis(102));
    assert_eq!(notifiers.borrow().len(), 2);
    assert_eq!(test.context()[calls..], ["create"]);
    assert!(first.wakeup());
    test.settle();
    assert_eq!(test.context()[calls..], ["create", "wakeup"]);
}

#[test]
fn attempts_to_reach_a_missing_server_become_less_frequent() {
    let (mut test, link) = persistent(Target::Fails(ErrorKind::ConnectionRefused));
    let begun = test.world().now();
    test.advance(Duration::from_secs(3600));
    let attempts = test.context().iter().filter(|call| call.starts_with("not connected")).count();
    // About nine attempts until the wait is 30 s, then one every 15 to 30 s.
    assert!((120..=250).contains(&attempts), "{attempts} attempts in an hour");
    assert!(!link.is_up() && test.world().now() > begun);
    test.world().target(address(), Target::Accepts);
    test.advance(Duration::from_secs(31));
    assert!(link.is_up());
}

#[test]
fn the_wait_before_the_next_attempt_uses_secure_random_numbers() {
    // Two loops with the same secure random numbers, as always on the in-memory backend.
    let next_attempt = |fast_seed| {
        let world = World::new();
        world.target(address(), Target::FailsAtOnce(ErrorKind::ConnectionRefused));
        let config = Config::new().machines_max(1).seed(fast_seed);
        let creator =
            Loop::<Client, _>::with_backend(Memory::new(&world), &config).expect("a loop");
        let seed = PersistentSeed::new(address(), seed(StreamConfig::new(), echo_lines));
        let mut instance = creator.instantiate(Log::new());
        instance.add_machine_with(|scope| Persistent::new(seed, scope)).expect("there is room");
        while instance.next_deadline().expect("it is to be tried again") <= world.now() {
            instance.turn(Some(Duration::ZERO)).expect("nothing can fail in memory");
        }
        instance.next_deadline()
    };
    assert!(
        (2..6).all(|seed| next_attempt(seed) == next_attempt(1)),
        "the fast numbers have no say"
    );
}

#[test]
fn a_hanging_connection_attempt_times_out_and_is_retried() {
    let (mut test, link) = persistent(Target::Hangs);
    test.advance(Duration::from_millis(10_001));
    assert_eq!(*test.context(), ["not connected: connecting took too long"]);
    test.world().target(address(), Target::Accepts);
    test.advance(Duration::from_millis(101));
    assert!(link.is_up());
}

#[test]
fn an_immediate_refusal_is_reported_and_retried() {
    let (mut test, link) = persistent(Target::FailsAtOnce(ErrorKind::ConnectionRefused));
    assert_eq!(*test.context(), ["not connected: cannot connect: connection refused"]);
    test.world().target(address(), Target::Accepts);
    test.advance(Duration::from_secs(1));
    assert!(link.is_up());
}

#[test]
fn a_lasting_connection_resets_the_wait_between_attempts() {
    let (mut test, link) = persistent(Target::Fails(ErrorKind::ConnectionRefused));
    test.advance(Duration::from_secs(600));
    test.world().target(address(), Target::Accepts);
    test.advance(Duration::from_secs(31));
    let lasting = test.world().take_connections();
    lasting[0].end();
    test.settle();
    test.advance(Duration::from_millis(102));
    assert!(link.is_up(), "it was up for long enough");
    let brief = test.world().take_connections();
    brief[0].end();
    test.advance(Duration::from_millis(90));
    assert!(!link.is_up(), "it was up for too short a time: the wait is doubled");
    test.advance(Duration::from_millis(112));
    assert!(link.is_up());
}

#[test]
fn reconnects_after_brief_connections_become_less_frequent() {
    let (mut test, link) = persistent(Target::Accepts);
    for least in [50, 100, 200, 400, 800, 1_600].map(Duration::from_millis) {
        test.world().take_connections()[0].end();
        test.settle();
        assert!(!link.is_up());
        let ended = test.world().now();
        let again = test.advance_to_deadline().expect("it is tried again");
        assert!(
            again - ended >= least,
            "half of each wait is certain: {:?} of {least:?}",
            again - ended
        );
        assert!(link.is_up());
    }
}

#[test]
fn a_connection_that_is_only_flushed_for_long_counts_as_brief() {
    let (mut test, _) = persistent(Target::Accepts);
    for least in [50, 100, 200, 400].map(Duration::from_millis) {
        let peer = test.world().take_connections().remove(0);
        peer.limit_room(0);
        peer.send(b"last\n");
        peer.end();
        test.settle();
        test.advance(Duration::from_secs(20));
        peer.make_room(5);
        test.settle();
        assert!(peer.is_dropped());
        let ended = test.world().now();
        let again = test.advance_to_deadline().expect("it is tried again");
        assert!(again - ended >= least, "{:?} of {least:?}", again - ended);
    }
}

#[test]
fn a_link_closed_in_advance_prevents_the_connection() {
    let link = Link::new();
    link.close();
    let mut test = TestLoop::<Client>::new(Log::new());
    test.world().target(address(), Target::Accepts);
    let seed = PersistentSeed::new(address(), seed(StreamConfig::new(), echo_lines)).link(link);
    test.add(|scope| Persistent::new(seed, scope));
    assert_eq!((test.machines(), test.context().len()), (0, 0), "nothing was connected");
}

/// A connection whose protocol has ended, and whose last line the peer has not read.
fn flushing_connection() -> (TestLoop<Compose2<Client, Watcher>>, Link, Peer) {
    let (mut test, link) = persistent(Target::Accepts);
    let peer = test.world().take_connections().remove(0);
    peer.limit_room(0);
    peer.send(b"last\n");
    peer.end();
    test.settle();
    assert_eq!(test.context().last().map(String::as_str), Some("down"));
    (test, link, peer)
}

#[test]
fn a_connection_whose_protocol_has_ended_is_down_while_it_is_flushed() {
    let (mut test, link, peer) = flushing_connection();
    assert!(!link.is_up() && !peer.is_dropped());
    peer.make_room(5);
    test.settle();
    assert_eq!((peer.take_received(), peer.is_dropped()), (b"last\n".to_vec(), true));
    assert_eq!(
        *test.context(),
        ["create", "up", "read \"last\"", "exception: the peer has ended the stream", "down"]
    );
}

#[test]
fn draining_does_not_abort_a_connection_that_is_being_flushed() {
    let (mut test, _, peer) = flushing_connection();
    test.drain(Duration::from_secs(9));
    assert!(!peer.is_dropped());
    peer.make_room(5);
    test.settle();
    assert_eq!((peer.take_received(), peer.is_dropped()), (b"last\n".to_vec(), true));
    assert_eq!(test.machines(), 1, "it does not connect again");
}

#[test]
fn closing_the_link_resets_only_a_connection_that_is_being_flushed() {
    let (mut test, link, peer) = flushing_connection();
    link.close();
    test.settle();
    assert!(peer.is_dropped() && peer.take_received().is_empty());
    assert_eq!((peer.operations().resets, test.machines()), (1, 1));

    let (mut test, link) = persistent(Target::Accepts);
    let peer = test.world().take_connections().remove(0);
    peer.send(b"whole\n");
    test.settle();
    link.close();
    test.settle();
    assert_eq!((peer.is_dropped(), peer.take_received()), (true, b"whole\n".to_vec()));
    assert_eq!(peer.operations().resets, 0);
}

#[test]
fn closing_the_link_or_draining_the_loop_ends_the_machine() {
    let (mut test, link) = persistent(Target::Accepts);
    let peers = test.world().take_connections();
    link.close();
    test.settle();
    assert!(peers[0].is_dropped() && !link.is_up());
    assert_eq!(test.machines(), 1);

    for target in [Target::Hangs, Target::Fails(ErrorKind::ConnectionRefused)] {
        let (mut test, _) = persistent(target);
        test.drain(Duration::from_secs(1));
        assert_eq!(test.machines(), 1, "{target:?}");
    }
    let (mut test, link) = persistent(Target::Accepts);
    test.drain(Duration::from_secs(100));
    assert!(link.is_up());
    test.world().take_connections()[0].end();
    test.settle();
    assert!(!link.is_up());
    assert_eq!(test.machines(), 1, "it does not connect again");
}
