//! WebSockets on HTTP/2 streams (RFC 8441).

use rotor_http::Limits;
use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header, window_update};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::server::{Http2Config, ServerConfig};
use rotor_websocket::{Room, RoomConfig, WebSocketConfig};

use crate::kit::{
    CLOSE, PONG, ServerDriver, TEXT, close_payload, frame, seconds, server_with, shown_frames,
};

/// What has arrived on one stream.
#[derive(Default)]
pub(crate) struct StreamOutput {
    pub(crate) status: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) bytes: Vec<u8>,
    pub(crate) end: &'static str,
}

fn start() -> (ServerDriver, std::sync::Arc<rotor_websocket::Counters>) {
    start_with(WebSocketConfig::new().deflate(rotor_websocket::Deflate::new()))
}

pub(crate) fn start_with(
    config: WebSocketConfig,
) -> (ServerDriver, std::sync::Arc<rotor_websocket::Counters>) {
    let http = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    let (mut driver, counters) = server_with(config.subprotocols(&["v1"]), http);
    driver.send(&preface());
    (driver, counters)
}

/// The start of a client's connection, which opens large windows.
pub(crate) fn preface() -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    frame_writer::settings(&[(4, 1 << 20)], &mut bytes);
    bytes.extend(frame_writer::settings_ack());
    bytes.extend(window_update(0, 1 << 20));
    bytes
}

pub(crate) fn ask(stream: u32, protocol: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let usual = [
        (":method", "CONNECT"),
        (":protocol", protocol),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a.example"),
    ];
    let mut block = Vec::new();
    for (name, value) in usual.iter().chain(fields) {
        HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    [&frame_header(block.len(), kind::HEADERS, flag::END_HEADERS, stream)[..], &block].concat()
}

pub(crate) const VERSION: (&str, &str) = ("sec-websocket-version", "13");

pub(crate) fn data(stream: u32, payload: &[u8], is_end: bool) -> Vec<u8> {
    let header = frame_header(payload.len(), kind::DATA, u8::from(is_end), stream);
    [&header[..], payload].concat()
}

pub(crate) fn stream_output(driver: &mut ServerDriver, stream: u32) -> StreamOutput {
    let bytes = driver.take_received();
    let (mut stream_output, mut decoder) = (StreamOutput::default(), HpackDecoder::new(4096));
    let mut rest = &bytes[..];
    while let Some(header) = FrameHeader::read(rest) {
        let payload = &rest[9..9 + header.len];
        rest = &rest[9 + header.len..];
        if header.stream != stream {
            continue;
        }
        let is_end = header.flags & flag::END_STREAM != 0;
        match header.kind {
            kind::HEADERS => {
                let bounds = Bounds { list_bytes_max: 4096, decoded_bytes_max: 4096 };
                let mut list = FieldList::new();
                decoder.decode(payload, &mut list, &bounds).expect("a block");
                for field in list.fields().iter() {
                    let value = String::from_utf8_lossy(field.value).into_owned();
                    match field.name {
                        ":status" => stream_output.status = value,
                        name => stream_output.fields.push((name.to_owned(), value)),
                    }
                }
            }
            kind::DATA => stream_output.bytes.extend_from_slice(payload),
            kind::RST_STREAM => stream_output.end = "reset",
            _ => continue,
        }
        if header.kind != kind::RST_STREAM && is_end {
            stream_output.end = "ended";
        }
    }
    stream_output
}

#[test]
fn a_websocket_works_on_an_http2_stream() {
    for pieces in [1, 5, usize::MAX] {
        let (mut driver, counters) = start();
        let fields = [
            VERSION,
            ("sec-websocket-protocol", "v1"),
            ("sec-websocket-extensions", "permessage-deflate"),
            ("origin", "http://a.example"),
        ];
        driver.send(&ask(1, "websocket", &fields));
        let answer = stream_output(&mut driver, 1);
        assert_eq!((answer.status.as_str(), answer.end), ("200", ""));
        let names: Vec<_> = answer.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sec-websocket-protocol", "sec-websocket-extensions", "date"]);
        let mut bytes = frame(TEXT, "hello");
        bytes.extend(frame(CLOSE, close_payload(1000, "")));
        bytes.chunks(pieces).for_each(|piece| driver.send(&data(1, piece, false)));
        driver.send(&data(1, b"", true));
        let answer = stream_output(&mut driver, 1);
        assert_eq!(
            (shown_frames(&answer.bytes), answer.end),
            (vec!["text hello".into(), "close 1000".into()], "ended")
        );
        assert_eq!(driver.context().events, ["opened /", "text hello", "closed 1000 Peer"]);
        assert_eq!((counters.opened(), counters.refused()), (1, 0));
    }
}

#[test]
fn a_panic_ends_only_one_of_several_websockets() {
    let (mut driver, _) = start();
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
    }
    assert_eq!(stream_output(&mut driver, 5).status, "200");
    driver.send(&data(3, &frame(TEXT, "panic"), false));
    assert_eq!(stream_output(&mut driver, 3).end, "reset");
    driver.send(&data(5, &frame(TEXT, "five"), false));
    assert_eq!(shown_frames(&stream_output(&mut driver, 5).bytes), ["text five"]);
    driver.send(&data(1, &[0x83, 0x80, 0, 0, 0, 0], false));
    assert_eq!(
        shown_frames(&stream_output(&mut driver, 1).bytes),
        ["close 1002"],
        "an opcode that there is not"
    );
    // The WebSocket's own timeouts apply.
    driver.advance(seconds(31));
    assert_eq!(shown_frames(&stream_output(&mut driver, 5).bytes), ["ping"]);
    driver.drain(seconds(60));
    assert_eq!(shown_frames(&stream_output(&mut driver, 5).bytes), ["close 1001"]);
}

