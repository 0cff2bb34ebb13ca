//! A connection that is lost: what had arrived before is delivered first.

use rotor_websocket::WebSocketConfig;

use crate::kit::{ServerDriver, TEXT, frame, open, seconds};

/// How many messages `x` the handler was given.
fn messages(driver: &ServerDriver) -> usize {
    driver.context().events.iter().filter(|event| *event == "text x").count()
}

fn last_event(driver: &ServerDriver) -> &str {
    driver.context().events.last().expect("it was opened")
}

#[test]
fn more_messages_than_a_turn_takes_are_delivered_before_a_reset() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.peer().limit_room(0);
    driver.peer().send(&frame(TEXT, "x").repeat(3_000));
    driver.reset();
    assert_eq!((messages(&driver), last_event(&driver)), (3_000, "closed 1006 Lost"));
    assert!(!driver.is_alive());
}

#[test]
fn messages_that_a_handler_holds_off_are_delivered_before_a_reset() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&[frame(TEXT, "hold"), frame(TEXT, "x")].concat());
    driver.peer().send(&frame(TEXT, "x"));
    driver.reset();
    assert_eq!((messages(&driver), last_event(&driver)), (0, "text hold"));
    // The handler's own deadline ends the hold.
    driver.advance(seconds(3));
    assert_eq!((messages(&driver), last_event(&driver)), (2, "closed 1006 Lost"));
    assert!(!driver.is_alive());
    assert_eq!(counters.lost(), 1);
}

#[test]
fn messages_that_wait_for_unsent_output_are_delivered_before_a_reset() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.limit_room(0);
    driver.send(&frame(TEXT, "binary 100000"));
    driver.send(&frame(TEXT, "x"));
    assert_eq!(messages(&driver), 0, "the peer takes nothing");
    driver.peer().send(&frame(TEXT, "x"));
    driver.reset();
    assert_eq!((messages(&driver), last_event(&driver)), (2, "closed 1006 Lost"));
    assert!(!driver.is_alive());
}
