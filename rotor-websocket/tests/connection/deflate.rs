//! Compression in both directions.

use std::sync::Arc;

use rotor_websocket::{Counters, Deflate, WebSocketConfig};

use crate::kit::{
    BINARY, CLOSE, DEFLATE, PING, PONG, ServerDriver, TEXT, close_payload, frame, frames,
    open_deflate, open_with, seconds, shown_frames,
};

fn decompressed(payload: &[u8]) -> Vec<u8> {
    let mut codec = flate2::Decompress::new(false);
    let mut to = Vec::with_capacity(1 << 20);
    let bytes = [payload, &[0, 0, 0xff, 0xff]].concat();
    codec.decompress_vec(&bytes, &mut to, flate2::FlushDecompress::Sync).expect("it is in order");
    to
}

#[test]
fn long_messages_are_compressed_and_short_ones_are_not() {
    for (len, is_compressed) in [(0, false), (255, false), (256, true), (10_000, true)] {
        let (mut driver, _) = open_deflate(Deflate::new());
        let text = "x".repeat(len);
        for message in [frame(TEXT, &text), frame(TEXT, format!("prepared {text}"))] {
            driver.send(&message);
            let [(first, payload)] = &frames(&driver.take_received())[..] else { panic!("{len}") };
            assert_eq!(*first, if is_compressed { 0xc1 } else { TEXT }, "{len}");
            let back = if is_compressed { decompressed(payload) } else { payload.clone() };
            assert!(back == text.as_bytes(), "{len}");
        }
    }
}

#[test]
fn an_incompressible_message_is_sent_uncompressed() {
    let (mut driver, _) = open_deflate(Deflate::new());
    let mut state = 1u32;
    let noise: Vec<u8> = (0..5_000)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    driver.send(&frame(0x82, &noise));
    assert!(frames(&driver.take_received()) == [(0x82, noise)]);
}

#[test]
fn messages_refer_to_earlier_ones_with_takeover() {
    let config = Deflate::new().context_takeover(true);
    let (mut driver, _) = open_with(WebSocketConfig::new().deflate(config), "/", DEFLATE);
    let text = format!("text that says {:?}", (0..200).collect::<Vec<_>>());
    let mut lens = Vec::new();
    for _ in 0..3 {
        driver.send(&frame(TEXT, &text));
        let back = frames(&driver.take_received());
        assert_eq!(back[0].0, 0xc1);
        lens.push(back[0].1.len());
    }
    assert!(lens[1] < lens[0] / 5 && lens[2] < lens[0] / 5, "{lens:?}");
}

#[test]
fn prepared_messages_are_sent_uncompressed_with_takeover() {
    let config = Deflate::new().context_takeover(true);
    let (mut driver, _) = open_with(WebSocketConfig::new().deflate(config), "/", DEFLATE);
    let text = "x".repeat(10_000);
    for _ in 0..2 {
        driver.send(&frame(TEXT, format!("prepared {text}")));
        assert!(frames(&driver.take_received()) == [(TEXT, text.clone().into_bytes())]);
        // They are not in the context of those that are compressed.
        driver.send(&frame(TEXT, &text));
        assert_eq!(frames(&driver.take_received())[0].0, 0xc1);
    }
}

/// Compresses a message with the context of the previous ones.
fn compressed(codec: &mut flate2::Compress, text: &str) -> Vec<u8> {
    let mut to = Vec::with_capacity(text.len() + 1_000);
    codec.compress_vec(text.as_bytes(), &mut to, flate2::FlushCompress::Sync).expect("room");
    to.truncate(to.len() - 4);
    to
}

