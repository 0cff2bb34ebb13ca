//! Before a protocol exists: input that the handshake has read in excess, how the handshake fails,
//! and who is notified.

use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream as StdUnix;
use std::sync::mpsc;
use std::time::Duration;

use rotor_core::net::UnixStream;
use rotor_core::{Config, Loop, Response};
use rotor_stream::Stream;
use rotor_stream::testing::pair;

use crate::negotiated_protocol::{Log, NegotiatedProtocol, Test, server};
use crate::record::{Kind, Record, encode};

/// A hello, followed by a line.
fn hello_and_line() -> Vec<u8> {
    [encode(Kind::Hello, b"upper", 0x55), encode(Kind::Data, b"hi\n", 0x55)].concat()
}

/// The server's answer to these.
fn welcome_and_line() -> Vec<u8> {
    [encode(Kind::Welcome, b"", 0x55), encode(Kind::Data, b"HI\n", 0x55)].concat()
}

#[test]
fn input_read_beyond_the_handshake_is_found_without_an_event() {
    for has_narrow_edges in [false, true] {
        let mut test = Test::new(Log::new());
        if has_narrow_edges {
            test.world().narrow_edges();
        }
        let (socket, peer) = pair(test.world());
        // Everything arrives before the machine exists, and the handshake reads it before the first
        // event.
        peer.send(&hello_and_line());
        test.add(|scope| Stream::connected(Record::server(socket).with_read_max(64), None, scope));
        assert_eq!(peer.take_received(), welcome_and_line(), "narrow edges: {has_narrow_edges}");
    }
}

/// A server's answer to some bytes, on kernel sockets.
fn answer_on_real_sockets(
    bytes: &[u8],
    answer_len: usize,
    wrap: impl FnOnce(Record<UnixStream>) -> Record<UnixStream>,
    once_it_waits: impl FnOnce(),
) -> io::Result<Vec<u8>> {
    let (mut client, server) = StdUnix::pair()?;
    client.set_nonblocking(true)?;
    client.write_all(bytes)?;
    let creator = Loop::<Stream<NegotiatedProtocol, Record<UnixStream>>>::new(&Config::new())?;
    let mut instance = creator.instantiate(Log::new());
    let made = instance.add_machine_with(|scope| match UnixStream::from_std(server, scope) {
        Ok(server) => Stream::connected(wrap(Record::server(server)), None, scope),
        Err(error) => Response::error(error),
    });
    made.expect("it is of this backend");
    // The events of the registration, and everything that follows from them.
    for _ in 0..3 {
        instance.turn(Some(Duration::ZERO))?;
    }
    once_it_waits();
    let mut got = Vec::new();
    for _ in 0..1_000 {
        if got.len() >= answer_len {
            break;
        }
        instance.turn(Some(Duration::from_millis(10)))?;
        if let Err(error) = client.read_to_end(&mut got) {
            assert_eq!(error.kind(), ErrorKind::WouldBlock);
        }
    }
    Ok(got)
}

#[test]
fn input_read_beyond_the_handshake_is_found_on_kernel_sockets() -> io::Result<()> {
    let answer = answer_on_real_sockets(
        &hello_and_line(),
        welcome_and_line().len(),
        |server| server.with_read_max(64),
        || (),
    )?;
    assert_eq!(answer, welcome_and_line());
    Ok(())
}

#[test]
fn a_handshake_that_waits_for_a_job_resumes_when_it_is_done() -> io::Result<()> {
    let (release, released) = mpsc::channel();
    let job = move || released.recv().expect("the test lets it go on");
    // By then no event of the socket is pending.
    let let_go = move || release.send(()).expect("the job waits");
    let answer = answer_on_real_sockets(
        &hello_and_line(),
        welcome_and_line().len(),
        |server| server.with_read_max(64).with_job(job),
        let_go,
    )?;
    assert_eq!(answer, welcome_and_line());
    Ok(())
}

#[test]
fn the_handshake_chooses_the_protocol() {
    for (name, answer) in [("upper", "HI\n"), ("plain", "hi\n")] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        for byte in encode(Kind::Hello, name.as_bytes(), 0x55) {
            assert!(test.context().is_empty(), "no protocol before the handshake");
            peer.send(&[byte]);
            test.settle();
        }
        assert_eq!(*test.context(), [format!("serves {name}")]);
        assert_eq!(peer.take_received(), encode(Kind::Welcome, b"", 0x55));
        peer.send(&encode(Kind::Data, b"hi\n", 0x55));
        test.settle();
        assert_eq!(peer.take_received(), encode(Kind::Data, answer.as_bytes(), 0x55));
    }
}

