//! Streams whose peer has ended its side: what comes behind that.
#![cfg(target_os = "linux")]
#![forbid(unsafe_code)]

mod rig;

use std::io::{Read, Write};
use std::net::Shutdown;

use rig::{Rig, not_yet};
use rotor_core::EventSet;
use rotor_core::net::StreamSocket;
use rotor_uring::UringConfig;

/// What is told in so many turns, or as soon as something is.
fn told(rig: &mut Rig) -> Option<EventSet> {
    for _ in 0..2_000 {
        if let Some(events) = rig.told().first() {
            return Some(*events);
        }
        rig.instance.turn(Some(std::time::Duration::from_millis(1))).expect("the loop goes on");
    }
    None
}

#[test]
fn a_reset_behind_an_end_is_told() {
    // With what is unread copied, and where a socket is asked.
    for config in [UringConfig::new(), UringConfig::new().unread_bytes_max(1)] {
        let Some(mut rig) = Rig::open(&config) else { return };
        let (mut server, mut client) = rig.pair();
        client.write_all(b"a request").expect("it fits");
        client.shutdown(Shutdown::Write).expect("it is there");
        assert_eq!(rig.read(&mut server, None), b"a request");
        server.write_all(b"an answer").expect("it fits");
        rig.until(|_| not_yet(client.peek(&mut [0; 9])) == Some(9));
        rig.turns(3);
        rig.told();
        // It has not read the answer, so its kernel resets.
        drop(client);
        let events = told(&mut rig).expect("its machine hears of it");
        let expected = EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        assert!(events.contains(expected), "{events:?}");
        assert!(server.take_error().expect("it can be asked").is_some());
        assert_eq!(server.read(&mut [0; 9]).ok(), Some(0), "the end came in order");
        rig.turns(3);
        assert!(rig.told().is_empty(), "it is told once");
        drop(server);
        rig.until(|rig| rig.stats().sockets <= 1);
        assert_eq!(rig.stats().stale, 0);
    }
}

#[test]
fn a_reset_that_came_when_nobody_had_the_stream_is_told_to_whoever_has_it_next() {
    let Some(mut rig) = Rig::open(&UringConfig::new()) else { return };
    // When it is handed on, and the reset comes: in turns.
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
        rig.told();
        rig.register(&mut server);
        // That there is an end to be read, and what came behind it.
        let gone = EventSet::ERROR | EventSet::READ_CLOSED | EventSet::WRITE_CLOSED;
        let events = told(&mut rig).expect("there is an end");
        let events = if events.contains(gone) { Some(events) } else { told(&mut rig) };
        assert!(events.is_some_and(|events| events.contains(gone)), "{events:?}");
        drop(server);
        rig.until(|rig| rig.stats().sockets == 0);
    }
    assert_eq!(rig.stats().stale, 0);
}

#[test]
fn streams_that_are_dropped_half_closed_leave_nothing_behind() {
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
