//! WebSockets on streams of HTTP/2 (RFC 8441).

use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header, window_update};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::server::{Http2Config, ServerConfig};
use rotor_websocket::{Room, RoomConfig, WebSocketConfig};

use crate::kit::{CLOSE, Server_, TEXT, closing, frame, seconds, server_with, told};

/// What has come on one stream.
#[derive(Default)]
struct Came {
    status: String,
    fields: Vec<(String, String)>,
    bytes: Vec<u8>,
    end: &'static str,
}

fn begin() -> (Server_, std::sync::Arc<rotor_websocket::Counters>) {
    let http = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    let config = WebSocketConfig::new().deflate(rotor_websocket::Deflate::new());
    let (mut driver, counters) = server_with(config.subprotocols(&["v1"]), http);
    let mut bytes = PREFACE.to_vec();
    frame_writer::settings(&[(4, 1 << 20)], &mut bytes);
    bytes.extend(frame_writer::settings_ack());
    bytes.extend(window_update(0, 1 << 20));
    driver.send(&bytes);
    (driver, counters)
}

fn ask(stream: u32, protocol: &str, fields: &[(&str, &str)]) -> Vec<u8> {
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

const VERSION: (&str, &str) = ("sec-websocket-version", "13");

fn data(stream: u32, payload: &[u8], is_end: bool) -> Vec<u8> {
    let header = frame_header(payload.len(), kind::DATA, u8::from(is_end), stream);
    [&header[..], payload].concat()
}

fn came(driver: &mut Server_, stream: u32) -> Came {
    let bytes = driver.take_received();
    let (mut came, mut decoder) = (Came::default(), HpackDecoder::new(4096));
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
                let bounds =
                    Bounds { list_bytes_max: 4096, fields_max: 20, decoded_bytes_max: 4096 };
                let mut list = FieldList::new();
                decoder.decode(payload, &mut list, &bounds).expect("a block");
                for field in list.fields().iter() {
                    let value = String::from_utf8_lossy(field.value).into_owned();
                    match field.name {
                        ":status" => came.status = value,
                        name => came.fields.push((name.to_owned(), value)),
                    }
                }
            }
            kind::DATA => came.bytes.extend_from_slice(payload),
            kind::RST_STREAM => came.end = "reset",
            _ => continue,
        }
        if header.kind != kind::RST_STREAM && is_end {
            came.end = "ended";
        }
    }
    came
}

#[test]
fn a_websocket_on_a_stream_is_one() {
    for pieces in [1, 5, usize::MAX] {
        let (mut driver, counters) = begin();
        let fields = [
            VERSION,
            ("sec-websocket-protocol", "v1"),
            ("sec-websocket-extensions", "permessage-deflate"),
            ("origin", "http://a.example"),
        ];
        driver.send(&ask(1, "websocket", &fields));
        let answer = came(&mut driver, 1);
        assert_eq!((answer.status.as_str(), answer.end), ("200", ""));
        let names: Vec<_> = answer.fields.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["sec-websocket-protocol", "sec-websocket-extensions", "date"]);
        let mut bytes = frame(TEXT, "hello");
        bytes.extend(frame(CLOSE, closing(1000, "")));
        bytes.chunks(pieces).for_each(|piece| driver.send(&data(1, piece, false)));
        driver.send(&data(1, b"", true));
        let answer = came(&mut driver, 1);
        assert_eq!(
            (told(&answer.bytes), answer.end),
            (vec!["text hello".into(), "close 1000".into()], "ended")
        );
        assert_eq!(driver.context().events, ["opened /", "text hello", "closed 1000 Peer"]);
        assert_eq!((counters.opened(), counters.refused()), (1, 0));
    }
}

#[test]
fn many_run_side_by_side_and_a_panic_costs_one() {
    let (mut driver, _) = begin();
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
    }
    assert_eq!(came(&mut driver, 5).status, "200");
    driver.send(&data(3, &frame(TEXT, "panic"), false));
    assert_eq!(came(&mut driver, 3).end, "reset");
    driver.send(&data(5, &frame(TEXT, "five"), false));
    assert_eq!(told(&came(&mut driver, 5).bytes), ["text five"]);
    driver.send(&data(1, &[0x83, 0x80, 0, 0, 0, 0], false));
    assert_eq!(told(&came(&mut driver, 1).bytes), ["close 1002"], "an opcode that there is not");
    // Its own times.
    driver.advance(seconds(31));
    assert_eq!(told(&came(&mut driver, 5).bytes), ["ping"]);
    driver.drain(seconds(60));
    assert_eq!(told(&came(&mut driver, 5).bytes), ["close 1001"]);
}

#[test]
fn what_is_no_proper_request_is_refused() {
    for (request, status) in [
        (ask(1, "other", &[VERSION]), "400"),
        (ask(1, "websocket", &[]), "400"),
        (ask(1, "websocket", &[("sec-websocket-version", "8")]), "400"),
        (ask(1, "websocket", &[VERSION, ("origin", "https://b.example")]), "403"),
    ] {
        let (mut driver, counters) = begin();
        driver.send(&request);
        let answer = came(&mut driver, 1);
        assert_eq!((answer.status.as_str(), answer.end), (status, "ended"));
        assert_eq!(counters.refused(), 1);
        driver.send(&ask(3, "websocket", &[VERSION]));
        assert_eq!(came(&mut driver, 3).status, "200", "the others go on");
    }
}

#[test]
fn streams_of_one_connection_are_members_of_a_room_each() {
    let (mut driver, _) = begin();
    driver.context_mut().room = Some(Room::new(RoomConfig::new()));
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
        driver.send(&data(stream, &frame(TEXT, "join"), false));
    }
    driver.take_received();
    let members = |driver: &Server_| driver.context().room.as_ref().map(Room::len);
    assert_eq!(members(&driver), Some(3));
    // One that leaves takes no other with it.
    driver.send(&data(5, &frame(CLOSE, closing(1000, "")), false));
    driver.take_received();
    assert_eq!(members(&driver), Some(2));
    for stream in [1, 3] {
        driver.send(&data(1, &frame(TEXT, "say hello"), false));
        assert_eq!(told(&came(&mut driver, stream).bytes), ["text hello"], "{stream}");
    }
}

#[test]
fn a_member_whose_handler_panicked_is_forgotten_while_its_connection_goes_on() {
    let (mut driver, _) = begin();
    driver.context_mut().room = Some(Room::new(RoomConfig::new()));
    for stream in [1, 3, 5] {
        driver.send(&ask(stream, "websocket", &[VERSION]));
        driver.send(&data(stream, &frame(TEXT, "join"), false));
    }
    // Again: it is one member all the same.
    driver.send(&data(3, &frame(TEXT, "join"), false));
    driver.send(&data(5, &frame(TEXT, "panic"), false));
    driver.take_received();
    driver.send(&data(1, &frame(TEXT, "say hello"), false));
    assert_eq!(driver.context().room.as_ref().map(Room::len), Some(2));
    assert_eq!(told(&came(&mut driver, 3).bytes), ["text hello"]);
    driver.send(&data(3, &frame(TEXT, "say and again"), false));
    assert_eq!(told(&came(&mut driver, 1).bytes), ["text and again"]);
}
