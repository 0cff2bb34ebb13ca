//! Protocol violations of a peer: each has its code and its counter, and ends its own connection.

use rotor_stream::testing::Driver;
use rotor_websocket::{Counters, Deflate, WebSocketConfig};

use crate::kit::{
    BINARY, CLOSE, DEFLATE, PING, TEXT, close_payload, frame, open, open_deflate, open_with,
    server_frame, shown_frames,
};

struct Case {
    what: &'static str,
    input: Vec<u8>,
    code: u16,
    fault: &'static str,
    counter: fn(&Counters) -> u64,
}

fn cases() -> Vec<Case> {
    let bad = Counters::bad_frames as fn(&Counters) -> u64;
    let data = Counters::bad_data as fn(&Counters) -> u64;
    let case = |what, input, code, fault, counter| Case { what, input, code, fault, counter };
    let announced = |len: u64| [&[BINARY, 0xff][..], &len.to_be_bytes(), &[0; 4]].concat();
    vec![
        case("not masked", server_frame(TEXT, "hello"), 1002, "Mask", bad),
        case("first reserved bit", frame(0xc1, "hello"), 1002, "ReservedBits", bad),
        case("second reserved bit", frame(0xa1, "hello"), 1002, "ReservedBits", bad),
        case("third reserved bit", frame(0x91, "hello"), 1002, "ReservedBits", bad),
        case("reserved opcode", frame(0x83, "hello"), 1002, "Opcode(3)", bad),
        case("reserved control opcode", frame(0x8b, ""), 1002, "Opcode(11)", bad),
        case("long ping", frame(PING, vec![b'x'; 126]), 1002, "Control", bad),
        case("ping in fragments", frame(0x09, "x"), 1002, "Control", bad),
        case("continues nothing", frame(0x80, "x"), 1002, "Order", bad),
        case("within another", [frame(1, "a"), frame(1, "b")].concat(), 1002, "Order", bad),
        case("length not shortest", vec![0x82, 0xfe, 0, 5, 0, 0, 0, 0], 1002, "Length", bad),
        case("length too long", announced(1 << 63), 1002, "Length", bad),
        case("close of one byte", frame(CLOSE, "x"), 1002, "CloseCode", bad),
        case("close with 1005", frame(CLOSE, close_payload(1005, "")), 1002, "CloseCode", bad),
        case("close with 999", frame(CLOSE, close_payload(999, "")), 1002, "CloseCode", bad),
        case("close, bad reason", frame(CLOSE, b"\x03\xe8\xff"), 1007, "NotUtf8", data),
        case("bad text", frame(TEXT, b"a\xff"), 1007, "NotUtf8", data),
        case("text cut", frame(TEXT, b"\xe2\x82"), 1007, "NotUtf8", data),
        case(
            "bad text in fragments",
            [frame(1, b"a\xe2"), frame(0, b"\x82\xff")].concat(),
            1007,
            "NotUtf8",
            data,
        ),
        case("announced too long", announced((1 << 20) + 1), 1009, "TooLong", Counters::too_long),
        case("far too long", announced(u64::MAX >> 1), 1009, "TooLong", Counters::too_long),
    ]
}

fn assert_ends_with(
    what: &str,
    driver: &mut Driver<rotor_http::server::Connection<crate::kit::Site>>,
    code: u16,
    fault: &str,
) {
    let all = shown_frames(&driver.take_received());
    assert_eq!(all.last(), Some(&format!("close {code}")), "{what}");
    assert_eq!(
        driver.context().events.last(),
        Some(&format!("closed {code} Fault({fault})")),
        "{what}"
    );
    assert!(driver.is_ended(), "{what}: our side is ended");
    driver.end();
    assert!(!driver.is_alive(), "{what}");
    assert_eq!(driver.failures(), [""; 0], "{what}");
}

#[test]
fn each_fault_ends_the_connection_with_its_code() {
    for Case { what, input, code, fault, counter } in cases() {
        for step in [1, usize::MAX] {
            let (mut driver, counters) = open(WebSocketConfig::new());
            driver.send(&frame(TEXT, "before"));
            assert_eq!(shown_frames(&driver.take_received()), ["text before"]);
            for part in input.chunks(step) {
                driver.send(part);
            }
            // Nobody receives what comes after it.
            driver.send(&frame(TEXT, "after"));
            assert_ends_with(what, &mut driver, code, fault);
            assert_eq!(counter(&counters), 1, "{what}");
            assert!(!driver.context().events.contains(&"text after".to_string()), "{what}");
        }
    }
}

#[test]
fn invalid_compressed_data_is_refused() {
    for (what, input, code, fault) in [
        ("garbage", frame(0xc2, [0xff; 20]), 1007, "Deflate"),
        ("text", frame(0xc1, [0x00, 0x01, 0x00, 0xfe, 0xff, 0xff, 0x00]), 1007, "NotUtf8"),
        ("a ping", frame(0xc9, "x"), 1002, "ReservedBits"),
        ("a continuation", [frame(0x41, "x"), frame(0xc0, "x")].concat(), 1002, "ReservedBits"),
    ] {
        let (mut driver, _) = open_deflate(Deflate::new());
        driver.send(&input);
        assert_ends_with(what, &mut driver, code, fault);
    }
}

#[test]
fn a_decompression_bomb_is_limited_by_the_message_length() {
    // Four mebibytes of zeros, compressed by flate2.
    let mut codec = flate2::Compress::new(flate2::Compression::new(1), false);
    let mut bomb = Vec::with_capacity(1 << 20);
    let zeros = vec![0; 1 << 20];
    for _ in 0..4 {
        codec.compress_vec(&zeros, &mut bomb, flate2::FlushCompress::Sync).expect("there is room");
    }
    assert!(bomb.len() < 60_000, "{}", bomb.len());
    for in_fragments in [false, true] {
        let (mut driver, counters) =
            open_with(WebSocketConfig::new().deflate(Deflate::new()), "/", DEFLATE);
        if in_fragments {
            driver.send(&frame(0x42, &bomb[..1_000]));
            driver.send(&frame(0x80, &bomb[1_000..]));
        } else {
            driver.send(&frame(0xc2, &bomb));
        }
        assert_ends_with("a bomb", &mut driver, 1009, "TooLong");
        assert_eq!(counters.too_long(), 1);
    }
}
