//! The end of a connection: which side closes, answers, or stays silent.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::Drain;
use rotor_websocket::{Counters, WebSocketConfig};

use crate::kit::{
    BINARY, CLOSE, PING, ServerDriver, TEXT, close_payload, frame, open, seconds, shown_frames,
};

#[test]
fn a_close_frame_is_answered_with_its_code() {
    for (payload, answer, event) in [
        (close_payload(1000, "bye"), "close 1000", "closed 1000 Peer bye"),
        (close_payload(4321, ""), "close 4321", "closed 4321 Peer"),
        (Vec::new(), "close", "closed 1005 Peer"),
    ] {
        let (mut driver, counters) = open(WebSocketConfig::new());
        driver.send(&frame(CLOSE, payload));
        assert_eq!(shown_frames(&driver.take_received()), [answer]);
        assert_eq!(driver.context().events, ["opened /", event]);
        // A server ends the connection first.
        assert!(driver.is_ended());
        driver.end();
        assert!(!driver.is_alive());
        assert_eq!((counters.closed(), counters.lost()), (1, 0));
        assert_eq!(driver.failures(), [""; 0]);
    }
}

#[test]
fn a_closing_handler_gets_no_messages_until_the_answer() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "close 4000 enough"));
    assert_eq!(shown_frames(&driver.take_received()), ["close 4000"]);
    driver.wakeup();
    driver.send(&[frame(TEXT, "late"), frame(PING, "late"), frame(0x01, b"\xff")].concat());
    assert_eq!(driver.take_received(), b"");
    assert!(!driver.is_ended());
    driver.send(&frame(CLOSE, close_payload(4000, "as you like")));
    assert!(driver.is_ended());
    let events = &driver.context().events;
    assert_eq!(events[1..], ["text close 4000 enough", "closed 4000 Handler as you like"]);
    assert_eq!(counters.closed(), 1);
}

#[test]
fn a_holding_handler_that_closes_gets_the_answer() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&[frame(TEXT, "hold"), frame(TEXT, "unheard")].concat());
    driver.context_mut().on_timeout = Some("close 4000".to_string());
    driver.advance(seconds(3));
    assert_eq!(shown_frames(&driver.take_received()), ["close 4000"]);
    driver.send(&frame(CLOSE, close_payload(4000, "")));
    let events = &driver.context().events;
    assert_eq!(events[1..], ["text hold", "timeout", "closed 4000 Handler"]);
    assert_eq!((counters.closed(), counters.close_timeouts()), (1, 0));
}

#[test]
fn a_closing_handler_is_called_neither_for_room_nor_for_wakeups() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 300000"));
    driver.context_mut().on_wakeup = Some("close 4000".to_string());
    driver.wakeup();
    let heard = driver.context().events.len();
    driver.context_mut().on_wakeup = Some("drop".to_string());
    driver.wakeup();
    driver.make_room(1_000_000);
    assert_eq!(
        shown_frames(&driver.take_received()).last().map(String::as_str),
        Some("close 4000")
    );
    driver.send(&frame(CLOSE, close_payload(4000, "")));
    assert_eq!(driver.context().events[heard..], ["closed 4000 Handler"]);
}

#[test]
fn a_peer_that_ignores_a_close_frame_is_dropped_in_time() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "close 1000"));
    driver.take_received();
    for _ in 0..4 {
        driver.advance(seconds(1));
        // The peer continues to send as if nothing had happened.
        driver.send(&frame(TEXT, "and another thing"));
        assert!(!driver.is_ended());
    }
    driver.advance(Duration::from_millis(999));
    assert!(!driver.is_ended());
    driver.advance(Duration::from_millis(1));
    assert!(driver.is_ended());
    assert_eq!(driver.context().events.last().unwrap(), "closed 1000 CloseTimeout");
    assert_eq!((counters.close_timeouts(), counters.closed()), (1, 0));
    driver.advance(seconds(2));
    assert!(!driver.is_alive());
}

