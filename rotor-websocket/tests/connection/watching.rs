//! Silence: pings, pongs, deadlines, and held peers.

use std::time::Duration;

use rotor_websocket::WebSocketConfig;

use crate::kit::{
    CLOSE, PING, PONG, ServerDriver, TEXT, close_payload, frame, open, seconds, shown_frames,
};

const MILLI: Duration = Duration::from_millis(1);

#[test]
fn a_silent_peer_is_pinged_and_must_answer_in_time() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.advance(seconds(30) - MILLI);
    assert_eq!(driver.take_received(), b"");
    driver.advance(MILLI);
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
    driver.advance(seconds(19));
    driver.send(&frame(PONG, ""));
    driver.advance(seconds(30) - MILLI);
    assert_eq!(driver.take_received(), b"");
    driver.advance(MILLI);
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
    driver.advance(seconds(20) - MILLI);
    assert!(!driver.is_ended());
    driver.advance(MILLI);
    assert!(driver.is_ended());
    assert_eq!(driver.context().events.last().unwrap(), "closed 1006 PongTimeout");
    assert_eq!(counters.pong_timeouts(), 1);
}

#[test]
fn an_active_peer_is_not_pinged() {
    let (mut driver, _) = open(WebSocketConfig::new());
    for _ in 0..10 {
        driver.advance(seconds(29));
        driver.send(&frame(TEXT, "x"));
        assert_eq!(shown_frames(&driver.take_received()), ["text x"]);
    }
}

#[test]
fn each_byte_of_a_frame_is_a_sign_of_life() {
    let (mut driver, _) = open(WebSocketConfig::new());
    // A frame that takes a quarter of an hour and is delivered whole.
    for part in frame(TEXT, "x".repeat(20)).chunks(1) {
        driver.send(part);
        driver.advance(seconds(40));
        assert!(!driver.is_ended());
    }
    assert_eq!(driver.context().events.last().unwrap(), "text xxxxxxxxxxxxxxxxxxxx");
    driver.advance(seconds(10));
    assert!(driver.is_ended());
    assert_eq!(driver.context().events.last().unwrap(), "closed 1006 PongTimeout");
}

/// Between two checks of the silence, the handler may be woken, for example by a room.
#[test]
fn bytes_of_a_frame_before_a_wakeup_are_a_sign_of_life() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    let long = frame(TEXT, "x".repeat(100));
    driver.send(&long[..20]);
    driver.advance(seconds(30));
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
    driver.advance(seconds(10));
    driver.send(&long[20..30]);
    driver.wakeup();
    driver.advance(seconds(20));
    assert_eq!((driver.is_ended(), counters.pong_timeouts()), (false, 0));
    driver.send(&long[30..]);
    assert_eq!(driver.context().events.last().unwrap(), &format!("text {}", "x".repeat(40)));
}

#[test]
fn the_bytes_of_a_pong_reach_the_handler_between_messages() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "ping hello"));
    assert_eq!(shown_frames(&driver.take_received()), ["ping hello"]);
    let longest = "x".repeat(125);
    let input = [
        frame(TEXT, "before"),
        frame(PONG, "hello"),
        // Also within a message, without a ping, and with all bytes that it may have.
        frame(0x01, "be"),
        frame(PONG, &longest),
        frame(0x80, "hind"),
    ];
    driver.send(&input.concat());
    let expected = ["text before", "pong hello", &format!("pong {longest}"), "text behind"];
    assert_eq!(driver.context().events[2..], expected);
}

#[test]
fn a_handler_may_close_for_a_pong_and_gets_none_after_that() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&[frame(PONG, "close 4001 late"), frame(PONG, "later")].concat());
    assert_eq!(shown_frames(&driver.take_received()), ["close 4001"]);
    driver.send(&frame(CLOSE, close_payload(4001, "")));
    let events = ["opened /", "pong close 4001 late", "closed 4001 Handler"];
    assert_eq!(driver.context().events, events);
}

#[test]
fn a_holding_handler_gets_a_pong_after_it_resumes() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&[frame(TEXT, "hold"), frame(PONG, "p"), frame(TEXT, "later")].concat());
    assert_eq!(driver.context().events, ["opened /", "text hold"]);
    driver.advance(seconds(3));
    assert_eq!(driver.context().events[2..], ["timeout", "pong p", "text later"]);
}

#[test]
fn an_infinite_ping_interval_sends_no_pings() {
    let (mut driver, _) = open(WebSocketConfig::new().ping_after(Duration::MAX));
    driver.advance(seconds(1_000_000));
    assert_eq!(driver.take_received(), b"");
    assert!(driver.is_alive());
}

