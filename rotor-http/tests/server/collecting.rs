//! The part of a body that is read in a turn: it is larger for a collected body.

use rotor_http::server::ServerConfig;

use crate::probe::{ProbeDriver, probe, request};

/// The bytes that a read may return beyond a budget: one large read.
const ROOM: usize = 64 << 10;

/// The bytes that each turn reads of a body of that length.
fn bytes_per_turn(driver: &mut ProbeDriver, path: &str, length: usize) -> Vec<usize> {
    driver.send(&request(&format!("POST {path}"), &format!("Content-Length: {length}\r\n"), ""));
    driver.peer().send(&vec![b'x'; length]);
    let mut left = length;
    let mut turns = Vec::new();
    while left > 0 {
        driver.test().turn();
        let unread = driver.unread_len();
        turns.push(left - unread);
        left = unread;
    }
    driver.settle();
    driver.take_received();
    turns
}

#[test]
fn only_collected_bodies_are_read_in_few_turns() {
    let mut driver = probe(ServerConfig::new());
    for _ in 0..2 {
        assert_eq!(bytes_per_turn(&mut driver, "/whole", 500_000), [500_000]);
        let others = bytes_per_turn(&mut driver, "/progressive", 500_000);
        assert!(others.iter().all(|read| *read <= (64 << 10) + ROOM), "{others:?}");
    }
    let longest = bytes_per_turn(&mut driver, "/whole", 1 << 20);
    assert_eq!(longest.len(), 2, "{longest:?}");
}

#[test]
fn requests_after_a_collected_body_are_read_with_the_normal_budget() {
    let mut driver = probe(ServerConfig::new());
    assert_eq!(bytes_per_turn(&mut driver, "/whole", 500_000), [500_000]);
    let field = format!("A: {}\r\n", "a".repeat(2_000));
    let all = request("GET /ignore", &field, "").repeat(200);
    driver.peer().send(&all);
    driver.test().turn();
    let read = all.len() - driver.unread_len();
    assert!((1..=(64 << 10) + ROOM).contains(&read), "{read} of {}", all.len());
}

#[test]
fn the_collect_budget_is_configurable() {
    let mut driver = probe(ServerConfig::new().collect_budget(200_000));
    let reads = bytes_per_turn(&mut driver, "/whole", 900_000);
    let within = reads.iter().all(|read| *read <= 200_000 + ROOM);
    assert!(within && reads[0] >= 200_000, "{reads:?}");
}
