//! The proxy: one machine with two sockets.

#[path = "../../examples/tcp_proxy/machine.rs"]
mod machine;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use machine::{CONNECT_TIME_MAX, Proxy, Route, SILENCE_MAX};
use rotor::stream::testing::{
    Door, Peer, ScriptedListener, ScriptedSocket, Target, TestLoop, listener,
};
use rotor::stream::{Accept, AcceptConfig};

use crate::cuts;

type Test = TestLoop<Accept<Proxy<ScriptedSocket, ScriptedSocket, ()>, ScriptedListener>>;

const UPSTREAM: ([u8; 4], u16) = ([10, 0, 0, 1], 80);

fn proxy(target: Target) -> (Test, Door) {
    let mut test = Test::new(());
    let upstream = SocketAddr::from(UPSTREAM);
    test.world().target(upstream, target);
    let (listener, door) = listener(test.world());
    let route = Route::new(move |_, _| upstream);
    test.add(|scope| Accept::listen(listener, route, AcceptConfig::new(), scope));
    (test, door)
}

/// A client connected through the proxy, and its upstream.
fn connected() -> (Test, Peer, Peer) {
    let (mut test, door) = proxy(Target::Accepts);
    let client = door.connect();
    test.settle();
    let upstream = test.world().take_connections().pop().expect("the proxy has connected");
    (test, client, upstream)
}

fn send_all(test: &mut Test, peer: &Peer, pieces: &[&[u8]]) {
    for piece in pieces {
        peer.send(piece);
        test.settle();
    }
}

#[test]
fn both_directions_carry_the_same_bytes_however_they_are_split() {
    let (up, down): (&[u8], &[u8]) = (b"what goes up", b"what comes down");
    for write_max in cuts::WRITES {
        for (pieces_up, pieces_down) in cuts::splits(up).zip(cuts::splits(down)) {
            let (mut test, client, upstream) = connected();
            client.limit_writes(write_max);
            upstream.limit_writes(write_max);
            send_all(&mut test, &client, &pieces_up);
            send_all(&mut test, &upstream, &pieces_down);
            assert_eq!(
                (upstream.take_received(), client.take_received()),
                (up.to_vec(), down.to_vec())
            );
            assert!(!client.is_ended() && !upstream.is_ended());
        }
    }
}

#[test]
fn all_bytes_arrive_however_reads_split_them() {
    let bytes: Vec<u8> = (0..100_000_u32).map(|index| (index % 251) as u8).collect();
    for read_max in [usize::MAX, 16 * 1024, 16 * 1024 - 1, 999] {
        for write_max in [usize::MAX, 16 * 1024, 1000] {
            let (mut test, client, upstream) = connected();
            client.limit_reads(read_max);
            upstream.limit_writes(write_max);
            client.send(&bytes);
            client.end();
            test.settle();
            assert!(
                upstream.take_received() == bytes,
                "{read_max} bytes a read, {write_max} a write"
            );
            assert!(upstream.is_ended() && !client.is_dropped());
        }
    }
}

#[test]
fn an_end_follows_all_earlier_bytes_and_leaves_the_other_direction_open() {
    for is_swapped in [false, true] {
        let (mut test, client, upstream) = connected();
        let (first, second) = if is_swapped { (&upstream, &client) } else { (&client, &upstream) };
        second.limit_room(3);
        first.send(b"my last words");
        first.end();
        test.settle();
        assert_eq!(second.take_received(), b"my ");
        assert!(!second.is_ended(), "there is more");
        second.make_room(100);
        test.settle();
        assert_eq!(second.take_received(), b"last words");
        assert!(second.is_ended() && !first.is_ended() && !first.is_dropped());
        second.send(b"and mine");
        test.settle();
        assert_eq!(first.take_received(), b"and mine");
        second.end();
        test.settle();
        assert!(first.is_ended() && first.is_dropped() && second.is_dropped());
        assert_eq!(test.machines(), 1);
    }
}

#[test]
fn an_interrupted_read_is_retried() {
    let (mut test, client, upstream) = connected();
    client.fail_read(ErrorKind::Interrupted);
    test.settle();
    assert!(upstream.is_ended(), "no other edge tells of the end behind it");
}

