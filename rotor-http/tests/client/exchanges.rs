//! One exchange: how the request is sent, what the handler is told, and what happens to an answer
//! that comes too early.

use std::time::Duration;

use rotor_http::Limits;
use rotor_http::client::RecvMode;

use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};
use crate::script::{ProbeDriver, connection, is_reusable, outcome};

pub(crate) const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

pub(crate) fn connection_with(probe: Probe) -> ProbeDriver {
    connection(Limits::new(), [probe])
}

pub(crate) fn events(driver: &ProbeDriver) -> Vec<&str> {
    driver.context().events.iter().map(String::as_str).collect()
}

pub(crate) fn sent(driver: &ProbeDriver) -> String {
    String::from_utf8(driver.take_received()).expect("ASCII")
}

#[test]
fn a_request_is_written_and_its_response_is_delivered() {
    let mut driver = connection_with(Probe::get("/a"));
    assert_eq!(sent(&driver), "GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
    assert_eq!(outcome(&mut driver), None);
    driver.send(OK);
    assert_eq!(events(&driver), ["/a prepare", "/a head 200 Some(2)", "/a body"]);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn request_bodies_of_known_and_unknown_length_are_sent() {
    let mut driver = connection_with(Probe::post(BodyPlan::Whole("hello")));
    assert_eq!(sent(&driver), "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhello");
    driver.send(OK);
    assert!(is_reusable(&mut driver));
    let mut driver = connection_with(Probe::post(BodyPlan::Chunked("abcd")));
    let expected = "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n\
                    2\r\nab\r\n2\r\ncd\r\n0\r\nX-Sum: 1\r\n\r\n";
    assert_eq!(sent(&driver), expected);
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn a_request_aborted_after_its_head_may_have_been_processed() {
    let mut driver = connection_with(Probe::post(BodyPlan::LaterTooLong("ab")));
    driver.context_mut().on_wakeup = Some(OnWakeup::WriteRest);
    driver.wakeup();
    assert!(sent(&driver).ends_with("Content-Length: 1\r\n\r\n"));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Caller: Unfinished(BodyTooLong(1))"));
    assert!(!is_reusable(&mut driver));
    // If the call that writes the head fails, no part of the request is sent.
    let mut driver = connection_with(Probe::post(BodyPlan::TooLong("ab")));
    assert_eq!(sent(&driver), "");
    assert_eq!(outcome(&mut driver).as_deref(), Some("Caller: Request(BodyTooLong(1))"));
}

#[test]
fn malformed_request_lines_are_refused_and_nothing_is_sent() {
    for (method, target) in
        [("GET", "/ HTTP/1.1\r\nX: y"), ("G T", "/"), ("GET", "nowhere"), ("GET", "/\u{e9}")]
    {
        let mut driver = connection_with(Probe::new(method, target));
        assert_eq!(
            outcome(&mut driver).as_deref(),
            Some("Caller: Request(StartLine)"),
            "{method} {target}"
        );
        assert_eq!(sent(&driver), "");
        assert!(is_reusable(&mut driver), "nothing has happened to the connection");
    }
}

#[test]
fn a_large_body_is_sent_as_the_server_reads_with_bounded_memory() {
    const OCTETS: u64 = 1 << 20;
    let high = 64 << 10;
    let mut driver = connection(Limits::new(), []);
    driver.limit_room(10_000);
    driver.context_mut().plans.push_back(Probe::post(BodyPlan::Much(OCTETS)));
    driver.context().notifier.as_ref().expect("it is idle").wakeup();
    driver.settle();
    let mut received = 0;
    while received < OCTETS as usize {
        let taken = driver.take_received().len();
        assert!(taken <= high, "at once: {taken}");
        received += taken;
        driver.make_room(10_000);
    }
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn a_server_that_reads_nothing_times_out() {
    let limits = Limits::new().response_grace(seconds(10));
    let mut driver = connection(limits, []);
    driver.limit_room(1_000);
    driver.context_mut().plans.push_back(Probe::post(BodyPlan::Much(1 << 20)));
    driver.context().notifier.as_ref().expect("it is idle").wakeup();
    driver.settle();
    driver.advance(Duration::from_millis(9_900));
    assert_eq!(outcome(&mut driver), None);
    driver.advance(Duration::from_millis(200));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Network: Lost(FlushTimeout)"));
    assert!(driver.is_dropped());
}

#[test]
fn a_held_body_stays_unread_in_the_socket() {
    let mut driver = connection_with(Probe { holds: true, ..Probe::get("/").progressive() });
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\nabc");
    driver.send(&vec![b'x'; 200_000]);
    let unread = driver.unread_len();
    assert!(unread > 100_000, "{unread} octets were left in the socket");
    driver.advance(seconds(900));
    assert_eq!(outcome(&mut driver), None, "the server is not timed while it is held off");
    for _ in 0..100 {
        driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
        driver.wakeup();
    }
    assert_eq!(driver.unread_len(), 0);
    driver.send(&vec![b'x'; 99_997]);
    for _ in 0..100 {
        driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
        driver.wakeup();
    }
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 300000 octets"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn a_hold_before_the_head_does_not_hold_back_the_head() {
    let mut driver = connection_with(Probe::get("/"));
    driver.context_mut().on_wakeup = Some(OnWakeup::Hold);
    driver.wakeup();
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn trailers_longer_than_the_input_are_read() {
    let value = "x".repeat(100_000);
    for (mode, expected) in [
        (RecvMode::Buffered(10), "200 hi".to_owned()),
        (RecvMode::Progressive(1), format!("200 hi a={value}")),
        (RecvMode::Progressive(10), format!("200 hi a={value}")),
        (RecvMode::Blocks, format!("200 hi a={value}")),
    ] {
        let limits = Limits::new().trailer_bytes_max(200_000);
        let mut driver = connection(limits, [Probe { mode, ..Probe::get("/") }]);
        driver.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n");
        driver.send(format!("0\r\na: {value}\r\n\r\n").as_bytes());
        assert!(outcome(&mut driver).is_some_and(|found| found == expected), "{mode:?}");
        assert!(is_reusable(&mut driver));
    }
}

#[test]
fn body_blocks_arrive_without_their_chunk_framing() {
    let mut driver = connection_with(Probe { mode: RecvMode::Blocks, ..Probe::get("/") });
    driver.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    driver.send(b"2;x=y\r\nde\r\n1\r\nf\r\n0\r\nX-Sum: 6\r\n\r\n");
    let pieces =
        ["/ block 3", "/ chunk abc", "/ block 2", "/ chunk de", "/ block 1", "/ chunk f", "/ end"];
    assert_eq!(events(&driver)[2..], pieces);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 abcdef X-Sum=6"));
    assert!(is_reusable(&mut driver));
}

#[test]
fn rule_59_an_early_response_is_accepted_and_the_connection_not_reused() {
    let mut driver = connection_with(Probe::post(BodyPlan::Later("late")));
    driver.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(outcome(&mut driver).as_deref(), Some("413 no"));
    assert!(!is_reusable(&mut driver));
}

#[test]
fn a_response_may_begin_before_its_request_is_complete() {
    let mut driver = connection_with(Probe::post(BodyPlan::Later("late")).progressive());
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab");
    driver.context_mut().on_wakeup = Some(OnWakeup::WriteRest);
    driver.wakeup();
    assert!(sent(&driver).ends_with("\r\n\r\nlate"));
    driver.send(b"cd");
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 abcd"));
    assert!(is_reusable(&mut driver), "both are whole");
}

#[test]
fn a_response_is_read_though_the_server_stops_reading_the_request() {
    let mut driver = connection(Limits::new(), []);
    driver.limit_room(1_000);
    driver.context_mut().plans.push_back(Probe::post(BodyPlan::Much(1 << 20)));
    driver.context().notifier.as_ref().expect("it is idle").wakeup();
    driver.settle();
    driver.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(outcome(&mut driver).as_deref(), Some("413 no"));
    driver.make_room(1 << 21);
    assert!(!is_reusable(&mut driver));
    assert!(driver.received_len() <= 1_000, "what was not sent is not sent any more");
}

#[test]
fn a_response_before_a_failed_write_is_still_read() {
    let mut driver = connection(Limits::new(), []);
    driver.limit_room(1_000);
    driver.context_mut().plans.push_back(Probe::post(BodyPlan::Much(1 << 20)));
    driver.context().notifier.as_ref().expect("it is idle").wakeup();
    driver.settle();
    driver.fail_writes(std::io::ErrorKind::BrokenPipe);
    driver.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(outcome(&mut driver).as_deref(), Some("413 no"));
}

#[test]
fn a_head_only_handler_keeps_the_connection_if_the_body_has_arrived() {
    for (body, is_kept) in [("", false), ("h", false), ("hi", true), ("hix", false)] {
        let mut driver = connection_with(Probe { is_head_only: true, ..Probe::get("/") });
        driver.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{body}").as_bytes());
        assert_eq!(outcome(&mut driver).as_deref(), Some("200"));
        assert_eq!(is_reusable(&mut driver), is_kept, "{body}");
    }
}

#[test]
fn a_switched_connection_speaks_the_upgraded_protocol() {
    let switch =
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\nab";
    let mut driver = connection_with(Probe { upgrade: Some("shout"), ..Probe::get("/") });
    assert_eq!(
        sent(&driver),
        "GET / HTTP/1.1\r\nHost: h\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\n"
    );
    driver.send(switch);
    assert_eq!(outcome(&mut driver).as_deref(), Some("switched"));
    driver.send(b"cd");
    assert_eq!(sent(&driver), "ABCD");
    driver.end();
    assert_eq!(events(&driver).last(), Some(&"shouted"));

    let mut driver = connection_with(Probe { upgrade: Some("shout"), ..Probe::get("/") });
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"), "a server need not switch");
    assert!(is_reusable(&mut driver));

    // RFC 9110 §7.8: the rest of the request would be read as bytes of the other protocol.
    let mut driver =
        connection_with(Probe { upgrade: Some("shout"), ..Probe::post(BodyPlan::Later("x")) });
    driver.send(switch);
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Head(UnexpectedSwitch)"));
}

#[test]
fn an_upgraded_protocol_started_in_a_drain_is_notified_of_it() {
    let mut driver = connection_with(Probe { upgrade: Some("shout"), ..Probe::get("/") });
    driver.drain(seconds(30));
    driver.send(b"HTTP/1.1 101 S\r\nUpgrade: shout\r\nConnection: upgrade\r\n\r\nab");
    assert_eq!(outcome(&mut driver).as_deref(), Some("switched"));
    assert!(sent(&driver).ends_with("BYE"));
    assert!(driver.is_ended());
}

#[test]
fn an_upgraded_protocol_has_its_own_limits() {
    let mut driver = connection_with(Probe::new("CONNECT", "h:443"));
    driver.send(b"HTTP/1.1 200 OK\r\n\r\n?");
    assert_eq!(events(&driver).last(), Some(&"not within 100"));
}

#[test]
fn an_upgraded_protocol_without_limits_stops_reading_at_high_water() {
    let limits = Limits::new().output_high_water(1_000);
    let mut driver = connection(limits, [Probe { upgrade: Some("roar"), ..Probe::get("/") }]);
    driver
        .send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: roar\r\nConnection: upgrade\r\n\r\n");
    assert_eq!(outcome(&mut driver).as_deref(), Some("switched"));
    driver.limit_room(0);
    for _ in 0..100 {
        driver.send(&[b'a'; 1_000]);
    }
    let unread = driver.unread_len();
    assert!(unread >= 97_000, "{unread}");
}

#[test]
fn connect_opens_a_tunnel_only_on_success() {
    let mut driver = connection_with(Probe::new("CONNECT", "h:443"));
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab");
    assert_eq!(outcome(&mut driver).as_deref(), Some("switched"));
    assert!(sent(&driver).ends_with("AB"));
    let mut driver = connection_with(Probe::new("CONNECT", "h:443"));
    driver.send(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno");
    assert_eq!(outcome(&mut driver).as_deref(), Some("403 no"));
}

#[test]
fn deadlines_of_handler_request_and_response_are_enforced() {
    let mut driver = connection_with(Probe { timeout: Some(seconds(5)), ..Probe::get("/") });
    driver.advance(seconds(5));
    assert_eq!(outcome(&mut driver).as_deref(), Some("timed out"));
    assert!(!is_reusable(&mut driver));

    // A handler without its own timeout error fails as if the request were late, at the stage that
    // it has reached.
    for (defers_write, expected) in
        [(false, "Here: Deadline(Writing)"), (true, "Here: Deadline(Waiting)")]
    {
        let timeout = Some(seconds(5));
        let mut driver =
            connection_with(Probe { timeout, defers_write, ..Probe::post(BodyPlan::Later("x")) });
        driver.advance(seconds(5));
        assert_eq!(outcome(&mut driver).as_deref(), Some(expected));
    }

    let mut driver = connection_with(Probe { deadline: seconds(7), ..Probe::get("/") });
    driver.advance(Duration::from_millis(6_990));
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n");
    assert_eq!(outcome(&mut driver), None);
    driver.advance(Duration::from_millis(20));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Deadline(Receiving)"));

    let mut driver = connection(Limits::new().response_timeout(seconds(3)), [Probe::get("/")]);
    driver.advance(seconds(2));
    driver.send(b"HTTP/1.1 103 Early Hints\r\n\r\n");
    driver.advance(Duration::from_millis(1_100));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: ResponseTimeout"), "103 buys no time");

    let plan = Probe::post(BodyPlan::Later("x"));
    let mut driver = connection(Limits::new().response_timeout(seconds(3)), [plan]);
    driver.advance(seconds(10));
    assert_eq!(
        outcome(&mut driver),
        None,
        "a server that has not the whole request owes no answer"
    );
    driver.context_mut().on_wakeup = Some(OnWakeup::WriteRest);
    driver.wakeup();
    driver.advance(Duration::from_millis(2_900));
    assert_eq!(outcome(&mut driver), None);
    driver.advance(Duration::from_millis(200));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: ResponseTimeout"));
}

#[test]
fn a_response_body_below_the_minimum_rate_times_out() {
    let limits = Limits::new().body_grace(seconds(5)).body_rate_min(10);
    let mut driver = connection(limits, [Probe::get("/").progressive()]);
    driver.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n");
    for _ in 0..20 {
        driver.advance(seconds(1));
        driver.send(b"abcdefghij");
        assert_eq!(outcome(&mut driver), None, "ten in a second are enough");
    }
    for _ in 0..6 {
        driver.advance(seconds(1));
        driver.send(b"a");
    }
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Body(TooSlow)"));
}

#[test]
fn a_server_silent_after_a_burst_times_out_within_the_grace() {
    for is_collected in [false, true] {
        for (framing, burst) in [
            ("Content-Length: 1048576", ""),
            ("Transfer-Encoding: chunked", "100000\r\n"),
            ("A: b", ""),
        ] {
            let probe = Probe::get("/");
            let probe = if is_collected { probe } else { probe.progressive() };
            let mut driver = connection(Limits::new(), [probe]);
            driver.send(format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n{burst}").as_bytes());
            driver.send(&vec![b'x'; 1 << 19]);
            for _ in 0..4 {
                driver.advance(seconds(1));
                driver.send(b"x");
                assert_eq!(outcome(&mut driver), None);
            }
            driver.advance(seconds(1));
            assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: Body(TooSlow)"), "{framing}");
        }
    }
}

#[test]
fn a_handler_panic_fails_its_request_and_closes_its_connection() {
    for (panics_in, expected) in [
        ("prepare", "Caller: Unsent(Panicked)"),
        ("head", "Caller: Panicked"),
        ("body", "Caller: Panicked"),
    ] {
        let mut driver = connection_with(Probe { panics_in, ..Probe::get("/") });
        driver.send(OK);
        assert_eq!(outcome(&mut driver).as_deref(), Some(expected), "{panics_in}");
    }
    let mut driver = connection_with(Probe { panics_in: "bad", ..Probe::get("/") });
    driver.end();
    assert_eq!(outcome(&mut driver).as_deref(), Some("Caller: Panicked"), "bad_response");
    let mut driver = connection_with(Probe::get("/"));
    driver.context_mut().on_wakeup = Some(OnWakeup::Panic);
    driver.wakeup();
    assert_eq!(outcome(&mut driver).as_deref(), Some("Caller: Panicked"));
    assert!(!is_reusable(&mut driver));
}

#[test]
fn a_cancelled_request_closes_its_connection() {
    let mut driver = connection_with(Probe::get("/"));
    driver.context_mut().futures.clear();
    driver.settle();
    assert!(driver.is_ended() && !events(&driver).contains(&"/ bad"));
}

#[test]
fn a_request_cancelled_within_a_body_closes_its_connection() {
    for (probe, answered) in [
        (Probe::post(BodyPlan::Later("late")), &b""[..]),
        (Probe::get("/").progressive(), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"),
    ] {
        let mut driver = connection_with(probe);
        driver.send(answered);
        assert!(!driver.is_ended());
        driver.context_mut().futures.clear();
        driver.settle();
        assert!(driver.is_ended() && outcome(&mut driver).is_none(), "{}", answered.escape_ascii());
    }
}

#[test]
fn a_drain_lets_a_request_in_flight_finish() {
    let mut driver = connection_with(Probe::get("/"));
    driver.drain(seconds(100));
    assert!(driver.is_alive());
    driver.send(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    driver.end();
    assert!(driver.is_dropped());
}