#[test]
fn a_dropped_connection_sends_no_close_frame() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.limit_room(100);
    driver.send(&frame(TEXT, "binary 5000"));
    driver.send(&frame(TEXT, "drop"));
    assert_eq!(driver.context().events.last().unwrap(), "closed 1006 Dropped");
    driver.make_room(10_000);
    assert_eq!(driver.received_len(), 100);
    assert!(driver.is_ended());
}

#[test]
fn a_peer_that_ends_without_a_close_frame_is_lost() {
    for ending in ["end", "reset", "in a frame", "while closing"] {
        let (mut driver, counters) = open(WebSocketConfig::new());
        match ending {
            "reset" => driver.reset(),
            "in a frame" => driver.send(&[0x81, 0x85, 1]),
            "while closing" => driver.send(&frame(TEXT, "close 1000")),
            _ => {}
        }
        driver.end();
        let code = if ending == "while closing" { 1000 } else { 1006 };
        assert_eq!(
            *driver.context().events.last().unwrap(),
            format!("closed {code} Lost"),
            "{ending}"
        );
        assert_eq!((counters.lost(), counters.closed()), (1, 0), "{ending}");
        assert!(!driver.is_alive(), "{ending}");
        assert_eq!(driver.failures(), [""; 0], "{ending}");
    }
}

#[test]
fn a_drain_closes_with_1001_after_pending_messages() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.peer().send(&frame(TEXT, "before"));
    driver.drain(seconds(60));
    assert_eq!(shown_frames(&driver.take_received()), ["text before", "close 1001"]);
    driver.send(&frame(CLOSE, close_payload(1001, "")));
    assert_eq!(driver.context().events.last().unwrap(), "closed 1001 Handler");
}

/// What had arrived when the drain began is handled, even if that takes several turns.
#[test]
fn a_drain_closes_after_all_messages_that_arrived_before_it() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.peer().send(&frame(TEXT, "x").repeat(5_000));
    driver.drain(seconds(60));
    let shown = shown_frames(&driver.take_received());
    let (last, messages) = shown.split_last().expect("there are frames");
    assert_eq!((messages.len(), last.as_str()), (5_000, "close 1001"));
    assert!(messages.iter().all(|message| message == "text x"));
}

/// The answers to what had arrived take more than may be unsent.
#[test]
fn a_drain_closes_after_messages_that_wait_for_room() {
    let (mut driver, _) = open(WebSocketConfig::new().unsent_high_water(1_000));
    driver.limit_room(0);
    driver.peer().send(&frame(TEXT, "x".repeat(100)).repeat(50));
    driver.drain(seconds(60));
    // What comes now is not waited for.
    driver.send(&frame(TEXT, "late"));
    driver.make_room(1_000_000);
    let shown = shown_frames(&driver.take_received());
    let (last, messages) = shown.split_last().expect("there are frames");
    assert_eq!((messages.len(), last.as_str()), (50, "close 1001"));
}

#[test]
fn a_peer_that_goes_on_sending_does_not_delay_the_end_in_a_drain() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.peer().send(&frame(TEXT, "x").repeat(2_000));
    driver.test().instance().handle().drain_with(Drain::new(seconds(60)));
    let mut turns = 0;
    while !shown_frames(&driver.take_received()).contains(&"close 1001".to_string()) {
        driver.peer().send(&frame(TEXT, "x").repeat(2_000));
        driver.test().turn();
        turns += 1;
        // As many as it takes to handle an input of the greatest length.
        assert!(turns < 80, "{turns}");
    }
}

#[test]
fn a_handler_that_drops_is_not_called_again() {
    // As many frames as one turn handles, one fewer, and one more.
    for count in [127, 128, 129] {
        let (mut driver, _) = open(WebSocketConfig::new());
        driver.context_mut().on_wakeup = Some(format!("ping {}", "x".repeat(126)));
        driver.send(&[frame(TEXT, "x").repeat(count - 1), frame(TEXT, "drop")].concat());
        assert!(driver.is_dropped() || driver.is_ended());
        let events = &driver.context().events[120..];
        let end = ["text drop", "closed 1006 Dropped"].map(str::to_string);
        assert!(events.ends_with(&end), "{count}: {events:?}");
    }
}

