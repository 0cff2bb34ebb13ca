//! Frames that no honest server sends so often: such a server loses its connection before it has
//! cost much.

use rotor_http::client::{ClientConfig, Counters};
use rotor_http::{Limits, client};
use rotor_stream::StreamConfig;

use super::server::{Server, block, data, frame, headers, http2, page, settings};
use crate::probe::Probe;

/// Makes the frames of a round.
type MakeFrames = fn(u32) -> Vec<u8>;

/// Sends frames until the connection ends. Returns the round in which it ended, and the code.
fn flood_until_end(
    mut make: impl FnMut(u32) -> Vec<u8>,
    counter: fn(&Counters) -> u64,
) -> (usize, Option<u32>) {
    let config = ClientConfig::new().http2(http2());
    let counters = config.counters();
    let mut server = Server::of(config, &[], (0..4_000).map(|_| Probe::get("/").progressive()));
    for round in 0..4_000 {
        server.send(&make(round));
        if let Some(code) = server.end() {
            assert_eq!((counter(&counters), counters.protocol_errors()), (1, 1), "{counters:?}");
            assert_eq!(server.driver.failures(), [""; 0]);
            return (round as usize, Some(code));
        }
    }
    (usize::MAX, None)
}

#[test]
fn floods_of_useless_frames_end_the_connection() {
    let frames = Counters::frame_floods;
    let ping = |_| frame(6, 0, 0, &[0; 8]);
    let setting = |_| settings(&[(4, 1 << 20)]);
    let unknown = |_| frame(0xbe, 0, 1, b"?");
    let drip = |_| frame(8, 0, 0, &[0, 0, 0, 1]);
    let makes: [(&str, MakeFrames); 4] =
        [("ping", ping), ("settings", setting), ("unknown", unknown), ("drip", drip)];
    for (name, make) in makes {
        let (round, code) = flood_until_end(make, frames);
        // Each of the hundred requests that were sent allows two more frames.
        assert!((900..1_300).contains(&round), "{name}: {round}");
        assert_eq!(code, Some(11), "{name}");
    }
}

#[test]
fn empty_data_and_forced_resets_end_the_connection_sooner() {
    let empty = |round| match round {
        0 => headers(1, &[(":status", "200")], false),
        _ => data(1, b"", false),
    };
    let (round, code) = flood_until_end(empty, Counters::frame_floods);
    assert!((90..130).contains(&round) && code == Some(11), "{round} {code:?}");
    let broken = |round: u32| headers(2 * round + 1, &[("a", "b")], true);
    let (round, code) = flood_until_end(broken, Counters::frame_floods);
    assert!((200..220).contains(&round) && code == Some(11), "{round} {code:?}");
}

#[test]
fn field_blocks_are_limited_in_frames_bytes_and_decoded_size() {
    let fields = Counters::field_floods;
    let endless = |round| match round {
        0 => frame(1, 0, 1, &[0x88]),
        _ => frame(9, 0, 1, b""),
    };
    assert_eq!(flood_until_end(endless, fields), (9, Some(11)));
    let large = |round| match round {
        0 => frame(1, 0, 1, &[0x88]),
        _ => frame(9, 0, 1, &block(&[("a", &"x".repeat(9_000))])),
    };
    assert_eq!(flood_until_end(large, fields), (8, Some(11)));
    // An entry of 4,000 bytes, and a thousand references of one byte each.
    let bomb = |_| {
        let mut block = vec![0x88, 0x40, 1, b'a', 0x7f];
        block.extend([0xa1, 0x1e]);
        block.extend(vec![b'x'; 4_000]);
        block.extend(vec![0xbe; 1_000]);
        frame(1, 5, 1, &block)
    };
    assert_eq!(flood_until_end(bomb, fields), (0, Some(11)));
}

#[test]
fn a_response_with_too_many_fields_fails_only_its_request() {
    let limits = Limits::new().fields_max(3);
    let mut server = Server::with_limits(limits, ["/1", "/2"].map(Probe::get));
    let many = [(":status", "200"), ("a", "1"), ("b", "2"), ("c", "3"), ("d", "4")];
    server.send(&headers(1, &many, true));
    server.send(&headers(3, &many[..4], true));
    assert_eq!(server.outcome(0), "Peer: Head(Head(TooManyFields))");
    assert_eq!((server.outcome(1).as_str(), server.end()), ("200", None));
}

/// It may come from a part of the server of which other requests know nothing.
#[test]
fn a_response_head_beyond_the_limit_in_several_frames_fails_only_its_request() {
    let mut server = Server::new(["/1", "/2"].map(Probe::get));
    let large = block(&[(":status", "200"), ("a", &"x".repeat(40_000))]);
    for (at, part) in large.chunks(16_000).enumerate() {
        let kind = if at == 0 { 1 } else { 9 };
        server.send(&frame(kind, if at == 2 { 4 } else { 0 }, 1, part));
    }
    assert_eq!(server.outcome(0), "Peer: Head(Head(TooLarge))");
    server.send(&page(3, "ok"));
    assert_eq!((server.outcome(1).as_str(), server.end()), ("200 ok", None));
}

#[test]
fn endless_interim_heads_fail_their_request() {
    let mut server = Server::new(["/1", "/2"].map(Probe::get));
    for _ in 0..17 {
        server.send(&headers(1, &[(":status", "103")], false));
    }
    assert_eq!(server.outcome(0), "Peer: TooManyInterim");
    server.send(&page(3, "ok"));
    assert_eq!((server.outcome(1).as_str(), server.end()), ("200 ok", None));
}

#[test]
fn the_http2_limits_are_configurable_with_workable_minimums() {
    let config = client::Http2Config::new().streams_max(0).stream_window(1).connection_window(1);
    let shown = format!("{config:?}");
    for value in ["streams_max: 1,", "stream_window: 65536", "connection_window: 65535"] {
        assert!(shown.contains(value), "{shown}");
    }
    let config = ClientConfig::new().http2(http2().streams_max(2));
    let server = Server::of(config, &[(3, 100)], (0..5).map(|_| Probe::get("/")));
    assert_eq!(server.request_lines().len(), 2);
}

/// As on the server: a batch that begins within the budget may exceed it.
#[test]
fn consecutive_frames_count_against_the_calls_budget_of_a_turn() {
    const BUDGET: usize = 128;
    const BATCH: usize = 64;
    let config =
        ClientConfig::new().http2(http2()).stream(&StreamConfig::new().calls_budget(BUDGET as u32));
    let mut server = Server::of(config, &[], []);
    server.driver.peer().take_received();
    server.driver.peer().send(&frame(6, 0, 0, &[0; 8]).repeat(800));
    let mut turns = Vec::new();
    while turns.iter().sum::<usize>() < 800 {
        server.driver.test().turn();
        turns.push(server.driver.peer().take_received().len() / 17);
        assert!(turns.last() > Some(&0), "{turns:?}");
    }
    assert!(turns.iter().all(|frames| *frames < BUDGET + BATCH), "{turns:?}");
}
