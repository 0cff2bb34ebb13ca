//! Requests and their responses, many at the same time.

use rotor_http::client::ClientConfig;
use rotor_http::{Limits, Method};

use super::server::{Server, block, data, frame, headers, http2, page, reset, settings};
use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};

#[test]
fn the_first_request_goes_with_the_preface_and_others_after_settings() {
    let plans = ["/1", "/2", "/3", "/4"].map(Probe::get);
    let mut server = Server::silent(ClientConfig::new().http2(http2()), plans);
    assert_eq!(server.request_lines(), ["GET http h /1"]);
    server.send(&settings(&[(3, 3)]));
    assert_eq!(server.request_lines(), ["GET http h /1", "GET http h /2", "GET http h /3"]);
    assert_eq!(server.driver.context_mut().plans.len(), 1, "another connection may take it");
    assert!(server.requests.values().all(|request| request.is_whole));
    // Answered in an order other than that of the requests.
    server.send(&page(3, "two"));
    assert_eq!(server.outcome(1), "200 two");
    assert_eq!(server.request_lines().len(), 4, "there is room for the next");
    server.send(&[page(7, "four"), page(1, ""), page(5, "three")].concat());
    for (at, expected) in ["200", "200 two", "200 three", "200 four"].iter().enumerate() {
        assert_eq!(server.outcome(at), *expected);
    }
    assert_eq!((server.settings_acks, server.goaways.len()), (1, 0));
    server.add_request(Probe::get("/5"));
    assert_eq!(server.request_lines().len(), 5, "woken, it looks for more");
}

#[test]
fn a_body_is_sent_with_its_head_or_later_and_trailers_follow() {
    let mut server = Server::new([
        Probe::post(BodyPlan::Whole("whole")),
        Probe::post(BodyPlan::Chunked("in two")),
        Probe::post(BodyPlan::Later("later")),
    ]);
    let request =
        |server: &Server, stream| server.requests.get(&stream).cloned().expect("it began");
    assert_eq!(request(&server, 1).body, b"whole");
    assert_eq!(request(&server, 1).fields, [("content-length".into(), "5".into())]);
    let chunked = request(&server, 3);
    assert_eq!((&chunked.body[..], chunked.is_whole), (&b"in two"[..], true));
    assert_eq!(chunked.trailers, [("x-sum".into(), "1".into())]);
    assert!(chunked.fields.is_empty());
    assert!(!request(&server, 5).is_whole && request(&server, 5).body.is_empty());
    server.driver.context_mut().on_wakeup = Some(OnWakeup::WriteRest);
    server.driver.context().handlers[2].wakeup();
    server.driver.settle();
    server.read();
    assert_eq!(
        (&request(&server, 5).body[..], request(&server, 5).is_whole),
        (&b"later"[..], true)
    );
}

#[test]
fn an_expect_continue_body_waits_for_100_or_for_its_timeout() {
    let mut server =
        Server::new([BodyPlan::Expected("a"), BodyPlan::Expected("b")].map(Probe::post));
    assert!(server.requests.values().all(|request| request.body.is_empty() && !request.is_whole));
    assert_eq!(server.requests[&1].fields[1], ("expect".into(), "100-continue".into()));
    server.send(&headers(3, &[(":status", "100")], false));
    assert_eq!(
        (&server.requests[&1].body[..], &server.requests[&3].body[..]),
        (&b""[..], &b"b"[..])
    );
    server.driver.advance(seconds(1));
    server.read();
    assert_eq!(server.requests[&1].body, b"a");
}

#[test]
fn an_empty_body_is_wanted_at_once() {
    let mut server = Server::new([Probe::post(BodyPlan::Expected(""))]);
    assert!(server.requests[&1].is_whole);
    server.send(&page(1, "ok"));
    assert_eq!(server.outcome(0), "200 ok");
}

