//! Every deadline of a connection, to the millisecond, on a clock that the test advances.

use std::time::Duration;

use rotor_http::Limits;
use rotor_http::server::ServerConfig;

use crate::probe::{BIG, ProbeDriver, get, post, probe, request, seconds};
use crate::wire::{answers, transcript};

const MS: Duration = Duration::from_millis(1);

/// Checks that the connection lives until `after` and then ends with this answer.
fn assert_ends_after(
    driver: &mut ProbeDriver,
    after: Duration,
    expected: &str,
    counter: &str,
    config: &ServerConfig,
) {
    let _ = driver.take_received();
    driver.advance(after - MS);
    assert!(!driver.is_ended(), "{counter}: it ends too early");
    driver.advance(MS);
    assert!(driver.is_ended(), "{counter}: it does not end");
    assert_eq!(transcript(&driver.take_received()), expected, "{counter}");
    assert_eq!(counter_value(config, counter), 1, "{counter}");
}

fn counter_value(config: &ServerConfig, counter: &str) -> u64 {
    let counters = config.counters();
    counters
        .iter()
        .find(|(name, _)| *name == counter)
        .map(|(_, count)| count)
        .expect("a counter of this name")
}

/// A connection, and a configuration that shares its counters.
fn driver_with_limits(limits: Limits) -> (ProbeDriver, ServerConfig) {
    let config = ServerConfig::new().limits(limits);
    let view = ServerConfig::new().count_with(config.counters());
    (probe(config), view)
}

#[test]
fn an_idle_connection_is_closed_without_a_response() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    assert_ends_after(&mut driver, seconds(75), "", "idle_timeouts", &config);
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.advance(seconds(70));
    driver.send(&get("/"));
    assert_ends_after(&mut driver, seconds(75), "", "idle_timeouts", &config);
}

#[test]
fn empty_lines_are_no_request() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(b"\r\n");
    assert_ends_after(&mut driver, seconds(75), "", "idle_timeouts", &config);
}

#[test]
fn a_head_has_ten_seconds_however_slowly_it_arrives() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.advance(seconds(60));
    driver.send(b"GET");
    for _ in 0..9 {
        driver.advance(seconds(1));
        driver.send(b"A");
    }
    assert_ends_after(&mut driver, seconds(1), "408 close", "head_timeouts", &config);
    // The same for a pipelined head, from the moment at which it is parsed.
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&[&get("/")[..], b"GET /b"].concat());
    assert_ends_after(&mut driver, seconds(10), "408 close", "head_timeouts", &config);
}

#[test]
fn a_head_that_is_late_behind_an_unsent_response_has_ten_seconds_after_that() {
    for (held, more) in [(12, ""), (12, "TP"), (28, "")] {
        let limits = Limits::new().response_grace(seconds(60));
        let (mut driver, config) = driver_with_limits(limits);
        driver.limit_room(0);
        driver.send(&[&get("/")[..], b"GET /b HT"].concat());
        driver.advance(seconds(held));
        driver.send(more.as_bytes());
        driver.advance(seconds(1));
        driver.make_room(1 << 20);
        assert_eq!(transcript(&driver.take_received()), "200 GET /", "{held}");
        assert_ends_after(&mut driver, seconds(10), "408 close", "head_timeouts", &config);
    }
}

#[test]
fn a_body_has_a_grace_and_then_a_minimum_rate() {
    for chunked in [false, true] {
        let (mut driver, config) = driver_with_limits(Limits::new());
        let (framing, piece) = match chunked {
            false => ("Content-Length: 50000\r\n", "x".repeat(2048)),
            true => ("Transfer-Encoding: chunked\r\n", format!("800\r\n{}\r\n", "x".repeat(2048))),
        };
        driver.send(&request("POST /", framing, ""));
        // At twice the minimum rate, for longer than the handler timeout.
        for _ in 0..20 {
            driver.send(piece.as_bytes());
            driver.advance(seconds(1));
            assert!(!driver.is_ended());
        }
        // Bytes above the minimum rate gain no more time than the grace.
        assert_ends_after(
            &mut driver,
            seconds(5) - seconds(1),
            "408 close",
            "body_timeouts",
            &config,
        );
        assert_eq!(
            driver.context().events.last().map(String::as_str),
            Some("bad request: TooSlow")
        );
    }
}

