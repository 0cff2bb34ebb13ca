//! Each field of a configuration at its extremes, with small real exchanges: at its greatest value
//! a field restricts nothing, and at its least one a request is answered, or its connection ends.

use std::time::Duration;

use rotor_http::Limits;
use rotor_http::server::{HttpSeed, ServerConfig};

use crate::limit_extremes::{Random, limits, random_limits};
use crate::probe::{ProbeDriver, TestContext, get, post, probe, request};
use crate::wire::{take, transcript};

/// A body that is not sent whole with its head.
const LARGE: usize = 200_000;

/// What is sent, and the number of requests in it.
fn exchanges() -> Vec<(&'static str, Vec<u8>, usize)> {
    let chunks = "4;a=b\r\nbody\r\n0\r\nX-Sum: 1\r\n\r\n";
    let chunked =
        |path: &str| request(&format!("POST {path}"), "Transfer-Encoding: chunked\r\n", chunks);
    let large = "x".repeat(LARGE);
    vec![
        ("a request", get("/"), 1),
        ("three requests", get("/").repeat(3), 3),
        ("a body", post("/", "some body"), 1),
        ("a large body", post("/", &large), 1),
        ("a large body in pieces", post("/progressive", &large), 1),
        ("a large body after its response", post("/early", &large), 1),
        ("an ignored body", post("/ignore", &large), 1),
        ("chunks", chunked("/"), 1),
        ("chunks in pieces", chunked("/progressive"), 1),
        ("a chunked response", get("/chunked"), 1),
        ("a large response in parts", get("/stream"), 1),
        ("a large response", get("/big"), 1),
    ]
}

#[test]
fn with_any_limit_at_its_extremes_requests_are_answered_or_their_connection_ends() {
    for (limit, limits, is_greatest) in limits() {
        for (exchange, input, requests) in exchanges() {
            for piece in [input.len(), if input.len() < LARGE { 7 } else { 5_000 }] {
                let case = format!("{limit}, {exchange} in pieces of {piece}");
                let mut driver = probe(ServerConfig::new().limits(limits.clone()));
                input.chunks(piece).for_each(|piece| driver.send(piece));
                let received = driver.take_received();
                let mut rest = &received[..];
                let answers = std::iter::from_fn(|| take(&mut rest).ok());
                let statuses: Vec<u16> = answers.map(|answer| answer.status).collect();
                let is_served = statuses == vec![200; requests] && rest.is_empty();
                assert!(is_served || driver.is_ended(), "{case}: {statuses:?}, and it waits");
                assert!(is_served || !is_greatest, "{case}: {statuses:?}");
                assert_eq!(driver.failures(), [""; 0], "{case}");
            }
        }
    }
}

/// Everything that has come is answered before the connection may count as idle.
#[test]
fn requests_that_have_come_already_are_answered_with_an_idle_timeout_of_zero() {
    let config = ServerConfig::new().limits(Limits::new().idle_timeout(Duration::ZERO));
    let seed = HttpSeed::new((), config);
    // Also if they are more than are answered in one event.
    for count in [3, 1_000] {
        let driver = ProbeDriver::with(seed.clone(), TestContext::default(), |peer| {
            peer.send(&get("/").repeat(count));
        });
        let answers = transcript(&driver.take_received());
        assert_eq!(answers.matches("200 GET /").count(), count);
        assert!(driver.is_ended());
    }
}

/// Otherwise that part would be looked at in turn after turn, since its time is over each time.
#[test]
fn a_part_of_a_head_waits_quietly_for_its_time_to_begin_when_the_response_is_sent() {
    let none = Duration::ZERO;
    for (limits, part) in [
        (Limits::new().idle_timeout(none), "\r"),
        (Limits::new().head_timeout(none), "GET"),
        (Limits::new().idle_timeout(none).head_timeout(none), "GET"),
    ] {
        let seed = HttpSeed::new((), ServerConfig::new().limits(limits));
        let mut driver = ProbeDriver::with(seed, TestContext::default(), |peer| {
            peer.limit_room(0);
            peer.send(&[&get("/")[..], part.as_bytes()].concat());
        });
        driver.advance(Duration::from_secs(8));
        assert!(!driver.is_ended(), "{part:?}");
        driver.make_room(1_000);
        assert!(transcript(&driver.take_received()).starts_with("200 GET /"), "{part:?}");
        assert!(driver.is_ended(), "{part:?}");
    }
}

