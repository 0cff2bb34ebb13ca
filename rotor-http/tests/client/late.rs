//! The side that is reported for a request that misses its deadline.

use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::client::ClientConfig;

use crate::http2::server::{Server, data, headers, http2, page};
use crate::probe::{BodyPlan, Probe, seconds};
use crate::script::{connection, connection_with_config, outcome};

#[test]
fn a_missed_deadline_reports_which_side_was_waited_for() {
    let late = |limits: Limits, room: usize, sends: BodyPlan, answer: &[u8]| {
        let probe = Probe { deadline: seconds(7), ..Probe::post(sends) };
        let mut driver = connection(limits, []);
        driver.limit_room(room);
        driver.context_mut().plans.push_back(probe);
        let notifier = driver.context().notifier.clone();
        notifier.expect("a connection asks").wakeup();
        driver.settle();
        driver.send(answer);
        driver.advance(seconds(8));
        outcome(&mut driver)
    };
    let patient = || Limits::new().continue_timeout(seconds(100)).body_grace(seconds(100));
    let impatient = || Limits::new().continue_timeout(seconds(1));
    let (all, some): (usize, usize) = (1 << 20, 100);
    for (limits, room, sends, answer, expected) in [
        // First the handler does not write the body; then it does, and the server does not answer.
        (patient(), all, BodyPlan::Later("x"), &b""[..], "Here: Deadline(Writing)"),
        (patient(), all, BodyPlan::Whole("x"), b"", "Peer: Deadline(Receiving)"),
        // The server does not read what was written.
        (patient(), some, BodyPlan::Much(1 << 20), b"", "Peer: Deadline(Sending)"),
        (patient(), 0, BodyPlan::Later("x"), b"", "Peer: Deadline(Sending)"),
        // The server is asked for 100 (Continue) first.
        (patient(), all, BodyPlan::Expected("x"), b"", "Peer: Deadline(Sending)"),
        (impatient(), all, BodyPlan::Expected("x"), b"", "Peer: Deadline(Receiving)"),
        // The server answers before it has the whole request; either side may wait for the other.
        (
            patient(),
            all,
            BodyPlan::Later("x"),
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n",
            "Peer: Deadline(Sending)",
        ),
        (
            patient(),
            all,
            BodyPlan::Later("x"),
            b"HTTP/1.1 103 Early Hints\r\n\r\n",
            "Here: Deadline(Writing)",
        ),
    ] {
        let case = format!("{sends:?}, room for {room}");
        assert_eq!(late(limits, room, sends, answer).as_deref(), Some(expected), "{case}");
    }
}

/// A gateway whose own client is slow does not blame the server behind it.
#[test]
fn a_deadline_missed_while_the_handler_takes_no_response_is_no_fault_of_the_server() {
    let get = || Probe { deadline: seconds(7), ..Probe::get("/") };
    let holding = || Probe { holds: true, ..get().progressive() };
    let holding_interim = || Probe { holds_interim: true, ..get() };
    let waiting = || Probe { waits_after: true, ..get() };
    let head = |status| headers(1, &[(":status", status)], false);
    let body = |rest, is_end| [head("200"), data(1, rest, is_end)].concat();
    let http1 = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
    let interim = "HTTP/1.1 103 Early Hints\r\n\r\n";
    let (ours, peers) = ("Here: Deadline(Taking)", "Peer: Deadline(Receiving)");
    type Plan<'a> = &'a dyn Fn() -> Probe;
    let cases: [(Plan<'_>, String, Vec<u8>, &str); 5] = [
        (&holding, format!("{http1}h"), body(b"h", false), ours),
        (&holding_interim, interim.to_owned(), head("103"), ours),
        (&waiting, format!("{http1}hi"), body(b"hi", true), ours),
        (&get, format!("{http1}h"), body(b"h", false), peers),
        (&get, interim.to_owned(), head("103"), peers),
    ];
    for (plan, answer, frames, expected) in cases {
        let limits = || Limits::new().body_grace(seconds(100));
        let mut driver = connection(limits(), [plan()]);
        driver.send(answer.as_bytes());
        driver.advance(seconds(8));
        assert_eq!(outcome(&mut driver).as_deref(), Some(expected), "{:?}", plan());
        let mut server = Server::with_limits(limits(), [plan()]);
        server.send(&frames);
        server.driver.advance(seconds(8));
        assert_eq!(server.outcome(0), expected, "HTTP/2, {:?}", plan());
    }
}

#[test]
fn a_missed_deadline_on_an_http2_stream_reports_the_side_too() {
    let late = |window: u32, sends: BodyPlan| {
        let plan = Probe { deadline: seconds(5), ..Probe::post(sends) };
        let config = ClientConfig::new().http2(http2());
        let mut server = Server::of(config, &[(4, window)], [Probe::get("/first"), plan]);
        server.send(&page(1, ""));
        server.driver.advance(seconds(6));
        server.outcome(1)
    };
    for (window, sends, expected) in [
        (1_000, BodyPlan::Later("x"), "Here: Deadline(Writing)"),
        (1_000, BodyPlan::Whole("x"), "Peer: Deadline(Receiving)"),
        (1_000, BodyPlan::Much(3_000), "Peer: Deadline(Sending)"),
        (0, BodyPlan::Whole("x"), "Peer: Deadline(Sending)"),
    ] {
        assert_eq!(late(window, sends.clone()), expected, "{sends:?}, a window of {window}");
    }
}

/// The default of `Client::timeout`, too, says that the request's deadline has passed.
#[test]
fn a_missed_deadline_of_the_handler_counts_as_one() {
    let config = Arc::new(ClientConfig::new().http2(http2()));
    let plan = || Probe { timeout: Some(seconds(3)), ..Probe::post(BodyPlan::Later("x")) };
    let mut server = Server::of(ClientConfig::clone(&config), &[], [plan()]);
    server.driver.advance(seconds(4));
    assert_eq!(server.outcome(0), "Here: Deadline(Writing)");
    let http1 = Arc::new(ClientConfig::new().count_with(config.counters()));
    let mut driver = connection_with_config(&http1, [plan()]);
    driver.advance(seconds(4));
    assert_eq!(outcome(&mut driver).as_deref(), Some("Here: Deadline(Writing)"));
    assert_eq!((config.counters().deadlines(), config.counters().failed()), (2, 2));
}
