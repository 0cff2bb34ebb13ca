//! What handlers are told, and what happens to their connection: bodies, wakeups, drains, panics,
//! the log, counters.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use rotor_core::LoopHandle;
use rotor_http::Limits;
use rotor_http::server::{HttpSeed, HttpStream, ServerConfig};
use rotor_stream::Stream;
use rotor_stream::testing::{Peer, ScriptedSocket, TestLoop, pair};

use crate::probe::{
    BIG, Probe, ProbeDriver, TestContext, get, log_line, post, probe, request, seconds,
};
use crate::wire::{answers, transcript};

fn events(driver: &ProbeDriver) -> Vec<&str> {
    driver.context().events.iter().map(String::as_str).collect()
}

#[test]
fn a_progressive_body_arrives_in_pieces_of_the_requested_size() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /progressive", "Content-Length: 10\r\n", "ab"));
    driver.send(b"c");
    driver.send(b"d");
    driver.send(b"efghi");
    assert_eq!(driver.take_received(), b"");
    driver.send(b"j");
    assert_eq!(
        events(&driver),
        ["POST /progressive", "chunk abcd", "chunk efghi", "chunk j", "end"]
    );
    assert_eq!(transcript(&driver.take_received()), "200 POST /progressive abcdefghij");
}

#[test]
fn a_held_body_stays_unread_in_the_socket_and_does_not_time_out() {
    for path in ["/hold", "/blocks"] {
        let mut driver = probe(ServerConfig::new());
        let start = format!("POST {path}");
        driver.send(&request(&start, "Content-Length: 200000\r\n", "abcd"));
        driver.send(&vec![b'x'; 199_996]);
        assert_eq!(events(&driver), [&start, "chunk abcd"]);
        assert!(
            driver.unread_len() > 100_000,
            "{} octets were left in the socket",
            driver.unread_len()
        );
        driver.advance(seconds(900));
        assert_eq!(events(&driver).len(), 2, "neither the peer nor the handler is late");
        for _ in 0..100 {
            driver.wakeup();
        }
        assert_eq!(driver.unread_len(), 0);
        assert_eq!(events(&driver).last(), Some(&"end"));
        assert!(
            transcript(&driver.take_received()).starts_with(&format!("200 POST {path} abcdxx"))
        );
    }
}

#[test]
fn body_blocks_arrive_without_framing_and_leave_the_next_request() {
    let length = request("POST /blocks", "Content-Length: 6\r\n", "abcdef");
    let chunked =
        request("POST /blocks", "Transfer-Encoding: chunked\r\n", "6;x=y\r\nabcdef\r\n0\r\n\r\n");
    for input in [length, chunked] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&[input, get("/ignore")].concat());
        driver.wakeup();
        assert_eq!(events(&driver), ["POST /blocks", "chunk abcdef", "end", "GET /ignore"]);
        assert_eq!(answers(&driver.take_received()).len(), 2);
    }
}

#[test]
fn a_body_received_with_its_head_can_be_taken_at_once() {
    // The last body is empty, and still present.
    for body in ["abc", ""] {
        let fields = format!("Content-Length: {}\r\n", body.len());
        let taken = request("POST /take", &fields, body);
        let input = [taken.clone(), taken, get("/b")].concat();
        let once = format!("200 POST /take {body}");
        let expected = format!("{} | 200 GET /b", [once.trim_end(); 2].join(" | "));
        for cut in 0..=input.len() {
            let mut driver = probe(ServerConfig::new());
            driver.send(&input[..cut]);
            driver.send(&input[cut..]);
            assert_eq!(transcript(&driver.take_received()), expected, "cut at {cut}");
            assert!(!driver.is_ended());
        }
    }
}

