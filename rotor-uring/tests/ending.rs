//! Streams whose peer has ended its side, and what follows that end.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]
#![expect(clippy::disallowed_methods, reason = "the other end is no machine")]

mod rig;

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};

use rig::{Rig, not_yet};
use rotor_core::net::StreamSocket;
use rotor_core::{EventSet, Interest};
use rotor_uring::{UringConfig, UringTcpStream};

/// The next event, or `None` if there is none in 2,000 turns.
fn next_event(rig: &mut Rig) -> Option<EventSet> {
    for _ in 0..2_000 {
        if let Some(events) = rig.take_events().first() {
            return Some(*events);
        }
        rig.instance.turn(Some(std::time::Duration::from_millis(1))).expect("the loop goes on");
    }
    None
}

#[test]
fn a_reset_after_an_end_is_reported() {
    // With unread bytes that are copied, and with a socket that is read by calls.
    for config in [UringConfig::new(), UringConfig::new().unread_bytes_max(1)] {
        let Some(mut rig) = Rig::open(&config) else { return };
        let (mut server, mut client) = rig.pair();
        client.write_all(b"a request").expect("it fits");
        client.shutdown(Shutdown::Write).expect("it is there");
        assert_eq!(rig.read(&mut server, None), b"a request");
        server.write_all(b"an answer").expect("it fits");
        rig.until(|_| not_yet(client.peek(&mut [0; 9])) == Some(9));
        rig.turns(3);
        rig.take_events();
        // It has not read the answer, so its kernel resets.
        drop(client);
        let events = next_event(&mut rig).expect("its machine hears of it");
        let expected = EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        assert!(events.contains(expected), "{events:?}");
        assert!(server.take_error().expect("it can be asked").is_some());
        assert_eq!(server.read(&mut [0; 9]).ok(), Some(0), "the end came in order");
        rig.turns(3);
        assert!(rig.take_events().is_empty(), "it is told once");
        drop(server);
        rig.until(|rig| rig.stats().sockets <= 1);
        assert_eq!(rig.stats().stale, 0);
    }
}

#[test]
fn a_reset_during_deregistration_is_reported_to_the_next_machine() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    // The turns before the deregistration, and between the reset and the registration.
    for (before, after) in [(0, 0), (3, 0), (0, 3), (3, 3)] {
        let (mut server, client) = rig.pair();
        client.shutdown(Shutdown::Write).expect("it is there");
        assert_eq!(rig.read(&mut server, None), b"");
        server.write_all(b"an answer").expect("it fits");
        rig.until(|_| not_yet(client.peek(&mut [0; 9])) == Some(9));
        rig.turns(before);
        rig.with(|scope| scope.deregister(&mut server)).expect("it was registered");
        drop(client);
        rig.turns(after);
        rig.take_events();
        rig.register(&mut server);
        // The end is reported, and the reset that came after it.
        let gone = EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        let events = next_event(&mut rig).expect("there is an end");
        let events = if events.contains(gone) { Some(events) } else { next_event(&mut rig) };
        assert!(events.is_some_and(|events| events.contains(gone)), "{events:?}");
        drop(server);
        rig.until(|rig| rig.stats().sockets == 0);
    }
    assert_eq!(rig.stats().stale, 0);
}

#[test]
fn half_closed_streams_leave_no_sockets_when_dropped() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    for turns in 0..6 {
        let (mut server, client) = rig.pair();
        client.shutdown(Shutdown::Write).expect("it is there");
        assert_eq!(rig.read(&mut server, None), b"");
        rig.turns(turns);
        if turns % 2 == 0 {
            // Both sides have ended: the poll completes.
            server.shutdown(Shutdown::Write).expect("it is there");
            rig.turns(turns);
        }
        drop(server);
        rig.until(|rig| rig.stats().sockets == 0);
        drop(client);
    }
    assert_eq!(rig.stats().stale, 0);
}

#[test]
fn a_shutdown_of_both_sides_follows_the_written_bytes() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    rig.turn();
    server.write_all(b"last words").expect("it is taken");
    server.shutdown(Shutdown::Both).expect("it is connected");
    // Our end is sent later, and nothing that arrives is read any more.
    assert_eq!(rig.read(&mut server, None), b"");
    assert_eq!(rig.read(&mut client, None), b"last words");
}

#[test]
fn an_error_of_a_receive_is_taken_once() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, client) = rig.pair();
    rig.turn();
    server.write_all(b"unread").expect("it is taken");
    rig.until(|_| not_yet(client.peek(&mut [0; 6])) == Some(6));
    drop(client);
    rig.until(|rig| rig.take_events().iter().any(|events| events.contains(EventSet::ERROR)));
    let errors = [(); 2].map(|()| server.take_error().expect("it can be asked"));
    let kinds = errors.map(|error| error.map(|error| error.kind()));
    assert_eq!(kinds, [Some(std::io::ErrorKind::ConnectionReset), None]);
    assert_eq!(server.read(&mut [0; 9]).ok(), Some(0));
}

#[test]
fn a_read_only_machine_is_notified_of_connect_and_input() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let door = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = door.local_addr().expect("it is bound");
    let mut stream = rig.with(|scope| {
        let mut stream = UringTcpStream::connect(&address, scope).expect("it begins");
        scope.register(&mut stream, Interest::Readable).expect("of this backend");
        stream
    });
    assert!(next_event(&mut rig).is_some());
    let (mut peer, _) = door.accept().expect("it has connected");
    peer.write_all(b"hello").expect("it fits");
    assert!(next_event(&mut rig).is_some_and(|events| events.is_readable()));
    assert_eq!(rig.read(&mut stream, Some(5)), b"hello");
}

#[test]
fn a_file_follows_the_bytes_written_in_the_same_turn() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, mut client) = rig.pair();
    let program = std::env::current_exe().and_then(std::fs::File::open).expect("it runs");
    server.write_all(b"head").expect("it is taken");
    let mut sent = not_yet(server.send_file(&program, 0, 4)).unwrap_or(0);
    rig.until(|rig| {
        rig.turn();
        sent = sent.max(not_yet(server.send_file(&program, 0, 4 - sent)).unwrap_or(0));
        sent == 4
    });
    // The first bytes of a Linux program (elf(5)).
    assert_eq!(rig.read(&mut client, Some(8)), b"head\x7fELF");
}

#[test]
fn room_that_a_send_makes_while_deregistered_is_reported_on_registration() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    let (mut server, _client) = rig.pair();
    rig.turns(3);
    // As much as the stream takes in a turn. The kernel has room for more.
    while not_yet(server.write(&[0; 10_000])).is_some() {}
    rig.with(|scope| scope.deregister(&mut server)).expect("it is registered");
    rig.turns(5);
    rig.take_events();
    rig.register(&mut server);
    rig.until(|rig| rig.take_events().iter().any(|events| events.contains(EventSet::WRITABLE)));
    assert!(not_yet(server.write(b"more")).is_some());
}
