//! What a drain does to connections and to the input they have received.

mod probe;

use std::io::{ErrorKind, Write};
use std::time::Duration;

use probe::{Event, Log, Probe, Seed, echo_lines, probe_with, seed};
use rotor_core::{Config, Scope};
use rotor_stream::testing::{Door, Peer, ScriptedListener, ScriptedSocket, TestLoop, listener};
use rotor_stream::{Accept, AcceptConfig, Intent, Stream, StreamConfig, Transport};

type Server = Accept<Stream<Probe, ScriptedSocket>, ScriptedListener>;

const MINUTE: Duration = Duration::from_secs(60);

/// Sends lines back; during a drain it ends when no line is pending, as `Protocol::draining`
/// describes.
fn echo_until_drained(
    me: Probe,
    event: &Event,
    transport: &mut Transport<'_>,
    scope: &mut Scope<'_, Log>,
) -> Intent<Probe> {
    if let Event::Draining(_) = event
        && transport.input.is_empty()
    {
        return Intent::done();
    }
    let intent = echo_lines(me, event, transport, scope);
    match event {
        Event::Read(_) if scope.draining_until().is_some() && transport.input.is_empty() => {
            Intent::done()
        }
        _ => intent,
    }
}

fn serve(config: Config, accept: AcceptConfig, seed: Seed) -> (TestLoop<Server>, Door) {
    let mut test = TestLoop::with_config(Log::new(), config);
    let (listener, door) = listener(test.world());
    test.add(|scope| Accept::listen(listener, seed, accept, scope));
    (test, door)
}

fn echo(config: Config, accept: AcceptConfig) -> (TestLoop<Server>, Door) {
    serve(config, accept, seed(StreamConfig::new(), echo_until_drained))
}

/// Connects and sends a request, without running a turn of the loop.
fn connect_and_send(door: &Door) -> Peer {
    let peer = door.connect();
    peer.send(b"hello\n");
    peer
}

#[test]
fn connections_in_the_queue_are_served_before_the_address_is_closed() {
    for budget in [1, 3, 64, 1_000] {
        let (mut test, door) =
            echo(Config::new().machines_max(1_000), AcceptConfig::new().accept_budget(budget));
        let peers: Vec<Peer> = (0..200).map(|_| connect_and_send(&door)).collect();
        test.drain(MINUTE);
        assert!(door.is_closed());
        let served = peers.iter().filter(|peer| peer.take_received() == b"hello\n").count();
        assert_eq!(served, 200, "with a budget of {budget}");
        peers.iter().for_each(Peer::end);
        test.settle();
        assert_eq!(test.machines(), 0);
    }
}

#[test]
fn a_draining_listener_keeps_to_its_accept_budget() {
    let (mut test, door) =
        echo(Config::new().machines_max(100), AcceptConfig::new().accept_budget(3));
    let _peers: Vec<Peer> = (0..10).map(|_| connect_and_send(&door)).collect();
    test.instance().handle().drain(MINUTE);
    for turn in 1..5 {
        let before = door.waiting();
        test.turn();
        // One event, and the call for the drain.
        assert!(before - door.waiting() <= 6, "{before} waited, {} in turn {turn}", door.waiting());
    }
    assert!(door.is_closed() && door.waiting() == 0);
}

#[test]
fn a_queued_connection_waits_for_a_slot_during_a_drain() {
    for accept in [AcceptConfig::new(), AcceptConfig::new().connections_max(1)] {
        let (mut test, door) = echo(Config::new().machines_max(3), accept);
        let peers: Vec<Peer> = (0..10).map(|_| connect_and_send(&door)).collect();
        peers.iter().for_each(Peer::end);
        test.drain(MINUTE);
        assert_eq!((door.is_closed(), test.machines()), (true, 0));
        assert!(peers.iter().all(|peer| peer.take_received() == b"hello\n"));
    }
}

/// Otherwise clients that come during the drain would wait until a connection ends, and then for a
/// server that is about to end.
#[test]
fn a_full_listener_that_nobody_waits_for_closes_its_address_in_a_drain() {
    let seed = || seed(StreamConfig::new(), |me, _, _, _| Intent::of(me).bytes(1).no_deadline());
    for idle_min in [Duration::ZERO, Duration::MAX] {
        let accept = AcceptConfig::new().idle_min(idle_min);
        for (slots, accept) in [(2, accept.clone()), (100, accept.connections_max(1))] {
            let (mut test, door) = serve(Config::new().machines_max(slots), accept, seed());
            let peer = door.connect();
            test.settle();
            test.drain(MINUTE);
            assert!(door.is_closed() && !peer.is_dropped(), "{slots} slots");
        }
    }
}