#[test]
fn a_taken_body_is_complete_whatever_the_handler_does_next() {
    let taken = |path: &str| request(&format!("POST {path}"), "Content-Length: 3\r\n", "abc");
    let mut driver = probe(ServerConfig::new());
    driver.send(&[taken("/take-ask"), get("/b")].concat());
    assert_eq!(events(&driver)[..3], ["POST /take-ask", "taken abc", "body "]);
    assert_eq!(transcript(&driver.take_received()), "200 POST /take-ask | 200 GET /b");

    let mut driver = probe(ServerConfig::new());
    driver.send(&[taken("/take-wait"), get("/b")].concat());
    // The handler has the whole body, so the connection waits for no part of it.
    driver.advance(seconds(3600));
    assert_eq!(transcript(&driver.take_received()), "");
    driver.context_mut().words = "late".to_owned();
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 POST /take-wait late | 200 GET /b");
}

#[test]
fn only_a_plain_complete_body_can_be_taken_with_its_head() {
    let limits = Limits::new().drained_body_bytes_max(3);
    for (fields, body) in [
        ("Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n"),
        ("Content-Length: 3\r\nExpect: 100-continue\r\n", "abc"),
        ("Content-Length: 3\r\nConnection: upgrade\r\nUpgrade: relay\r\n", "abc"),
        // Longer than the limit of drained bodies: an answer before the body is requested closes
        // the connection.
        ("Content-Length: 4\r\n", "abcd"),
    ] {
        let mut driver = probe(ServerConfig::new().limits(limits.clone()));
        driver.send(&[request("POST /take", fields, body), get("/b")].concat());
        let events = events(&driver);
        assert!(events[1].starts_with("body abc"), "{fields}: {events:?}");
        assert_eq!(answers(&driver.take_received()).len(), 2, "{fields}");
    }
}

#[test]
fn rule_27_and_40_a_broken_body_is_an_error_and_never_a_short_body() {
    let truncated = request("POST /", "Content-Length: 10\r\n", "abc");
    let no_last_chunk =
        request("POST /progressive", "Transfer-Encoding: chunked\r\n", "4\r\nabcd\r\n");
    let bad_chunk = request("POST /progressive", "Transfer-Encoding: chunked\r\n", "4\r\nabcdx");
    for (input, error) in
        [(truncated, "Truncated"), (no_last_chunk, "Truncated"), (bad_chunk, "LineEnd")]
    {
        let mut driver = probe(ServerConfig::new());
        driver.send(&input);
        driver.end();
        let events = events(&driver);
        assert_eq!(events.last(), Some(&format!("bad request: {error}").as_str()));
        assert!(!events.contains(&"end") && !events.iter().any(|event| event.starts_with("body")));
        assert_eq!(transcript(&driver.take_received()), "400 close");
    }
}

#[test]
fn an_early_response_does_not_end_the_body() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /early", "Content-Length: 4\r\n", ""));
    assert_eq!(transcript(&driver.take_received()), "200 POST /early");
    driver.send(b"abcd");
    driver.send(&get("/b"));
    assert_eq!(transcript(&driver.take_received()), "200 GET /b");
    assert_eq!(events(&driver)[..4], ["POST /early", "chunk abcd", "end", "GET /b"]);
}

#[test]
fn a_body_beyond_the_buffer_limit_is_refused_before_it_is_sent() {
    for (length, expected) in [(9, ""), (10, ""), (11, "413 close")] {
        let mut driver =
            probe(ServerConfig::new().limits(Limits::new().buffered_body_bytes_max(10)));
        driver.send(&request("POST /", &format!("Content-Length: {length}\r\n"), ""));
        assert_eq!(transcript(&driver.take_received()), expected, "{length}");
    }
    let mut driver = probe(ServerConfig::new().limits(Limits::new().buffered_body_bytes_max(10)));
    driver.send(&request("POST /", "Transfer-Encoding: chunked\r\n", "6\r\nabcdef\r\n6\r\n"));
    assert_eq!(transcript(&driver.take_received()), "413 close");
}

#[test]
fn a_response_may_be_triggered_by_a_wakeup() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&[get("/wait"), get("/b")].concat());
    assert_eq!(driver.take_received(), b"");
    // A wakeup that is not for the handler.
    driver.wakeup();
    assert_eq!(driver.take_received(), b"");
    driver.context_mut().words = "later".to_owned();
    let notifier = driver.context().notifier.clone().expect("the handler waits");
    notifier.wakeup();
    driver.settle();
    assert_eq!(transcript(&driver.take_received()), "200 GET /wait later | 200 GET /b");
    // The notifier of an earlier handler: nothing happens.
    notifier.wakeup();
    driver.settle();
    assert!(driver.is_alive() && driver.take_received().is_empty());
}

