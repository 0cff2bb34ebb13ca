//! How connections end: done, half-closed, dropped, too late; and connections that begin with a
//! connection attempt.

mod probe;

use std::io::{ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

use probe::{Event, Log, Probe, echo_lines, probe, probe_with, seed};
use rotor_core::Time;
use rotor_stream::testing::{ScriptedSocket, Target, TestLoop};
use rotor_stream::{Intent, Stream, StreamConfig};

#[test]
fn done_flushes_the_output_ends_our_side_and_lets_the_peer_finish() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(3),
        |me, event, transport, _| match event {
            Event::Read(_) => {
                transport.output.write_all(b"goodbye").expect("open");
                Intent::done()
            }
            _ => Intent::of(me).bytes(1).no_deadline(),
        },
    );
    driver.send(b"x");
    assert_eq!(driver.take_received(), b"goo");
    assert!(driver.is_alive() && !driver.is_ended());
    driver.make_room(100);
    assert_eq!(driver.take_received(), b"dbye");
    assert!(driver.is_ended() && !driver.is_dropped());
    driver.send(b"still talking");
    assert_eq!(driver.unread_len(), 0, "what the peer still sends is thrown away");
    assert!(!driver.is_dropped());
    driver.end();
    assert!(driver.is_dropped() && !driver.is_alive());
}

#[test]
fn lingering_is_bounded() {
    let mut driver = probe(|me, event, _, _| match event {
        Event::Create => Intent::of(me).bytes(1).no_deadline(),
        _ => Intent::done(),
    });
    driver.send(b"x");
    assert!(driver.is_ended() && !driver.is_dropped());
    driver.advance(Duration::from_millis(1_990));
    driver.send(b"more");
    assert!(!driver.is_dropped());
    driver.advance(Duration::from_millis(20));
    assert!(driver.is_dropped());
}

/// The peer's input comes with one edge, and no other follows: a stream that stops because of its
/// budget must continue by itself.
#[test]
fn input_after_the_end_is_discarded_beyond_the_budget_of_one_event() {
    let config = StreamConfig::new().read_budget(1000);
    let mut driver = probe_with::<false>(config, |_| {}, |_, _, _, _| Intent::done());
    assert!(driver.is_ended() && !driver.is_dropped());
    let peer = driver.peer().clone();
    peer.send(&[b'x'; 100_000]);
    peer.end();
    driver.settle();
    assert_eq!(driver.unread_len(), 0);
    assert!(driver.is_dropped(), "the end behind it was seen");
}

#[test]
fn the_limit_of_input_after_the_end_counts_over_all_events() {
    for (count, is_dropped) in [(20_000, false), (20_001, true)] {
        let config = StreamConfig::new().read_budget(1_000).linger_bytes(20_000);
        let mut driver = probe_with::<false>(config, |_| {}, |_, _, _, _| Intent::done());
        driver.send(&vec![b'x'; count]);
        assert_eq!(driver.is_dropped(), is_dropped, "after {count}");
    }
}

#[test]
fn flushing_at_the_end_is_bounded() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |_, _, transport, _| {
            transport.output.write_all(b"nobody reads this").expect("open");
            Intent::done()
        },
    );
    assert!(driver.is_alive());
    driver.advance(Duration::from_secs(31));
    assert!(!driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn a_peer_that_sends_before_it_reads_still_gets_the_last_output() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |me, event, transport, _| match event {
            Event::Create => Intent::of(me).bytes(1).no_deadline(),
            _ => {
                transport.output.write_all(b"goodbye").expect("open");
                Intent::done()
            }
        },
    );
    driver.send(b"x");
    driver.send(b"a lot more");
    assert_eq!(driver.unread_len(), 0, "else both would wait for each other");
    driver.make_room(100);
    assert_eq!(driver.take_received(), b"goodbye");
}

#[test]
fn a_protocol_that_is_done_after_its_peer_is_dropped_at_once() {
    let mut driver = probe(echo_lines);
    driver.peer().send(b"bye\n");
    driver.end();
    assert_eq!(driver.take_received(), b"bye\n");
    assert!(driver.is_dropped() && !driver.is_alive());
}

#[test]
fn an_error_drops_the_connection_at_once_and_is_reported() {
    let mut driver = probe(|me, event, transport, _| match event {
        Event::Create => Intent::of(me).bytes(1).no_deadline(),
        _ => {
            transport.output.write_all(b"never sent").expect("open");
            Intent::error("a bad day")
        }
    });
    driver.send(b"x");
    assert!(driver.is_dropped());
    assert_eq!(driver.failures(), ["a bad day"]);
    assert_eq!(driver.take_received(), b"");
}

#[test]
fn a_half_close_ends_our_side_after_the_output_and_reading_continues() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(2),
        |me, event, transport, scope| match event {
            Event::Create => {
                transport.output.write_all(b"request").expect("open");
                transport.shutdown_write();
                transport.shutdown_write();
                let refused = transport.output.write_all(b"more").expect_err("ended");
                assert_eq!(refused.kind(), ErrorKind::BrokenPipe);
                assert!(
                    transport.output.push_block(vec![0; 1000]).is_err()
                        && transport.output.is_ended()
                );
                Intent::of(me).bytes(6).no_deadline()
            }
            Event::Read(matched) => {
                matched.consume(transport.input);
                Intent::of(me).bytes(1).no_deadline()
            }
            _ => echo_lines(me, event, transport, scope),
        },
    );
    assert!(!driver.is_ended());
    driver.make_room(100);
    assert_eq!(driver.take_received(), b"request");
    assert!(driver.is_ended() && !driver.is_dropped());
    driver.send(b"answer");
    assert_eq!(driver.context()[1], "read \"answer\"");
    driver.end();
    assert!(driver.is_dropped());
    assert_eq!(driver.operations().shutdowns, 1);
}

