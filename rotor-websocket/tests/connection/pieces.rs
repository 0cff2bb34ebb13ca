//! Messages in pieces.

use rotor_websocket::{Deflate, WebSocketConfig};

use crate::kit::{BINARY, DEFLATE, PING, ServerDriver, TEXT, frame, open_with, shown_frames};

/// The pieces that the handler received, and their total length.
fn pieces(driver: &ServerDriver) -> (Vec<String>, usize) {
    let events = &driver.context().events;
    let pieces: Vec<String> =
        events.iter().filter_map(|event| event.strip_prefix("piece ")).map(String::from).collect();
    let sum = pieces.iter().map(|piece| {
        piece.rsplit(' ').next().and_then(|len| len.parse::<usize>().ok()).expect("a length")
    });
    let sum = sum.sum();
    (pieces, sum)
}

#[test]
fn a_message_beyond_the_length_limit_arrives_in_pieces() {
    let config = WebSocketConfig::new().message_max(1_000);
    let (mut driver, _) = open_with(config, "/pieces", "");
    let input = [
        frame(0x02, vec![1; 300_000]),
        frame(PING, "within"),
        frame(0x00, ""),
        frame(0x80, vec![2; 300_000]),
    ];
    driver.send(&input.concat());
    assert_eq!(shown_frames(&driver.take_received()), ["pong within"]);
    let (pieces, sum) = pieces(&driver);
    assert_eq!(sum, 600_000);
    assert!(pieces[0].starts_with("first Binary "), "{pieces:?}");
    assert!(pieces.last().unwrap().starts_with("last Binary "), "{pieces:?}");
    assert_eq!(pieces.iter().filter(|piece| piece.contains("st ")).count(), 2, "{pieces:?}");
}

#[test]
fn a_small_or_empty_message_is_one_piece() {
    let (mut driver, _) = open_with(WebSocketConfig::new(), "/pieces", "");
    driver.send(&[frame(TEXT, "abc"), frame(BINARY, ""), frame(TEXT, "whole")].concat());
    driver.send(&frame(TEXT, "again"));
    let expected = ["opened /pieces", "piece first last Text 3", "piece first last Binary 0"];
    let events = &driver.context().events;
    assert_eq!(events[..3], expected);
    assert_eq!(events[3..], ["piece first last Text 5", "text again"]);
}

#[test]
fn invalid_text_is_found_in_its_piece() {
    for (input, heard) in [
        ([frame(0x01, "good \u{20ac}"), frame(0x80, b"\xe2\xff")].concat(), 1),
        ([frame(0x01, "good"), frame(0x80, b"\xe2\x82")].concat(), 1),
        (frame(TEXT, b"\xff"), 0),
    ] {
        let (mut driver, _) = open_with(WebSocketConfig::new(), "/pieces", "");
        driver.send(&input);
        assert_eq!(shown_frames(&driver.take_received()), ["close 1007"]);
        assert_eq!(pieces(&driver).0.len(), heard);
    }
}

#[test]
fn empty_fragments_are_limited_in_pieces_too() {
    let (mut driver, _) = open_with(WebSocketConfig::new().fragments_max(5), "/pieces", "");
    driver.send(&frame(0x02, "x"));
    driver.send(&frame(0x00, "x").repeat(100));
    driver.send(&frame(0x00, "").repeat(5));
    assert_eq!(driver.take_received(), b"");
    driver.send(&frame(0x00, ""));
    assert_eq!(shown_frames(&driver.take_received()), ["close 1008"]);
}

#[test]
fn an_empty_message_of_one_frame_has_no_fragments() {
    for path in ["/", "/pieces"] {
        let config = WebSocketConfig::new().fragments_max(0);
        let (mut driver, counters) = open_with(config, path, "");
        driver.send(&frame(TEXT, ""));
        assert_eq!((driver.is_ended(), counters.too_many_fragments()), (false, 0), "{path}");
        driver.send(&frame(0x01, ""));
        assert_eq!((driver.is_ended(), counters.too_many_fragments()), (true, 1), "{path}");
    }
}

#[test]
fn compressed_messages_arrive_in_pieces_of_bounded_length() {
    // At most one piece of a bomb is in memory at any time.
    let mut codec = flate2::Compress::new(flate2::Compression::new(1), false);
    let mut small = Vec::with_capacity(1 << 16);
    let zeros = vec![0; 3 << 20];
    codec.compress_vec(&zeros, &mut small, flate2::FlushCompress::Sync).expect("there is room");
    small.truncate(small.len() - 4);
    let whole = frame(0xc2, &small);
    let cut: Vec<u8> = [
        frame(0x42, &small[..10]),
        frame(0x00, &small[10..500]),
        frame(0x00, ""),
        frame(0x80, &small[500..]),
    ]
    .concat();
    for input in [whole, cut] {
        for step in [1, 100, usize::MAX] {
            let config = WebSocketConfig::new().deflate(Deflate::new());
            let (mut driver, counters) = open_with(config, "/pieces", DEFLATE);
            for part in input.chunks(step) {
                driver.send(part);
            }
            let (pieces, sum) = pieces(&driver);
            assert_eq!(sum, zeros.len(), "by {step}");
            assert!(pieces.len() >= 192 && pieces.last().unwrap().starts_with("last "), "{step}");
            assert!(pieces[..pieces.len() - 1].iter().all(|piece| !piece.contains("last")));
            assert!(step < usize::MAX || counters.inflated_in_turns() >= 2);
            // The next message is separate.
            driver.send(&frame(0xc1, [0xf2, 0x48, 0xcd, 0xc9, 0xc9, 0x07, 0x00]));
            let last = driver.context().events.last().unwrap();
            assert_eq!(last, "piece first last Text 5");
            assert_eq!(driver.failures(), [""; 0]);
        }
    }
}
