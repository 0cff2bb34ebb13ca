//! Streams that one side drops while bytes are unread, and what the other side reads.

use std::io::{self, Read, Write};
use std::net::Shutdown;

use rotor_core::net::StreamSocket;
use rotor_core::{Config, EventSet, Interest, Response};

use super::{TEXT, event_recorder};
use crate::actor::Actor;
use crate::loops::{End, OnLoop, Rig, StreamOn, not_yet, on_every_loop};

type Machine = Actor<EventSet>;

/// A stream that the test holds and a machine is told of, and the other end of its connection.
fn connected<L: OnLoop>() -> (Rig<Machine, L>, StreamOn<L>, L::End) {
    let mut rig = Rig::<Machine, L>::new(&Config::new(), EventSet::EMPTY);
    let (mut door, target) = rig.peer_listener();
    let mut made = None;
    rig.add(|scope| {
        let mut socket = StreamOn::<L>::connect(&target, scope).expect("it only begins");
        scope.register(&mut socket, Interest::Both).expect("it is of this backend");
        made = Some(socket);
        Response::ok(event_recorder())
    });
    let mut socket = made.expect("the closure ran");
    let end = rig.accept_peer(&mut door);
    rig.until(|_| socket.has_connected().expect("somebody listens"));
    (rig, socket, end)
}

/// Takes turns until the machine is told of an event.
fn until_reported<L: OnLoop>(rig: &mut Rig<Machine, L>, event: EventSet) {
    rig.until(|rig| rig.context(|reported| reported.contains(event)));
}

/// Whether the machine is told of an event within as many turns as any loop needs.
fn reports<L: OnLoop>(rig: &mut Rig<Machine, L>, event: EventSet) -> bool {
    (0..100).any(|_| {
        let is_reported = rig.context(|reported| reported.contains(event));
        if !is_reported {
            rig.turn();
        }
        is_reported
    })
}

on_every_loop!(the_peer_of_a_stream_dropped_with_unread_bytes_reads_a_reset);
fn the_peer_of_a_stream_dropped_with_unread_bytes_reads_a_reset<L: OnLoop>() {
    for read in [0, 1, TEXT.len() - 1] {
        let (mut rig, mut socket, mut end) = connected::<L>();
        rig.send(&mut end, TEXT).expect("there is room");
        until_reported(&mut rig, EventSet::READABLE);
        let mut bytes = [0; 64];
        assert_eq!(socket.read(&mut bytes[..read]).expect("it has arrived"), read);
        drop(socket);
        let (got, failed) = rig.hear(&mut end, None);
        let failed = failed.map(|error| error.kind());
        assert_eq!((got.len(), failed), (0, Some(io::ErrorKind::ConnectionReset)), "{read}");
    }
}

on_every_loop!(bytes_written_just_before_a_drop_with_unread_bytes_arrive_before_the_reset);
fn bytes_written_just_before_a_drop_with_unread_bytes_arrive_before_the_reset<L: OnLoop>() {
    let (mut rig, mut socket, mut end) = connected::<L>();
    rig.send(&mut end, TEXT).expect("there is room");
    until_reported(&mut rig, EventSet::READABLE);
    assert_eq!(socket.write(b"too long").expect("there is room"), 8);
    drop(socket);
    let (got, failed) = rig.hear(&mut end, None);
    let failed = failed.map(|error| error.kind());
    assert_eq!((&*got, failed), (&b"too long"[..], Some(io::ErrorKind::ConnectionReset)));
}

on_every_loop!(a_shutdown_after_both_sides_have_ended_says_that_nobody_is_connected);
fn a_shutdown_after_both_sides_have_ended_says_that_nobody_is_connected<L: OnLoop>() {
    let (mut rig, mut socket, mut end) = connected::<L>();
    socket.shutdown(Shutdown::Write).expect("it is connected");
    assert_eq!(rig.receive(&mut end, None).expect("nothing was reset"), b"");
    socket.shutdown(Shutdown::Write).expect("the peer has not ended");
    end.end().expect("it is connected");
    until_reported(&mut rig, EventSet::READ_CLOSED);
    for how in [Shutdown::Write, Shutdown::Read, Shutdown::Both] {
        let refused = socket.shutdown(how).expect_err("nobody is left").kind();
        assert_eq!(refused, io::ErrorKind::NotConnected, "{how:?}");
    }
    assert_eq!(rig.receive(&mut socket, None).expect("nothing was reset"), b"");
}

on_every_loop!(the_local_address_is_known_after_both_sides_have_ended);
fn the_local_address_is_known_after_both_sides_have_ended<L: OnLoop>() {
    let (mut rig, mut socket, mut end) = connected::<L>();
    let own = socket.local_address();
    assert!(own.is_some());
    socket.shutdown(Shutdown::Write).expect("it is connected");
    end.end().expect("it is connected");
    rig.until(|_| socket.peer_address().is_none());
    assert_eq!(socket.local_address(), own);
}

on_every_loop!(a_reset_behind_eof_does_not_replace_eof_and_breaks_the_pipe);
fn a_reset_behind_eof_does_not_replace_eof_and_breaks_the_pipe<L: OnLoop>() {
    for is_read_before in [true, false] {
        let (mut rig, mut socket, mut end) = connected::<L>();
        // The other end never reads it, so dropping that end resets the connection.
        assert_eq!(socket.write(b"unread").expect("there is room"), 6);
        rig.send(&mut end, TEXT).expect("there is room");
        end.end().expect("it is connected");
        until_reported(&mut rig, EventSet::READ_CLOSED);
        if is_read_before {
            assert_eq!(rig.receive(&mut socket, None).expect("nothing was reset"), TEXT);
        }
        drop(end);
        until_reported(&mut rig, EventSet::ERROR);
        let (got, failed) = rig.hear(&mut socket, None);
        let expected = if is_read_before { &b""[..] } else { TEXT };
        assert_eq!((&*got, failed.map(|error| error.kind())), (expected, None));
        // On io_uring, a write fails only after one that could not be sent.
        let mut refused = None;
        rig.until(|_| {
            refused = socket.write(b"x").err().map(|error| error.kind());
            refused.is_some()
        });
        assert_eq!(refused, Some(io::ErrorKind::BrokenPipe));
    }
}