#[test]
fn the_sender_is_not_read_while_the_receiver_takes_no_bytes() {
    /// The maximum that one direction buffers: one read.
    const HELD_MAX: usize = 16 * 1024;
    const LEN: usize = 1 << 20;
    let (mut test, client, upstream) = connected();
    upstream.limit_room(0);
    let bytes: Vec<u8> = (0..LEN).map(|index| (index % 251) as u8).collect();
    client.send(&bytes);
    test.settle();
    assert!(client.unread_len() >= LEN - HELD_MAX, "{} bytes were read", LEN - client.unread_len());
    // The other direction is not blocked.
    upstream.send(b"meanwhile");
    test.settle();
    assert_eq!(client.take_received(), b"meanwhile");
    let mut received = Vec::new();
    while received.len() < LEN {
        upstream.make_room(100_000);
        test.settle();
        let taken = upstream.take_received();
        assert!(!taken.is_empty(), "it stands still after {} bytes", received.len());
        received.extend_from_slice(&taken);
        let held = LEN - client.unread_len() - received.len();
        assert!(held <= HELD_MAX, "{held} bytes are held");
    }
    assert!(received == bytes);
}

#[test]
fn an_upstream_that_refuses_or_hangs_ends_only_its_client() {
    let refused = ErrorKind::ConnectionRefused;
    for target in [Target::Fails(refused), Target::FailsAtOnce(refused)] {
        let (mut test, door) = proxy(target);
        let clients = [door.connect(), door.connect()];
        test.settle();
        assert!(clients.iter().all(Peer::is_dropped), "{target:?}");
        assert_eq!(test.machines(), 1);
    }
    let (mut test, door) = proxy(Target::Hangs);
    let client = door.connect();
    client.send(b"is anybody there?");
    test.advance(CONNECT_TIME_MAX - Duration::from_millis(1));
    assert!(!client.is_dropped());
    assert_eq!(client.unread_len(), 17, "nothing is read that cannot be passed on");
    test.advance(Duration::from_millis(1));
    assert!(client.is_dropped());
}

#[test]
fn bytes_that_arrive_before_the_upstream_connects_are_forwarded() {
    let (mut test, door) = proxy(Target::Accepts);
    let client = door.connect();
    client.send(b"early");
    client.end();
    test.settle();
    let upstream = test.world().take_connections().pop().expect("the proxy has connected");
    assert_eq!(upstream.take_received(), b"early");
    assert!(upstream.is_ended());
}

#[test]
fn a_reset_is_forwarded_after_all_earlier_bytes() {
    for is_swapped in [false, true] {
        let (mut test, client, upstream) = connected();
        let (first, second) = if is_swapped { (&upstream, &client) } else { (&client, &upstream) };
        first.send(b"hello");
        test.settle();
        first.reset();
        test.settle();
        assert_eq!(second.take_received(), b"hello");
        assert!(second.is_dropped());
        assert_eq!((second.operations().resets, second.operations().shutdowns), (1, 0));
        assert_eq!(test.machines(), 1);
    }
}

#[test]
fn bytes_of_an_ended_upstream_are_forwarded_though_writes_to_it_fail() {
    let (mut test, client, upstream) = connected();
    upstream.send(b"too much");
    upstream.end();
    upstream.fail_writes(ErrorKind::BrokenPipe);
    client.send(b"more and more");
    test.settle();
    assert_eq!(client.take_received(), b"too much");
    assert_eq!((client.operations().resets, client.operations().shutdowns), (1, 0));
}

#[test]
fn the_idle_timeout_ends_both_sides_and_any_byte_extends_it() {
    let (mut test, client, upstream) = connected();
    let just_in_time = SILENCE_MAX - Duration::from_secs(1);
    // From here on the idle timeout applies, and no longer the connect timeout.
    send_all(&mut test, &client, &[b"hello"]);
    for peer in [&upstream, &client, &upstream] {
        test.advance(just_in_time);
        send_all(&mut test, peer, &[b"x"]);
    }
    test.advance(just_in_time);
    assert!(!client.is_dropped() && !upstream.is_dropped());
    test.advance(Duration::from_secs(1));
    assert!(client.is_dropped() && upstream.is_dropped());
    // Neither side has shut down.
    assert_eq!((client.operations().resets, upstream.operations().resets), (1, 1));
}

#[test]
fn an_established_idle_connection_outlives_the_connect_timeout() {
    let (mut test, client, upstream) = connected();
    test.advance(CONNECT_TIME_MAX * 2);
    assert!(!client.is_dropped() && !upstream.is_dropped(), "it is connected, and only silent");
}
