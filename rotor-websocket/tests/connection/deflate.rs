//! Compression, there and back.

use rotor_websocket::{Deflate, WebSocketConfig};

use crate::kit::{DEFLATE, TEXT, frame, frames, open_deflate, open_with};

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
fn what_does_not_get_shorter_is_sent_as_it_is() {
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
fn with_take_over_messages_refer_to_those_before() {
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

/// Compresses a message behind those before it.
fn compressed(codec: &mut flate2::Compress, text: &str) -> Vec<u8> {
    let mut to = Vec::with_capacity(text.len() + 1_000);
    codec.compress_vec(text.as_bytes(), &mut to, flate2::FlushCompress::Sync).expect("room");
    to.truncate(to.len() - 4);
    to
}

#[test]
fn with_take_over_messages_that_refer_to_those_before_are_read_however_they_come_and_are_taken() {
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
        // What is not compressed is not referred to.
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
