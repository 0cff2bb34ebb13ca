//! Every limit: what is just allowed, and one more.

use rotor_websocket::{Deflate, WebSocketConfig};

use crate::kit::{
    BINARY, DEFLATE, PING, PONG, TEXT, frame, open, open_with, seconds, shown_frames,
};

#[test]
fn the_length_limit_holds_for_whole_and_split_messages() {
    let config = || WebSocketConfig::new().message_max(1_000);
    for (len, is_taken) in [(999, true), (1_000, true), (1_001, false)] {
        let bytes = vec![b'x'; len];
        let (first, second) = bytes.split_at(500);
        let inputs = [
            frame(BINARY, &bytes),
            [frame(0x02, first), frame(0x80, second)].concat(),
            [frame(0x02, &bytes), frame(0x80, "")].concat(),
        ];
        for input in inputs {
            let (mut driver, counters) = open(config());
            driver.send(&input);
            let expected =
                if is_taken { format!("binary {len}") } else { "close 1009".to_string() };
            assert_eq!(shown_frames(&driver.take_received()), [expected]);
            assert_eq!(counters.too_long(), u64::from(!is_taken));
        }
    }
}

#[test]
fn the_decompressed_length_counts_towards_the_limit() {
    let config = || WebSocketConfig::new().message_max(10_000).deflate(Deflate::new());
    for (len, is_taken) in [(9_999, true), (10_000, true), (10_001, false)] {
        let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
        let mut small = Vec::with_capacity(1_000);
        let result = codec.compress_vec(&vec![b'x'; len], &mut small, flate2::FlushCompress::Sync);
        result.expect("there is room");
        small.truncate(small.len() - 4);
        let (mut driver, counters) = open_with(config(), "/", DEFLATE);
        driver.send(&frame(0xc2, &small));
        let back = driver.take_received();
        // The echo is compressed as well.
        assert_eq!(back[0], if is_taken { 0xc2 } else { 0x88 }, "{len}");
        assert_eq!(counters.too_long(), u64::from(!is_taken), "{len}");
    }
}

#[test]
fn the_overhead_of_compression_does_not_count() {
    // Stored without compression (RFC 1951 §3.2.4), in blocks of 100 bytes: 5 more bytes for each.
    let stored = |message: &[u8]| -> Vec<u8> {
        let block = |part: &[u8]| {
            let len = part.len() as u16;
            [&[0][..], &len.to_le_bytes(), &(!len).to_le_bytes(), part].concat()
        };
        [message.chunks(100).flat_map(block).collect(), vec![0]].concat()
    };
    for in_fragments in [false, true] {
        for (len, is_taken) in [(10_000, true), (10_001, false)] {
            let config = WebSocketConfig::new().message_max(10_000).deflate(Deflate::new());
            let (mut driver, counters) = open_with(config, "/", DEFLATE);
            let message = stored(&vec![b'x'; len]);
            assert!(message.len() > 10_500);
            if in_fragments {
                let (first, second) = message.split_at(5_000);
                driver.send(&[frame(0x42, first), frame(0x80, second)].concat());
            } else {
                driver.send(&frame(0xc2, &message));
            }
            let heard = driver.context().events[1..].first().cloned();
            let expected = format!("binary {len}");
            assert_eq!(heard == Some(expected), is_taken, "{len} {in_fragments}");
            assert_eq!(counters.too_long(), u64::from(!is_taken), "{len} {in_fragments}");
        }
    }
}

#[test]
fn the_fragment_limit_counts_empty_fragments_too() {
    for payload in ["", "x"] {
        for (fragments, is_taken) in [(9, true), (10, true), (11, false)] {
            let (mut driver, counters) = open(WebSocketConfig::new().fragments_max(10));
            driver.send(&frame(0x02, payload));
            for _ in 2..fragments {
                driver.send(&frame(0x00, payload));
            }
            driver.send(&frame(0x80, payload));
            let expected = match is_taken {
                true => format!("binary {}", payload.len() * fragments),
                false => "close 1008".to_string(),
            };
            assert_eq!(
                shown_frames(&driver.take_received()),
                [expected],
                "{fragments} of {payload:?}"
            );
            assert_eq!(counters.too_many_fragments(), u64::from(!is_taken));
        }
    }
}

#[test]
fn a_flood_of_empty_fragments_is_stopped_at_the_limit() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&frame(0x02, ""));
    driver.send(&frame(0x00, "").repeat(100_000));
    assert_eq!(shown_frames(&driver.take_received()), ["close 1008"]);
    assert_eq!(driver.context().events, ["opened /", "closed 1008 Fault(Fragments)"]);
    assert_eq!(counters.too_many_fragments(), 1);
}

#[test]
fn control_frames_are_limited_by_burst_and_rate() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&frame(PING, "").repeat(100));
    assert_eq!(shown_frames(&driver.take_received()), ["pong"; 100]);
    driver.advance(seconds(1));
    driver.send(&frame(PING, "").repeat(10));
    assert_eq!(shown_frames(&driver.take_received()), ["pong"; 10]);
    // Messages are not control frames.
    driver.send(&frame(TEXT, "x").repeat(1_000));
    assert_eq!(shown_frames(&driver.take_received()).len(), 1_000);
    driver.send(&frame(0x8a, ""));
    assert_eq!(shown_frames(&driver.take_received()), ["close 1008"]);
    assert_eq!(counters.control_floods(), 1);
}

