//! The conversion into a message runs the sender's own code.
#![expect(clippy::disallowed_methods, reason = "tests play the outside world: its threads")]

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rotor_stream::{Block, OutboxConfig, OutboxSender};

use super::driver;

/// Reads the outbox from another thread while it is converted into a message.
struct InspectingMessage {
    sender: OutboxSender,
    found: mpsc::Sender<Option<usize>>,
}

impl From<InspectingMessage> for Block {
    fn from(InspectingMessage { sender, found }: InspectingMessage) -> Block {
        let (len_sender, len_receiver) = mpsc::channel();
        thread::spawn(move || len_sender.send(sender.len()));
        // Only a failing test waits this long.
        let len = len_receiver.recv_timeout(Duration::from_secs(60)).ok();
        found.send(len).expect("the test waits");
        Block::from("made")
    }
}

#[test]
fn the_outbox_can_be_used_while_a_message_is_converted() {
    let (mut driver, sender) = driver(&OutboxConfig::new());
    let (found, has_found) = mpsc::channel();
    sender.send(InspectingMessage { sender: sender.clone(), found }).expect("there is room");
    assert_eq!(has_found.recv(), Ok(Some(0)));
    driver.settle();
    assert_eq!(driver.take_received(), b"made");
}