#[test]
fn a_peer_that_half_closes_still_gets_its_answer() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Create => Intent::of(me).bytes(1000).no_deadline(),
        Event::Exception(_) => {
            Intent::of(me).sleep().deadline(scope.now() + Duration::from_secs(5))
        }
        _ => {
            transport.output.write_all(b"late answer").expect("open");
            Intent::done()
        }
    });
    driver.send(b"question");
    driver.end();
    assert!(driver.is_alive());
    driver.advance(Duration::from_secs(5) + Duration::from_millis(2));
    assert_eq!(driver.take_received(), b"late answer");
    assert!(!driver.is_alive());
}

#[test]
fn a_reset_in_the_middle_of_a_write_is_fatal() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(2),
        |me, _, transport, _| {
            transport.output.write_all(b"answer").expect("open");
            Intent::of(me).flush(0).no_deadline()
        },
    );
    driver.reset();
    assert_eq!(*driver.context(), ["create", "fatal: writing has failed: broken pipe"]);
    assert!(!driver.is_alive() && driver.failures().is_empty());
}

#[test]
fn deadlines_fire_once_and_end_the_stream_by_default() {
    struct Mute;
    impl rotor_stream::Protocol for Mute {
        type Context = ();
        type Seed = ();
        fn create(
            _: (),
            _: &mut rotor_stream::Transport<'_>,
            scope: &mut rotor_core::Scope<'_, ()>,
        ) -> Intent<Self> {
            Intent::of(Mute).bytes(1).deadline(scope.now() + Duration::from_secs(1))
        }
        fn bytes_read(
            self,
            _: rotor_stream::Matched,
            _: &mut rotor_stream::Transport<'_>,
            _: &mut rotor_core::Scope<'_, ()>,
        ) -> Intent<Self> {
            Intent::done()
        }
    }
    let mut driver = rotor_stream::testing::Driver::<Mute>::new((), ());
    driver.advance(Duration::from_secs(2));
    assert!(!driver.is_alive());
    assert!(
        driver.failures()[0].ends_with("Mute received nothing before its deadline"),
        "{:?}",
        driver.failures()
    );

    let mut driver = probe(|me, event, _, scope| match event {
        Event::Create => Intent::of(me).bytes(1).deadline(scope.now() + Duration::from_secs(1)),
        _ => Intent::of(me).keep().keep_deadline(),
    });
    driver.advance(Duration::from_secs(100));
    assert_eq!(*driver.context(), ["create", "timeout"]);
    assert!(driver.is_alive());
}

#[test]
fn the_deadline_of_the_protocol_survives_a_stall_of_its_output() {
    let mut driver = probe_with::<false>(
        StreamConfig::new(),
        |peer| peer.limit_room(0),
        |me, event, transport, scope| match event {
            Event::Create => {
                transport.output.write_all(b"x").expect("open");
                Intent::of(me).bytes(1).deadline(scope.now() + Duration::from_secs(60))
            }
            _ => Intent::done(),
        },
    );
    driver.advance(Duration::from_secs(10));
    driver.make_room(10);
    driver.advance(Duration::from_secs(49));
    assert_eq!(driver.context().len(), 1);
    driver.advance(Duration::from_secs(2));
    assert_eq!(*driver.context(), ["create", "timeout"]);
}

#[test]
fn draining_reaches_the_protocol_and_done_flushes() {
    let mut driver = probe(|me, event, transport, scope| match event {
        Event::Draining(until) => {
            assert!(*until > scope.now());
            transport.output.write_all(b"going away").expect("open");
            Intent::done()
        }
        _ => Intent::of(me).bytes(1).no_deadline(),
    });
    driver.drain(Duration::from_secs(5));
    assert_eq!(driver.take_received(), b"going away");
    assert!(driver.is_ended());
    driver.end();
    assert!(!driver.is_alive());
}

const ADDRESS: ([u8; 4], u16) = ([10, 0, 0, 1], 80);

fn start_connecting(target: Target) -> (TestLoop<Stream<Probe, ScriptedSocket>>, Time) {
    let mut test = TestLoop::new(Log::new());
    let address = SocketAddr::from(ADDRESS);
    test.world().target(address, target);
    let begun = test.world().now();
    let seed = seed(StreamConfig::new(), echo_lines);
    let _failed = test.instance().add_machine_with(|scope| Stream::connect(&address, seed, scope));
    (test, begun)
}

#[test]
fn an_established_connection_creates_the_protocol() {
    let (mut test, _) = start_connecting(Target::Accepts);
    assert!(test.context().is_empty());
    test.settle();
    assert_eq!(*test.context(), ["create"]);
    let peers = test.world().take_connections();
    peers[0].send(b"hi\n");
    test.settle();
    assert_eq!(peers[0].take_received(), b"hi\n");
}

#[test]
fn a_failed_connection_attempt_returns_the_seed() {
    let (mut test, _) = start_connecting(Target::Fails(ErrorKind::ConnectionRefused));
    test.settle();
    assert_eq!(*test.context(), ["not connected: cannot connect: connection refused"]);
    assert_eq!(test.machines(), 0);

    let (mut test, begun) = start_connecting(Target::Hangs);
    let fired = test.advance_to_deadline().expect("a deadline");
    assert!(fired - begun >= Duration::from_secs(10));
    assert_eq!(*test.context(), ["not connected: connecting took too long"]);
    assert_eq!(test.machines(), 0);

    let (mut test, _) = start_connecting(Target::FailsAtOnce(ErrorKind::ConnectionRefused));
    assert_eq!(test.machines(), 0);
    assert!(test.context().is_empty());
}
