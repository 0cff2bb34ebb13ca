//! A WebSocket on an HTTP/2 stream that is lost: what had arrived before is delivered first, as over
//! HTTP/1.1.

use std::io::ErrorKind;
use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::h2::ErrorCode;
use rotor_http::h2::frame_writer;
use rotor_http::server::{Http2Config, ServerConfig};
use rotor_websocket::{Counters, WebSocketConfig};

use crate::http2::{VERSION, ask, data, preface, stream_output};
use crate::kit::{ServerDriver, TEXT, frame, seconds, server_with, shown_frames};

type Loss = fn(&mut ServerDriver);

/// How stream 1 is lost, and whether its connection goes on.
const LOSSES: [(&str, Loss, bool); 7] = [
    ("RST_STREAM", |driver| driver.send(&frame_writer::reset(1, ErrorCode::Cancel)), true),
    ("violation on the stream", |driver| driver.send(&frame_writer::window_update(1, 0)), true),
    ("reset", |driver| driver.reset(), false),
    (
        "failed write",
        |driver| {
            driver.fail_writes(ErrorKind::BrokenPipe);
            driver.make_room(1_000_000);
            driver.send(&frame_writer::ping(*b"12345678", false));
        },
        false,
    ),
    ("end", |driver| driver.end(), false),
    (
        "violation on the connection",
        |driver| {
            driver.send(&data(2, b"x", false));
            driver.end();
        },
        false,
    ),
    (
        "no room",
        |driver| {
            driver.limit_room(0);
            driver.send(&frame_writer::ping(*b"12345678", false));
            driver.advance(seconds(2));
        },
        false,
    ),
];

/// A WebSocket on stream 1, and one on stream 3.
fn open() -> (ServerDriver, Arc<Counters>) {
    let limits = Limits::new().response_grace(seconds(2));
    let http = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true)).limits(limits);
    let (mut driver, counters) = server_with(WebSocketConfig::new(), http);
    driver.send(&preface());
    driver.send(&[ask(1, "websocket", &[VERSION]), ask(3, "websocket", &[VERSION])].concat());
    driver.take_received();
    driver.context_mut().events.clear();
    (driver, counters)
}

/// How many messages `x` the handler was given, and its last event.
fn heard(driver: &ServerDriver) -> (usize, &str) {
    let events = &driver.context().events;
    // The other one may be told of the end before it or after it.
    let last = events.iter().rev().find(|event| !event.starts_with("text other"));
    let count = events.iter().filter(|event| *event == "text x").count();
    (count, last.map_or("", String::as_str))
}

/// Checks that the connection goes on, or is gone.
fn check_end(driver: &mut ServerDriver, counters: &Counters, goes_on: bool, loss: &str) {
    if goes_on {
        driver.take_received();
        driver.send(&data(3, &frame(TEXT, "other"), false));
        assert_eq!(shown_frames(&stream_output(driver, 3).bytes), ["text other"], "{loss}");
        assert_eq!(counters.lost(), 1, "{loss}");
    } else {
        driver.end();
        assert!(!driver.is_alive(), "{loss}");
        assert_eq!(counters.lost(), 2, "{loss}");
    }
    assert_eq!(driver.failures(), [""; 0], "{loss}");
}

#[test]
fn messages_on_a_stream_that_a_handler_holds_off_are_delivered_before_its_loss() {
    for (loss, happens, goes_on) in LOSSES {
        let (mut driver, counters) = open();
        driver.send(&data(1, &[frame(TEXT, "hold"), frame(TEXT, "x")].concat(), false));
        driver.peer().send(&data(1, &frame(TEXT, "x"), false));
        happens(&mut driver);
        let lost = if goes_on { "text hold" } else { "closed 1006 Lost" };
        assert_eq!(heard(&driver), (0, lost), "{loss}, while it holds");
        assert_eq!(counters.lost(), u64::from(!goes_on), "{loss}");
        // The handler's own deadline ends the hold.
        driver.advance(seconds(3));
        assert_eq!(heard(&driver), (2, "closed 1006 Lost"), "{loss}");
        check_end(&mut driver, &counters, goes_on, loss);
    }
}

