//! What a hostile peer can do, and that it costs little: memory stays bounded, time is linear,
//! other peers are served.

use std::time::Duration;

use rotor_http::Limits;
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};
use rotor_stream::testing::{ScriptedListener, TestLoop, listener};

use crate::probe::{BIG, Probe, TestContext, get, probe, request, seconds};
use crate::wire::{answers, transcript};

/// The most that a connection may read before it has refused or answered: the high-water mark of
/// the input plus a block or two.
const INPUT_MAX: usize = (64 << 10) + (32 << 10);

#[test]
fn endless_heads_are_refused_after_a_limited_number_of_bytes() {
    let field = "B: c\r\n".repeat(10_000);
    let long = format!("B: {}", "c".repeat(1 << 20));
    let name = "b".repeat(1 << 20);
    for (what, input, status) in [
        ("10,000 fields", format!("GET / HTTP/1.1\r\nHost: a\r\n{field}"), "431 close"),
        ("a field of a megabyte", format!("GET / HTTP/1.1\r\nHost: a\r\n{long}"), "431 close"),
        ("a name of a megabyte", format!("GET / HTTP/1.1\r\n{name}"), "431 close"),
        ("a method of a megabyte", "A".repeat(1 << 20), "501 close"),
        ("a target of a megabyte", format!("GET /{name}"), "414 close"),
        ("empty lines", "\r\n".repeat(1 << 19), "400 close"),
    ] {
        let mut driver = probe(ServerConfig::new());
        let mut sent = 0;
        for piece in input.as_bytes().chunks(1000) {
            driver.send(piece);
            sent += piece.len();
            if driver.is_ended() {
                break;
            }
        }
        assert!(driver.is_ended() && sent <= (16 << 10) + 1000, "{what}: after {sent}");
        assert_eq!(transcript(&driver.take_received()), status, "{what}");
    }
}

#[test]
fn tiny_chunks_with_large_extensions_are_refused() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /progressive", "Transfer-Encoding: chunked\r\n", ""));
    let chunk = format!("1;{}\r\nx\r\n", "a".repeat(250));
    for count in 0.. {
        if driver.is_ended() {
            assert!(
                (15..=18).contains(&count),
                "{count} chunks of 250 octets for a limit of 4 KiB"
            );
            break;
        }
        driver.send(chunk.as_bytes());
    }
    assert_eq!(transcript(&driver.take_received()), "400 close");
}

#[test]
fn tiny_chunks_without_extensions_are_a_body_like_any_other() {
    let mut driver = probe(ServerConfig::new());
    let body = "1\r\nx\r\n".repeat(50_000) + "0\r\n\r\n";
    driver.send(&request("POST /", "Transfer-Encoding: chunked\r\n", &body));
    assert_eq!(answers(&driver.take_received())[0].body.len(), 50_000 + "POST / ".len());
}

#[test]
fn a_length_of_2_to_the_63_costs_nothing() {
    for length in ["9223372036854775808", "18446744073709551615"] {
        for (path, expected) in
            [("/", "413 close"), ("/ignore", "200 POST /ignore close"), ("/progressive", "")]
        {
            let mut driver = probe(ServerConfig::new());
            driver.send(&request(
                &format!("POST {path}"),
                &format!("Content-Length: {length}\r\n"),
                "x",
            ));
            assert_eq!(transcript(&driver.take_received()), expected, "{path}");
        }
    }
    let mut driver = probe(ServerConfig::new());
    let chunk = "ffffffffffffffff\r\nx";
    driver.send(&request("POST /", "Transfer-Encoding: chunked\r\n", chunk));
    assert_eq!(transcript(&driver.take_received()), "413 close");
}

#[test]
fn ten_thousand_pipelined_requests_with_unread_responses_are_limited() {
    for (path, each) in [("/big", BIG), ("/status/204", 0)] {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = probe(config);
        driver.limit_room(0);
        driver.send(&get(path).repeat(10_000));
        // At most one response goes above the mark. The other requests wait as unread input.
        let begun = counters.requests() as usize;
        assert!(begun <= (64 << 10) / each.max(100) + 1, "{begun} were begun");
        let read = 10_000 * get(path).len() - driver.unread_len();
        assert!(read <= INPUT_MAX, "{read} octets were read");
        assert!(counters.held_back() > 0);
        driver.advance(seconds(10));
        assert!(driver.is_dropped(), "{path}: it takes nothing");
        assert_eq!(counters.response_timeouts(), 1);
    }
}

