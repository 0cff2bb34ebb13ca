//! The memory that the bodies of all answers share: what counts against it, which requests fail,
//! and that every end releases what was held.

use std::sync::Arc;

use rotor_http::Limits;
use rotor_http::client::{ClientConfig, RecvMode};
use rotor_http::server::ServerConfig;
use rotor_stream::StreamConfig;

use crate::probe::{Probe, seconds};
use crate::script::{ProbeDriver, connection_with_config, is_reusable, outcome};

const HALF: usize = 60_000;

/// An answer in two parts.
struct SplitResponse {
    /// Its head, and the first half of its body.
    first: String,
    rest: String,
    /// Bytes in each half of the body.
    half: usize,
}

impl SplitResponse {
    /// The outcome of the whole answer.
    fn outcome(&self) -> String {
        format!("200 {} octets", 2 * self.half)
    }
}

fn answers() -> [SplitResponse; 4] {
    let xs = "x".repeat(HALF);
    let length = 2 * HALF;
    let (short, short_length) = (&xs[..HALF / 2], HALF);
    let of = |first: String, rest: &str, half| SplitResponse { first, rest: rest.to_owned(), half };
    [
        of(format!("Content-Length: {length}\r\n\r\n{xs}"), &xs, HALF),
        of(
            format!("Transfer-Encoding: chunked\r\n\r\n{length:x}\r\n{xs}"),
            &format!("{xs}\r\n0\r\n\r\n"),
            HALF,
        ),
        of(format!("Connection: close\r\n\r\n{xs}"), &xs, HALF),
        // Short enough to wait in the input for its rest.
        of(format!("Content-Length: {short_length}\r\n\r\n{short}"), short, HALF / 2),
    ]
}

fn start_response(config: &Arc<ClientConfig>, probe: Probe, answer: &str) -> ProbeDriver {
    let mut driver = connection_with_config(config, [probe]);
    driver.send(format!("HTTP/1.1 200 OK\r\n{answer}").as_bytes());
    driver
}

#[test]
fn body_memory_is_released_however_a_response_ends() {
    type End = fn(ProbeDriver, &SplitResponse);
    let ends: [(&str, &str, End); 6] = [
        ("it is whole", "", |mut driver, answer| {
            driver.send(answer.rest.as_bytes());
            driver.end();
            assert_eq!(outcome(&mut driver), Some(answer.outcome()));
        }),
        ("the handler panics", "body", |mut driver, answer| {
            driver.send(answer.rest.as_bytes());
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
    for answer in answers() {
        let half = answer.half;
        for (name, panics_in, end) in &ends {
            let config = Arc::new(ClientConfig::new());
            let driver =
                start_response(&config, Probe { panics_in, ..Probe::get("/") }, &answer.first);
            let held = config.bodies_held();
            assert!((half..=2 * half).contains(&held.bytes()), "{name}: {held:?}");
            end(driver, &answer);
            assert_eq!(held.bytes(), 0, "{name}: {}", &answer.first[..20]);
        }
    }
}

#[test]
fn a_response_over_the_body_memory_limit_fails_and_others_continue() {
    for answer in answers() {
        let half = answer.half;
        let config = Arc::new(ClientConfig::new().bodies_bytes_max(5 * half));
        let mut drivers: Vec<ProbeDriver> =
            (0..10).map(|_| start_response(&config, Probe::get("/"), &answer.first)).collect();
        let outcomes: Vec<Option<String>> = drivers.iter_mut().map(outcome).collect();
        let failed = outcomes.iter().flatten().count();
        assert!((5..9).contains(&failed), "{outcomes:?}");
        assert!(
            outcomes.iter().flatten().all(|outcome| outcome == "Here: BodiesFull"),
            "{outcomes:?}"
        );
        assert!(config.bodies_held().bytes() <= 5 * half);
        let mut driver = drivers.swap_remove(0);
        drop(drivers);
        driver.send(answer.rest.as_bytes());
        driver.end();
        assert_eq!(outcome(&mut driver), Some(answer.outcome()));
        assert_eq!(config.bodies_held().bytes(), 0);
    }
}

#[test]
fn bodies_read_at_once_or_streamed_need_no_body_memory() {
    let config = Arc::new(ClientConfig::new().bodies_bytes_max(0));
    let mut whole = start_response(&config, Probe::get("/"), "Content-Length: 3\r\n\r\nabc");
    assert_eq!(outcome(&mut whole).as_deref(), Some("200 abc"));
    assert!(is_reusable(&mut whole));
    for mode in [RecvMode::Blocks, RecvMode::Progressive(1)] {
        let answer = &answers()[0];
        let mut driver = start_response(&config, Probe { mode, ..Probe::get("/") }, &answer.first);
        driver.send(answer.rest.as_bytes());
        assert_eq!(outcome(&mut driver), Some(answer.outcome()), "{mode:?}");
    }
}

#[test]
fn connections_over_the_held_bytes_limit_end_and_others_continue() {
    assert_eq!(ClientConfig::new().held().bytes_max(), ServerConfig::new().held().bytes_max());
    // Half a body of known length, which waits in the input.
    let half = format!("Content-Length: {HALF}\r\n\r\n{}", "x".repeat(HALF / 2));
    let config = Arc::new(
        ClientConfig::new()
            .held_bytes_max(3 * HALF)
            .limits(Limits::new())
            .stream(&StreamConfig::new()),
    );
    let mut drivers: Vec<ProbeDriver> =
        (0..10).map(|_| start_response(&config, Probe::get("/"), &half)).collect();
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
    // Earlier requests continue, and so do requests that need no shared memory.
    let mut whole = start_response(&config, Probe::get("/"), "Content-Length: 3\r\n\r\nabc");
    assert_eq!(outcome(&mut whole).as_deref(), Some("200 abc"));
    drivers[0].send("x".repeat(HALF / 2).as_bytes());
    assert_eq!(outcome(&mut drivers[0]).as_deref(), Some("200 60000 octets"));
    drop((drivers, whole));
    assert_eq!((held.bytes(), config.bodies_held().bytes()), (0, 0));
}
