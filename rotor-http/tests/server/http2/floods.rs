//! Input that no honest peer sends: each flood ends its own connection, and has its own counter.

use rotor_http::Limits;
use rotor_http::server::{Counters, ServerConfig};

use super::client::{Client, block, config, data, frame, headers, http2, settings};
use crate::probe::seconds;

const ENHANCE_YOUR_CALM: u32 = 11;

/// Sends until the connection has ended, at most `most` times. Returns the number of rounds.
fn send_until_end(client: &mut Client, most: u32, mut frames: impl FnMut(u32) -> Vec<u8>) -> u32 {
    for round in 0..most {
        client.send(&frames(round));
        if client.driver.is_ended() {
            return round + 1;
        }
    }
    most
}

#[test]
fn floods_end_their_connection_at_the_limit_and_are_counted() {
    type Flood =
        (&'static str, fn(u32) -> Vec<u8>, std::ops::RangeInclusive<u32>, fn(&Counters) -> u64);
    let floods: [Flood; 12] = [
        (
            "rapid reset",
            |n| {
                [
                    headers(2 * n + 1, "GET", "/wait", &[], true),
                    frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]),
                ]
                .concat()
            },
            201..=201,
            Counters::reset_floods,
        ),
        (
            "made you reset",
            |n| {
                [headers(2 * n + 1, "POST", "/wait", &[], false), frame(8, 0, 2 * n + 1, &[0; 4])]
                    .concat()
            },
            201..=201,
            Counters::reset_floods,
        ),
        (
            "malformed requests",
            |n| headers(2 * n + 1, "GET", "nowhere", &[], true),
            201..=201,
            Counters::reset_floods,
        ),
        (
            "more streams than there may be",
            |n| headers(2 * n + 1, "GET", "/wait-for-ever", &[], true),
            301..=301,
            Counters::reset_floods,
        ),
        ("PING", |_| frame(6, 0, 0, &[0; 8]), 990..=1001, Counters::frame_floods),
        (
            "PING that nobody asked for",
            |_| frame(6, 1, 0, &[0; 8]),
            990..=1001,
            Counters::frame_floods,
        ),
        ("SETTINGS", |n| settings(&[(4, n)]), 990..=1001, Counters::frame_floods),
        (
            "PRIORITY",
            |n| frame(2, 0, 2 * n + 1, &[0, 0, 0, 0, 1]),
            990..=1001,
            Counters::frame_floods,
        ),
        (
            "PRIORITY_UPDATE",
            |n| frame(16, 0, 0, &(2 * n + 1).to_be_bytes()),
            990..=1001,
            Counters::frame_floods,
        ),
        ("frames of no type", |_| frame(0xbb, 0, 0, &[]), 990..=1001, Counters::frame_floods),
        (
            "windows by one octet",
            |_| frame(8, 0, 0, &[0, 0, 0, 1]),
            990..=1001,
            Counters::frame_floods,
        ),
        ("GOAWAY", |_| frame(7, 0, 0, &[0; 8]), 990..=1001, Counters::frame_floods),
    ];
    for (what, frames, after, counter) in floods {
        let config = config();
        let counters = config.counters();
        let mut client = Client::new(config);
        let count = send_until_end(&mut client, 10_000, frames);
        assert!(after.contains(&count), "{what}: after {count}");
        assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM), "{what}");
        assert_eq!((counter(&counters), counters.protocol_errors()), (1, 1), "{what}");
    }
}

#[test]
fn empty_data_frames_are_a_flood_and_one_byte_frames_are_a_body() {
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/progressive", &[], false));
    let count = send_until_end(&mut client, 1000, |_| data(1, b"", false));
    assert!((95..=101).contains(&count), "{count}");
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    let mut client = Client::new(config());
    client.send(&headers(1, "POST", "/progressive", &[], false));
    assert_eq!(send_until_end(&mut client, 20_000, |_| data(1, b"x", false)), 20_000);
    assert!(client.driver.is_alive());
}