on_every_loop!(a_reset_before_registering_is_reported);
fn a_reset_before_registering_is_reported<L: OnLoop>() {
    for (interest, was_registered) in [Interest::Both, Interest::Readable, Interest::Writable]
        .into_iter()
        .flat_map(|interest| [(interest, true), (interest, false)])
    {
        let (mut rig, mut socket, mut end) = connected::<L>();
        assert_eq!(socket.write(b"unread").expect("there is room"), 6);
        assert_eq!(rig.receive(&mut end, Some(1)).expect("it is sent"), b"u");
        let mut deregister = |rig: &mut Rig<Machine, L>| {
            rig.add(|scope| {
                scope.deregister(&mut socket).expect("it is registered");
                Response::ok(event_recorder())
            });
        };
        if was_registered {
            drop(end);
            until_reported(&mut rig, EventSet::ERROR);
            deregister(&mut rig);
        } else {
            deregister(&mut rig);
            drop(end);
        }
        rig.until(|_| socket.peer_address().is_none());
        rig.context(|reported| *reported = EventSet::EMPTY);
        rig.add(|scope| {
            scope.register(&mut socket, interest).expect("it is not registered");
            Response::ok(event_recorder())
        });
        let is_reported = reports(&mut rig, EventSet::ERROR);
        assert!(is_reported, "{interest:?} {:?}", rig.context(|reported| *reported));
        let failed = rig.hear(&mut socket, None).1.map(|error| error.kind());
        assert_eq!(failed, Some(io::ErrorKind::ConnectionReset));
    }
}

on_every_loop!(bytes_that_came_before_reading_was_shut_down_can_be_read);
fn bytes_that_came_before_reading_was_shut_down_can_be_read<L: OnLoop>() {
    for how in [Shutdown::Read, Shutdown::Both] {
        let (mut rig, mut socket, mut end) = connected::<L>();
        rig.send(&mut end, TEXT).expect("there is room");
        until_reported(&mut rig, EventSet::READABLE);
        socket.shutdown(how).expect("it is connected");
        assert_eq!(rig.receive(&mut socket, None).expect("nothing was reset"), TEXT);
    }
}

/// Writes until the socket takes no more, in pieces that no loop copies.
fn fill(socket: &mut impl StreamSocket) {
    while not_yet(socket.write(&[b'z'; 64 * 1024])).expect("it is open").is_some() {}
}

on_every_loop!(a_full_stream_whose_peer_has_ended_its_side_is_told_of_room_only);
fn a_full_stream_whose_peer_has_ended_its_side_is_told_of_room_only<L: OnLoop>() {
    let (mut rig, mut socket, mut end) = connected::<L>();
    end.end().expect("it is connected");
    until_reported(&mut rig, EventSet::READ_CLOSED);
    assert_eq!(socket.read(&mut [0]).expect("the end"), 0);
    // As a machine does: it tries again when it is told that there is room.
    let mut write_for_turns = |rig: &mut Rig<Machine, L>| {
        fill(&mut socket);
        for _ in 0..30 {
            rig.turn();
            if rig.context(|told| std::mem::take(told).is_writable()) {
                fill(&mut socket);
            }
        }
    };
    // Until all buffers on the way are full.
    write_for_turns(&mut rig);
    let events = |rig: &mut Rig<Machine, L>| rig.with(|instance| instance.stats().read().events);
    let before = events(&mut rig);
    write_for_turns(&mut rig);
    let told = events(&mut rig) - before;
    assert!(told < 10, "{told} events in 30 turns");
    // Once the peer reads, the machine is told of room, each time.
    let mut received = 0;
    while received < 4 << 20 {
        let mut bytes = vec![0; 256 * 1024];
        rig.until(|rig| {
            received += not_yet(end.read(&mut bytes)).expect("it goes on").unwrap_or(0);
            rig.context(|told| std::mem::take(told).is_writable())
        });
        fill(&mut socket);
    }
}

on_every_loop!(room_that_a_full_stream_gets_without_a_machine_is_told_to_its_next_machine);
fn room_that_a_full_stream_gets_without_a_machine_is_told_to_its_next_machine<L: OnLoop>() {
    for has_ended in [false, true] {
        let (mut rig, mut socket, mut end) = connected::<L>();
        if has_ended {
            end.end().expect("it is connected");
            until_reported(&mut rig, EventSet::READ_CLOSED);
            assert_eq!(socket.read(&mut [0]).expect("the end"), 0);
        }
        for _ in 0..30 {
            fill(&mut socket);
            rig.turn();
        }
        rig.add(|scope| {
            scope.deregister(&mut socket).expect("it is registered");
            Response::ok(event_recorder())
        });
        let mut bytes = vec![0; 256 * 1024];
        for _ in 0..30 {
            rig.turn();
            while not_yet(end.read(&mut bytes)).expect("it goes on").is_some() {}
        }
        rig.context(|told| *told = EventSet::EMPTY);
        rig.add(|scope| {
            scope.register(&mut socket, Interest::Both).expect("nobody has it");
            Response::ok(event_recorder())
        });
        until_reported(&mut rig, EventSet::WRITABLE);
    }
}
