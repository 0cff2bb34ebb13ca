//! Each field of a configuration at its extremes, with small real exchanges over HTTP/2.

use std::time::Duration;

use rotor_http::h2::frame::{flag, kind};
use rotor_http::h2::frame_writer;
use rotor_http::server::{Http2Config, ServerConfig};

use super::client::{Client, block, config, frame, headers, http2, preface_and_settings};
use crate::limit_extremes::limits;

type Set<V> = fn(Http2Config, V) -> Http2Config;
type SetRate = fn(Http2Config, u32, u32) -> Http2Config;

const NUMBERS: [(&str, Set<u32>); 4] = [
    ("streams_max", Http2Config::streams_max),
    ("stream_window", Http2Config::stream_window),
    ("connection_window", Http2Config::connection_window),
    ("continuations_max", Http2Config::continuations_max),
];

const SIZES: [(&str, Set<usize>); 3] = [
    ("collected_bytes_max", Http2Config::collected_bytes_max),
    ("unsent_bytes_max", Http2Config::unsent_bytes_max),
    ("responses_bytes_max", Http2Config::responses_bytes_max),
];

const RATES: [(&str, SetRate); 4] = [
    ("resets", Http2Config::resets),
    ("provoked_resets", Http2Config::provoked_resets),
    ("control_frames", Http2Config::control_frames),
    ("small_data", Http2Config::small_data),
];

/// Each field with each of its extremes, and whether that is the greatest; then all of them
/// together.
fn extremes() -> Vec<(String, Http2Config, bool)> {
    let mut all = Vec::new();
    let [mut least, mut greatest] = [http2(), http2()];
    for (name, set) in NUMBERS {
        for number in [0, 1, u32::MAX] {
            all.push((format!("{name}({number})"), set(http2(), number), number == u32::MAX));
        }
        (least, greatest) = (set(least, 0), set(greatest, u32::MAX));
    }
    for (name, set) in SIZES {
        for size in [0, 1, usize::MAX] {
            all.push((format!("{name}({size})"), set(http2(), size), size == usize::MAX));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    for (name, set) in RATES {
        for (burst, rate) in [(0, 0), (0, u32::MAX), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
            let field = format!("{name}({burst}, {rate})");
            all.push((field, set(http2(), burst, rate), burst == u32::MAX));
        }
        (least, greatest) = (set(least, 0, 0), set(greatest, u32::MAX, u32::MAX));
    }
    for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let field = format!("settings_timeout({time:?})");
        all.push((field, http2().settings_timeout(time), time == Duration::MAX));
    }
    (least, greatest) =
        (least.settings_timeout(Duration::ZERO), greatest.settings_timeout(Duration::MAX));
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

/// Two bodies of this size are sent at a time; it is more than a window.
const BODY: usize = 100_000;

/// Makes requests on one connection, one group after the other. Returns the outcome of each that is
/// not answered with 200.
fn exchange(config: ServerConfig) -> (Client, Vec<String>) {
    let mut client = Client::silent(config);
    client.send(&preface_and_settings(&[(4, 4 << 20)]));
    client.send(&frame_writer::window_update(0, 16 << 20));
    for (stream, path) in [(1, "/"), (3, "/"), (5, "/stream")] {
        client.get(stream, path);
    }
    let get = |stream, path| headers(stream, "GET", path, &[], true);
    client.send(&[get(7, "/"), get(9, "/big"), get(11, "/")].concat());
    for (first, path) in [(13, "/"), (17, "/progressive"), (21, "/ignore"), (25, "/early")] {
        let streams = [first, first + 2];
        for stream in streams {
            client.send(&headers(stream, "POST", path, &[], false));
        }
        let mut left = [BODY; 2];
        let mut has_sent = true;
        while has_sent {
            has_sent = false;
            for (left, stream) in left.iter_mut().zip(streams) {
                let len = (*left).min(10_000);
                let is_wanted = len > 0 && client.answer(stream).reset.is_none();
                if is_wanted && client.upload(stream, len, 0, *left == len) {
                    *left -= len;
                    has_sent = true;
                }
            }
        }
    }
    let outcomes = (1..29).step_by(2).map(|stream| client.outcome(stream));
    let failed = outcomes.filter(|outcome| outcome == "200 cut" || !outcome.starts_with("200 "));
    let failed = failed.collect();
    (client, failed)
}

fn check(name: &str, config: ServerConfig, is_greatest: bool) {
    let (client, failed) = exchange(config);
    let waits = failed.iter().any(|outcome| outcome.ends_with(" cut"));
    assert!(!waits || client.driver.is_ended(), "{name}: {failed:?}, and it waits");
    assert!(!is_greatest || failed.is_empty(), "{name}: {failed:?}");
    assert_eq!(client.driver.failures(), [""; 0], "{name}");
}

#[test]
fn with_any_field_at_its_extremes_requests_are_answered_or_refused() {
    for (name, http2, is_greatest) in extremes() {
        check(&name, ServerConfig::new().http2(http2), is_greatest);
    }
}

#[test]
fn with_any_limit_at_its_extremes_the_same_holds() {
    for (name, limits, is_greatest) in limits() {
        check(&name, config().limits(limits), is_greatest);
    }
}

/// The time without an end must not be taken for that of an acknowledgement.
#[test]
fn a_peer_that_may_take_forever_to_acknowledge_does_not_know_the_maximum_before() {
    let config = ServerConfig::new().http2(http2().streams_max(1).settings_timeout(Duration::MAX));
    let counters = config.counters();
    let mut client = Client::silent(config);
    let all = preface_and_settings(&[]);
    let (begun, acknowledgement) = all.split_at(all.len() - 9);
    client.send(begun);
    let get = |number: u32| headers(2 * number + 1, "GET", "/wait-for-ever", &[], true);
    client.send(&(0..300).flat_map(get).collect::<Vec<u8>>());
    assert_eq!((counters.streams_refused(), client.end()), (299, None));
    client.send(acknowledgement);
    client.send(&(300..501).flat_map(get).collect::<Vec<u8>>());
    assert_eq!((client.end(), counters.reset_floods()), (Some(11), 1));
}

#[test]
fn with_the_greatest_limits_a_head_of_a_mebibyte_is_read() {
    let (_, limits, _) = limits().pop().expect("the greatest of all");
    let (_, http2, _) = extremes().pop().expect("the greatest of all");
    let mut client = Client::new(ServerConfig::new().http2(http2).limits(limits));
    let large = "x".repeat(1 << 20);
    let block = block(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a"),
        ("x-large", &large),
    ]);
    let pieces = block.chunks(16_384).count();
    for (at, piece) in block.chunks(16_384).enumerate() {
        let kind = if at == 0 { kind::HEADERS } else { kind::CONTINUATION };
        let end = if at + 1 == pieces { flag::END_HEADERS } else { 0 };
        client.send(&frame(kind, end | u8::from(at == 0), 1, piece));
    }
    assert_eq!((client.outcome(1), client.end()), ("200 GET / ".to_owned(), None));
}