/// A frame costs as much as hundreds of bytes.
#[test]
fn small_data_frames_are_rate_limited_whether_read_or_not() {
    for (path, octets, after) in [
        ("/progressive", 1, 21),
        ("/progressive", 4, 21),
        ("/progressive", 5, 101),
        ("/progressive", 255, 101),
        ("/progressive", 256, 500),
        ("/wait-for-ever", 1, 21),
        ("/wait-for-ever", 5, 101),
        ("/ignore", 1, 21),
        ("/ignore", 5, 101),
    ] {
        let config = ServerConfig::new().http2(http2().small_data(100, 10));
        let counters = config.counters();
        let mut client = Client::new(config);
        client.send(&headers(1, "POST", path, &[], false));
        let body = vec![b'x'; octets];
        let count = send_until_end(&mut client, 500, |_| data(1, &body, false));
        let what = format!("{path}, {octets} octets");
        assert_eq!((count, counters.frame_floods()), (after, u64::from(after < 500)), "{what}");
    }
    let mut client = Client::new(ServerConfig::new().http2(http2().small_data(100, 10)));
    client.send(&headers(1, "POST", "/progressive", &[], false));
    for _ in 0..50 {
        assert_eq!(send_until_end(&mut client, 10, |_| data(1, b"empty", false)), 10);
        client.driver.advance(seconds(1));
    }
    assert!(client.driver.is_alive());
}

#[test]
fn frames_within_the_rates_are_no_flood() {
    let mut client = Client::new(config());
    for round in 0..300u32 {
        let stream = 2 * round + 1;
        client.get(stream, "/wait");
        client.send(&frame(3, 0, stream, &[0, 0, 0, 8]));
        client.send(&frame(6, 0, 0, &[0; 8]));
        client.driver.advance(seconds(1));
        client.read();
    }
    assert!(client.driver.is_alive(), "{:?}", client.goaways);
    assert_eq!(client.pongs, 300);
}

/// gRPC clients answer each DATA frame with both, and some libraries grant window for each single
/// byte.
#[test]
fn frames_in_reply_to_ours_are_no_flood() {
    let mut client = Client::new(config());
    for round in 0..5_000u32 {
        let stream = 2 * round + 1;
        client.get(stream, "/authority");
        client.send(&frame(6, 0, 0, &[0; 8]));
        client.send(&frame(8, 0, 0, &[0, 0, 0, 1]));
        assert!(!client.driver.is_ended(), "round {round}");
        client.answers.clear();
    }
    assert_eq!(client.pongs, 5_000);
}

/// Frames in flight to a stream that the server has reset are allowed, but no more than those.
#[test]
fn frames_of_closed_streams_are_floods() {
    type Flood = (&'static str, &'static str, fn() -> Vec<u8>, u32);
    let floods: [Flood; 5] = [
        ("nowhere", "nothing", || data(1, b"", false), ENHANCE_YOUR_CALM),
        ("nowhere", "fields", || headers(1, "GET", "/", &[], false), 5),
        ("nowhere", "more than its window", || data(1, &[b'x'; 1_000], false), ENHANCE_YOUR_CALM),
        ("/authority", "DATA", || data(1, b"x", false), ENHANCE_YOUR_CALM),
        (
            "/authority",
            "windows",
            || frame(8, 0, 1, &(1u32 << 16).to_be_bytes()),
            ENHANCE_YOUR_CALM,
        ),
    ];
    for (path, what, frames, code) in floods {
        let mut client = Client::new(config());
        client.send(&headers(1, "GET", path, &[], path != "nowhere"));
        let count = send_until_end(&mut client, 2_000, |_| frames());
        assert_eq!(client.end(), Some(code), "{path} and {what}, after {count}");
    }
    let mut client = Client::new(config());
    for stream in (1..1_000).step_by(2) {
        client.send(&headers(stream, "POST", "nowhere", &[], false));
        for _ in 0..64 {
            client.send(&data(stream, &[b'x'; 1_024], false));
        }
        client.send(&frame(1, 5, stream, &block(&[("x-sum", "6")])));
        client.driver.advance(seconds(1));
        assert!(!client.driver.is_ended(), "stream {stream}: {:?}", client.goaways);
    }
}