#[test]
fn the_deadline_of_a_handler_is_independent_of_pings() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "alarm"));
    driver.advance(seconds(7) - MILLI);
    assert_eq!(driver.context().events.last().unwrap(), "text alarm");
    driver.advance(MILLI);
    assert_eq!(driver.context().events.last().unwrap(), "timeout");
    driver.advance(seconds(22));
    assert_eq!(driver.take_received(), b"");
    driver.advance(seconds(1));
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
}

#[test]
fn a_held_peer_is_not_timed_out() {
    let config = WebSocketConfig::new().ping_after(seconds(2)).pong_within(seconds(2));
    let (mut driver, _) = open(config);
    driver.send(&[frame(TEXT, "hold"), frame(TEXT, "later"), frame(PING, "later")].concat());
    assert_eq!(driver.take_received(), b"");
    driver.send(&frame(TEXT, "much later"));
    driver.advance(seconds(2));
    assert_eq!(driver.context().events, ["opened /", "text hold"]);
    // The handler's own deadline ends the hold.
    driver.advance(seconds(1));
    assert_eq!(
        shown_frames(&driver.take_received()),
        ["text later", "pong later", "text much later"]
    );
}

#[test]
fn a_peer_held_after_a_ping_is_not_timed_out() {
    let config = WebSocketConfig::new().ping_after(seconds(2)).pong_within(seconds(2));
    let (mut driver, counters) = open(config);
    driver.advance(seconds(2));
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
    driver.context_mut().on_wakeup = Some("hold".to_string());
    driver.wakeup();
    driver.send(&frame(PONG, ""));
    driver.advance(seconds(2));
    assert_eq!(driver.context().events, ["opened /"]);
    // From its deadline on, the handler takes what has arrived, starting with the pong.
    driver.advance(seconds(1));
    driver.advance(seconds(2) - MILLI);
    assert_eq!((counters.pong_timeouts(), driver.take_received()), (0, Vec::new()));
    driver.advance(MILLI);
    assert_eq!(shown_frames(&driver.take_received()), ["ping"]);
}

#[test]
fn zero_timeouts_do_not_keep_the_loop_busy_with_a_held_peer() {
    for (ping_after, pong_within) in [(Duration::ZERO, MILLI), (MILLI, Duration::ZERO)] {
        let config = WebSocketConfig::new().ping_after(ping_after).pong_within(pong_within);
        let (mut driver, _) = open(config);
        // Sending settles the loop, which never comes to rest if something is due in each turn.
        driver.send(&[frame(TEXT, "hold"), frame(TEXT, "later")].concat());
        driver.advance(MILLI);
        assert_eq!(driver.take_received(), b"");
        driver.advance(seconds(3));
        let text = "text later".to_string();
        assert!(shown_frames(&driver.take_received()).contains(&text));
    }
}

/// It takes twenty seconds for what is unsent before the ping.
#[test]
fn a_peer_that_takes_output_before_a_ping_is_not_timed_out() {
    let config = WebSocketConfig::new().ping_after(seconds(10)).pong_within(seconds(10));
    let (mut driver, counters) = open(config);
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 60000"));
    let take_for = |driver: &mut ServerDriver, time| {
        for _ in 0..time {
            driver.make_room(2_000);
            driver.advance(seconds(1));
        }
        (driver.is_ended(), driver.received_len())
    };
    assert_eq!(take_for(&mut driver, 30), (false, 60_000));
    let (has_ended, all) = take_for(&mut driver, 1);
    assert_eq!((has_ended, all > 60_000), (false, true));
    // Now it has the ping, and must answer.
    assert_eq!(take_for(&mut driver, 8), (false, all));
    assert_eq!(take_for(&mut driver, 12), (true, all));
    assert_eq!(counters.pong_timeouts(), 1);
}

/// The stream has its own mark. With more than that unsent it reads nothing, not even a pong.
#[test]
fn a_peer_that_the_stream_does_not_read_is_not_timed_out() {
    let config = WebSocketConfig::new().ping_after(seconds(2)).pong_within(seconds(2));
    let (mut driver, counters) = open(config.unsent_high_water(200_000));
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 150000"));
    driver.send(&frame(TEXT, "hello"));
    for _ in 0..6 {
        driver.advance(seconds(1));
    }
    assert_eq!(driver.context().events, ["opened /", "text owe 150000"]);
    driver.make_room(1_000_000);
    assert!(driver.context().events.contains(&"text hello".to_string()));
    assert_eq!(counters.pong_timeouts(), 0);
}