#[test]
fn ten_thousand_pipelined_requests_are_answered_as_the_peer_reads() {
    let mut driver = probe(ServerConfig::new());
    driver.limit_room(0);
    driver.send(&get("/n").repeat(10_000));
    let mut got = Vec::new();
    while driver.unread_len() > 0 || driver.received_len() > 0 {
        got.extend(driver.take_received());
        driver.make_room(100_000);
    }
    let answers = answers(&got);
    assert_eq!(answers.len(), 10_000);
    assert!(answers.iter().all(|answer| answer.text() == "GET /n "));
}

/// How long a connection holds the bytes of one burst if the peer then sends one byte a second, or
/// nothing.
fn hold_time(head: &[u8], burst: &[u8], is_dripping: bool) -> Duration {
    let mut driver = probe(ServerConfig::new());
    driver.send(head);
    driver.send(burst);
    let begun = driver.now();
    while !driver.is_ended() {
        assert!(driver.now() - begun < seconds(2_000), "it is held forever");
        driver.advance(seconds(1));
        if is_dripping {
            driver.send(b"x");
        }
    }
    assert_eq!(transcript(&driver.take_received()), "408 close");
    driver.now() - begun
}

#[test]
fn a_burst_does_not_extend_the_deadline_for_later_silence() {
    // With an average of 1 KiB/s, a megabyte minus one byte would be held for 17 minutes.
    const BODY: usize = 1 << 20;
    let length = |path: &str, length: usize| {
        request(&format!("POST {path}"), &format!("Content-Length: {length}\r\n"), "")
    };
    let chunked = |path: &str| {
        request(&format!("POST {path}"), "Transfer-Encoding: chunked\r\n", "100000\r\n")
    };
    for (what, head, burst) in [
        ("collected", length("/", BODY), BODY - 1),
        ("collected from chunks", chunked("/"), BODY - 100),
        ("left where it is", length("/", 60_000), 59_000),
        ("a step and a byte", length("/", BODY), 1025),
        ("passed on", length("/progressive", BODY), BODY - 100),
        ("passed on from chunks", chunked("/progressive"), BODY - 100),
    ] {
        for is_dripping in [false, true] {
            let held = hold_time(&head, &vec![b'x'; burst], is_dripping && burst < BODY - 1);
            assert!(held <= seconds(5), "{what}: held for {held:?}");
        }
    }
}

#[test]
fn three_hundred_burst_connections_are_all_closed_after_the_grace() {
    const BODY: usize = 100 << 10;
    let mut test = TestLoop::<HttpAccept<Probe, ScriptedListener>>::new(TestContext::default());
    let (listener, door) = listener(test.world());
    let seed = HttpSeed::new((), ServerConfig::new());
    test.add(|scope| server::listen(listener, seed, scope));
    let peers: Vec<_> = (0..300).map(|_| door.connect()).collect();
    for peer in &peers {
        peer.send(&request(
            "POST /",
            &format!("Content-Length: {BODY}\r\n"),
            &"x".repeat(BODY - 1),
        ));
    }
    test.settle();
    let (mut held, begun) = (0, test.world().now());
    while test.machines() > 1 {
        assert!(test.world().now() - begun < seconds(200), "29 MiB are held forever");
        held += peers.iter().filter(|peer| !peer.is_ended()).count() * BODY;
        test.advance(seconds(1));
    }
    assert!(held <= 300 * BODY * 5, "{held} octets times seconds");
}

#[test]
fn held_bytes_require_the_minimum_rate_however_bursts_are_timed() {
    // Hold as much as possible with as few bytes as possible: a burst, silence until just before
    // the deadline, the least that extends it, and so on. In the long run that costs 1 KiB for each
    // second.
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /", "Content-Length: 1048576\r\n", ""));
    driver.send(&[b'x'; 512 << 10]);
    let (begun, mut paid) = (driver.now(), 0);
    for _ in 0..60 {
        driver.advance(Duration::from_millis(4_999));
        assert!(!driver.is_ended());
        driver.send(&[b'x'; 5 << 10]);
        paid += 5 << 10;
    }
    let took = (driver.now() - begun).as_secs();
    assert!(took << 10 <= paid, "{took} s for {paid} octets");
    driver.advance(Duration::from_millis(4_999));
    driver.send(&[b'x'; 1023]);
    driver.advance(Duration::from_millis(1));
    assert!(driver.is_ended(), "a byte less than a step buys nothing");
}