#[test]
fn a_body_above_the_minimum_rate_may_outlast_the_handler_timeout() {
    for path in ["/", "/progressive"] {
        let (mut driver, _) = driver_with_limits(Limits::new());
        driver.send(&request(&format!("POST {path}"), "Content-Length: 200000\r\n", ""));
        for _ in 0..100 {
            driver.advance(seconds(1));
            driver.send(&[b'x'; 2000]);
        }
        assert_eq!(
            answers(&driver.take_received())[0].body.len(),
            200_000 + 6 + path.len(),
            "{path}"
        );
    }
}

#[test]
fn the_handler_timeout_begins_after_the_body() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&request("POST /slow", "Content-Length: 200000\r\n", ""));
    for _ in 0..100 {
        driver.advance(seconds(1));
        driver.send(&[b'x'; 2000]);
    }
    assert_ends_after(&mut driver, seconds(60), "503 close", "handler_timeouts", &config);
}

#[test]
fn the_handler_timeout_begins_when_the_handler_holds_the_body() {
    let (mut driver, config) = driver_with_limits(Limits::new().body_rate_min(0));
    driver.send(&request("POST /pause", "Content-Length: 9\r\n", ""));
    driver.advance(seconds(100));
    driver.wakeup();
    assert_ends_after(&mut driver, seconds(60), "503 close", "handler_timeouts", &config);
}

#[test]
fn a_stream_may_be_silent_for_as_long_as_its_handler_waits() {
    for path in ["/live", "/live-later"] {
        let (mut driver, config) = driver_with_limits(Limits::new());
        driver.send(&request(&format!("POST {path}"), "Transfer-Encoding: chunked\r\n", ""));
        // Until it is a stream, it is a body like any other.
        driver.advance(seconds(4));
        driver.wakeup();
        for _ in 0..3 {
            driver.send(b"1\r\nx\r\n");
            driver.advance(seconds(60) - MS);
            assert!(!driver.is_ended(), "{path}");
        }
        driver.send(b"1\r\nx\r\n");
        assert_ends_after(&mut driver, seconds(60), "503 close", "handler_timeouts", &config);
        assert_eq!(counter_value(&config, "body_timeouts"), 0, "{path}");
    }
}

#[test]
fn a_body_does_not_time_out_while_reading_is_paused() {
    // The handler answers each piece with more than the peer reads.
    let (mut driver, config) = driver_with_limits(Limits::new().response_rate_min(1));
    driver.limit_room(1000);
    driver.send(&request("POST /mirror", "Content-Length: 5000\r\n", &"x".repeat(1000)));
    for _ in 0..20 {
        driver.advance(seconds(5));
        driver.make_room(100);
    }
    assert!(!driver.is_ended(), "it is we who do not read");
    driver.make_room(usize::MAX / 2);
    driver.advance(seconds(5) - MS);
    assert!(!driver.is_ended());
    driver.advance(seconds(1) + MS);
    assert!(driver.is_ended(), "now it is the peer who does not send");
    assert_eq!(counter_value(&config, "body_timeouts"), 1);
}

#[test]
fn a_body_does_not_time_out_before_reading_resumes() {
    // First more than the high-water mark is pending, then less, but more than half of it. The
    // stream resumes reading when half is left, even if the handler is called earlier for another
    // reason.
    let (mut driver, config) = driver_with_limits(Limits::new().response_rate_min(1));
    driver.limit_room(0);
    driver.send(&request("POST /mirror", "Content-Length: 5000\r\n", &"x".repeat(1000)));
    driver.make_room(50_000);
    driver.wakeup();
    driver.send(&[b'x'; 4000]);
    driver.advance(seconds(9));
    assert!(!driver.is_ended(), "it is we who do not read");
    assert_eq!(counter_value(&config, "body_timeouts"), 0);
    driver.make_room(usize::MAX / 2);
    let mirrored = driver.take_received();
    assert!(mirrored.len() > 500_000, "all of it was read and sent back");
    assert!(mirrored.ends_with(b"\r\n0\r\n\r\n"), "and ends with the body");
}