#[test]
fn only_unsolicited_pongs_count_as_a_flood() {
    for max in [0, 1] {
        let (mut driver, counters) = open(WebSocketConfig::new().control_max(max));
        for _ in 0..500 {
            driver.send(&frame(TEXT, "ping hello"));
            assert_eq!(shown_frames(&driver.take_received()), ["ping hello"]);
            driver.send(&frame(PONG, "hello"));
        }
        driver.send(&frame(PONG, "").repeat(max as usize));
        assert_eq!(driver.take_received(), b"", "{max}");
        driver.send(&frame(PONG, ""));
        assert_eq!(shown_frames(&driver.take_received()), ["close 1008"], "{max}");
        assert_eq!(counters.control_floods(), 1);
    }
}

/// As the requests and frames of the HTTP server do, however short they are.
#[test]
fn a_flood_of_short_messages_is_divided_among_turns() {
    for len in [0, 20, 50, 100, 200] {
        let (mut driver, _) = open(WebSocketConfig::new().unsent_high_water(usize::MAX));
        driver.peer().send(&frame(BINARY, vec![b'x'; len]).repeat(10_000));
        let mut heard = driver.context().events.len();
        let most = (0..20).map(|_| {
            driver.test().turn();
            let before = std::mem::replace(&mut heard, driver.context().events.len());
            heard - before
        });
        let most = most.max().expect("there are turns");
        assert!((128..=300).contains(&most), "{most} of {len} bytes in a turn");
        driver.test().settle();
        assert_eq!(driver.context().events.len(), 10_001);
    }
}

#[test]
fn decompression_is_divided_among_turns() {
    let config = WebSocketConfig::new().inflated_max(100_000).deflate(Deflate::new());
    let (mut driver, counters) = open_with(config, "/", DEFLATE);
    let mut codec = flate2::Compress::new(flate2::Compression::new(6), false);
    let mut small = Vec::with_capacity(10_000);
    let result = codec.compress_vec(&[b'x'; 60_000], &mut small, flate2::FlushCompress::Sync);
    result.expect("there is room");
    small.truncate(small.len() - 4);
    driver.send(&frame(0xc2, &small).repeat(20));
    let binaries = driver.context().events.iter().filter(|event| *event == "binary 60000");
    assert_eq!(binaries.count(), 20);
    assert!(counters.inflated_in_turns() >= 9, "{}", counters.inflated_in_turns());
}

#[test]
fn decompression_without_output_is_divided_among_turns() {
    let config = WebSocketConfig::new().inflated_max(10_000).deflate(Deflate::new());
    for mode in ["whole", "pieces"] {
        let (mut driver, counters) = open_with(config.clone(), "/", DEFLATE);
        driver.send(&frame(TEXT, mode));
        // Each block of two bytes is empty and marked as the last one.
        let empty = frame(0xc2, [3, 0].repeat(10_000));
        let before = counters.inflated_in_turns();
        driver.send(&empty.repeat(20));
        let heard = driver.context().events.len();
        assert_eq!(heard, 22, "{mode}");
        assert!(counters.inflated_in_turns() >= before + 19, "{mode}");
    }
}

#[test]
fn incomplete_messages_share_a_memory_limit_and_release_it() {
    let config = WebSocketConfig::new().messages_bytes_max(100_000);
    let held = config.messages_held();
    let part = [b'x'; 40_000];
    let (mut one, counters) = open(config.clone());
    let (mut other, _) = open(config.clone());
    one.send(&frame(0x02, part));
    let taken = held.bytes();
    assert!((40_000..=80_000).contains(&taken), "{taken}");
    assert_eq!(one.take_received(), b"");
    // There is no room for a second part of that size, but for a small one, and for whole messages.
    other.send(&frame(BINARY, [b'x'; 1_000]));
    other.send(&frame(0x02, "little"));
    assert_eq!(shown_frames(&other.take_received()), ["binary 1000"]);
    other.send(&frame(0x00, [b'x'; 90_000]));
    assert_eq!(shown_frames(&other.take_received()), ["close 1013"]);
    assert!(other.is_ended());
    assert_eq!(other.context().events.last().unwrap(), "closed 1013 NoRoom");
    assert_eq!((counters.without_room(), held.bytes()), (1, taken));
    // The connection that already holds memory continues.
    one.send(&frame(0x80, part));
    assert_eq!(shown_frames(&one.take_received()), ["binary 80000"]);
    assert_eq!(held.bytes(), 0);
    // The memory is released by a lost connection, a closing one, and one that is dropped in the
    // middle of a message.
    for end in ["reset", "close", "drop"] {
        let (mut driver, _) = open(config.clone());
        driver.send(&frame(0x02, part));
        assert!(held.bytes() >= 40_000);
        driver.context_mut().on_wakeup = Some(end.to_string());
        if end == "reset" {
            driver.reset();
        } else {
            driver.wakeup();
            driver.send(&frame(0x00, "more"));
        }
        assert_eq!(held.bytes(), 0, "{end}");
    }
}

#[test]
fn messages_in_pieces_take_none_of_that_memory() {
    let (mut driver, _) = open(WebSocketConfig::new().messages_bytes_max(0));
    driver.send(&frame(TEXT, "pieces"));
    driver.send(&frame(0x02, [b'x'; 40_000]));
    driver.send(&frame(0x80, [b'x'; 40_000]));
    let is_last = |event: &&String| event.starts_with("piece last");
    assert_eq!(driver.context().events.iter().filter(is_last).count(), 1);
}
