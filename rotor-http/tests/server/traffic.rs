//! The counters of open and ended requests and connections: each one counts once, however it ends.

use std::sync::Arc;

use rotor_http::server::{Counters, ServerConfig};

use crate::probe::{ProbeDriver, get, post, probe, request, seconds};

/// How many requests ended in each status class, `1xx` first, and how many without a status.
fn ended_requests(counters: &Counters) -> ([u64; 5], u64) {
    let [(_, none), classes @ ..] = counters.responses();
    (classes.map(|(_, count)| count), none)
}

fn driver_and_counters() -> (ProbeDriver, Arc<Counters>) {
    let config = ServerConfig::new();
    let counters = config.counters();
    (probe(config), counters)
}

#[test]
fn each_request_counts_once_in_the_class_of_its_status() {
    let cases: [(&str, Vec<u8>, [u64; 5]); 11] = [
        ("answered at once", get("/ignore"), [0, 1, 0, 0, 0]),
        ("three of them, pipelined", get("/ignore").repeat(3), [0, 3, 0, 0, 0]),
        ("with a body", post("/", "body"), [0, 1, 0, 0, 0]),
        ("not modified", get("/length-304"), [0, 0, 1, 0, 0]),
        ("no request", b"nonsense\r\n\r\n".to_vec(), [0, 0, 0, 1, 0]),
        ("a method that is not known", request("TRACE /", "", ""), [0, 0, 0, 0, 1]),
        ("a handler that panics", get("/panic"), [0, 0, 0, 0, 1]),
        (
            "a body that breaks",
            request("POST /", "Transfer-Encoding: chunked\r\n", "x\r\n"),
            [0, 0, 0, 1, 0],
        ),
        ("too short a response", get("/short"), [0, 0, 0, 0, 1]),
        (
            "another protocol",
            request("GET /up", "Connection: upgrade\r\nUpgrade: relay\r\n", ""),
            [1, 0, 0, 0, 0],
        ),
        ("a body for nobody", post("/ignore", "body"), [0, 1, 0, 0, 0]),
    ];
    for (what, bytes, expected) in cases {
        let (mut driver, counters) = driver_and_counters();
        driver.send(&bytes);
        driver.settle();
        assert_eq!(ended_requests(&counters), (expected, 0), "{what}");
        assert_eq!(counters.requests_open(), 0, "{what}");
        drop(driver);
        assert_eq!(ended_requests(&counters), (expected, 0), "{what}, dropped");
        assert_eq!((counters.connections(), counters.connections_open()), (1, 0), "{what}");
    }
}

#[test]
fn a_request_is_open_until_its_connection_ends_in_any_way() {
    type End = fn(&mut ProbeDriver);
    let ends: [(&str, End); 4] = [
        ("the peer resets", |driver| driver.reset()),
        ("the loop drains and its time is over", |driver| {
            driver.drain(seconds(1));
            driver.advance(seconds(2));
        }),
        ("an operator ends it", |driver| {
            let _ = driver
                .test()
                .instance()
                .machines()
                .scan(rotor_core::Cursor::START, |_, _| rotor_core::Verdict::End);
            driver.settle();
        }),
        ("the loop is dropped", |_| {}),
    ];
    for (what, end) in ends {
        let (mut driver, counters) = driver_and_counters();
        driver.send(&get("/wait-for-ever"));
        assert_eq!((counters.requests_open(), counters.connections_open()), (1, 1), "{what}");
        end(&mut driver);
        drop(driver);
        assert_eq!((counters.requests_open(), counters.connections_open()), (0, 0), "{what}");
        assert_eq!(ended_requests(&counters), ([0; 5], 1), "{what}");
    }
}

#[test]
fn bytes_are_counted_as_they_are_on_the_wire() {
    let (mut driver, counters) = driver_and_counters();
    let sent: Vec<u8> = [get("/ignore"), post("/progressive", "12345678"), get("/big")].concat();
    for part in sent.chunks(7) {
        driver.send(part);
    }
    driver.settle();
    let received = driver.take_received();
    assert_eq!(counters.received_bytes(), sent.len() as u64);
    assert_eq!(counters.sent_bytes(), received.len() as u64);
}

#[test]
fn the_response_time_includes_the_wait() {
    let (mut driver, counters) = driver_and_counters();
    driver.send(&get("/timer"));
    driver.advance(seconds(10));
    let [_, _, (class, times), ..] = counters.times_by_class();
    assert_eq!((class, times.count(), times.sum()), ("2xx", 1, seconds(10)));
}
