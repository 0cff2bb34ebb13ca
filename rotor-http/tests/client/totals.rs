//! The room that the bodies of all answers share: what counts against it, who finds none, and that
//! every end gives back what was held.

use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::client::{ClientConfig, RecvMode};
use rotor_http::server::ServerConfig;
use rotor_stream::StreamConfig;

use crate::probe::{Probe, Probed, connection_of, is_reusable, outcome, seconds};

const HALF: usize = 60_000;

/// The heads of three answers, and the rest of their bodies after the first half.
fn answers() -> [(String, String); 3] {
    let half = "x".repeat(HALF);
    let length = 2 * HALF;
    [
        (format!("Content-Length: {length}\r\n\r\n{half}"), half.clone()),
        (
            format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{half}"),
            format!("{half}\r\n0\r\n\r\n"),
        ),
        (format!("Connection: close\r\n\r\n{half}"), half),
    ]
}

fn begin(config: &Arc<ClientConfig>, probe: Probe, answer: &str) -> Probed {
    let mut driver = connection_of(config, [probe]);
    driver.send(format!("HTTP/1.1 200 OK\r\n{answer}").as_bytes());
    driver
}

#[test]
fn however_an_answer_ends_what_its_body_held_is_given_back() {
    type End = fn(Probed, &str);
    let ends: [(&str, &str, End); 6] = [
        ("it is whole", "", |mut driver, rest| {
            driver.send(rest.as_bytes());
            driver.end();
            assert_eq!(outcome(&mut driver).as_deref(), Some("200 120000 octets"));
        }),
        ("the handler panics", "body", |mut driver, rest| {
            driver.send(rest.as_bytes());
            driver.end();
            assert_eq!(outcome(&mut driver).as_deref(), Some("Caller: Panicked"));
        }),
        ("the server resets", "", |mut driver, _| driver.reset()),
        ("it is late", "", |mut driver, _| driver.advance(seconds(2_000))),
        ("nobody waits for it", "", |mut driver, _| {
            driver.context_mut().futures.clear();
            driver.settle();
        }),
        ("the loop is dropped", "", |driver, _| drop(driver)),
    ];
    for (answer, rest) in answers() {
        for (name, panics_in, end) in &ends {
            let config = Arc::new(ClientConfig::new());
            let driver = begin(&config, Probe { panics_in, ..Probe::get("/") }, &answer);
            let held = config.bodies_held();
            assert!((HALF..=2 * HALF).contains(&held.bytes()), "{name}: {held:?}");
            end(driver, &rest);
            assert_eq!(held.bytes(), 0, "{name}: {}", &answer[..20]);
        }
    }
}

#[test]
fn an_answer_that_finds_no_room_fails_with_the_limit_s_name_and_the_others_go_on() {
    for (answer, rest) in answers() {
        let config = Arc::new(ClientConfig::new().bodies_bytes_max(5 * HALF));
        let mut drivers: Vec<Probed> =
            (0..10).map(|_| begin(&config, Probe::get("/"), &answer)).collect();
        let outcomes: Vec<Option<String>> = drivers.iter_mut().map(outcome).collect();
        let failed = outcomes.iter().flatten().count();
        assert!((5..9).contains(&failed), "{outcomes:?}");
        assert!(
            outcomes.iter().flatten().all(|outcome| outcome == "Here: BodiesFull"),
            "{outcomes:?}"
        );
        assert!(config.bodies_held().bytes() <= 5 * HALF);
        let mut driver = drivers.swap_remove(0);
        drop(drivers);
        driver.send(rest.as_bytes());
        driver.end();
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 120000 octets"));
        assert_eq!(config.bodies_held().bytes(), 0);
    }
}

#[test]
fn what_came_in_one_read_or_is_passed_on_needs_no_room() {
    let config = Arc::new(ClientConfig::new().bodies_bytes_max(0));
    let mut whole = begin(&config, Probe::get("/"), "Content-Length: 3\r\n\r\nabc");
    assert_eq!(outcome(&mut whole).as_deref(), Some("200 abc"));
    assert!(is_reusable(&mut whole));
    for mode in [RecvMode::Blocks, RecvMode::Progressive(1)] {
        let (answer, rest) = &answers()[0];
        let mut driver = begin(&config, Probe { mode, ..Probe::get("/") }, answer);
        driver.send(rest.as_bytes());
        assert_eq!(outcome(&mut driver).as_deref(), Some("200 120000 octets"), "{mode:?}");
    }
}

#[test]
fn connections_that_keep_too_much_waiting_end_and_others_go_on() {
    assert_eq!(ClientConfig::new().held().bytes_max(), ServerConfig::new().held().bytes_max());
    // Half a body of known length, which waits in the input.
    let half = format!("Content-Length: {HALF}\r\n\r\n{}", "x".repeat(HALF / 2));
    let config = Arc::new(
        ClientConfig::new()
            .held_bytes_max(3 * HALF)
            .limits(Limits::new())
            .stream(&StreamConfig::new()),
    );
    let mut drivers: Vec<Probed> =
        (0..10).map(|_| begin(&config, Probe::get("/"), &half)).collect();
    let held = config.held();
    assert!((HALF..=3 * HALF).contains(&held.bytes()), "{held:?}");
    let outcomes: Vec<Option<String>> = drivers.iter_mut().map(outcome).collect();
    let failed = outcomes.iter().flatten().count();
    assert!((1..10).contains(&failed), "{outcomes:?}");
    assert!(
        outcomes.iter().flatten().all(|outcome| outcome == "Here: Lost(NoRoom)"),
        "{outcomes:?}"
    );
    assert_eq!(config.counters().without_room(), failed as u64);
    // Who was there first goes on, and so does who needs no room.
    let mut whole = begin(&config, Probe::get("/"), "Content-Length: 3\r\n\r\nabc");
    assert_eq!(outcome(&mut whole).as_deref(), Some("200 abc"));
    drivers[0].send("x".repeat(HALF / 2).as_bytes());
    assert_eq!(outcome(&mut drivers[0]).as_deref(), Some("200 60000 octets"));
    drop((drivers, whole));
    assert_eq!((held.bytes(), config.bodies_held().bytes()), (0, 0));
}
