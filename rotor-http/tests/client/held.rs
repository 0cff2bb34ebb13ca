//! Heads that a handler holds off, because it passes on the interim head before them.

use std::io::ErrorKind;
use std::time::Duration;

use rotor_http::Limits;

use crate::http2::server::{Server, data, frame, headers, page, reset};
use crate::probe::{BodyPlan, OnWakeup, Probe, seconds};
use crate::script::{ProbeDriver, connection, is_reusable, outcome};

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";

#[test]
fn a_head_held_off_after_an_interim_one_is_not_late() {
    let limits = Limits::new().response_timeout(seconds(10));
    let held = |answer: &[u8]| {
        let mut driver = connection(limits.clone(), [Probe::get("/")]);
        driver.advance(seconds(4));
        driver.send(b"HTTP/1.1 103 Early Hints\r\n\r\n");
        driver.context_mut().on_wakeup = Some(OnWakeup::Hold);
        driver.wakeup();
        driver.send(answer);
        driver.advance(seconds(100));
        assert_eq!(outcome(&mut driver), None);
        driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
        driver.wakeup();
        driver
    };
    let mut driver = held(OK);
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    assert!(is_reusable(&mut driver));
    // The server has the rest of its time.
    let mut driver = held(&OK[..9]);
    driver.advance(Duration::from_millis(5_900));
    assert_eq!(outcome(&mut driver), None);
    driver.advance(Duration::from_millis(200));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Peer: ResponseTimeout"));
}

/// An interim head, and one with this status.
fn interim(status: &str) -> Vec<u8> {
    headers(1, &[(":status", status)], false)
}

/// A server that has sent an interim head on stream 1, which is held by its handler.
fn holding(limits: Limits, probe: Probe) -> Server {
    let mut server = Server::with_limits(limits, [probe]);
    server.send(&interim("103"));
    act(&mut server, OnWakeup::Hold);
    server
}

fn act(server: &mut Server, action: OnWakeup) {
    server.driver.context_mut().on_wakeup = Some(action);
    server.driver.context().handlers[0].wakeup();
    server.driver.settle();
    server.read();
}

/// The last event, and the outcome.
fn state(server: &mut Server) -> (String, String) {
    let last = server.driver.context().events.last().cloned();
    (last.unwrap_or_default(), server.outcome(0))
}

#[test]
fn a_head_on_a_stream_waits_for_its_handler_after_an_interim_one() {
    let limits = || Limits::new().response_timeout(seconds(10));
    let whole = || [headers(1, &[(":status", "200")], false), data(1, b"hi", true)].concat();
    let plan = || Probe { holds_interim: true, ..Probe::get("/") };
    let held = |status: u16| (format!("/ interim {status}"), "nothing yet".to_owned());
    let mut server = holding(limits(), plan());
    server.send(&[interim("102"), whole()].concat());
    for _ in 0..5 {
        server.driver.advance(seconds(9));
        server.grant_window(0, 1);
    }
    assert_eq!(state(&mut server), held(103));
    act(&mut server, OnWakeup::Resume);
    assert_eq!(state(&mut server), held(102));
    act(&mut server, OnWakeup::Resume);
    assert_eq!(server.outcome(0), "200 hi");
    assert_eq!((server.requests[&1].reset, server.end()), (None, None));
    // Trailers follow, and the server resets the stream or ends the connection: it is complete.
    let trailers = headers(1, &[("x", "y")], true);
    let body = [headers(1, &[(":status", "200")], false), data(1, b"hi", false)].concat();
    let ends: [fn(&mut Server); 3] =
        [|_| {}, |server| server.send(&reset(1, 0)), |server| server.driver.end()];
    for end in ends {
        let mut server = holding(limits(), plan().progressive());
        server.send(&[&body[..], &trailers].concat());
        end(&mut server);
        assert_eq!(server.outcome(0), "nothing yet");
        act(&mut server, OnWakeup::Resume);
        assert_eq!(server.outcome(0), "200 hi x=y");
    }
    // The end of a response without a body is in its head, and no DATA comes before the head.
    let mut server = holding(limits(), plan());
    server.send(&headers(1, &[(":status", "204")], true));
    act(&mut server, OnWakeup::Resume);
    assert_eq!(server.outcome(0), "204");
    let mut server = holding(limits(), plan());
    server.send(&[interim("102"), data(1, b"x", false)].concat());
    let why = "a frame that its stream cannot have";
    assert_eq!((server.outcome(0), server.end()), (format!("Peer: Protocol({why:?})"), None));
}

