//! What handlers send, and peers that do not read it.

use rotor_websocket::{Kind, WebSocketConfig};

use crate::kit::{PING, TEXT, frame, frames, open, seconds, shown_frames};

#[test]
fn a_message_can_be_sent_in_pieces() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "fragments a b"));
    assert_eq!(shown_frames(&driver.take_received()), ["0x1 a", "0x0 b", "0x80 "]);
    driver.send(&frame(TEXT, "ping hello"));
    assert_eq!(shown_frames(&driver.take_received()), ["ping hello"]);
    driver.send(&frame(TEXT, format!("ping {}", "x".repeat(126))));
    assert_eq!(driver.context().events.last().unwrap(), "not sent: TooLong");
    assert_eq!(format!("{:?}", Kind::Text), "Text");
}

#[test]
fn prepared_messages_are_sent_unchanged() {
    for len in [0, 10, 600, 70_000] {
        let (mut driver, _) = open(WebSocketConfig::new());
        let text = "x".repeat(len);
        driver.send(&frame(TEXT, format!("prepared {text}")));
        assert!(frames(&driver.take_received()) == [(TEXT, text.into_bytes())], "{len}");
    }
}

#[test]
fn a_handler_continues_sending_when_there_is_room_again() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 300000"));
    let events = &driver.context().events;
    assert!(events[2].starts_with("full at 6"), "{events:?}");
    driver.make_room(1_000_000);
    assert_eq!(frames(&driver.take_received()).len(), 300);
    assert!(counters.sends_refused() >= 4, "{}", counters.sends_refused());
    // Each time, half of the mark was still unsent.
    let flushed = driver.context().events.iter().filter(|event| event.starts_with("flushed to "));
    assert!(flushed.count() >= 4, "{:?}", driver.context().events);
}

/// The stream has its own mark and reads while less than that is unsent, so a message that arrives
/// with the room is read first.
#[test]
fn flushed_is_called_even_if_a_message_arrives_with_the_room() {
    let (mut driver, _) = open(WebSocketConfig::new().unsent_high_water(200_000));
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 150000"));
    driver.send(&frame(TEXT, "hello"));
    driver.make_room(1_000_000);
    let expected = ["opened /", "text owe 150000", "text hello", "flushed to 7"];
    assert_eq!(driver.context().events, expected);
    driver.make_room(1_000_000);
    driver.send(&frame(TEXT, "again"));
    assert_eq!(driver.context().events[4..], ["text again"], "it was told once");
}

#[test]
fn a_peer_that_does_not_read_is_sent_no_more_and_not_read() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.limit_room(0);
    for _ in 0..100 {
        driver.send(&frame(TEXT, "x".repeat(10_000)));
    }
    // Seven messages reach the mark. The others wait in the socket, and so do pings.
    let heard = driver.context().events.len();
    assert!((7..=9).contains(&heard), "{heard}");
    assert!(driver.unread_len() > 700_000, "{}", driver.unread_len());
    driver.send(&frame(PING, ""));
    driver.make_room(2_000_000);
    let back = shown_frames(&driver.take_received());
    assert_eq!((back.len(), back.last().map(String::as_str)), (101, Some("pong")));
    assert_eq!(driver.failures(), [""; 0]);
}

#[test]
fn a_peer_that_does_not_read_for_too_long_is_dropped() {
    let (mut driver, counters) = open(WebSocketConfig::new());
    driver.limit_room(0);
    driver.send(&frame(TEXT, "owe 300000"));
    driver.advance(seconds(60));
    assert!(driver.is_dropped());
    assert_eq!(driver.context().events.last().unwrap(), "closed 1006 Lost");
    assert_eq!(counters.lost(), 1);
}

/// In whatever pieces it is received and sent: from 4 KiB on it is sent from its input buffer.
#[test]
fn a_long_message_is_echoed_unchanged() {
    for len in [4095, 4096, 16_384, 32_768, 32_769, 70_000] {
        let text: String = ('a'..='z').cycle().take(len).collect();
        let sent = frame(TEXT, &text);
        let expected = [(TEXT, text.into_bytes())];
        for cut in [0, 1, 8, 9, len / 2, len + 7] {
            let (mut driver, _) = open(WebSocketConfig::new());
            driver.limit_room(len / 3);
            for turn in 0..3 {
                driver.send(&sent[..cut]);
                driver.send(&sent[cut..]);
                driver.make_room(len / 2);
                driver.make_room(2 * len);
                assert!(frames(&driver.take_received()) == expected, "{len} at {cut}, {turn}");
                driver.limit_room(len / 3);
            }
            assert_eq!(driver.failures(), [""; 0]);
        }
        // Two messages in one piece, and a ping.
        let (mut driver, _) = open(WebSocketConfig::new());
        driver.send(&[&sent[..], &sent, &frame(PING, "")].concat());
        let back = frames(&driver.take_received());
        assert!(back[..2] == [&expected[..], &expected].concat(), "{len}");
        assert_eq!(back.len(), 3);
    }
}

#[test]
fn a_close_frame_follows_an_echoed_long_message() {
    let (mut driver, _) = open(WebSocketConfig::new());
    let text = format!("last {}", "x".repeat(10_000));
    driver.send(&frame(TEXT, &text));
    let back = frames(&driver.take_received());
    assert!(back[0] == (TEXT, text.into_bytes()));
    assert_eq!((back.len(), &back[1].1[..]), (2, &b"\x03\xe8"[..]));
}