#[test]
fn an_invalid_request_is_refused() {
    for (request, status) in [
        (ask(1, "other", &[VERSION]), "400"),
        (ask(1, "websocket", &[]), "400"),
        (ask(1, "websocket", &[("sec-websocket-version", "8")]), "400"),
        (ask(1, "websocket", &[VERSION, ("origin", "https://b.example")]), "403"),
    ] {
        let (mut driver, counters) = start();
        driver.send(&request);
        let answer = stream_output(&mut driver, 1);
        assert_eq!((answer.status.as_str(), answer.end), (status, "ended"));
        assert_eq!(counters.refused(), 1);
        driver.send(&ask(3, "websocket", &[VERSION]));
        assert_eq!(stream_output(&mut driver, 3).status, "200", "the others go on");
    }
}

#[test]
fn each_stream_of_a_connection_is_a_separate_room_member() {
    let (mut driver, _) = start();
    driver.context_mut().room = Some(Room::new(RoomConfig::new()));
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
        driver.send(&data(stream, &frame(TEXT, "join"), false));
    }
    driver.take_received();
    let members = |driver: &ServerDriver| driver.context().room.as_ref().map(Room::len);
    assert_eq!(members(&driver), Some(3));
    // A member that leaves does not remove another.
    driver.send(&data(5, &frame(CLOSE, close_payload(1000, "")), false));
    driver.take_received();
    assert_eq!(members(&driver), Some(2));
    for stream in [1, 3] {
        driver.send(&data(1, &frame(TEXT, "say hello"), false));
        assert_eq!(
            shown_frames(&stream_output(&mut driver, stream).bytes),
            ["text hello"],
            "{stream}"
        );
    }
}

#[test]
fn a_member_whose_handler_panicked_is_removed_from_the_room() {
    let (mut driver, _) = start();
    driver.context_mut().room = Some(Room::new(RoomConfig::new()));
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
        driver.send(&data(stream, &frame(TEXT, "join"), false));
    }
    // Joining again does not add a member.
    driver.send(&data(3, &frame(TEXT, "join"), false));
    driver.send(&data(5, &frame(TEXT, "panic"), false));
    driver.take_received();
    driver.send(&data(1, &frame(TEXT, "say hello"), false));
    assert_eq!(driver.context().room.as_ref().map(Room::len), Some(2));
    assert_eq!(shown_frames(&stream_output(&mut driver, 3).bytes), ["text hello"]);
    driver.send(&data(3, &frame(TEXT, "say and again"), false));
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["text and again"]);
}

/// A stream gets its input even while the WebSocket takes none, so no read shows that it has come.
#[test]
fn a_pong_that_waits_for_output_to_be_taken_is_in_time() {
    let config = WebSocketConfig::new().ping_after(seconds(5)).pong_within(seconds(5));
    let (mut driver, counters) = start_with(config);
    driver.send(&ask(1, "websocket", &[VERSION]));
    driver.send(&data(1, &frame(TEXT, "alarm"), false));
    driver.take_received();
    driver.advance(seconds(5));
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["ping"]);
    // More than the window, and more above it than may be unsent while messages are taken.
    driver.context_mut().on_timeout = Some("binary 1300000".to_string());
    driver.advance(seconds(2));
    driver.send(&data(1, &frame(PONG, ""), false));
    driver.send(&[window_update(0, 1 << 20), window_update(1, 1 << 20)].concat());
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["binary 1300000"]);
    assert!(driver.context().events.last().unwrap().starts_with("flushed "));
    driver.advance(seconds(4));
    assert_eq!((counters.pong_timeouts(), driver.take_received()), (0, Vec::new()));
    driver.advance(seconds(1));
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["ping"]);
}

/// What had arrived of all streams when the drain began is handled before WebSockets are told.
#[test]
fn a_drain_closes_after_all_messages_that_arrived_before_it() {
    let (mut driver, _) = start();
    for stream in [1, 3] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
    }
    driver.take_received();
    let messages = (0..1_000).flat_map(|number| {
        let stream = 2 * (number % 2) + 1;
        data(stream, &frame(TEXT, "x"), false)
    });
    driver.peer().send(&messages.collect::<Vec<u8>>());
    driver.drain(seconds(60));
    let received = driver.context().events.iter().filter(|event| *event == "text x").count();
    assert_eq!(received, 1_000);
    assert!(shown_frames(&stream_output(&mut driver, 3).bytes).ends_with(&["close 1001".into()]));
}