/// Otherwise a peer that grants window byte by byte would cause an endless series of frames.
#[test]
fn window_updates_that_fragment_a_response_are_a_flood() {
    let mut client = Client::silent(config());
    client.send(&super::client::preface_and_settings(&[(4, 0)]));
    client.get(1, "/big");
    let count = send_until_end(&mut client, 10_000, |_| frame(8, 0, 1, &[0, 0, 0, 1]));
    assert!((990..=1010).contains(&count), "{count}");
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
}

#[test]
fn each_flood_limit_is_configurable() {
    for (config, frames, after) in [
        (http2().resets(3, 0), "reset", 4),
        (http2().provoked_resets(5, 0), "malformed", 6),
        (http2().control_frames(9, 0), "ping", 8),
    ] {
        let mut client = Client::new(ServerConfig::new().http2(config));
        let count = send_until_end(&mut client, 100, |n| match frames {
            "reset" => {
                [headers(2 * n + 1, "GET", "/wait", &[], true), frame(3, 0, 2 * n + 1, &[0; 4])]
                    .concat()
            }
            "malformed" => headers(2 * n + 1, "GET", "nowhere", &[], true),
            _ => frame(6, 0, 0, &[0; 8]),
        });
        assert_eq!(count, after, "{frames}");
    }
}

/// CVE-2024-27316.
#[test]
fn an_endless_field_block_ends_the_connection() {
    let begin = frame(1, 0, 1, &block(&[(":method", "GET")]));
    for (what, octets, most) in [("nothing", 0, 9), ("little", 10, 9), ("much", 16_000, 5)] {
        let config = config();
        let counters = config.counters();
        let mut client = Client::new(config);
        client.send(&begin);
        let count = send_until_end(&mut client, 100, |_| frame(9, 0, 1, &vec![0x82; octets]));
        assert_eq!((count, client.end()), (most, Some(ENHANCE_YOUR_CALM)), "{what}");
        assert_eq!(counters.field_floods(), 1);
    }
    // The block also has a timeout.
    let mut client = Client::new(config());
    client.send(&begin);
    client.driver.advance(seconds(9));
    client.send(&frame(9, 0, 1, &[]));
    assert!(!client.driver.is_ended());
    client.driver.advance(seconds(2));
    assert!(client.driver.is_ended());
}

#[test]
fn eight_continuations_are_allowed() {
    let mut client = Client::new(config());
    let fields = block(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/authority"),
        (":authority", "a"),
    ]);
    let (first, rest) = fields.split_at(fields.len() - 8);
    client.send(&frame(1, 1, 1, first));
    for (at, octet) in rest.iter().enumerate() {
        client.send(&frame(9, if at == 7 { 4 } else { 0 }, 1, &[*octet]));
    }
    assert_eq!(client.outcome(1), "200 a");
}

#[test]
fn an_hpack_reference_bomb_is_limited() {
    let mut bomb =
        block(&[(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "a")]);
    // A field of 4,000 bytes for the dynamic table, then one byte for each reference to it.
    bomb.extend_from_slice(&[0x40, 1, b'a', 0x7f, 0xa1, 0x1e]);
    bomb.extend_from_slice(&[b'x'; 4000]);
    let field = bomb.clone();
    bomb.extend_from_slice(&[0xbe; 8000]);
    let mut client = Client::new(config());
    client.send(&frame(1, 5, 1, &bomb));
    assert_eq!(client.end(), Some(ENHANCE_YOUR_CALM));
    // A field block above the limit of stored fields, but below that of decoded ones, is answered.
    let mut client = Client::new(config());
    client.send(&frame(1, 5, 1, &[&field[..], &[0xbe; 8]].concat()));
    assert_eq!(client.answer(1).status, 431);
    client.get(3, "/authority");
    assert_eq!(client.outcome(3), "200 a");
}

