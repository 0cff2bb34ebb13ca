//! Each state of a connection, and everything that may happen then.

use rotor::http::h2::ErrorCode;
use rotor::http::h2::frame::PREFACE;
use rotor::http::h2::frame_writer;

use crate::kernel::on_mio;
#[cfg(target_os = "linux")]
use crate::kernel::{on_uring, refusal_of_uring};
use crate::rig::{Rig, Serving, Shared, ask, data, request, seconds, ws_frame};
use crate::wire::{Scripted, Wire};

/// A state of the connection: its name, the way to it.
type Stage = (&'static str, fn(&mut Rig));

const CLOSE: [u8; 2] = 1000_u16.to_be_bytes();

/// What may happen in it.
type Event = (&'static str, fn(&mut Rig));

fn stages() -> Vec<Stage> {
    vec![
        ("connected", |_| {}),
        ("within the header", |rig| rig.wire.send(&Rig::header()[..7])),
        ("after the header", |rig| rig.wire.send(&Rig::header())),
        ("within the hello", |rig| {
            rig.wire.send(&Rig::header());
            let hello = rig.client.take_records();
            rig.wire.send(&hello[..hello.len() / 2]);
        }),
        ("after the hello", |rig| {
            rig.wire.send(&Rig::header());
            let hello = rig.client.take_records();
            rig.wire.send(&hello);
        }),
        ("before the preface", |rig| rig.greet()),
        ("within the preface", |rig| {
            rig.greet();
            rig.write(&PREFACE[..10]);
        }),
        ("before the settings", |rig| {
            rig.greet();
            rig.write(PREFACE);
        }),
        ("idle", |rig| rig.begin()),
        ("within the fields", |rig| {
            rig.begin();
            let fields = ask(1);
            rig.write(&fields[..fields.len() - 5]);
        }),
        ("open", |rig| rig.open()),
        ("within DATA", |rig| {
            rig.open();
            let frame = data(1, &ws_frame(0x81, b"hello"), false);
            rig.write(&frame[..frame.len() - 3]);
        }),
        ("within a frame", |rig| {
            rig.open();
            let frame = ws_frame(0x81, b"hello");
            rig.write(&data(1, &frame[..frame.len() - 3], false));
        }),
        ("within a message", |rig| {
            rig.open();
            let frame = ws_frame(0x01, &[b'x'; 40_000]);
            frame.chunks(16_000).for_each(|part| rig.write(&data(1, part, false)));
            rig.talk_until(|rig| rig.messages.bytes() > 0);
        }),
        ("the window is used up", |rig| {
            rig.open();
            rig.say("binary 100000");
        }),
        ("the socket is full", |rig| {
            rig.open();
            rig.wire.fill();
            rig.say("binary 100000");
        }),
        ("the server closes", |rig| {
            rig.open();
            rig.say("close");
        }),
        ("the server closes, the socket is full", |rig| {
            rig.open();
            rig.wire.fill();
            rig.say("binary 50000");
            rig.say("close");
        }),
        ("the client has closed", |rig| {
            rig.open();
            rig.write(&data(1, &ws_frame(0x88, &CLOSE), false));
        }),
        ("the client has closed and ended", |rig| {
            rig.open();
            rig.write(&data(1, &ws_frame(0x88, &CLOSE), true));
        }),
        ("the client has ended", |rig| {
            rig.open();
            rig.write(&data(1, b"", true));
        }),
        ("held", |rig| hold(rig, "x")),
        ("held behind RST_STREAM", |rig| {
            hold(rig, "x");
            rig.write(&frame_writer::reset(1, ErrorCode::Cancel));
        }),
        ("held behind a violation on the stream", |rig| {
            hold(rig, "x");
            rig.write(&frame_writer::window_update(1, 0));
        }),
        ("held behind a violation", |rig| {
            hold(rig, "x");
            rig.write(&data(2, b"x", false));
        }),
        ("held before a panic, behind RST_STREAM", |rig| {
            hold(rig, "panic");
            rig.write(&frame_writer::reset(1, ErrorCode::Cancel));
        }),
        ("held, the window is used up", |rig| {
            rig.open();
            rig.say("binary 100000");
            rig.say("hold");
            rig.say("x");
        }),
        ("panicked", |rig| {
            rig.open();
            rig.say("panic");
        }),
        ("beside requests", |rig| {
            rig.open();
            rig.write(&request(3, "GET", "/wait", true));
            rig.write(&request(5, "POST", "/upload", false));
            rig.write(&data(5, b"half", false));
        }),
        ("three of them", |rig| {
            rig.open();
            rig.write(&[ask(3), ask(5)].concat());
            rig.say("binary 100000");
        }),
    ]
}

/// A WebSocket whose handler holds off this message.
fn hold(rig: &mut Rig, message: &str) {
    rig.open();
    rig.say("hold");
    rig.say(message);
}

fn events() -> Vec<Event> {
    vec![
        ("reset", |rig| rig.wire.reset()),
        ("a failed write", |rig| {
            rig.wire.fail_writes();
        }),
        ("end", |rig| rig.wire.end()),
        ("close_notify, then the end", |rig| {
            if !rig.client.tls.is_handshaking() {
                rig.client.tls.send_close_notify();
                let records = rig.client.take_records();
                rig.wire.send(&records);
            }
            rig.wire.end();
        }),
        ("close_notify", |rig| {
            if !rig.client.tls.is_handshaking() {
                rig.client.tls.send_close_notify();
                let records = rig.client.take_records();
                rig.wire.send(&records);
            }
        }),
        ("GOAWAY", |rig| {
            if !rig.client.tls.is_handshaking() {
                rig.write(&frame_writer::go_away(0, ErrorCode::NoError));
            }
        }),
        ("RST_STREAM", |rig| {
            if !rig.client.tls.is_handshaking() {
                rig.write(&frame_writer::reset(1, ErrorCode::Cancel));
            }
        }),
        ("WINDOW_UPDATE", |rig| {
            if !rig.client.tls.is_handshaking() {
                let update = |stream| frame_writer::window_update(stream, 1 << 20);
                rig.write(&[update(0), update(1)].concat());
            }
        }),
        ("garbage", |rig| rig.wire.send(&[0xff; 100])),
        ("drain", |rig| {
            // Longer than any deadline of a connection.
            rig.wire.drain(seconds(600));
            rig.hear();
        }),
        ("time", |_| {}),
    ]
}

/// Lets time pass until the connection is gone.
fn pass_time(rig: &mut Rig) {
    for _ in 0..200 {
        rig.hear();
        if rig.wire.is_dropped() || !rig.wire.advance_to_deadline() {
            break;
        }
    }
    rig.hear();
}

/// What must be true of a connection that is gone, whatever happened: what is not.
fn faults(rig: &mut Rig, shared: &Shared, stage: &str, event: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let is_dropped = rig.wire.is_dropped();
    let seen = rig.wire.context();
    let open = seen.sockets - seen.panics;
    if open > 0 || seen.requests > 0 {
        faults.push(format!("{open} WebSockets and {} requests had no end", seen.requests));
    }
    let left = [
        ("connections", rig.http.connections_open()),
        ("requests", rig.http.requests_open()),
        ("bytes", rig.held.bytes() as u64),
        ("bytes of messages", rig.messages.bytes() as u64),
        ("places of peers", rig.peers.peers_now() as u64),
        ("handshakes", shared.tls.counters().handshakes_now()),
        ("sockets", u64::from(!is_dropped)),
    ];
    faults.extend(left.iter().filter(|(_, count)| *count > 0).map(|left| format!("{left:?}")));
    faults.extend(rig.wire.failures());
    let is_cut = ["reset", "a failed write", "garbage"].contains(&event)
        || stage.ends_with("the socket is full");
    if stage != "after the hello"
        && !rig.client.tls.is_handshaking()
        && !is_cut
        && !rig.client.is_closed
    {
        faults.push("no close_notify".to_owned());
    }
    faults
}

fn end_connections_in_any_state(open: fn(Serving) -> Box<dyn Wire>) {
    let shared = Shared::new();
    let mut all = Vec::new();
    for (stage, reach) in stages() {
        for (event, happen) in events() {
            let mut rig = Rig::new(&shared, open);
            reach(&mut rig);
            rig.wire.settle();
            happen(&mut rig);
            rig.wire.settle();
            pass_time(&mut rig);
            let faults = faults(&mut rig, &shared, stage, event);
            all.extend(faults.into_iter().map(|fault| format!("{stage}, {event}: {fault}")));
        }
    }
    assert_eq!(all, [""; 0]);
}

#[test]
fn a_connection_in_any_state_ends_with_all_that_it_has() {
    end_connections_in_any_state(|serving| Box::new(Scripted::open(serving)));
}

#[test]
fn a_connection_in_any_state_on_mio_ends_with_all_that_it_has() {
    end_connections_in_any_state(on_mio);
}

#[cfg(target_os = "linux")]
#[test]
fn a_connection_in_any_state_on_io_uring_ends_with_all_that_it_has() {
    if let Some(refusal) = refusal_of_uring() {
        eprintln!("skipped: {refusal}");
        return;
    }
    end_connections_in_any_state(on_uring);
}