#[test]
fn messages_with_takeover_are_read_in_every_mode_and_split() {
    let config = Deflate::new().context_takeover(true);
    let (mut driver, _) = open_with(WebSocketConfig::new().deflate(config), "/", DEFLATE);
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let text = format!("text that says {:?}", (0..200).collect::<Vec<_>>());
    let mut lens = Vec::new();
    for mode in ["whole", "pieces", "pieces", "whole", "whole"] {
        driver.send(&frame(TEXT, mode));
        let (whole, cut) = (compressed(&mut codec, &text), compressed(&mut codec, &text));
        lens.extend([whole.len(), cut.len()]);
        let (first, second) = cut.split_at(cut.len() / 2);
        // Uncompressed messages are not part of the context.
        let between = frame(TEXT, "plain");
        let input = [
            frame(0xc1, &whole),
            between,
            frame(0x41, first),
            frame(0x00, ""),
            frame(0x80, second),
        ];
        let before = driver.context().events.len();
        driver.send(&input.concat());
        let lengths: usize = driver.context().events[before..]
            .iter()
            .map(|event| match event.strip_prefix("piece ") {
                Some(piece) => piece.rsplit(' ').next().and_then(|len| len.parse().ok()),
                None if event.starts_with("text text that says [0, 1") => Some(text.len()),
                None => (event == "text plain").then_some(5),
            })
            .map(|len| len.expect("nothing else happens"))
            .sum();
        assert_eq!(lengths, 2 * text.len() + 5, "{mode}");
        let whole = compressed(&mut codec, "whole");
        driver.send(&frame(0xc1, &whole));
    }
    assert!(lens[1..].iter().all(|len| *len < 50), "{lens:?}");
    assert_eq!(driver.failures(), [""; 0]);
}