#[test]
fn heads_beyond_the_limits_are_answered_as_on_http1() {
    let config = config().limits(Limits::new().fields_max(3).target_bytes_max(20));
    let counters = config.counters();
    let mut client = Client::new(config);
    let fields = [("a", "b"); 4];
    client.send(&headers(1, "GET", "/authority", &fields[..3], true));
    client.send(&headers(3, "GET", "/authority", &fields, true));
    client.send(&headers(5, "GET", "/authority-that-is-too-long", &[], true));
    client.send(&headers(7, "HEAD", "/authority-that-is-too-long", &[], true));
    client.send(&headers(9, "GET", "/", &[("expect", "a miracle")], true));
    assert_eq!(
        [1, 3, 5, 7, 9].map(|stream| client.answer(stream).status),
        [200, 431, 414, 414, 417]
    );
    let reasons = [3, 5, 7, 9]
        .map(|stream| String::from_utf8_lossy(&client.answer(stream).body).trim_end().to_string());
    assert_eq!(
        reasons,
        [
            "431 Request Header Fields Too Large: too many fields",
            "414 URI Too Long: the request target is too long",
            "",
            "417 Expectation Failed: an expectation other than 100-continue",
        ]
    );
    assert_eq!(counters.heads_too_large(), 3);
}

/// Many clients may share a connection, and one of them sends such requests.
#[test]
fn requests_answered_without_a_handler_are_no_flood() {
    let mut client = Client::new(config());
    for stream in (1..2_000).step_by(2) {
        client.send(&headers(stream, "GET", "/", &[("expect", "a miracle")], true));
        assert_eq!(client.answer(stream).status, 417, "{stream}");
    }
}

/// Responses that the peer does not read hold at most their limit; further requests are refused.
#[test]
fn responses_waiting_for_window_are_limited() {
    for path in ["/stream", "/big"] {
        let mut client = Client::silent(config());
        client.send(&super::client::preface_and_settings(&[(4, 0)]));
        for stream in (1..200).step_by(2) {
            client.get(stream, path);
        }
        assert!(client.driver.is_alive() && !client.driver.is_ended(), "{path}");
        let refused = client.answers.values().filter(|answer| answer.reset == Some(7)).count();
        match path {
            "/big" => assert!(refused == 92, "{refused} of 100 x 1 MiB"),
            _ => assert_eq!(refused, 0),
        }
    }
}

#[test]
fn a_response_without_send_window_times_out() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.send(&super::client::preface_and_settings(&[(4, 0)]));
    client.get(1, "/big");
    client.get(3, "/authority");
    client.driver.advance(seconds(9));
    client.read();
    assert_eq!(client.answer(1).reset, None);
    client.driver.advance(seconds(2));
    client.read();
    assert_eq!((client.answer(1).reset, client.answer(3).reset), (Some(8), Some(8)));
    assert_eq!(counters.response_timeouts(), 2);
    // Single bytes of window do not help; the minimum rate does.
    let mut client = Client::silent(self::config());
    client.send(&super::client::preface_and_settings(&[(4, 0)]));
    client.get(1, "/big");
    client.get(3, "/big");
    for _ in 0..15 {
        client.driver.advance(seconds(1));
        client.send(&frame(8, 0, 1, &[0, 0, 0, 1]));
        client.send(&frame(8, 0, 3, &2048u32.to_be_bytes()));
    }
    assert_eq!((client.answer(1).reset, client.answer(3).reset), (Some(8), None));
}

/// Its stream window is open: the server itself sends a more urgent response first.
#[test]
fn a_response_behind_a_more_urgent_one_does_not_time_out() {
    let update = |stream: u32, more: u32| frame(8, 0, stream, &more.to_be_bytes());
    let limits = Limits::new().output_high_water(65_493);
    let mut client = Client::silent(config().limits(limits));
    client.send(&super::client::preface_and_settings(&[(4, 60_535)]));
    client.driver.limit_room(0);
    client.send(&headers(1, "GET", "/big", &[("priority", "u=0")], true));
    // There is room for its head, since the connection window is small at this moment.
    client.get(3, "/big");
    client.send(&update(1, 1 << 20));
    for _ in 0..15 {
        client.send(&update(0, 60_000));
        client.driver.make_room(50_000);
        client.driver.advance(seconds(1));
        client.read();
    }
    assert_eq!((client.answer(3).status, client.answer(3).reset), (200, None));
    assert!(!client.answer(1).is_whole && client.body_len(3) == 0, "{}", client.body_len(3));
}