#[test]
fn an_expect_continue_body_of_a_deferred_request_waits_for_100_too() {
    let plan = Probe { defers_write: true, ..Probe::post(BodyPlan::Expected("a")) };
    let mut server = Server::new([plan]);
    server.driver.context_mut().on_wakeup = Some(OnWakeup::Write);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    server.read();
    assert_eq!(server.requests[&1].body, b"");
    server.send(&headers(1, &[(":status", "100")], false));
    assert_eq!(server.requests[&1].body, b"a");
    assert_eq!(server.driver.context().events, ["/ prepare", "/ wanted"]);
}

#[test]
fn the_wait_for_100_begins_when_the_head_is_sent() {
    let much: &'static str = Box::leak("x".repeat(70_000).into_boxed_str());
    let mut server = Server::new([]);
    server.driver.limit_room(0);
    server.add_request(Probe::post(BodyPlan::Whole(much)));
    server.add_request(Probe::post(BodyPlan::Expected("a")));
    server.driver.advance(seconds(2));
    server.driver.make_room(1 << 20);
    server.grant_window(0, 1 << 20);
    server.grant_window(1, 1 << 20);
    assert_eq!(server.requests[&3].body, b"");
    server.send(&headers(3, &[(":status", "100")], false));
    assert_eq!(server.requests[&3].body, b"a");
}

#[test]
fn a_hold_before_the_head_does_not_hold_back_the_head() {
    let mut server = Server::new([Probe::get("/")]);
    server.driver.context_mut().on_wakeup = Some(OnWakeup::Hold);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    server.send(&page(1, "a"));
    assert_eq!(server.outcome(0), "200 a");
}

#[test]
fn interim_heads_trailers_and_empty_responses_are_reported() {
    let mut server = Server::new([
        Probe::get("/hints"),
        Probe { method: "HEAD", ..Probe::get("/head") },
        Probe::get("/304"),
        Probe::get("/trailers").progressive(),
    ]);
    server.send(&headers(1, &[(":status", "103"), ("link", "</a>")], false));
    server.send(&page(1, "after"));
    server.send(&headers(3, &[(":status", "200"), ("content-length", "9")], true));
    server.send(&headers(5, &[(":status", "304"), ("content-length", "9")], true));
    server.send(&[headers(7, &[(":status", "200")], false), data(7, b"ab", false)].concat());
    server.send(&headers(7, &[("grpc-status", "0")], true));
    for (at, expected) in ["200 after", "200", "304", "200 ab grpc-status=0"].iter().enumerate() {
        assert_eq!(server.outcome(at), *expected);
    }
    let events = server.driver.context().events.clone();
    assert!(events.contains(&"/hints interim 103".to_owned()), "{events:?}");
    assert!(events.contains(&"/head head 200 Some(0)".to_owned()), "{events:?}");
    assert!(server.requests.values().all(|request| request.reset.is_none()));
}

/// RFC 9113 §8.1: END_STREAM may come in an empty DATA frame, even if there is no body.
#[test]
fn a_response_awaiting_only_its_end_stream_is_not_reset() {
    let plans = || {
        [
            Probe { method: "HEAD", ..Probe::get("/head") },
            Probe::get("/304"),
            Probe { is_head_only: true, ..Probe::get("/brief") },
        ]
    };
    let heads = [
        headers(1, &[(":status", "200"), ("content-length", "9")], false),
        headers(3, &[(":status", "304")], false),
        headers(5, &[(":status", "200"), ("content-length", "0")], false),
    ];
    let resets = |server: &mut Server| {
        server.read();
        [1, 3, 5].map(|stream| server.requests[&stream].reset)
    };
    let mut server = Server::new(plans());
    server.send(&heads.concat());
    for (at, expected) in ["200", "304", "200"].iter().enumerate() {
        assert_eq!(server.outcome(at), *expected, "it waits for nothing");
    }
    // With padding, without padding, and by trailers.
    server.send(&[frame(0, 9, 1, &[3, 0, 0, 0]), data(3, b"", true)].concat());
    server.send(&[data(5, b"", false), headers(5, &[("a", "b")], true)].concat());
    assert_eq!(resets(&mut server), [None; 3]);
    server.driver.advance(seconds(6));
    assert_eq!((resets(&mut server), server.end()), ([None; 3], None));
    // No frame may follow END_STREAM.
    server.send(&data(3, b"", true));
    assert_eq!(server.end(), Some(5));
    // The client waits neither for a late END_STREAM nor after a frame that must not come.
    let mut server = Server::new(plans());
    server.send(&heads.concat());
    server.send(&data(1, b"x", false));
    server.send(&headers(3, &[("a", "b")], false));
    server.driver.advance(seconds(4));
    assert_eq!(resets(&mut server), [Some(8), Some(8), None]);
    server.driver.advance(seconds(2));
    assert_eq!(resets(&mut server), [Some(8); 3]);
    assert_eq!((server.outcome(0).as_str(), server.end()), ("200", None));
}