#[test]
fn rule_45_a_half_closed_peer_still_gets_a_late_response() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/wait"));
    driver.end();
    assert!(!driver.is_ended());
    driver.context_mut().words = "later".to_owned();
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 GET /wait later");
    assert!(driver.is_ended());
}

#[test]
fn a_large_response_body_is_produced_at_the_pace_of_the_peer() {
    let mut driver = probe(ServerConfig::new());
    driver.limit_room(0);
    driver.send(&[get("/stream"), get("/b")].concat());
    let (mut got, mut turns) = (Vec::new(), 0);
    while got.len() < BIG + (BIG >> 4) && turns < 200 {
        driver.make_room(10_000);
        got.extend(driver.take_received());
        turns += 1;
    }
    let answers = answers(&got);
    assert_eq!(answers[0].body, vec![b's'; BIG]);
    assert_eq!(answers[1].text(), "GET /b ");
}

#[test]
fn a_panic_fails_only_its_request() {
    for (input, expected) in [
        (get("/panic"), "500 close"),
        (get("/panic-late"), "500 close"),
        (post("/panic-in-body", "x"), "500 close"),
        ([get("/a"), get("/panic")].concat(), "200 GET /a | 500 close"),
    ] {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = probe(config);
        driver.send(&input);
        assert_eq!(transcript(&driver.take_received()), expected);
        assert_eq!((counters.panics(), driver.failures().len()), (1, 0));
        assert!(driver.is_ended());
    }
    // The peer waits for 100 and gets it; then the handler panics on the body.
    let mut driver = probe(ServerConfig::new());
    driver.send(&request(
        "POST /panic-in-body",
        "Content-Length: 1\r\nExpect: 100-continue\r\n",
        "",
    ));
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(b"x");
    assert_eq!(transcript(&driver.take_received()), "500 close");
}

#[test]
fn a_drain_lets_requests_in_flight_finish() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/wait"));
    driver.drain(seconds(10));
    assert_eq!(events(&driver), ["GET /wait", "draining"]);
    driver.context_mut().words = "later".to_owned();
    driver.wakeup();
    assert_eq!(transcript(&driver.take_received()), "200 GET /wait later close");

    let mut driver = probe(ServerConfig::new());
    driver.send(b"GET / HTTP/1.1\r\n");
    driver.drain(seconds(10));
    driver.send(b"Host: a\r\n\r\n");
    assert_eq!(transcript(&driver.take_received()), "200 GET / close", "a head under way");
}

#[test]
fn a_request_received_before_a_drain_is_answered_with_close() {
    for ask in [get("/"), post("/", "hi"), b"\r\n".iter().copied().chain(get("/")).collect()] {
        for reads in [1, 20, usize::MAX] {
            let mut driver = probe(ServerConfig::new());
            driver.limit_reads(reads);
            driver.peer().send(&ask);
            driver.drain(seconds(10));
            let answer = transcript(&driver.take_received());
            assert!(
                answer.starts_with("200 ") && answer.ends_with(" close"),
                "{answer}, in reads of {reads}"
            );
            assert!(driver.is_ended());
        }
    }
}

#[test]
fn a_drain_lets_a_body_complete_and_then_closes() {
    for (path, expected) in [("/", "200 POST / hi close"), ("/ignore", "200 POST /ignore")] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&request(&format!("POST {path}"), "Content-Length: 2\r\n", "h"));
        driver.drain(seconds(10));
        assert!(!driver.is_ended(), "{path}: the rest may come");
        driver.send(&[b"i".to_vec(), get("/b")].concat());
        assert!(driver.is_ended(), "{path}");
        let answers = transcript(&driver.take_received());
        // An answer sent before the drain could not announce that it was the last one. The answer
        // to a later request does.
        let last = if path == "/ignore" { " | 200 GET /b close" } else { "" };
        assert_eq!(answers, format!("{expected}{last}"), "{path}");
    }
}

