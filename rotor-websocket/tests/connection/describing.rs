//! How a WebSocket describes itself to people who inspect a loop.

use rotor_core::{Description, Machine};
use rotor_websocket::{Deflate, Room, RoomConfig, WebSocketConfig};

use crate::kit::{BINARY, ServerDriver, TEXT, frame, open, open_deflate, seconds};

/// The description of the only connection of a test.
fn description(driver: &mut ServerDriver) -> Description {
    let mut description = Description::new();
    let machines = driver.test().instance().machines();
    machines.iter().for_each(|(_, machine)| machine.describe(&mut description));
    description
}

#[test]
fn a_connection_describes_its_state_and_message_count() {
    let (mut driver, _) = open(WebSocketConfig::new());
    let mut says = |bytes: &[u8], state: &str, messages| {
        driver.send(bytes);
        let said = description(&mut driver);
        assert_eq!((said.state(), said.messages()), (state, messages));
        driver.advance(seconds(30));
        description(&mut driver).state()
    };
    assert_eq!(says(b"", "open (WebSocket)", 0), "pinged (WebSocket)");
    assert_eq!(says(&frame(TEXT, "one"), "open (WebSocket)", 1), "pinged (WebSocket)");
    let two = [frame(TEXT, "two"), frame(BINARY, "three")].concat();
    assert_eq!(says(&two, "open (WebSocket)", 3), "pinged (WebSocket)");
    // It takes messages again after three seconds.
    assert_eq!(says(&frame(TEXT, "hold"), "held (WebSocket)", 4), "pinged (WebSocket)");
    // A message in pieces counts once, when it is complete.
    let begins = [frame(TEXT, "pieces"), frame(0x01, "begins")].concat();
    says(&begins, "open (WebSocket)", 5);
    says(&frame(0x00, ", goes on"), "open (WebSocket)", 5);
    says(&frame(0x80, ", ends"), "open (WebSocket)", 6);
}

#[test]
fn a_closing_connection_is_described_as_closing() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.send(&frame(TEXT, "close 1000"));
    assert_eq!(description(&mut driver).state(), "closing (WebSocket)");
}

#[test]
fn a_handler_can_set_the_described_state() {
    let (mut driver, _) = open(WebSocketConfig::new());
    driver.context_mut().room = Some(Room::new(RoomConfig::new()));
    driver.send(&frame(TEXT, "join"));
    let said = description(&mut driver);
    assert_eq!((said.state(), said.messages()), ("in the room", 1));
}

#[test]
fn incomplete_messages_and_codecs_count_as_held_bytes() {
    let (mut driver, _) = open(WebSocketConfig::new());
    let before = description(&mut driver).held();
    for first in [0x02, 0x00, 0x00, 0x00] {
        driver.send(&frame(first, [0; 50_000]));
    }
    let held = description(&mut driver).held() - before;
    assert!((200_000..600_000).contains(&held), "{held}");
    driver.send(&frame(0x80, ""));
    driver.take_received();
    assert_eq!(description(&mut driver).messages(), 1);
    let (mut own, _) = open_deflate(Deflate::new().context_takeover(true));
    let (mut shared, _) = open_deflate(Deflate::new());
    let codecs = description(&mut own).held() - description(&mut shared).held();
    assert!((400_000..450_000).contains(&codecs), "{codecs}");
}