#[test]
fn a_handler_has_one_minute_by_default() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&get("/wait"));
    assert_ends_after(&mut driver, seconds(60), "503 close", "handler_timeouts", &config);
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&get("/wait-for-ever"));
    driver.advance(seconds(1_000_000));
    assert!(!driver.is_ended());
    assert_eq!(counter_value(&config, "handler_timeouts"), 0);
}

#[test]
fn a_handler_is_notified_of_its_deadline_once() {
    let (mut driver, _) = driver_with_limits(Limits::new());
    driver.send(&get("/timer-that-goes-on"));
    driver.advance(seconds(1_000));
    assert_eq!(driver.context().events.iter().filter(|event| *event == "timeout").count(), 1);
    assert!(!driver.is_ended());
}

#[test]
fn a_peer_that_reads_nothing_of_its_response_is_dropped() {
    for path in ["/big", "/stream"] {
        let (mut driver, config) = driver_with_limits(Limits::new());
        driver.limit_room(1000);
        driver.send(&get(path));
        driver.advance(seconds(10) - MS);
        assert!(!driver.is_dropped(), "{path}");
        driver.advance(MS);
        assert!(driver.is_dropped(), "{path}");
        assert_eq!(counter_value(&config, "response_timeouts"), 1, "{path}");
    }
}

#[test]
fn a_slowly_read_response_is_sent_whole_and_the_connection_goes_on() {
    for path in ["/big", "/stream"] {
        let (mut driver, _) = driver_with_limits(Limits::new());
        driver.limit_room(1000);
        driver.send(&get(path));
        driver.send(&get("/next"));
        // 1.3 KiB/s: it takes more than ten minutes, far beyond the idle time.
        while driver.received_len() < BIG {
            driver.advance(seconds(9));
            assert!(!driver.is_ended(), "{path}: ended at {}", driver.received_len());
            driver.make_room(12_000);
        }
        driver.make_room(1000);
        let answers = answers(&driver.take_received());
        assert_eq!((answers[0].body.len(), answers[1].text()), (BIG, "GET /next "), "{path}");
        assert!(!driver.is_ended());
        driver.advance(seconds(75));
        assert!(driver.is_ended(), "{path}: then it is idle");
    }
}

#[test]
fn a_connection_is_not_idle_while_a_response_is_still_being_read() {
    // Less than the high-water mark is pending, so the next request could come at any time.
    let (mut driver, _) = driver_with_limits(Limits::new().response_rate_min(50));
    driver.limit_room(0);
    driver.send(&post("/", &"x".repeat(50_000)));
    for _ in 0..60 {
        driver.advance(seconds(9));
        driver.make_room(500);
        assert!(!driver.is_ended());
    }
    driver.send(b"GET /b HT");
    for _ in 0..10 {
        driver.advance(seconds(9));
        driver.make_room(500);
    }
    driver.make_room(usize::MAX / 2);
    driver.send(b"TP/1.1\r\nHost: a\r\n\r\n");
    let answers = answers(&driver.take_received());
    assert_eq!((answers[0].body.len(), answers[1].text()), (50_007, "GET /b "));
}

#[test]
fn a_connection_is_idle_after_a_large_response_was_read() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.limit_room(0);
    driver.send(&get("/big"));
    driver.advance(seconds(9));
    driver.make_room(usize::MAX / 2);
    assert_eq!(answers(&driver.take_received()).len(), 1);
    assert_ends_after(&mut driver, seconds(75), "", "idle_timeouts", &config);
}

#[test]
fn a_handler_may_set_its_own_deadline() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&get("/timer"));
    driver.advance(seconds(10) - MS);
    assert_eq!(driver.take_received(), b"");
    driver.advance(MS);
    assert_eq!(transcript(&driver.take_received()), "200 GET /timer");
    assert_eq!(counter_value(&config, "handler_timeouts"), 0);
}