/// Frames after a complete response are neither a failure of the request nor a flood.
#[test]
fn a_body_in_response_to_head_does_not_cost_the_connection() {
    let count = 300;
    let probes = (0..count).map(|_| Probe { method: "HEAD", ..Probe::get("/") });
    let mut server = Server::of(ClientConfig::new().http2(http2()), &[(3, 1_000)], probes);
    for stream in (1..2 * count as u32).step_by(2) {
        server.send(&headers(stream, &[(":status", "200")], false));
        server.send(&data(stream, b"x", true));
    }
    assert_eq!((server.outcome(count - 1).as_str(), server.end()), ("200", None));
}

#[test]
fn a_stream_awaiting_its_end_counts_against_the_stream_limit() {
    let config = || ClientConfig::new().http2(http2());
    let head = headers(1, &[(":status", "204")], false);
    let mut server = Server::of(config(), &[(3, 1)], ["/1", "/2"].map(Probe::get));
    server.send(&head);
    assert_eq!((server.outcome(0).as_str(), server.request_lines().len()), ("204", 1));
    server.send(&data(1, b"", true));
    assert_eq!(server.request_lines().len(), 2);
    // A connection that is about to end does not wait for END_STREAM.
    let closing = || Probe { asks_to_close: true, ..Probe::get("/") };
    let mut server = Server::new([closing()]);
    server.send(&head);
    assert_eq!((server.outcome(0).as_str(), server.end()), ("204", Some(0)));
    assert_eq!(server.requests[&1].reset, None);
}

#[test]
fn abandoned_requests_are_reset_and_others_continue() {
    let mut server = Server::new([
        Probe::get("/dropped"),
        Probe { is_head_only: true, ..Probe::get("/brief") },
        Probe { deadline: seconds(3), ..Probe::get("/late") },
        Probe { panics_in: "head", ..Probe::get("/panics") },
        Probe { is_cancelled: true, ..Probe::get("/never") },
        Probe::get("/last"),
    ]);
    assert_eq!(server.requests.len(), 5, "what was cancelled before does not begin");
    let dropped = server.driver.context_mut().futures.pop_front();
    server.outcomes[0] = Some("dropped".into());
    drop(dropped);
    server.driver.settle();
    server.read();
    assert_eq!(server.requests[&1].reset, Some(8));
    server.send(&headers(3, &[(":status", "200")], false));
    assert_eq!((server.outcome(1).as_str(), server.requests[&3].reset), ("200", Some(8)));
    server.send(&headers(7, &[(":status", "200")], false));
    assert_eq!(
        (server.outcome(3).as_str(), server.requests[&7].reset),
        ("Caller: Panicked", Some(8))
    );
    server.driver.advance(seconds(3));
    assert_eq!(server.outcome(2), "Peer: Deadline(Receiving)");
    assert_eq!(server.requests[&5].reset, Some(8));
    // Frames that were in flight on these streams are no protocol error.
    server.send(&[page(1, "x"), data(3, b"y", true), page(5, "z"), page(9, "last")].concat());
    assert_eq!((server.outcome(4).as_str(), server.end()), ("200 last", None));
}