#[test]
fn with_the_greatest_limits_a_head_of_a_mebibyte_is_read() {
    let (_, limits, _) = limits().pop().expect("the greatest of all");
    let mut driver = probe(ServerConfig::new().limits(limits));
    let head = request("GET /", &format!("X-Large: {}\r\n", "x".repeat(1 << 20)), "");
    head.chunks(10_000).for_each(|piece| driver.send(piece));
    assert_eq!(transcript(&driver.take_received()), "200 GET /");
}

/// Sends this in pieces of random lengths, with pauses, to a peer that takes little at a time, and
/// returns what has come by then.
fn send_at_random(input: &[u8], driver: &mut ProbeDriver, random: &mut Random) -> Vec<u8> {
    let mut received = Vec::new();
    let pauses = [1, 1_000, 100_000].map(Duration::from_micros);
    for piece in input.chunks((1 + random.below(20_000)).max(input.len() / 30)) {
        driver.send(piece);
        if random.below(4) == 0 {
            driver.advance(random.choose(&pauses));
        }
        received.extend(driver.take_received());
        driver.make_room(60_000);
    }
    for _ in 0..40 {
        driver.make_room(60_000);
        received.extend(driver.take_received());
    }
    received
}

#[test]
fn with_random_limits_that_contradict_each_other_no_request_is_left_waiting() {
    for seed in 0..20 {
        let mut random = Random(seed);
        let limits = random_limits(&mut random);
        for (exchange, input, requests) in exchanges() {
            let config = ServerConfig::new()
                .limits(limits.clone())
                .write_budget(random.choose(&[1_000, 70_000, usize::MAX]))
                .collect_budget(random.choose(&[0, usize::MAX]));
            let seed_of_server = HttpSeed::new((), config);
            let mut driver = ProbeDriver::new(seed_of_server, TestContext::default());
            driver.peer().limit_room(random.choose(&[0, 1, 3_000, usize::MAX / 2]));
            let received = send_at_random(&input, &mut driver, &mut random);
            let mut rest = &received[..];
            let answers = std::iter::from_fn(|| take(&mut rest).ok()).count();
            let is_served = answers == requests && rest.is_empty();
            let case = format!("seed {seed}, {exchange}: {answers} answers, {limits:?}");
            assert!(is_served || driver.is_ended(), "{case}");
            assert_eq!(driver.failures(), [""; 0], "{case}");
        }
    }
}

/// The peer does not take the response, and sends a part of a body that no handler takes.
#[test]
fn the_time_for_an_ignored_body_begins_when_the_response_is_sent() {
    for (time, held) in [(0, 0), (0, 8), (5, 3), (5, 8)] {
        let time = Duration::from_secs(time);
        let limits = Limits::new().shutdown_timeout(time).drained_body_bytes_max(u64::MAX);
        let mut driver = probe(ServerConfig::new().limits(limits));
        driver.limit_room(0);
        let body = "x".repeat(100_000);
        let all = post("/ignore", &body);
        let (begun, rest) = all.split_at(50_000);
        driver.send(begun);
        driver.advance(Duration::from_secs(held));
        assert!(!driver.is_ended(), "{time:?}");
        driver.send(&rest[..1_000]);
        driver.advance(Duration::from_secs(1));
        driver.make_room(1_000);
        let answer = transcript(&driver.take_received());
        assert_eq!(answer, "200 POST /ignore", "{time:?}");
        assert_eq!(driver.is_ended(), time.is_zero());
        driver.advance(time.saturating_sub(Duration::from_millis(10)));
        assert_eq!(driver.is_ended(), time.is_zero());
        driver.advance(Duration::from_millis(20));
        assert!(driver.is_ended(), "{time:?}");
    }
}
