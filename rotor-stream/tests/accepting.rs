//! Listeners: limits, full slabs, lack of descriptors, draining.

mod probe;

use std::cell::Cell;
use std::io::{self, ErrorKind, Write};
use std::rc::Rc;
use std::time::Duration;

use probe::{Event, Log, Probe, Seed, echo_lines, seed};
use rotor_core::{Config, Exit, OnPanic, Scope};
use rotor_stream::testing::{Door, Peer, ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{
    Accept, AcceptConfig, Intent, Matched, Protocol, Stream, StreamConfig, StreamError, Transport,
};

type Server = Accept<Stream<Probe, ScriptedSocket>, ScriptedListener>;

/// `EMFILE` and `ENFILE`: the process or the system has no descriptor left.
const NO_DESCRIPTOR: [i32; 2] = [24, 23];

fn serve_with(config: Config, accept: AcceptConfig, seed: Seed) -> (TestLoop<Server>, Door) {
    let mut test = TestLoop::with_config(Log::new(), config);
    let (listener, door) = listener(test.world());
    test.add(|scope| Accept::listen(listener, seed, accept, scope));
    (test, door)
}

fn serve(config: Config, accept: AcceptConfig) -> (TestLoop<Server>, Door) {
    serve_with(config, accept, seed(StreamConfig::new(), echo_lines))
}

fn assert_answers(test: &mut TestLoop<Server>, peer: &Peer) {
    peer.send(b"hello\n");
    test.settle();
    assert_eq!(peer.take_received(), b"hello\n");
}

#[test]
fn all_connections_of_one_edge_are_accepted() {
    let (mut test, door) = serve(Config::new().machines_max(1000), AcceptConfig::new());
    let peers: Vec<Peer> = (0..200).map(|_| door.connect()).collect();
    test.settle();
    assert_eq!((door.waiting(), test.machines()), (0, 201));
    for peer in &peers {
        assert_answers(&mut test, peer);
    }
}

#[test]
fn one_event_accepts_no_more_than_its_budget() {
    let (mut test, door) =
        serve(Config::new().machines_max(100), AcceptConfig::new().accept_budget(3));
    let _peers: Vec<Peer> = (0..10).map(|_| door.connect()).collect();
    for left in [7, 4, 1, 0] {
        test.turn();
        assert_eq!(door.waiting(), left);
    }
}

/// The writes of the existing connections determine how long a turn takes, so the number of turns
/// that a burst takes is what matters.
#[test]
fn a_full_queue_is_accepted_in_four_turns_despite_busy_writers() {
    const WRITERS: usize = 20;
    const QUEUED: usize = 4_096;
    let seed = seed(StreamConfig::new(), |me: Probe, event, transport, _| {
        if let Event::Read(_) = event {
            transport.output.push_block(vec![b'x'; 4 << 20]).expect("open");
            return Intent::of(me).flush(0).no_deadline();
        }
        Intent::of(me).bytes(1).no_deadline()
    });
    let (mut test, door) = serve_with(Config::new().machines_max(5_000), AcceptConfig::new(), seed);
    let writers: Vec<Peer> = (0..WRITERS).map(|_| door.connect()).collect();
    test.settle();
    writers.iter().for_each(|peer| peer.send(b"!"));
    test.turn();
    let _queued: Vec<Peer> = (0..QUEUED).map(|_| door.connect()).collect();
    for turn in 1..=4 {
        test.turn();
        assert_eq!(door.waiting(), QUEUED - turn * 1_024, "in turn {turn}");
    }
    assert!(writers.iter().all(|peer| peer.received_len() < 2 << 20), "they are still at it");
}

#[test]
fn a_connection_aborted_before_it_is_accepted_delays_no_other() {
    let (mut test, door) = serve(Config::new(), AcceptConfig::new());
    door.fail(ErrorKind::ConnectionAborted.into());
    let peer = door.connect();
    door.fail(ErrorKind::Interrupted.into());
    let second = door.connect();
    test.settle();
    assert_answers(&mut test, &peer);
    assert_answers(&mut test, &second);
}

#[test]
#[cfg(target_os = "linux")]
fn network_errors_reported_by_accept_on_linux_delay_no_connection() {
    use rustix::io::Errno;
    // The errors listed in accept(2).
    let waiting = [
        Errno::NETDOWN,
        Errno::PROTO,
        Errno::NOPROTOOPT,
        Errno::HOSTDOWN,
        Errno::NONET,
        Errno::HOSTUNREACH,
        Errno::OPNOTSUPP,
        Errno::NETUNREACH,
    ];
    for error in waiting {
        let (mut test, door) = serve(Config::new(), AcceptConfig::new());
        door.fail(error.into());
        let peer = door.connect();
        test.settle();
        assert_answers(&mut test, &peer);
    }
}

#[test]
fn accepting_pauses_after_a_budget_of_errors() {
    let (mut test, door) = serve(Config::new(), AcceptConfig::new().accept_budget(4));
    for _ in 0..10 {
        door.fail(ErrorKind::PermissionDenied.into());
    }
    let peer = door.connect();
    test.settle();
    assert_eq!(door.accepts(), 4, "it does not spin");
    test.advance(Duration::from_millis(101));
    assert_eq!(door.accepts(), 8);
    test.advance(Duration::from_millis(101));
    assert_answers(&mut test, &peer);
}

#[test]
fn accepting_pauses_without_a_descriptor_and_loses_no_connection() {
    for code in NO_DESCRIPTOR {
        let (mut test, door) = serve(Config::new(), AcceptConfig::new());
        door.fail(io::Error::from_raw_os_error(code));
        let peer = door.connect();
        test.settle();
        assert_eq!((door.accepts(), door.waiting()), (1, 1), "it does not spin");
        // Neither further edges nor wake-ups cut the pause short.
        let second = door.connect();
        test.settle();
        assert_eq!(door.accepts(), 1);
        test.advance(Duration::from_millis(99));
        assert_eq!(door.accepts(), 1);
        test.advance(Duration::from_millis(2));
        assert_answers(&mut test, &peer);
        assert_answers(&mut test, &second);
    }
}

/// `ENOSPC` and `ENOMEM`: the system watches no further socket.
const NO_WATCH: [i32; 2] = [28, 12];

/// A proxy's connection needs a descriptor for the upstream as well, and each one must be
/// registered. Without a pause, all that wait would be accepted only to be closed.
#[test]
fn accepting_pauses_after_a_connection_lacked_a_descriptor_of_its_own() {
    for code in NO_DESCRIPTOR.into_iter().chain(NO_WATCH) {
        let lacks_descriptor = Rc::new(Cell::new(true));
        let lacks = lacks_descriptor.clone();
        let seed = seed(StreamConfig::new(), move |me, event, transport, scope| {
            if lacks.get() {
                let error = io::Error::from_raw_os_error(code);
                return Intent::error(StreamError::Socket(error));
            }
            echo_lines(me, event, transport, scope)
        });
        let (mut test, door) = serve_with(Config::new(), AcceptConfig::new(), seed);
        let peers: Vec<Peer> = (0..3).map(|_| door.connect()).collect();
        test.settle();
        assert!(peers[0].is_dropped());
        assert_eq!((door.accepts(), door.waiting()), (1, 2), "the others wait");
        test.advance(Duration::from_millis(99));
        assert_eq!(door.accepts(), 1);
        lacks_descriptor.set(false);
        test.advance(Duration::from_millis(2));
        peers[1..].iter().for_each(|peer| assert_answers(&mut test, peer));
        // While none waits, the listener need not pause.
        lacks_descriptor.set(true);
        let last = door.connect();
        test.settle();
        assert!(last.is_dropped());
        lacks_descriptor.set(false);
        let next = door.connect();
        test.settle();
        assert_answers(&mut test, &next);
    }
}

#[test]
fn a_zero_pause_is_rounded_up_to_one_tick() {
    let (mut test, door) = serve(Config::new(), AcceptConfig::new().pause(Duration::ZERO));
    (0..3).for_each(|_| door.fail(io::Error::from_raw_os_error(NO_DESCRIPTOR[0])));
    let peer = door.connect();
    for accepts in 1..=3 {
        test.settle();
        assert_eq!(door.accepts(), accepts, "it does not spin");
        test.advance_to_deadline();
    }
    assert_answers(&mut test, &peer);
}

#[test]
fn connections_beyond_the_limit_wait_until_one_ends() {
    let (mut test, door) = serve(Config::new(), AcceptConfig::new().connections_max(2));
    let peers: Vec<Peer> = (0..4).map(|_| door.connect()).collect();
    test.settle();
    assert_eq!((door.waiting(), test.machines()), (2, 3));
    let turns = test.instance().stats().read().turns;
    test.settle();
    assert_eq!(
        test.instance().stats().read().turns,
        turns + 1,
        "a listener at its limit does not spin"
    );
    peers[0].end();
    test.settle();
    assert_eq!((door.waiting(), test.machines()), (1, 3));
    peers[1].reset();
    test.settle();
    assert_eq!((door.waiting(), test.machines()), (0, 3));
    assert_answers(&mut test, &peers[3]);
}

#[test]
fn a_full_slab_leaves_connections_in_the_queue_until_a_slot_is_free() {
    let (mut test, door) = serve(Config::new().machines_max(3), AcceptConfig::new());
    let peers: Vec<Peer> = (0..4).map(|_| door.connect()).collect();
    test.settle();
    assert_eq!((door.waiting(), test.machines()), (2, 3));
    assert_eq!(door.accepts(), 2, "it asks for a slot before it accepts");
    for (ended, left) in [(0, 1), (1, 0)] {
        peers[ended].end();
        test.settle();
        assert_eq!(door.waiting(), left);
    }
    assert_answers(&mut test, &peers[2]);
    assert_answers(&mut test, &peers[3]);
    assert!(!peers[2].is_dropped());
}

#[test]
fn a_connection_whose_slot_was_taken_is_held_until_another_is_free() {
    // Each listener spawns one machine per event; the second spawn of the first listener waits, and
    // the other listener takes its slot.
    let config = Config::new().machines_max(4).spawns_per_event(1);
    let (mut test, door) = serve(config, AcceptConfig::new());
    let (other_listener, other_door) = listener(test.world());
    let other_seed = seed(StreamConfig::new(), echo_lines);
    test.add(|scope| Accept::listen(other_listener, other_seed, AcceptConfig::new(), scope));
    let peers = [door.connect(), door.connect(), door.connect()];
    let other = other_door.connect();
    test.settle();
    assert_eq!((door.accepts(), door.waiting(), test.machines()), (2, 1, 4));
    assert!(!peers[1].is_dropped(), "it was accepted, and is held");
    other.end();
    test.settle();
    assert_answers(&mut test, &peers[1]);
    assert_eq!(door.waiting(), 1);
    peers[0].end();
    test.settle();
    assert_answers(&mut test, &peers[2]);
}

#[test]
fn a_protocol_that_ends_or_fails_at_once_ends_only_its_connection() {
    let enders = [
        seed(StreamConfig::new(), |_, _, _, _| Intent::done()),
        seed(StreamConfig::new(), |_, _, _, _| Intent::error("not today")),
        seed(StreamConfig::new(), |_, _, _, _| panic!("a bug")),
    ];
    for seed in enders {
        let (mut test, door) =
            serve_with(Config::new(), AcceptConfig::new().connections_max(2), seed);
        for _ in 0..5 {
            let peer = door.connect();
            peer.end();
            test.settle();
            assert!(peer.is_dropped());
        }
        assert_eq!((door.waiting(), test.machines()), (0, 1));
    }
}

/// A seed whose second clone panics; its protocol says hello and ends.
struct PanickingSeed(Rc<Cell<u32>>);

impl Clone for PanickingSeed {
    fn clone(&self) -> PanickingSeed {
        self.0.set(self.0.get() + 1);
        assert_ne!(self.0.get(), 2, "a bug in a seed");
        PanickingSeed(self.0.clone())
    }
}

struct Hello;

type Greeter = Accept<Stream<Hello, ScriptedSocket>, ScriptedListener>;

impl Protocol for Hello {
    type Context = ();
    type Seed = PanickingSeed;

    fn create(
        _: PanickingSeed,
        transport: &mut Transport<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Intent<Self> {
        transport.output.write_all(b"hello").expect("open");
        Intent::done()
    }

    fn bytes_read(self, _: Matched, _: &mut Transport<'_>, _: &mut Scope<'_, ()>) -> Intent<Self> {
        Intent::done()
    }
}

fn serve_with_panicking_seed(config: Config) -> (TestLoop<Greeter>, Vec<Peer>, Door) {
    let mut test = TestLoop::with_config((), config);
    let (listener, door) = listener(test.world());
    test.add(|scope| {
        Accept::listen(
            listener,
            PanickingSeed(Rc::default()),
            AcceptConfig::new().connections_max(1),
            scope,
        )
    });
    let peers = (0..4).map(|_| door.connect()).collect();
    (test, peers, door)
}

#[test]
fn a_panic_in_the_clone_of_a_seed_ends_only_its_connection() {
    let (mut test, peers, door) = serve_with_panicking_seed(Config::new());
    peers.iter().for_each(Peer::end);
    test.settle();
    let greeted: Vec<bool> = peers.iter().map(|peer| peer.take_received() == b"hello").collect();
    assert_eq!(greeted, [true, false, true, true]);
    assert!(peers[1].is_dropped() && !door.is_closed());
    let failures = test.failures();
    assert!(failures.len() == 1 && failures[0].contains("a bug in a seed"), "{failures:?}");
    let stats = test.instance().stats().read();
    assert_eq!((stats.panicked, stats.alive), (1, 1));
}

#[test]
fn a_panic_in_the_clone_of_a_seed_stops_the_loop_if_configured() {
    let (mut test, peers, _door) =
        serve_with_panicking_seed(Config::new().on_panic(OnPanic::StopLoop));
    peers.iter().for_each(Peer::end);
    let exit = test.instance().run().expect("a loop in memory can wait");
    assert!(matches!(exit, Exit::Panicked { .. }), "{exit:?}");
}

#[test]
fn draining_closes_an_idle_listener_and_lets_connections_finish() {
    let (mut test, door) = serve_with(
        Config::new(),
        AcceptConfig::new(),
        seed(StreamConfig::new(), |me, event, transport, scope| match event {
            Event::Draining(_) => Intent::of(me).keep().keep_deadline(),
            _ => echo_lines(me, event, transport, scope),
        }),
    );
    let peer = door.connect();
    test.settle();
    test.drain(Duration::from_secs(10));
    assert!(door.is_closed() && !peer.is_dropped());
    assert_answers(&mut test, &peer);
    peer.end();
    test.settle();
    assert_eq!(test.machines(), 0);
}