#[test]
fn a_closing_connection_allows_five_seconds_without_progress() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.limit_room(1000);
    driver.send(&request("GET /big", "Connection: close\r\n", ""));
    for _ in 0..5 {
        driver.advance(seconds(5) - MS);
        assert!(!driver.is_dropped());
        driver.make_room(10_240);
    }
    driver.advance(seconds(5));
    assert!(driver.is_dropped());
    assert_eq!(counter_value(&config, "shutdown_timeouts"), 1);
}

#[test]
fn a_peer_has_two_seconds_and_64_mib_after_the_last_response() {
    for (octets, is_dropped) in [(64 << 20, false), ((64 << 20) + 1, true)] {
        let (mut driver, config) = driver_with_limits(Limits::new());
        driver.send(&request("GET /", "Connection: close\r\n", ""));
        assert_eq!(transcript(&driver.take_received()), "200 GET / close");
        driver.send(&vec![b'x'; octets - 1]);
        driver.send(b"x");
        assert_eq!(driver.is_dropped(), is_dropped, "{octets}");
        driver.advance(seconds(2) - MS);
        assert_eq!(driver.is_dropped(), is_dropped);
        driver.advance(MS);
        assert!(driver.is_dropped());
        assert_eq!(counter_value(&config, "linger_overruns"), u64::from(is_dropped));
        assert_eq!(counter_value(&config, "linger_timeouts"), u64::from(!is_dropped));
    }
}

#[test]
fn an_unwanted_body_has_five_seconds() {
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.send(&request("POST /ignore", "Content-Length: 60000\r\n", ""));
    assert_eq!(transcript(&driver.take_received()), "200 POST /ignore");
    for _ in 0..4 {
        driver.send(&[b'x'; 1000]);
        driver.advance(seconds(1));
    }
    assert_ends_after(&mut driver, seconds(1), "", "undrained", &config);
    // The peer does not read the answer: the time begins when it has read it.
    let (mut driver, config) = driver_with_limits(Limits::new());
    driver.limit_room(10);
    driver.send(&request("POST /ignore", "Content-Length: 5\r\n", ""));
    driver.advance(seconds(8));
    driver.make_room(usize::MAX / 2);
    driver.advance(seconds(1));
    assert_ends_after(&mut driver, seconds(4), "", "undrained", &config);
    // If the body is drained in time, the next request follows.
    let (mut driver, _) = driver_with_limits(Limits::new());
    driver.send(&post("/ignore", &"x".repeat(60_000)));
    driver.send(&get("/b"));
    assert_eq!(transcript(&driver.take_received()), "200 POST /ignore | 200 GET /b");
}

/// RFC 9110 §10.1.1: a client that has a final status and no 100 may send its body or not.
#[test]
fn a_body_that_was_not_invited_is_not_late_before_it_begins() {
    let begin = |limits: Limits| {
        let (mut driver, config) = driver_with_limits(limits);
        let fields = "Expect: 100-continue\r\nContent-Length: 2\r\n";
        driver.send(&request("POST /mirror", fields, ""));
        let head = String::from_utf8(driver.take_received()).expect("a head");
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains("Connection: close"), "{head}");
        (driver, config)
    };
    let limits = || Limits::new().handler_timeout(seconds(900));
    let (mut driver, _) = begin(limits());
    driver.advance(seconds(800));
    driver.send(b"hi");
    let mirrored = driver.take_received();
    assert!(mirrored.windows(4).any(|part| part == b"hihi"), "it is mirrored");
    assert!(mirrored.ends_with(b"\r\n0\r\n\r\n"), "and ends with the body");
    let (mut driver, config) = begin(limits());
    driver.advance(seconds(800));
    driver.send(b"h");
    assert_ends_after(&mut driver, seconds(5), "", "body_timeouts", &config);
    // The handler has its time as without a body.
    let (mut driver, config) = begin(limits());
    assert_ends_after(&mut driver, seconds(900), "", "handler_timeouts", &config);
}