#[test]
fn a_drain_waits_out_a_lack_of_descriptors() {
    let (mut test, door) = echo(Config::new(), AcceptConfig::new());
    door.fail(std::io::Error::from_raw_os_error(24));
    let peer = connect_and_send(&door);
    test.drain(MINUTE);
    assert!(!door.is_closed() && peer.take_received().is_empty());
    test.advance(Duration::from_millis(101));
    assert!(door.is_closed());
    assert_eq!(peer.take_received(), b"hello\n");
}

#[test]
fn an_endless_flow_of_connections_does_not_keep_a_listener_open() {
    let seed = seed(StreamConfig::new(), |_, _, _, _| Intent::done());
    let accept = AcceptConfig::new().accept_budget(64);
    let (mut test, door) = serve(Config::new().machines_max(1_000), accept, seed);
    test.instance().handle().drain(MINUTE);
    let mut accepted = 0;
    while !door.is_closed() {
        let missing = 200 - door.waiting().min(200);
        (0..missing).for_each(|_| door.connect().end());
        accepted += missing;
        test.turn();
        test.context_mut().clear();
    }
    assert!((65_536..66_000).contains(&accepted), "{accepted} were let in");
}

#[test]
fn input_received_while_the_output_was_full_is_served_in_a_drain() {
    let config = StreamConfig::new().output_high_water(4);
    let mut driver = probe_with::<false>(config, |peer| peer.limit_room(0), echo_until_drained);
    driver.send(b"first line\n");
    driver.send(b"second line\n");
    assert_eq!(driver.unread_len(), 12, "nothing is read above the mark");
    driver.drain(MINUTE);
    driver.make_room(usize::MAX);
    assert_eq!(driver.take_received(), b"first line\nsecond line\n");
    assert!(driver.is_ended());
}

#[test]
fn all_received_input_is_served_in_a_drain_whatever_the_read_size() {
    for read_max in [6, 7, 16 * 1024, usize::MAX] {
        let before = |peer: &Peer| peer.limit_reads(read_max);
        let mut driver = probe_with::<false>(StreamConfig::new(), before, echo_until_drained);
        driver.peer().send(&b"hello\n".repeat(20_000));
        driver.drain(MINUTE);
        assert_eq!(driver.take_received().len(), 120_000, "in reads of {read_max}");
        assert!(driver.is_ended());
    }
}

#[test]
fn the_last_input_of_a_reset_peer_is_served_in_a_drain() {
    let mut driver = probe_with::<false>(StreamConfig::new(), |_| {}, echo_until_drained);
    driver.peer().send(b"last words\n");
    driver.peer().reset();
    driver.drain(MINUTE);
    assert_eq!(driver.context()[..2], ["create", "read \"last words\""]);
    assert!(!driver.is_alive());
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |_| {},
        |me, event, transport, scope| {
            if let Event::Draining(_) = event {
                // It would have waited for another line.
                transport.output.write_all(b"bye\n").expect("open");
                return Intent::of(me).keep().keep_deadline();
            }
            echo_lines(me, event, transport, scope)
        },
    );
    driver.peer().send(b"a line\n");
    driver.peer().reset();
    driver.drain(MINUTE);
    let calls = driver.context();
    assert_eq!(calls[1], "read \"a line\"");
    // A read has found it, not a write.
    let last = calls.last().map(String::as_str);
    assert_eq!(last, Some("fatal: the connection broke: connection reset"), "{calls:?}");
}

#[test]
fn a_failed_read_is_no_orderly_end_in_a_drain() {
    for lines in ["a line\n", "a line\nanother\n", "a line\nthe next"] {
        let mut driver = probe_with::<false>(StreamConfig::new(), |_| {}, echo_lines);
        driver.peer().send(lines.as_bytes());
        driver.peer().fail_read(ErrorKind::InvalidData);
        driver.drain(MINUTE);
        let exceptions: Vec<_> =
            driver.context().iter().filter(|call| call.starts_with("exception")).collect();
        assert_eq!(
            exceptions,
            ["exception: the connection was aborted before the peer ended the stream"],
            "after {lines:?}"
        );
    }
}
