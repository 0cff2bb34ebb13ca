//! Messages in both directions.

use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_stream::testing::{Driver, assert_cuts_agree};
use rotor_websocket::WebSocketConfig;

use crate::kit::{
    BINARY, CLOSE, PING, PONG, Seen, Site, TEXT, close_payload, frame, frames, open, request,
    shown_frames,
};

#[test]
fn the_answers_are_the_same_however_the_input_is_split() {
    let input = [
        request("/", "").into_bytes(),
        frame(TEXT, "hello"),
        frame(PING, "are you there"),
        frame(0x01, "frag"),
        frame(0x00, "men"),
        frame(PONG, "nobody asked"),
        frame(0x80, "ts of text: \u{20ac}"),
        frame(BINARY, ""),
        frame(BINARY, vec![7; 200]),
        frame(CLOSE, close_payload(1000, "done")),
    ]
    .concat();
    let make = || {
        let seed = HttpSeed::<Site>::new(WebSocketConfig::new().share(), ServerConfig::new());
        Driver::<Connection<Site>>::new(seed, Seen::default())
    };
    let transcript = assert_cuts_agree(make, &input);
    assert!(transcript.has_ended && transcript.failures.is_empty(), "{transcript:?}");
    let end = transcript.output.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    assert_eq!(
        shown_frames(&transcript.output[end + 4..]),
        [
            "text hello",
            "pong are you there",
            // The command `fragments of ..` sends one word per frame.
            "0x1 of",
            "0x0 text:",
            "0x0 \u{20ac}",
            "0x80 ",
            "binary 0",
            "binary 200",
            "close 1000",
        ]
    );
}

#[test]
fn messages_of_any_length_are_echoed_however_they_are_split() {
    let lens =
        [0, 1, 125, 126, 127, 1_000, 32_767, 32_768, 32_769, 65_535, 65_536, 300_000, 1 << 20];
    for len in lens {
        for step in [1_000, 16_384, usize::MAX] {
            let (mut driver, _) = open(WebSocketConfig::new());
            let payload: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            for part in frame(BINARY, &payload).chunks(step) {
                driver.send(part);
            }
            let back = frames(&driver.take_received());
            assert!(back == [(BINARY, payload)], "{len} by {step}: {} frames", back.len());
        }
    }
}

#[test]
fn long_texts_may_be_split_within_characters() {
    let text = "\u{20ac}uro \u{1d11e} ".repeat(20_000);
    for (frame_len, step) in [(1_000, 7), (usize::MAX, 999), (40_001, usize::MAX)] {
        let (mut driver, _) = open(WebSocketConfig::new());
        let chunks: Vec<&[u8]> = text.as_bytes().chunks(frame_len).collect();
        let mut input = Vec::new();
        for (at, chunk) in chunks.iter().enumerate() {
            let opcode = if at == 0 { 0x01 } else { 0x00 };
            let last = if at + 1 == chunks.len() { 0x80 } else { 0 };
            input.extend(frame(opcode | last, chunk));
        }
        for part in input.chunks(step) {
            driver.send(part);
        }
        assert!(frames(&driver.take_received()) == [(TEXT, text.clone().into_bytes())]);
    }
}

#[test]
fn many_messages_at_once_are_answered_in_order() {
    let (mut driver, _) = open(WebSocketConfig::new());
    let input: Vec<u8> = (0..5_000).flat_map(|n| frame(TEXT, format!("n{n}"))).collect();
    driver.send(&input);
    let back = shown_frames(&driver.take_received());
    assert_eq!(back.len(), 5_000);
    assert!(back.iter().enumerate().all(|(at, text)| *text == format!("text n{at}")));
    assert_eq!(driver.failures(), [""; 0]);
}

#[test]
fn a_panic_of_a_handler_ends_only_its_connection() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "panic"));
    assert!(!driver.is_alive());
    assert!(driver.is_dropped());
}