#[test]
fn a_handshake_has_its_own_deadline_and_may_fail() {
    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    peer.send(&[Kind::Hello as u8, 200]);
    for _ in 0..9 {
        peer.send(b"x");
        test.advance(Duration::from_secs(1));
        assert!(!peer.is_dropped() && test.context().is_empty());
    }
    test.advance(Duration::from_secs(2));
    assert_eq!(*test.context(), ["not connected: the handshake took too long"]);
    assert!(peer.is_ended());

    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    peer.end();
    test.settle();
    assert_eq!(*test.context(), ["not connected: the handshake has failed"]);
    assert!(peer.is_dropped(), "nobody is left who could be told why");
}

/// The server's answer to a client that sends no hello.
fn alert() -> Vec<u8> {
    encode(Kind::Alert, b"no hello", 0x55)
}

#[test]
fn a_peer_receives_the_alert_of_its_failed_handshake() {
    for room in [usize::MAX, 0, 3] {
        let mut test = Test::new(Log::new());
        test.world().narrow_edges();
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Data, &[b'x'; 100], 0x55));
        test.settle();
        assert_eq!(*test.context(), ["not connected: the handshake has failed"]);
        assert_eq!(peer.is_ended(), room == usize::MAX, "not before the alert");
        peer.make_room(1000);
        test.settle();
        assert_eq!(peer.take_received(), alert());
        assert!(peer.is_ended() && !peer.is_dropped());
        assert_eq!(peer.unread_len(), 0, "or a reset might overtake it");
        peer.send(b"whatever");
        peer.end();
        test.settle();
        assert!(peer.is_dropped());
        assert_eq!(test.context().len(), 1, "told once");
    }
}

#[test]
fn a_peer_that_does_not_end_after_a_failed_handshake_is_dropped_in_time() {
    for (room, seconds) in [(usize::MAX, 2), (0, 30)] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Data, b"", 0x55));
        test.advance(Duration::from_millis(seconds * 1000 - 100));
        assert!(!peer.is_dropped());
        test.advance(Duration::from_millis(200));
        assert!(peer.is_dropped(), "room {room}");
    }
}

#[test]
fn a_peer_late_with_a_started_handshake_receives_an_alert() {
    for (sent, room) in [(0, usize::MAX), (1, usize::MAX), (1, 3)] {
        let mut test = Test::new(Log::new());
        let peer = server(&mut test);
        peer.limit_room(room);
        peer.send(&encode(Kind::Hello, b"plain", 0x55)[..sent]);
        test.advance(Duration::from_millis(9_900));
        assert!(test.context().is_empty() && !peer.is_ended());
        test.advance(Duration::from_millis(200));
        assert_eq!(*test.context(), ["not connected: the handshake took too long"]);
        assert_eq!(peer.is_dropped(), sent == 0, "nobody waits for who has said nothing");
        if sent == 0 {
            assert_eq!(peer.take_received(), b"");
            continue;
        }
        assert_eq!(peer.is_ended(), room == usize::MAX, "not before the alert");
        peer.make_room(1000);
        test.settle();
        assert_eq!(peer.take_received(), encode(Kind::Alert, b"late", 0x55));
        assert!(peer.is_ended() && !peer.is_dropped());
        test.advance(Duration::from_millis(2_100));
        assert!(peer.is_dropped(), "as long as it lingers, and no longer");
        assert_eq!(test.context().len(), 1, "told once");
    }
}

#[test]
fn a_failed_handshake_does_not_reset_the_connection() -> io::Result<()> {
    let bytes = encode(Kind::Data, &[b'x'; 100], 0x55);
    assert_eq!(answer_on_real_sockets(&bytes, alert().len(), |server| server, || ())?, alert());
    Ok(())
}

#[test]
fn a_drain_that_begins_in_the_handshake_is_delivered_after_it() {
    let mut test = Test::new(Log::new());
    let peer = server(&mut test);
    test.drain(Duration::from_secs(9));
    assert!(test.context().is_empty(), "there is nobody to tell yet");
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["serves plain", "draining"]);
}

#[test]
fn signals_delay_neither_the_handshake_nor_the_end() {
    let mut test = Test::new(Log::new());
    let (socket, peer) = pair(test.world());
    test.add(|scope| Stream::connected(Record::server(socket).with_signals(), None, scope));
    peer.send(&encode(Kind::Hello, b"plain", 0x55));
    test.settle();
    assert_eq!(*test.context(), ["serves plain"]);
    peer.send(&encode(Kind::Close, b"", 0x55));
    test.settle();
    assert!(peer.is_ended() && peer.is_dropped(), "nothing is left that could cause an event");
}