#[test]
fn more_messages_on_a_stream_than_a_turn_takes_are_delivered_before_its_loss() {
    for (loss, happens, goes_on) in LOSSES {
        let (mut driver, counters) = open();
        let messages = frame(TEXT, "x").repeat(3_000);
        driver.limit_room(0);
        for piece in messages.chunks(16_000) {
            driver.peer().send(&data(1, piece, false));
        }
        happens(&mut driver);
        assert_eq!(heard(&driver), (3_000, "closed 1006 Lost"), "{loss}");
        driver.make_room(1_000_000);
        check_end(&mut driver, &counters, goes_on, loss);
    }
}

#[test]
fn messages_on_a_stream_that_wait_for_unsent_output_are_delivered_before_its_loss() {
    for (loss, happens, goes_on) in LOSSES {
        let (mut driver, counters) = open();
        // More than the window of the stream.
        driver.send(&data(1, &frame(TEXT, "binary 1300000"), false));
        driver.send(&data(1, &frame(TEXT, "x"), false));
        assert_eq!(heard(&driver), (0, "text binary 1300000"), "the peer takes nothing");
        driver.peer().send(&data(1, &frame(TEXT, "x"), false));
        happens(&mut driver);
        if loss == "end" {
            // The peer may still read, and open the window.
            driver.reset();
        }
        assert_eq!(heard(&driver), (2, "closed 1006 Lost"), "{loss}");
        check_end(&mut driver, &counters, goes_on, loss);
    }
}

/// A peer that begins streams, sends messages and resets them gets no more than others.
#[test]
fn streams_that_are_reset_and_held_count_as_streams_of_their_connection() {
    let (mut driver, counters) = open();
    for stream in (5..405).step_by(2) {
        driver.send(&ask(stream, "websocket", &[VERSION]));
        let messages = [frame(TEXT, "hold"), frame(TEXT, "x")].concat();
        driver.send(&data(stream, &messages, false));
        driver.send(&frame_writer::reset(stream, ErrorCode::Cancel));
    }
    let opened = driver.context().events.iter().filter(|event| event.starts_with("opened")).count();
    assert_eq!((opened, counters.lost()), (98, 0), "two are open, a hundred may be");
    driver.advance(seconds(3));
    assert_eq!((heard(&driver).0, counters.lost()), (98, 98));
    driver.take_received();
    driver.send(&data(3, &frame(TEXT, "other"), false));
    assert_eq!(shown_frames(&stream_output(&mut driver, 3).bytes), ["text other"]);
}

#[test]
fn a_panic_of_a_handler_behind_the_loss_of_its_stream_ends_only_that() {
    for (loss, happens, goes_on) in LOSSES {
        let (mut driver, counters) = open();
        driver.send(&data(1, &[frame(TEXT, "hold"), frame(TEXT, "panic")].concat(), false));
        happens(&mut driver);
        driver.advance(seconds(3));
        assert_eq!(heard(&driver).1, "text panic", "{loss}");
        if goes_on {
            driver.take_received();
            driver.send(&data(3, &frame(TEXT, "other"), false));
            let output = stream_output(&mut driver, 3);
            assert_eq!(shown_frames(&output.bytes), ["text other"], "{loss}");
            assert_eq!(counters.lost(), 0, "{loss}");
        } else {
            driver.end();
            assert!(!driver.is_alive(), "{loss}");
        }
    }
}

#[test]
fn a_drain_closes_a_handler_that_holds_behind_the_loss_of_its_stream() {
    for (loss, happens, _) in LOSSES {
        let (mut driver, _) = open();
        driver.send(&data(1, &[frame(TEXT, "hold"), frame(TEXT, "x")].concat(), false));
        happens(&mut driver);
        driver.drain(seconds(60));
        // It has closed, which drops later messages.
        assert_eq!(heard(&driver), (0, "closed 1001 Lost"), "{loss}");
    }
}
