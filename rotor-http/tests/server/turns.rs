//! How much of a large burst of one peer is answered in a turn: other peers do not wait for the
//! rest.

use rotor_http::server::ServerConfig;

use crate::http2::client::{Client, config, frame, preface_and_settings};
use crate::probe::{ProbeDriver, probe, request};

/// Requests, or frames, in a turn. A call that begins within it may process `BATCH_MAX` more
/// frames.
const TURN_MAX: usize = 128;
const BATCH_MAX: usize = 64;

/// How often the output of each turn contains `answer`, until a turn has none.
fn matches_per_turn(driver: &mut ProbeDriver, sent: &[u8], answer: &[u8]) -> Vec<usize> {
    driver.take_received();
    driver.peer().send(sent);
    let mut turns = Vec::new();
    loop {
        driver.test().turn();
        let received = driver.peer().take_received();
        match received.windows(answer.len()).filter(|part| *part == answer).count() {
            0 => return turns,
            count => turns.push(count),
        }
    }
}

#[test]
fn pipelined_requests_are_limited_per_turn() {
    let mut driver = probe(ServerConfig::new());
    let turns = matches_per_turn(
        &mut driver,
        &request("GET /", "", "").repeat(600),
        b"HTTP/1.1 200 OK\r\n",
    );
    assert_eq!(turns.iter().sum::<usize>(), 600, "{turns:?}");
    assert!(turns.iter().all(|requests| *requests <= TURN_MAX), "{turns:?}");
}

#[test]
fn small_frames_are_limited_per_turn() {
    let mut client = Client::silent(config());
    client.send(&preface_and_settings(&[]));
    let turns = matches_per_turn(
        &mut client.driver,
        &frame(6, 0, 0, b"12345678").repeat(900),
        &frame(6, 1, 0, b"12345678"),
    );
    assert_eq!(turns.iter().sum::<usize>(), 900, "{turns:?}");
    assert!(turns.iter().all(|frames| *frames < TURN_MAX + BATCH_MAX), "{turns:?}");
}

#[test]
fn the_write_budget_of_a_turn_is_configurable() {
    for (config, most) in [
        (ServerConfig::new(), 256 << 10),
        (ServerConfig::new().write_budget(100_000), 100_000),
        (ServerConfig::new().write_budget(1 << 20), 1 << 20),
    ] {
        let mut driver = probe(config);
        driver.take_received();
        let all = request("GET /big", "", "").repeat(3);
        driver.peer().send(&all);
        let mut turns = Vec::new();
        loop {
            driver.test().turn();
            match driver.peer().take_received().len() {
                0 => break,
                count => turns.push(count),
            }
        }
        assert_eq!(turns.iter().max(), Some(&most), "{turns:?}");
    }
}