#[test]
fn an_empty_line_after_an_unwanted_body_does_not_delay_a_drain() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&request("POST /ignore", "Content-Length: 2\r\n", "h"));
    driver.drain(seconds(10));
    // As old clients send it after a body (RFC 9112 §2.2).
    driver.send(b"i\r\n");
    driver.advance(seconds(1));
    assert!(driver.is_ended());
}

#[test]
fn requests_unfinished_at_the_drain_timeout_are_dropped() {
    let mut driver = probe(ServerConfig::new());
    driver.send(&get("/wait-for-ever"));
    driver.drain(seconds(10));
    driver.advance(seconds(9));
    assert!(!driver.is_ended());
    driver.advance(seconds(2));
    assert!(driver.is_dropped());
}

#[test]
fn a_connection_closes_after_its_maximum_of_requests() {
    let config = ServerConfig::new().limits(Limits::new().requests_max(2));
    let counters = config.counters();
    let mut driver = probe(config);
    driver.send(&get("/").repeat(3));
    assert_eq!(transcript(&driver.take_received()), "200 GET / | 200 GET / close");
    assert_eq!((counters.requests(), counters.used_up()), (2, 1));
}

#[test]
fn the_first_request_on_an_aged_connection_is_its_last() {
    let aged = || Limits::new().connection_age_max(seconds(100)).idle_timeout(seconds(50));
    let ask = |at: &[u64]| {
        let config = ServerConfig::new().limits(aged());
        let counters = config.counters();
        let mut driver = probe(config);
        let mut now = 0;
        for at in at {
            driver.advance(seconds(at - now));
            now = *at;
            driver.send(&get("/"));
        }
        (transcript(&driver.take_received()), counters.aged(), counters.idle_timeouts())
    };
    // The age limit is reduced by a random tenth at most: before 90 s no connection is old, at 100
    // s all are.
    assert_eq!(ask(&[0, 45, 89]), ("200 GET / | 200 GET / | 200 GET /".into(), 0, 0));
    assert_eq!(
        ask(&[0, 45, 89, 100]),
        ("200 GET / | 200 GET / | 200 GET / | 200 GET / close".into(), 1, 0)
    );
    // No connection is closed for its age alone: a request may be in flight.
    let config = ServerConfig::new().limits(aged().connection_age_max(seconds(10)));
    let counters = config.counters();
    let mut driver = probe(config);
    driver.send(&get("/"));
    driver.advance(seconds(49));
    assert!(!driver.is_ended());
    driver.advance(seconds(2));
    assert!(driver.is_ended());
    assert_eq!((counters.aged(), counters.idle_timeouts()), (0, 1));
}

#[test]
fn connections_opened_together_do_not_age_out_together() {
    let config = ServerConfig::new().limits(Limits::new().connection_age_max(seconds(1_000)));
    let seed = HttpSeed::<Probe>::new((), config);
    let mut test = TestLoop::<HttpStream<Probe, ScriptedSocket>>::new(TestContext::default());
    let peers: Vec<_> = (0..8)
        .map(|_| {
            let (socket, peer) = pair(test.world());
            test.add(|scope| Stream::connected(socket, seed.clone(), scope));
            peer
        })
        .collect();
    let mut ends = vec![0; peers.len()];
    for now in 0..1_001 {
        for (peer, end) in peers.iter().zip(&mut ends).filter(|(peer, _)| !peer.is_ended()) {
            peer.send(&get("/"));
            *end = now;
        }
        test.settle();
        test.advance(seconds(1));
    }
    assert!(peers.iter().all(Peer::is_ended));
    ends.sort_unstable();
    assert!(ends.iter().all(|at| (899..=1_000).contains(at)), "{ends:?}");
    assert!(ends[7] - ends[0] > 20, "{ends:?}");
}

/// A connection that writes its log into a vector.
fn logged(limits: Limits) -> (ProbeDriver, Arc<Mutex<Vec<String>>>) {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let sink = lines.clone();
    let config = ServerConfig::new()
        .limits(limits)
        .log(move |finished| sink.lock().expect("no test panics there").push(log_line(finished)));
    (probe(config), lines)
}