/// All streams share the connection window, and the server chooses which one uses it first. That
/// also holds if the peer opens it in small pieces.
#[test]
fn a_response_waiting_for_shared_window_does_not_time_out() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.send(&super::client::preface_and_settings(&[(4, 1 << 20)]));
    // One after the other, as the peer requests by its priorities.
    client.send(&headers(1, "GET", "/big", &[("priority", "u=3")], true));
    client.get(3, "/big");
    for _ in 0..30 {
        client.send(&frame(8, 0, 0, &2048u32.to_be_bytes()));
        client.driver.advance(seconds(1));
    }
    client.read();
    assert_eq!((client.body_len(1), client.body_len(3)), (65_535 + 30 * 2048, 0));
    assert_eq!([1, 3].map(|stream| client.answer(stream).reset), [None, None]);
    // Less than the minimum rate for all of them together.
    for _ in 0..30 {
        client.send(&frame(8, 0, 0, &500u32.to_be_bytes()));
        client.driver.advance(seconds(1));
    }
    client.read();
    assert_eq!([1, 3].map(|stream| client.answer(stream).reset), [Some(8), Some(8)]);
    assert_eq!(counters.response_timeouts(), 2);
}

/// CVE-2025-8671: each such stream counts as a reset, and uses no slot of the concurrent streams,
/// since its handler is gone by then.
#[test]
fn every_provoked_reset_counts_and_removes_its_handler() {
    type ResetCause = (&'static str, u32, fn(u32) -> Vec<u8>);
    let ways: [ResetCause; 10] = [
        ("a window of nothing", 1, |stream| frame(8, 0, stream, &[0; 4])),
        ("a window beyond its bound", 3, |stream| frame(8, 0, stream, &[0x7f, 255, 255, 255])),
        ("a priority of four octets", 6, |stream| frame(2, 0, stream, &[0; 4])),
        ("a priority on itself", 1, |stream| {
            frame(2, 0, stream, &[&stream.to_be_bytes()[..], &[1]].concat())
        }),
        ("more than was announced", 1, |stream| data(stream, b"1234", false)),
        ("less than was announced", 1, |stream| data(stream, b"12", true)),
        ("less, and trailers", 1, |stream| frame(1, 5, stream, &block(&[("x-sum", "6")]))),
        ("trailers that are not the end", 1, |stream| frame(1, 4, stream, &block(&[("a", "b")]))),
        ("trailers with a pseudo-field", 1, |stream| {
            [data(stream, b"123", false), frame(1, 5, stream, &block(&[(":path", "/")]))].concat()
        }),
        ("data behind the end", 5, |stream| {
            [data(stream, b"123", true), data(stream, b"4", false)].concat()
        }),
    ];
    for (what, code, breaks) in ways {
        let config = config();
        let counters = config.counters();
        let mut client = Client::new(config);
        let length = [("content-length", "3")];
        let count = send_until_end(&mut client, 1_000, |n| {
            let stream = 2 * n + 1;
            [headers(stream, "POST", "/wait-for-ever", &length, false), breaks(stream)].concat()
        });
        assert_eq!((count, client.end()), (201, Some(ENHANCE_YOUR_CALM)), "{what}");
        // Twice the maximum of concurrent streams, and none of them was refused for that.
        assert!(
            (1..400).step_by(2).all(|stream| client.answer(stream).reset == Some(code)),
            "{what}"
        );
        assert_eq!(counters.streams_refused(), 201, "{what}");
        let events = client.driver.context().events.iter();
        let told = events.filter(|event| *event == "bad request: Truncated").count();
        assert_eq!((told, counters.reset_floods()), (201, 1), "{what}");
    }
}