#[test]
fn held_heads_on_a_stream_are_limited_as_interim_responses() {
    let limits = Limits::new().interim_responses_max(3);
    let mut server = holding(limits.clone(), Probe::get("/"));
    server.send(&[interim("102"), interim("102"), interim("200")].concat());
    assert_eq!(server.outcome(0), "nothing yet");
    act(&mut server, OnWakeup::Resume);
    server.send(&data(1, b"", true));
    assert_eq!(server.outcome(0), "200");
    let mut server = holding(limits, Probe::get("/"));
    server.send(&interim("102").repeat(2));
    assert_eq!(server.outcome(0), "nothing yet");
    server.send(&interim("102"));
    assert_eq!((server.outcome(0).as_str(), server.end()), ("Peer: TooManyInterim", None));
    assert_eq!(server.requests[&1].reset, Some(8));
}

#[test]
fn a_response_that_arrived_before_a_loss_is_delivered_to_a_handler_that_holds() {
    type Loss = fn(&mut ProbeDriver);
    let reset: Loss = |driver| driver.reset();
    let losses: [(&str, Loss, BodyPlan); 3] = [
        ("reset", reset, BodyPlan::Nothing),
        ("reset", reset, BodyPlan::Much(1 << 20)),
        ("not read", |driver| driver.advance(seconds(100)), BodyPlan::Much(1 << 20)),
    ];
    for (name, lose, sends) in losses {
        for (rest, expected) in [("i", "200 hi"), ("", "Network: Lost(")] {
            let mut driver = connection(Limits::new(), []);
            driver.limit_room(1_000);
            let sends = sends.clone();
            let plan = Probe { sends, holds: true, ..Probe::new("PUT", "/").progressive() };
            driver.context_mut().plans.push_back(plan);
            driver.wakeup();
            driver.send(&OK[..OK.len() - 1]);
            // It stays in the socket.
            driver.send(rest.as_bytes());
            lose(&mut driver);
            assert_eq!(outcome(&mut driver), None, "{name}");
            // The time in which output must be taken does not matter any more.
            driver.advance(seconds(800));
            driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
            driver.context().handlers[0].wakeup();
            driver.settle();
            let outcome = outcome(&mut driver).unwrap_or_default();
            assert!(outcome.starts_with(expected), "{name}: {outcome}, not {expected}");
            assert!(driver.is_dropped());
        }
    }
}

/// Over HTTP/2 it can, too, when the server has reset the stream without an error.
#[test]
fn a_handler_that_holds_can_write_the_rest_of_its_request_after_a_reset() {
    let plan = Probe::post(BodyPlan::Much(1 << 20)).progressive();
    let plan = Probe { holds: true, writes_all: true, ..plan };
    let mut driver = connection(Limits::new(), []);
    driver.limit_room(1_000);
    driver.context_mut().plans.push_back(plan);
    driver.wakeup();
    driver.send(&OK[..OK.len() - 1]);
    driver.reset();
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 h"));
    assert!(driver.is_dropped());
}

/// A server that has answered stream 1, whose handler holds, and not stream 3.
fn half_answered(plan: Probe) -> Server {
    let limits = Limits::new().response_timeout(seconds(900)).response_grace(seconds(10));
    let held = Probe { holds: true, ..plan };
    let mut server = Server::with_limits(limits, [held, Probe::get("/other")]);
    let answer = [headers(1, &[(":status", "200")], false), data(1, b"hi", false)].concat();
    server.send(&answer);
    server.send(&headers(1, &[("x", "y")], true));
    assert_eq!(server.outcome(0), "nothing yet");
    server
}

#[test]
fn a_complete_response_on_a_stream_outlives_its_connection_while_it_is_held() {
    type Loss = fn(&mut Server);
    let losses: [(&str, Loss, &str); 6] = [
        ("reset", |server| server.driver.reset(), "Network: Lost(Reset("),
        (
            "failed write",
            |server| {
                server.driver.fail_writes(ErrorKind::BrokenPipe);
                server.send(&frame(6, 0, 0, b"12345678"));
            },
            "Network: Lost(Write(",
        ),
        ("end", |server| server.driver.end(), "Peer: Closed"),
        ("violation", |server| server.send(&data(2, b"x", false)), "Peer: Protocol("),
        (
            "silence",
            |server| server.driver.advance(seconds(100)),
            "Network: Lost(Reset(Kind(TimedOut",
        ),
        (
            "no room",
            |server| {
                server.driver.limit_room(0);
                server.send(&frame(6, 0, 0, b"12345678"));
                server.driver.advance(seconds(20));
            },
            "Network: Lost(FlushTimeout",
        ),
    ];
    for (name, happens, expected) in losses {
        for sends in [BodyPlan::Nothing, BodyPlan::Much(1 << 20)] {
            let mut server = half_answered(Probe { sends, ..Probe::new("PUT", "/").progressive() });
            happens(&mut server);
            let other = server.outcome(1);
            assert!(other.starts_with(expected), "{name}: {other}, not {expected}");
            server.driver.advance(seconds(100));
            assert_eq!(server.outcome(0), "nothing yet", "{name}");
            act(&mut server, OnWakeup::Resume);
            assert_eq!(server.outcome(0), "200 hi x=y", "{name}");
            server.driver.advance(seconds(100));
            assert!(server.driver.is_dropped(), "{name}");
        }
    }
}

