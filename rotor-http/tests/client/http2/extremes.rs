//! Each field of a client's configuration at its extremes, with small real exchanges over HTTP/2.

use std::time::Duration;

use rotor_http::client::{ClientConfig, Http2Config};
use rotor_http::h2::frame_writer;

use super::server::{ReceivedRequest, Server, headers, http2, page};
use crate::limit_extremes::limits;
use crate::probe::{BodyPlan, Probe, seconds};

type Set<V> = fn(Http2Config, V) -> Http2Config;
type SetRate = fn(Http2Config, u32, u32) -> Http2Config;

const NUMBERS: [(&str, Set<u32>); 4] = [
    ("streams_max", Http2Config::streams_max),
    ("stream_window", Http2Config::stream_window),
    ("connection_window", Http2Config::connection_window),
    ("continuations_max", Http2Config::continuations_max),
];

const TIMES: [(&str, Set<Duration>); 4] = [
    ("settings_timeout", Http2Config::settings_timeout),
    ("ping_after", Http2Config::ping_after),
    ("ping_again_after", Http2Config::ping_again_after),
    ("ping_timeout", Http2Config::ping_timeout),
];

const RATES: [(&str, SetRate); 4] = [
    ("resets", Http2Config::resets),
    ("provoked_resets", Http2Config::provoked_resets),
    ("control_frames", Http2Config::control_frames),
    ("small_data", Http2Config::small_data),
];

/// Each field with each of its extremes, and whether that restricts nothing; then all of them
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
    for (name, set) in TIMES {
        for time in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
            all.push((format!("{name}({time:?})"), set(http2(), time), time == Duration::MAX));
        }
        (least, greatest) = (set(least, Duration::ZERO), set(greatest, Duration::MAX));
    }
    for (name, set) in RATES {
        for (burst, rate) in [(0, 0), (0, u32::MAX), (u32::MAX, 0), (u32::MAX, u32::MAX)] {
            let field = format!("{name}({burst}, {rate})");
            all.push((field, set(http2(), burst, rate), burst == u32::MAX));
        }
        (least, greatest) = (set(least, 0, 0), set(greatest, u32::MAX, u32::MAX));
    }
    let pings = least.clone().control_frames(1000, 100);
    all.push(("the least times and numbers".to_owned(), pings.clone(), false));
    let endless = pings.ping_timeout(Duration::MAX).settings_timeout(Duration::MAX);
    all.push(("pings without end".to_owned(), endless, false));
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

/// Makes requests on one connection, and answers each as soon as it is whole.
fn check(name: &str, config: ClientConfig, is_greatest: bool) {
    let plans = [
        Probe::get("/1"),
        Probe::get("/2").progressive(),
        Probe::post(BodyPlan::Whole("some body")),
        Probe::post(BodyPlan::Chunked("some body")),
        Probe::post(BodyPlan::Much(60_000)),
        Probe::post(BodyPlan::Expected("some body")),
        Probe::get("/large"),
        Probe::get("/large").progressive(),
    ];
    let count = plans.len();
    let mut server = Server::of(config, &[], plans);
    let mut answered = Vec::new();
    for _ in 0..2 * count {
        let expects = |request: &ReceivedRequest| {
            !request.is_whole && request.fields.iter().any(|(name, _)| name == "expect")
        };
        let waits = server.requests.iter().find(|(_, request)| expects(request));
        if let Some(stream) = waits.map(|(stream, _)| *stream) {
            server.send(&headers(stream, &[(":status", "100")], false));
        }
        let requests = server.requests.iter();
        let new =
            requests.filter(|(stream, request)| request.is_whole && !answered.contains(*stream));
        let new: Vec<u32> = new.map(|(stream, _)| *stream).collect();
        for stream in new {
            answered.push(stream);
            answer(name, &mut server, stream);
        }
        for ping in std::mem::take(&mut server.pings) {
            server.send(&frame_writer::ping(ping, true));
        }
        server.driver.advance(Duration::from_millis(200));
        server.read();
    }
    let outcomes: Vec<String> = (0..count).map(|at| server.outcome(at)).collect();
    let is_served = outcomes.iter().all(|outcome| outcome.starts_with("200 "));
    assert!(is_served || !is_greatest, "{name}: {outcomes:?}");
    let waits = outcomes.iter().filter(|outcome| *outcome == "nothing yet").count();
    // They would be made on another connection.
    let unsent = server.driver.context().plans.len() + server.driver.context().returned_jobs.len();
    assert_eq!(waits, unsent, "{name}: {outcomes:?}");
    assert!(waits == 0 || server.driver.is_ended(), "{name}: {outcomes:?}");
    assert_eq!(server.driver.failures(), [""; 0], "{name}");
}

fn answer(name: &str, server: &mut Server, stream: u32) {
    if !server.requests[&stream].line.ends_with("/large") {
        return server.send(&page(stream, "hi"));
    }
    server.send(&headers(stream, &[(":status", "200")], false));
    for at in 1..=20 {
        while !server.driver.is_ended() && !server.send_body(stream, 5_000, at == 20) {
            let next = server.driver.advance_to_deadline();
            assert!(next.is_some(), "{name}: the window of stream {stream} stays shut");
        }
    }
}

#[test]
fn with_any_field_at_its_extremes_each_request_that_was_begun_has_an_outcome() {
    for (name, http2, is_greatest) in extremes() {
        check(&name, ClientConfig::new().http2(http2), is_greatest);
    }
}

#[test]
fn with_any_limit_at_its_extremes_the_same_holds() {
    for (name, limits, is_greatest) in limits() {
        check(&name, ClientConfig::new().http2(http2()).limits(limits), is_greatest);
    }
}

/// Otherwise the time of the next one, which is over as well, would be taken for that of a first.
#[test]
fn a_server_that_may_take_forever_to_answer_a_ping_gets_only_one() {
    let endless = http2().ping_again_after(Duration::ZERO).ping_timeout(Duration::MAX);
    let config = ClientConfig::new().http2(endless);
    let mut server = Server::of(config, &[], [Probe::get("/")]);
    server.driver.advance(seconds(30));
    server.read();
    assert_eq!((server.pings.len(), server.driver.is_ended()), (1, false));
    server.send(&frame_writer::ping(server.pings[0], true));
    server.driver.advance(seconds(11));
    server.read();
    assert_eq!(server.pings.len(), 2, "after as much silence again");
}