#[test]
fn a_handler_that_drops_at_its_deadline_is_told_so_though_a_pong_is_late_too() {
    let config = WebSocketConfig::new().ping_after(seconds(3)).pong_within(seconds(4));
    let (mut driver, counters) = open(config);
    driver.send(&frame(TEXT, "alarm"));
    driver.context_mut().on_timeout = Some("drop".to_string());
    driver.advance(seconds(7));
    let events = ["opened /", "text alarm", "timeout", "closed 1006 Dropped"];
    assert_eq!(driver.context().events, events);
    assert_eq!((driver.is_ended(), counters.pong_timeouts()), (true, 0));
}

#[test]
fn a_close_frame_is_sent_even_with_a_zero_close_timeout() {
    for told_by in ["text", "timeout"] {
        let (mut driver, counters) = open(WebSocketConfig::new().close_within(Duration::ZERO));
        if told_by == "text" {
            driver.send(&frame(TEXT, "last word"));
        } else {
            driver.send(&frame(TEXT, "alarm"));
            driver.context_mut().on_timeout = Some("last word".to_string());
            driver.advance(seconds(7));
        }
        driver.advance(seconds(1));
        assert_eq!(
            shown_frames(&driver.take_received()),
            ["text last word", "close 1000"],
            "{told_by}"
        );
        assert!(driver.is_ended());
        assert_eq!(counters.close_timeouts(), 1);
    }
}

/// A server that has closed behind a long message, of which the peer has taken 1,000 bytes.
fn closing_behind_a_long_message() -> (ServerDriver, Arc<Counters>) {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.limit_room(1_000);
    driver.send(&frame(TEXT, "binary 60000"));
    driver.send(&frame(TEXT, "close 4000"));
    (driver, counters)
}

#[test]
fn a_slow_reader_gets_all_that_was_sent_before_the_close_frame() {
    let (mut driver, counters) = closing_behind_a_long_message();
    for _ in 0..6 {
        driver.advance(Duration::from_millis(4_900));
        assert!(!driver.is_ended());
        driver.make_room(10_000);
    }
    let shown = shown_frames(&driver.take_received());
    assert_eq!(shown, ["binary 60000", "close 4000"]);
    // Only now can the peer answer, and it has the whole time for that.
    driver.advance(Duration::from_millis(4_900));
    assert!(!driver.is_ended());
    driver.send(&frame(CLOSE, close_payload(4000, "")));
    assert_eq!(driver.context().events.last().unwrap(), "closed 4000 Handler");
    assert_eq!((counters.closed(), counters.close_timeouts()), (1, 0));
}

#[test]
fn a_reader_that_stops_before_the_close_frame_is_dropped_in_time() {
    for taken in [0, 11_000, 59_000, 60_100] {
        let (mut driver, counters) = closing_behind_a_long_message();
        driver.advance(Duration::from_millis(4_000));
        driver.make_room(taken);
        // What was taken shows when the time is over, except for the last byte.
        let left = if taken == 60_100 { 5_000 } else { 1_000 + if taken > 0 { 5_000 } else { 0 } };
        driver.advance(Duration::from_millis(left - 1));
        assert!(!driver.is_ended(), "{taken}");
        driver.advance(Duration::from_millis(1));
        assert_eq!(driver.context().events.last().unwrap(), "closed 4000 CloseTimeout", "{taken}");
        assert_eq!((counters.closed(), counters.close_timeouts()), (0, 1), "{taken}");
        driver.advance(seconds(10));
        assert!(!driver.is_alive(), "{taken}");
    }
}

/// It may read only when all that it sends is taken.
#[test]
fn messages_are_discarded_while_output_before_the_close_frame_waits() {
    let config = WebSocketConfig::new().unsent_high_water(10_000);
    let (mut driver, _) = open(config);
    driver.limit_room(1_000);
    driver.send(&frame(TEXT, "binary 30000"));
    driver.context_mut().on_wakeup = Some("close 4000".to_string());
    driver.wakeup();
    driver.send(&frame(BINARY, vec![b'x'; 30_000]).repeat(10));
    assert_eq!(driver.unread_len(), 0);
    driver.make_room(100_000);
    assert_eq!(shown_frames(&driver.take_received()), ["binary 30000", "close 4000"]);
}