#[test]
fn the_log_gets_each_request_once_with_all_its_bytes() {
    let cases: [(&str, Vec<u8>, &[&str]); 9] = [
        ("pipelined", [get("/"), post("/b?c", "hi")].concat(), &["GET /", "POST /b?c"]),
        ("refused, unread", request("GET /", "A : b\r\n", ""), &[" "]),
        ("refused, read", request("GET /x", "Expect: y\r\n", ""), &["GET /x"]),
        ("not supported", b"TRACE /y HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), &["TRACE /y"]),
        ("panicked", get("/panic"), &["GET /panic"]),
        ("drained", post("/ignore", "hi"), &["POST /ignore"]),
        (
            "chunked, HEAD",
            b"HEAD /chunked HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(),
            &["HEAD /chunked"],
        ),
        ("cut short", request("POST /", "Content-Length: 9\r\n", "hi"), &["POST /"]),
        (
            "switched",
            request("GET /up", "Upgrade: relay\r\nConnection: upgrade\r\n", ""),
            &["GET /up"],
        ),
    ];
    for (name, input, expected) in cases {
        let (mut driver, lines) = logged(Limits::new());
        driver.send(&input);
        driver.end();
        let mut bytes = driver.take_received();
        if name == "switched" {
            bytes.truncate(bytes.len() - b"hello".len());
        }
        let lines = lines.lock().expect("no test panics there").clone();
        let statuses = bytes.windows(12).filter(|window| window.starts_with(b"HTTP/1.1 "));
        let statuses: Vec<&[u8]> = statuses.map(|window| &window[9..]).collect();
        assert_eq!(
            (lines.len(), statuses.len()),
            (expected.len(), expected.len()),
            "{name}: {lines:?}"
        );
        let mut octets = 0;
        for ((line, request), status) in lines.iter().zip(expected).zip(statuses) {
            let status = String::from_utf8_lossy(status);
            assert!(line.starts_with(&format!("{request} {status} ")), "{name}: {line:?}");
            octets += line
                .rsplit(' ')
                .next()
                .and_then(|count| count.parse::<usize>().ok())
                .expect("a number");
        }
        assert_eq!(octets, bytes.len(), "{name}");
    }
}

#[test]
fn the_log_gets_requests_of_disconnected_and_timed_out_peers() {
    let (mut driver, lines) = logged(Limits::new());
    driver.send(&get("/wait"));
    driver.reset();
    assert_eq!(*lines.lock().expect("a log"), ["GET /wait 0 0"]);
    let (mut driver, lines) = logged(Limits::new());
    driver.send(b"GET /");
    driver.advance(seconds(10));
    assert_eq!(lines.lock().expect("a log").len(), 1, "408");
    let (mut driver, lines) = logged(Limits::new());
    driver.advance(seconds(100));
    assert_eq!(lines.lock().expect("a log").len(), 0, "an idle connection is no request");
}

#[test]
fn the_log_counts_interim_responses_before_an_error_page() {
    let (mut driver, lines) = logged(Limits::new());
    driver.send(&get("/hints-fail"));
    let octets = driver.take_received().len();
    assert_eq!(*lines.lock().expect("a log"), [format!("GET /hints-fail 502 {octets}")]);
}

#[test]
fn a_handle_of_the_loop_can_be_sent_and_a_context_shared() {
    fn assert_send<T: Send>() {}
    assert_send::<LoopHandle>();
    assert_send::<TestContext>();
}

#[test]
fn a_response_has_the_date_of_the_second_in_which_it_is_made() {
    let mut driver = probe(ServerConfig::new());
    // The test's wall clock begins with its loop's, at one second.
    driver.advance(Duration::from_millis(700));
    for millis in (1_700..5_000).step_by(350) {
        driver.send(&get("/status/204"));
        let answer = String::from_utf8(driver.take_received()).expect("text");
        let date = format!("\r\nDate: Thu, 01 Jan 1970 00:00:0{} GMT\r\n", millis / 1000);
        assert!(answer.contains(&date), "at {millis} ms: {answer}");
        driver.advance(Duration::from_millis(350));
    }
}