#[test]
fn a_response_complete_before_its_request_is_accepted() {
    let mut server = Server::new([Probe::post(BodyPlan::Much(1 << 20)), Probe::get("/")]);
    server.send(&page(1, "enough"));
    assert_eq!(server.outcome(0), "200 enough");
    assert_eq!(server.requests[&1].reset, Some(8), "nobody takes the rest");
    // The same if the server says that it wants no more of the request, while the handler holds
    // back the rest of the response.
    let held = Probe { holds: true, ..Probe::post(BodyPlan::Much(1 << 20)).progressive() };
    let mut server = Server::new([held]);
    server.send(&headers(1, &[(":status", "200")], false));
    server.send(&data(1, b"a", false));
    server.send(&[data(1, b"b", true), reset(1, 0)].concat());
    assert_eq!(server.outcome(0), "nothing yet");
    server.driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    assert_eq!(server.outcome(0), "200 ab");
}

/// RFC 9113 §8.1: a server may say after its whole response that it wants no more of the request.
#[test]
fn a_handler_still_writing_when_the_rest_is_refused_writes_on_and_finishes() {
    let plan = || Probe { writes_all: true, ..Probe::post(BodyPlan::Much(1 << 20)) };
    for code in [0, 8] {
        let mut server = Server::new([plan(), Probe::get("/")]);
        server.send(&page(1, "enough"));
        assert_eq!(server.outcome(0), "nothing yet", "it waits for room");
        let sent = server.requests[&1].body.len();
        server.send(&reset(1, code));
        assert_eq!(server.outcome(0), "200 enough", "{code}");
        assert_eq!(server.requests[&1].body.len(), sent, "nothing more is sent");
        server.send(&page(3, "too"));
        assert_eq!((server.outcome(1).as_str(), server.end()), ("200 too", None));
    }
    // The same while the handler holds the response. One that waits for no room is not called.
    let events = |sends: BodyPlan| {
        let plan = Probe { holds: true, ..Probe::post(sends).progressive() };
        let config = ClientConfig::new().http2(http2());
        let mut server = Server::of(config, &[(4, 0)], [Probe::get("/"), plan]);
        server.send(&[page(1, ""), headers(3, &[(":status", "200")], false)].concat());
        server.send(&[data(3, b"a", false), data(3, b"b", true), reset(3, 0)].concat());
        assert_eq!(server.outcome(1), "nothing yet");
        server.driver.context().events.last().cloned().unwrap_or_default()
    };
    assert_eq!(events(BodyPlan::Chunked("in two")), "/ flushed");
    assert_eq!(events(BodyPlan::Expected("late")), "/ chunk a");
}

#[test]
fn a_response_head_in_continuation_frames_is_read() {
    let limits = Limits::new();
    let mut server = Server::with_limits(limits, [Probe::get("/")]);
    let block = block(&[(":status", "200"), ("a", &"x".repeat(5000))]);
    let (first, rest) = block.split_at(7);
    let (second, third) = rest.split_at(3000);
    let mut bytes = frame(1, 0, 1, first);
    bytes.extend(frame(9, 0, 1, second));
    bytes.extend(frame(9, 4, 1, third));
    bytes.extend(data(1, b"hi", true));
    server.send(&bytes);
    assert_eq!(server.outcome(0), "200 hi");
    assert!(Method::new("GET").is_some());
}

#[test]
fn connect_and_http1_upgrades_are_not_sent_on_http2() {
    let mut server = Server::new([
        Probe { method: "CONNECT", target: "h:1", ..Probe::get("") },
        Probe { upgrade: Some("x"), ..Probe::get("/up") },
    ]);
    assert_eq!(server.outcome(0), "Caller: Request(StartLine)");
    assert_eq!(server.request_lines(), ["GET http h /up"]);
    assert!(server.requests[&1].fields.is_empty(), "the field is of HTTP/1.1");
    server.send(&headers(1, &[(":status", "101")], false));
    assert_eq!(server.outcome(1), "Peer: Head(UnexpectedSwitch)");
}

