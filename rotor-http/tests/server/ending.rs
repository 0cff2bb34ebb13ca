//! The phases of a drain, as the peers of a server see them.

use std::time::Duration;

use rotor_core::{Drain, Grace, Phase};
use rotor_http::server::ServerConfig;

use crate::probe::{BIG, ProbeDriver, get, post, probe, request, seconds};
use crate::wire::transcript;

const MS: Duration = Duration::from_millis(1);

/// A state of a connection when a drain begins, and what comes before the late request.
struct Case {
    name: &'static str,
    /// The bytes that come before the drain.
    before: Vec<u8>,
    /// The bytes that come during the drain, before the request.
    meanwhile: Vec<u8>,
}

fn cases() -> [Case; 5] {
    let case = |name, before: Vec<u8>, meanwhile: &[u8]| Case {
        name,
        before,
        meanwhile: meanwhile.to_vec(),
    };
    [
        case("fresh", Vec::new(), b""),
        case("idle", get("/a"), b""),
        case("behind an empty line", [get("/a"), b"\r\n".to_vec()].concat(), b""),
        case("an empty line comes", get("/a"), b"\r\n"),
        case(
            "behind a body that nobody wants",
            request("POST /ignore", "Content-Length: 2\r\n", "h"),
            b"i",
        ),
    ]
}

/// The connection, after the drain has begun.
fn draining(case: &Case, drain: Drain, config: ServerConfig) -> ProbeDriver {
    let mut driver = probe(config);
    driver.send(&case.before);
    let _ = driver.take_received();
    driver.drain_with(drain);
    driver.send(&case.meanwhile);
    let _ = driver.take_received();
    driver
}

#[test]
fn a_request_in_transit_when_a_drain_begins_is_answered_with_close() {
    for case in &cases() {
        let grace_of = |grace| Drain::new(seconds(10)).grace(grace);
        for (drain, late) in [
            (Drain::new(seconds(10)), seconds(1) - MS),
            (grace_of(Grace::For(seconds(4))), seconds(4) - MS),
            (grace_of(Grace::For(seconds(40))), seconds(10) - MS),
            (grace_of(Grace::WholeDrain), seconds(10) - MS),
        ] {
            let config = ServerConfig::new();
            let counters = config.counters();
            let mut driver = draining(case, drain, config);
            driver.advance(late);
            assert!(!driver.is_ended(), "{}: {drain:?}", case.name);
            driver.send(&post("/", "hi"));
            let answer = transcript(&driver.take_received());
            assert_eq!(answer, "200 POST / hi close", "{}: {drain:?}", case.name);
            assert!(driver.is_ended());
            assert_eq!((counters.drained_idle(), counters.idle_timeouts()), (0, 0));
        }
    }
}

#[test]
fn an_unused_connection_ends_with_the_drain_grace_and_is_counted() {
    for case in &cases() {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = draining(case, Drain::new(seconds(10)), config);
        driver.advance(seconds(1) - MS);
        assert!(!driver.is_ended(), "{}", case.name);
        driver.advance(MS);
        assert!(driver.is_ended(), "{}", case.name);
        let counted = (counters.drained_idle(), counters.idle_timeouts());
        assert_eq!(counted, (1, 0), "{}", case.name);
    }
}

#[test]
fn an_unused_connection_ends_at_once_without_a_drain_grace() {
    for case in &cases()[..3] {
        let config = ServerConfig::new();
        let counters = config.counters();
        let drain = Drain::new(seconds(10)).grace(Grace::For(Duration::ZERO));
        let driver = draining(case, drain, config);
        assert!(driver.is_ended(), "{}", case.name);
        assert_eq!(counters.drained_idle(), 1, "{}", case.name);
    }
}

#[test]
fn a_long_drain_grace_does_not_extend_the_idle_timeout() {
    let config = ServerConfig::new();
    let counters = config.counters();
    let idle = &cases()[1];
    let mut driver = draining(idle, Drain::new(seconds(1_000)).grace(Grace::WholeDrain), config);
    driver.advance(seconds(999));
    assert!(driver.is_ended());
    assert_eq!((counters.drained_idle(), counters.idle_timeouts()), (0, 1));
}

#[test]
fn a_keep_alive_response_in_a_drain_is_followed_by_one_with_close() {
    let mut driver = probe(ServerConfig::new());
    driver.limit_room(0);
    driver.send(&get("/stream"));
    driver.drain(seconds(60));
    let mut got = Vec::new();
    while !got.ends_with(b"0\r\n\r\n") {
        driver.make_room(1 << 16);
        got.extend(driver.take_received());
    }
    assert!(!String::from_utf8_lossy(&got).contains("close"), "its head had gone out");
    assert!(!driver.is_ended());
    driver.send(&get("/b"));
    driver.make_room(1 << 16);
    assert_eq!(transcript(&driver.take_received()), "200 GET /b close");
    assert!(driver.is_ended());
}

#[test]
fn a_slow_reading_peer_may_send_one_more_request_in_a_drain() {
    let mut driver = probe(ServerConfig::new());
    driver.limit_room(0);
    driver.send(&get("/big"));
    driver.drain(seconds(60));
    driver.make_room(BIG << 1);
    assert!(driver.take_received().len() > BIG);
    assert!(!driver.is_ended());
    driver.send(&get("/b"));
    assert_eq!(transcript(&driver.take_received()), "200 GET /b close");
    assert!(driver.is_ended());
}

#[test]
fn each_response_after_the_announcement_says_close_without_aborts() {
    let announced = Drain::new(seconds(10)).announce(seconds(5));
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/a"));
    assert_eq!(transcript(&driver.take_received()), "200 GET /a");
    driver.drain_with(announced);
    driver.advance(seconds(5) - MS);
    assert!(!driver.is_ended(), "idle, and not in the way");
    driver.send(&get("/b"));
    assert_eq!(transcript(&driver.take_received()), "200 GET /b close");
    assert!(driver.is_ended());

    let mut driver = probe(ServerConfig::new());
    driver.drain_with(announced);
    driver.advance(seconds(6) - MS);
    assert!(!driver.is_ended(), "the grace begins with the drain");
    driver.advance(MS);
    assert!(driver.is_ended());
}

#[test]
fn handlers_can_query_the_phase() {
    for (drain, after, phase) in [
        (None, Duration::ZERO, Phase::Serving),
        (Some(Drain::new(seconds(10)).announce(seconds(5))), Duration::ZERO, Phase::Announced),
        (Some(Drain::new(seconds(10)).announce(seconds(5))), seconds(5), Phase::Draining),
        (Some(Drain::new(seconds(10))), Duration::ZERO, Phase::Draining),
    ] {
        let mut driver = probe(ServerConfig::new());
        if let Some(drain) = drain {
            driver.drain_with(drain);
        }
        driver.advance(after);
        driver.send(&get("/phase"));
        let text = String::from_utf8_lossy(&driver.take_received()).into_owned();
        assert!(text.contains(&format!("{phase:?}")), "{phase:?}: {text}");
    }
}