/// A handler that has asked for all of its response, and now waits for something else.
#[test]
fn a_handler_that_goes_on_after_its_exchange_is_not_told_of_a_lost_connection() {
    let plan = || Probe { waits_after: true, ..Probe::get("/") };
    let mut driver = connection(Limits::new(), [plan()]);
    driver.send(OK);
    driver.reset();
    assert_eq!(outcome(&mut driver), None);
    driver.context_mut().on_wakeup = Some(OnWakeup::Finish);
    driver.context().handlers[0].wakeup();
    driver.settle();
    assert_eq!(outcome(&mut driver).as_deref(), Some("200 hi"));
    driver.settle();
    assert!(driver.is_dropped());
    type Loss = fn(&mut Server);
    let losses: [(&str, Loss); 4] = [
        ("reset", |server| server.driver.reset()),
        ("end", |server| server.driver.end()),
        ("violation", |server| server.send(&data(2, b"x", false))),
        ("silence", |server| server.driver.advance(seconds(100))),
    ];
    for (name, lose) in losses {
        let mut server = Server::new([plan(), Probe::get("/other")]);
        server.send(&page(1, "hi"));
        lose(&mut server);
        assert_eq!(server.outcome(0), "nothing yet", "{name}");
        assert!(!["200", "nothing yet"].contains(&&*server.outcome(1)), "{name}");
        act(&mut server, OnWakeup::Finish);
        assert_eq!(server.outcome(0), "200 hi", "{name}");
        server.driver.advance(seconds(100));
        assert!(server.driver.is_dropped(), "{name}");
    }
}

/// A request that was written in one call may still be unsent when its response is complete.
#[test]
fn a_handler_that_goes_on_is_told_of_a_loss_if_its_request_is_unsent() {
    let body: &str = "x".repeat(1 << 20).leak();
    let plan = || Probe { waits_after: true, ..Probe::post(BodyPlan::Whole(body)) };
    let mut driver = connection(Limits::new(), []);
    driver.limit_room(1_000);
    driver.context_mut().plans.push_back(plan());
    driver.wakeup();
    driver.send(OK);
    assert_eq!(outcome(&mut driver), None);
    driver.reset();
    let lost = outcome(&mut driver).expect("a part of the request is unsent");
    assert!(lost.starts_with("Network: Lost("), "{lost}");
    for ends in [false, true] {
        // The window of the stream is smaller than the body.
        let mut server = Server::new([plan()]);
        server.send(&page(1, "hi"));
        if ends {
            server.driver.end();
        }
        assert_eq!(server.outcome(0), "nothing yet", "{ends}");
        match ends {
            true => server.driver.advance(seconds(100)),
            false => server.driver.reset(),
        }
        let lost = server.outcome(0);
        assert!(lost.starts_with("Network: Lost("), "{ends}: {lost}");
    }
}

/// The end of the input does not hide that the rest of a request cannot be sent.
#[test]
fn a_request_on_a_stream_that_goes_on_after_its_response_fails_with_its_connection() {
    type Loss = fn(&mut Server);
    let losses: [(&str, Loss, &str); 3] = [
        ("reset", |server| server.driver.reset(), "Network: Lost("),
        ("write", |server| server.driver.fail_writes(ErrorKind::BrokenPipe), "Network: Lost("),
        ("no room", |server| server.driver.advance(seconds(100)), "Network: Lost(FlushTimeout"),
    ];
    let answer = |stream| {
        let head = headers(stream, &[(":status", "200")], false);
        [head, data(stream, b"hi", false), headers(stream, &[("x", "y")], true)].concat()
    };
    for (name, lose, expected) in losses {
        for ends in [false, true] {
            let plan = Probe::post(BodyPlan::Much(1 << 20));
            let held = Probe { holds: true, ..Probe::get("/held").progressive() };
            let mut server = Server::new([Probe { writes_all: true, ..plan }, held]);
            server.driver.limit_room(1_000);
            server.grant_window(0, 1 << 21);
            server.grant_window(1, 1 << 21);
            server.send(&[answer(1), answer(3)].concat());
            if ends {
                server.driver.end();
            }
            assert_eq!(server.outcome(0), "nothing yet", "{name}");
            lose(&mut server);
            server.driver.make_room(4 << 20);
            server.driver.settle();
            let outcome = server.outcome(0);
            assert!(outcome.starts_with(expected), "{name}, {ends}: {outcome}, not {expected}");
            assert_eq!(server.outcome(1), "nothing yet", "{name}");
            server.driver.context_mut().on_wakeup = Some(OnWakeup::Resume);
            server.driver.context().handlers[1].wakeup();
            server.driver.settle();
            assert_eq!(server.outcome(1), "200 hi x=y", "{name}");
            assert!(server.driver.is_dropped(), "{name}");
        }
    }
}