#[test]
fn a_partly_read_response_gets_no_extra_time() {
    for start in ["GET /big", "GET /stream"] {
        let mut driver = probe(ServerConfig::new());
        driver.limit_room(0);
        driver.send(&request(start, "", ""));
        driver.advance(seconds(9));
        driver.make_room(900 << 10);
        for _ in 0..9 {
            driver.advance(seconds(1));
            driver.make_room(1);
            assert!(!driver.is_dropped(), "{start}");
        }
        driver.advance(seconds(1));
        assert!(driver.is_dropped(), "{start}");
    }
}

#[test]
fn a_peer_has_unlimited_time_without_minimum_rates() {
    let mut driver =
        probe(ServerConfig::new().limits(Limits::new().body_rate_min(0).response_rate_min(0)));
    driver.limit_room(100);
    driver.send(&request("POST /", "Content-Length: 100000\r\n", &"x".repeat(50_000)));
    driver.advance(seconds(1_000_000));
    driver.send(&[b'x'; 50_000]);
    driver.advance(seconds(1_000_000));
    driver.make_room(usize::MAX / 2);
    assert_eq!(answers(&driver.take_received())[0].body.len(), 100_000 + "POST / ".len());
}

#[test]
fn an_unwanted_body_is_drained_up_to_a_limit_however_it_is_framed() {
    let chunked =
        |size: usize| format!("{size:x}\r\n{}\r\n", "x".repeat(size)).repeat(2) + "0\r\n\r\n";
    for (size, expected) in
        [(32 << 10, "200 POST /ignore | 200 GET /b"), ((32 << 10) + 1, "200 POST /ignore")]
    {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = probe(config);
        driver.send(&request("POST /ignore", "Transfer-Encoding: chunked\r\n", &chunked(size)));
        driver.send(&get("/b"));
        assert_eq!(transcript(&driver.take_received()), expected, "{size}");
        assert_eq!(counters.undrained(), u64::from(size > 32 << 10));
    }
    // The handler has seen a part of the body.
    for (left, expected) in
        [(64 << 10, "200 POST /stop abcd | 200 GET /b"), ((64 << 10) + 1, "200 POST /stop abcd")]
    {
        let mut driver = probe(ServerConfig::new());
        driver.send(&request("POST /stop", &format!("Content-Length: {}\r\n", left + 4), "abcd"));
        assert_eq!(driver.is_ended(), left > 64 << 10);
        driver.send(&"x".repeat(left).into_bytes());
        driver.send(&get("/b"));
        assert_eq!(transcript(&driver.take_received()), expected, "{left}");
        let mut driver = probe(ServerConfig::new());
        driver.send(&request("POST /stop", "Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n"));
        driver.send(format!("{left:x}\r\n{}\r\n0\r\n\r\n", "x".repeat(left)).as_bytes());
        driver.send(&get("/b"));
        assert_eq!(transcript(&driver.take_received()), expected, "{left} in a chunk");
    }
}

/// An output of exactly the mark counts as not above it, and its connection is still woken.
#[test]
fn an_output_of_exactly_the_high_water_mark_does_not_stall() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/"));
    let len = driver.take_received().len();
    for mark in [3 * len - 1, 3 * len, 3 * len + 1] {
        let mut driver = probe(ServerConfig::new().limits(Limits::new().output_high_water(mark)));
        driver.limit_room(0);
        driver.send(&get("/").repeat(20));
        driver.make_room(usize::MAX / 2);
        assert_eq!(answers(&driver.take_received()).len(), 20, "a mark of {mark}");
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn a_reset_at_any_point_ends_its_connection_cleanly() {
    let inputs = [
        get("/"),
        request(
            "POST /progressive",
            "Transfer-Encoding: chunked\r\n",
            "4\r\nabcd\r\n0\r\nX: y\r\n\r\n",
        ),
        request("POST /ignore", "Content-Length: 4\r\n", "abcd"),
        get("/wait"),
        get("/stream"),
        request("GET /up", "Upgrade: relay\r\nConnection: upgrade\r\n", "abc"),
    ];
    for input in inputs {
        for at in 0..=input.len() {
            let mut driver = probe(ServerConfig::new());
            driver.limit_room(at % 7 * 20);
            driver.send(&input[..at]);
            driver.reset();
            assert!(driver.is_dropped(), "{} cut at {at}", input.escape_ascii());
            assert_eq!(driver.failures(), [""; 0]);
        }
    }
}

#[test]
fn requests_after_a_refused_one_are_never_answered() {
    for bad in ["A : b\r\n", "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", "Host: b\r\n"] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&[request("POST /", bad, ""), get("/secret")].concat());
        driver.send(&get("/secret"));
        assert_eq!(transcript(&driver.take_received()), "400 close");
        assert_eq!(driver.context().events, [""; 0]);
    }
}