/// Bytes that do not compress, unless their repetition is recognized.
fn noise(len: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

/// Compresses bytes with the context of the previous ones.
fn compressed_bytes(codec: &mut flate2::Compress, bytes: &[u8]) -> Vec<u8> {
    let mut to = Vec::with_capacity(bytes.len() + 10_000);
    codec.compress_vec(bytes, &mut to, flate2::FlushCompress::Sync).expect("there is room");
    to.truncate(to.len() - 4);
    to
}

/// Opens a connection that does not compress its own messages.
fn open_reading(takes_over: bool, config: WebSocketConfig) -> (ServerDriver, Arc<Counters>) {
    let deflate = Deflate::new().context_takeover(takes_over).compress_min(usize::MAX);
    open_with(config.deflate(deflate), "/", DEFLATE)
}

#[test]
fn a_long_message_is_decompressed_in_steps_and_stays_in_order() {
    for takes_over in [false, true] {
        let (mut driver, counters) = open_reading(takes_over, WebSocketConfig::new());
        let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
        let mut compress_next = |bytes: &[u8]| {
            if !takes_over {
                codec.reset();
            }
            compressed_bytes(&mut codec, bytes)
        };
        for (bytes, steps) in [
            // Incompressible, highly compressible, and a mix of both.
            (noise(400_000), 20),
            (vec![b'x'; 900_000], 0),
            ([noise(100_000), vec![0; 900_000]].concat(), 5),
        ] {
            let before = counters.inflated_in_turns();
            let whole = compress_next(&bytes);
            let between = compress_next(b"between");
            let cut = compress_next(&bytes);
            let (first, second) = cut.split_at(cut.len() / 3);
            let input = [
                frame(0xc2, &whole),
                frame(0xc1, &between),
                frame(0x42, first),
                frame(PING, "ping"),
                frame(0x80, second),
                frame(TEXT, "behind"),
            ];
            driver.send(&input.concat());
            let answers = frames(&driver.take_received());
            let expected = [
                (BINARY, &bytes[..]),
                (TEXT, b"between"),
                (PONG, b"ping"),
                (BINARY, &bytes),
                (TEXT, b"behind"),
            ];
            let is_same =
                answers.iter().map(|(first, payload)| (*first, &payload[..])).eq(expected);
            assert!(is_same, "{takes_over}, {}", bytes.len());
            let taken = counters.inflated_in_turns() - before;
            assert!(taken >= steps, "{taken} for {}", bytes.len());
        }
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn a_message_that_exceeds_the_limit_in_a_later_step_is_refused() {
    let compress_next = |bytes: &[u8]| {
        compressed_bytes(&mut flate2::Compress::new(flate2::Compression::new(6), false), bytes)
    };
    let max = 300_000;
    for (zeros, is_too_long) in [(200_000, false), (200_001, true), (9_000_000, true)] {
        let config = WebSocketConfig::new().message_max(max);
        let held = config.messages_held();
        let (mut driver, counters) = open_reading(false, config);
        driver.send(&frame(0xc2, compress_next(&[noise(100_000), vec![0; zeros]].concat())));
        let expected = if is_too_long { "close 1009" } else { "binary 300000" };
        assert_eq!(shown_frames(&driver.take_received()), [expected], "{zeros}");
        assert_eq!((counters.too_long(), held.bytes()), (u64::from(is_too_long), 0));
    }
}

#[test]
fn decompressed_bytes_count_as_memory_of_incomplete_messages() {
    for (max, is_read) in [(2_000_000, true), (300_000, false)] {
        let config = WebSocketConfig::new().messages_bytes_max(max);
        let held = config.messages_held();
        let (mut driver, counters) = open_reading(false, config);
        let bytes = [noise(100_000), vec![0; 900_000]].concat();
        let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
        driver.send(&frame(0xc2, compressed_bytes(&mut codec, &bytes)));
        let expected = if is_read { "binary 1000000" } else { "close 1013" };
        assert_eq!(shown_frames(&driver.take_received()), [expected], "{max}");
        assert_eq!((counters.without_room(), held.bytes()), (u64::from(!is_read), 0));
    }
}

#[test]
fn a_message_cut_within_a_block_is_refused_in_every_mode() {
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let mut compress = |bytes: &[u8]| {
        codec.reset();
        compressed_bytes(&mut codec, bytes)
    };
    // The long ones are decompressed in steps.
    for message in [compress(&noise(1_000)), compress(&noise(100_000)), compress(&[0; 900_000])] {
        for mode in ["whole", "pieces"] {
            for is_cut in [false, true] {
                let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
                driver.send(&frame(TEXT, mode));
                driver.take_received();
                let len = if is_cut { message.len() / 2 } else { message.len() };
                driver.send(&frame(0xc2, &message[..len]));
                let received = shown_frames(&driver.take_received());
                let is_refused = received.last().is_some_and(|last| last == "close 1007");
                assert_eq!(is_refused, is_cut, "{mode} {received:?}");
                assert_eq!(counters.bad_data(), u64::from(is_cut), "{mode}");
            }
        }
    }
}

/// Its blocks have no output, but each has a code table.
#[test]
fn a_message_that_is_slow_to_decompress_takes_many_turns() {
    let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
    // An empty block as a compressor emits it when flushed: 5 bytes, one of them for the table.
    let empty = [0x00, 0x00, 0x00, 0xff, 0xff];
    let blocks = empty.repeat(200_000);
    driver.send(&frame(0xc2, &blocks[..blocks.len() - 4]));
    assert_eq!(shown_frames(&driver.take_received()), ["binary 0"]);
    assert!(counters.inflated_in_turns() >= 1_000_000 / (16 << 10), "{counters:?}");
}

#[test]
fn the_last_message_before_the_end_is_decompressed_in_steps() {
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let long = frame(0xc2, compressed_bytes(&mut codec, &noise(100_000)));
    let close = frame(CLOSE, close_payload(1000, ""));
    for (last, end) in [(&b""[..], "closed 1006 Lost"), (&close, "closed 1000 Peer")] {
        let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
        driver.peer().send(&[&long, last].concat());
        driver.peer().end();
        driver.settle();
        let events = &driver.context().events;
        assert!(events.contains(&"binary 100000".to_string()), "{events:?}");
        assert_eq!(events.last().map(String::as_str), Some(end));
        assert!(counters.inflated_in_turns() >= 5, "{counters:?}");
    }
}

/// A few KiB can become megabytes, if messages may be that long.
#[test]
fn a_short_message_that_becomes_long_is_decompressed_in_turns() {
    const LEN: usize = 8 << 20;
    let config = WebSocketConfig::new().message_max(LEN);
    let (mut driver, counters) = open_reading(false, config);
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let bomb = frame(0xc2, compressed_bytes(&mut codec, &[0; LEN]));
    assert!(bomb.len() < 10_000, "{}", bomb.len());
    driver.peer().send(&bomb);
    driver.settle();
    assert!(driver.context().events.contains(&format!("binary {LEN}")));
    assert!((7..=8).contains(&counters.inflated_in_turns()), "{counters:?}");
}

/// A handler that holds since a message is being decompressed, which takes more turns.
fn open_holding_within_a_message() -> ServerDriver {
    let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    driver.peer().send(&frame(0xc2, compressed_bytes(&mut codec, &noise(100_000))));
    let turns = (0..100).take_while(|_| driver.test().turn() && counters.inflated_in_turns() < 3);
    assert!((3..100).contains(&turns.count()), "{counters:?}");
    driver.context_mut().on_wakeup = Some("hold".to_string());
    driver.wakeup();
    driver
}

#[test]
fn a_holding_handler_gets_the_inflated_message_after_it_resumes() {
    let mut driver = open_holding_within_a_message();
    assert_eq!(driver.context().events, ["opened /"]);
    driver.advance(seconds(3));
    assert_eq!(driver.context().events[1..3], ["timeout", "binary 100000"]);
}

/// The input at hand is handled before the handler is told of a drain, in which it closes. A
/// message that takes many turns is no exception, but whatever follows it is.
#[test]
fn a_drain_waits_for_the_message_that_is_being_decompressed() {
    let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let mut long = || {
        codec.reset();
        frame(0xc2, compressed_bytes(&mut codec, &noise(100_000)))
    };
    driver.peer().send(&[long(), long()].concat());
    let turns = (0..100).take_while(|_| driver.test().turn() && counters.inflated_in_turns() < 3);
    assert!((3..100).contains(&turns.count()), "{counters:?}");
    driver.drain(seconds(60));
    assert_eq!(shown_frames(&driver.take_received()), ["binary 100000", "close 1001"]);
    driver.send(&frame(CLOSE, close_payload(1001, "")));
    // The answer had to be taken before the rest of the input was looked at.
    let events = ["opened /", "binary 100000", "flushed to 0", "closed 1001 Handler"];
    assert_eq!(driver.context().events, events);
}

#[test]
fn a_handler_that_holds_during_decompression_is_told_of_a_drain_at_once() {
    let mut driver = open_holding_within_a_message();
    driver.drain(seconds(60));
    assert_eq!(shown_frames(&driver.take_received()), ["close 1001"]);
}

/// The message has used up its input, and its next turn of decompression waits for room.
#[test]
fn a_drain_waits_for_an_inflating_message_that_waits_for_room() {
    let config = WebSocketConfig::new().unsent_high_water(1_000);
    let (mut driver, counters) = open_reading(false, config);
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    driver.limit_room(0);
    driver.peer().send(&frame(0xc2, compressed_bytes(&mut codec, &noise(100_000))));
    let turns = (0..100).take_while(|_| driver.test().turn() && counters.inflated_in_turns() < 3);
    assert!((3..100).contains(&turns.count()), "{counters:?}");
    let broadcast = "x".repeat(2_000);
    driver.context_mut().on_wakeup = Some(broadcast.clone());
    driver.wakeup();
    driver.drain(seconds(60));
    assert_eq!(driver.context().events, ["opened /"]);
    driver.make_room(1_000_000);
    let expected = [format!("text {broadcast}"), "binary 100000".into(), "close 1001".into()];
    assert_eq!(shown_frames(&driver.take_received()), expected);
}

/// A turn reads its input in several pieces, and there is a call for each.
#[test]
fn messages_that_a_turn_reads_in_pieces_share_its_budget_of_decompression() {
    const MAX: usize = 1 << 20;
    let (mut driver, counters) = open_reading(false, WebSocketConfig::new());
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    // Sixteen of them fill a block of 16 KiB, and become a little less than a turn may decompress.
    let unlike: Vec<u8> = noise(1_050).iter().map(|byte| b'0' + byte % 64).collect();
    let message = [b"say ", &unlike[..], &[b'x'; 60_000]].concat();
    let small = frame(0xc1, compressed_bytes(&mut codec, &message));
    assert!((960..1_020).contains(&small.len()), "{}", small.len());
    driver.peer().send(&small.repeat(200));
    let mut heard = driver.context().events.len();
    let most = (0..20).map(|_| {
        driver.test().turn();
        let before = std::mem::replace(&mut heard, driver.context().events.len());
        (heard - before) * message.len()
    });
    let most = most.max().expect("there are turns");
    assert!((MAX / 2..MAX + 64_000).contains(&most), "{most} bytes in a turn");
    driver.settle();
    assert_eq!(driver.context().events.len(), 201);
    assert!((8..=16).contains(&counters.inflated_in_turns()), "{counters:?}");
}