/// RFC 9113 §6.5.2: the bytes of names and values, and 32 for each field. A server may end the
/// connection for larger fields, with all requests on it.
#[test]
fn a_request_with_fields_beyond_the_servers_limit_fails_alone() {
    // `:method: GET`, `:scheme: http`, `:authority: h`, `:path: /a`.
    let size: u32 = 10 + 11 + 11 + 7 + 4 * 32;
    for (max, outcome) in [(size - 1, "Caller: FieldsTooLarge"), (size, "nothing yet")] {
        let config = ClientConfig::new().http2(http2());
        // The first one is sent before the limit is known, and is smaller.
        let mut server = Server::of(config, &[(6, max)], [Probe::get("/")]);
        server.add_request(Probe::get("/a"));
        assert_eq!((server.outcome(1).as_str(), server.end()), (outcome, None), "{max}");
        server.send(&settings(&[(6, max + 1)]));
        server.add_request(Probe::get("/a"));
        assert_eq!(server.request_lines().len(), 2 + usize::from(max == size));
        server.send(&page(1, "one"));
        server.send(&page(3, "two"));
        let last = 2 - usize::from(max == size);
        assert_eq!([0, last].map(|at| server.outcome(at)), ["200 one", "200 two"]);
        assert_eq!(server.end(), None);
    }
}

/// A server may end the connection for fields that it does not accept, and on the next connection
/// the request would be the first again.
#[test]
fn a_first_request_with_large_fields_waits_for_the_servers_settings() {
    // `:method: GET`, `:scheme: https`, `:authority: h`, `:path: /…`. The scheme is the longer one,
    // whichever is sent.
    let others = 10 + 12 + 11 + 5 + 4 * 32;
    for (size, waits) in [(4096, false), (4097, true)] {
        let path: &'static str = format!("/{}", "x".repeat(size - others - 1)).leak();
        let size = size as u32 - 1;
        for (max, is_sent) in [(size, true), (size - 1, !waits)] {
            let config = ClientConfig::new().http2(http2());
            let mut server = Server::silent(config, [Probe::get(path), Probe::get("/2")]);
            assert_eq!(server.request_lines().is_empty(), waits, "{size}");
            server.send(&settings(&[(6, max)]));
            assert_eq!(server.request_lines().len(), 1 + usize::from(is_sent), "{size} of {max}");
            server.send(&page(1, "one"));
            let (first, second) = match is_sent {
                true => ("200 one", "nothing yet"),
                false => ("Caller: FieldsTooLarge", "200 one"),
            };
            assert_eq!([0, 1].map(|at| server.outcome(at)), [first, second], "{size} of {max}");
            assert_eq!(server.end(), None);
        }
    }
}

#[test]
fn a_request_that_waits_for_settings_in_vain_is_not_made_again() {
    let path: &'static str = format!("/{}", "x".repeat(5000)).leak();
    type Does = fn(&mut Server);
    let rows: [(Does, &str); 4] = [
        (
            |server| server.send(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
            "Peer: Unsent(Protocol(\"it speaks HTTP/1\"))",
        ),
        (|server| server.driver.advance(seconds(10)), "Peer: Unsent(ResponseTimeout)"),
        (|server| server.driver.end(), "Peer: Unsent(Closed)"),
        (|server| server.driver.reset(), "Network: Unsent(Lost(Reset(Kind(ConnectionReset))))"),
    ];
    for (act, outcome) in rows {
        let mut server = Server::silent(ClientConfig::new().http2(http2()), [Probe::get(path)]);
        act(&mut server);
        assert!(server.driver.context().returned_jobs.is_empty(), "{outcome}");
        assert_eq!(server.outcome(0), outcome);
        assert!(server.request_lines().is_empty(), "{outcome}");
        assert!(server.driver.is_ended() || server.driver.is_dropped(), "{outcome}");
    }
}