/// The connection reads nothing while a peer that is slow has much to take on another stream.
#[test]
fn a_peer_that_the_connection_does_not_read_is_not_timed_out() {
    let config = WebSocketConfig::new().ping_after(seconds(5)).pong_within(seconds(5));
    let http = ServerConfig::new()
        .http2(Http2Config::new().prior_knowledge(true))
        .limits(Limits::new().output_high_water(4096));
    let (mut driver, counters) = server_with(config, http);
    driver.send(&preface());
    for stream in [1, 3] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
    }
    driver.take_received();
    driver.advance(seconds(5));
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["ping"]);
    driver.limit_room(0);
    driver.send(&data(3, &frame(TEXT, "binary 100000"), false));
    driver.send(&data(1, &frame(PONG, ""), false));
    driver.advance(seconds(5));
    assert_eq!(counters.pong_timeouts(), 0);
    driver.make_room(1_000_000);
    driver.take_received();
    driver.send(&data(1, &frame(TEXT, "still here"), false));
    assert_eq!(shown_frames(&stream_output(&mut driver, 1).bytes), ["text still here"]);
    assert_eq!(counters.pong_timeouts(), 0);
}

#[test]
fn a_drain_waits_for_messages_that_the_connection_does_not_read_yet() {
    let http = ServerConfig::new()
        .http2(Http2Config::new().prior_knowledge(true))
        .limits(Limits::new().output_high_water(4096));
    let (mut driver, _) = server_with(WebSocketConfig::new(), http);
    driver.send(&preface());
    for stream in [1, 3] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
    }
    driver.take_received();
    driver.limit_room(0);
    driver.send(&data(3, &frame(TEXT, "binary 100000"), false));
    driver.send(&data(1, &frame(TEXT, "x"), false).repeat(50));
    driver.drain(seconds(60));
    driver.make_room(1_000_000);
    let received = driver.context().events.iter().filter(|event| *event == "text x").count();
    assert_eq!(received, 50);
    assert!(shown_frames(&stream_output(&mut driver, 1).bytes).ends_with(&["close 1001".into()]));
}

/// The increments of the window of stream 1 that were sent.
fn window_updates(driver: &mut ServerDriver) -> Vec<u32> {
    let bytes = driver.take_received();
    let (mut increments, mut rest) = (Vec::new(), &bytes[..]);
    while let Some(header) = FrameHeader::read(rest) {
        let payload = &rest[9..9 + header.len];
        rest = &rest[9 + header.len..];
        if (header.kind, header.stream) == (kind::WINDOW_UPDATE, 1) {
            increments.push(u32::from_be_bytes(payload.try_into().expect("four bytes")));
        }
    }
    increments
}

/// A peer may count small ones as a flood, as this side does.
#[test]
fn messages_that_are_taken_one_by_one_cause_no_small_updates_of_their_window() {
    let (mut driver, _) = start_with(WebSocketConfig::new());
    driver.send(&ask(1, "websocket", &[VERSION]));
    assert_eq!(window_updates(&mut driver), []);
    let messages = frame(TEXT, format!("hold {}", "x".repeat(200))).repeat(1_000);
    let mut unsent = &messages[..];
    let mut send = |driver: &mut ServerDriver, bytes: usize| {
        let (now, later) = unsent.split_at(bytes);
        now.chunks(16 << 10).for_each(|piece| driver.send(&data(1, piece, false)));
        unsent = later;
    };
    send(&mut driver, 64 << 10);
    let mut updates = Vec::new();
    for _ in 0..20 {
        // Each hold ends, another one follows, and the peer sends what it may.
        driver.advance(seconds(3));
        for bytes in window_updates(&mut driver) {
            send(&mut driver, bytes as usize);
            updates.push(bytes);
        }
    }
    let events = driver.context().events.iter();
    assert_eq!(events.filter(|event| event.starts_with("text hold ")).count(), 21);
    assert!(updates.len() == 4 && updates.iter().all(|bytes| *bytes >= 1024), "{updates:?}");
}

/// The peer opens its window bit by bit.
#[test]
fn a_slow_reader_on_a_stream_gets_all_that_was_sent_before_the_close_frame() {
    let (mut driver, counters) = start_with(WebSocketConfig::new());
    driver.send(&ask(1, "websocket", &[VERSION]));
    driver.send(&data(1, &frame(TEXT, "binary 1100000"), false));
    driver.send(&data(1, &frame(TEXT, "close 4000"), false));
    let mut bytes = stream_output(&mut driver, 1).bytes;
    for _ in 0..4 {
        driver.advance(std::time::Duration::from_millis(4_900));
        let more = 15_000;
        driver.send(&[window_update(0, more), window_update(1, more)].concat());
        bytes.extend(stream_output(&mut driver, 1).bytes);
    }
    assert_eq!(shown_frames(&bytes), ["binary 1100000", "close 4000"]);
    driver.send(&data(1, &frame(CLOSE, close_payload(4000, "")), false));
    assert_eq!(driver.context().events.last().unwrap(), "closed 4000 Handler");
    assert_eq!((counters.closed(), counters.close_timeouts()), (1, 0));
}
