//! Connections that end with messages that will not be sent: their peers must not take the end for
//! an orderly one.

use std::sync::Arc;

use rotor_stream::{OutboxError, OutboxFull};

use super::{driver, driver_with_calls, message, small};

#[test]
fn a_lagging_peer_ends_its_connection_if_configured() {
    let config = small().when_full(OutboxFull::End);
    let (mut driver, sender) = driver(&config);
    driver.limit_room(0);
    for number in 0..5 {
        let sent = sender.send(message(number));
        assert_eq!(sent.is_ok(), number < 4);
    }
    driver.settle();
    assert!(driver.is_dropped() && !sender.is_open());
    assert_eq!(driver.failures().len(), 1);
    assert!(driver.failures()[0].contains("its peer does not read"), "{:?}", driver.failures());
    assert!(matches!(sender.send("more"), Err(OutboxError::Closed(_))));
    assert_eq!(config.counters().ended(), 1);
}

#[test]
fn a_lagging_peer_sees_no_orderly_end_of_a_protocol_that_is_done() {
    for in_place in [false, true] {
        let config = small().when_full(OutboxFull::End);
        let (mut driver, sender) = driver_with_calls(&config, in_place);
        driver.limit_room(0);
        // The protocol is called for its input before it is woken.
        driver.peer().send(b"quit\n");
        for number in 0..5 {
            assert_eq!(sender.send(message(number)).is_ok(), number < 4);
        }
        driver.settle();
        assert!(driver.is_dropped());
        assert_eq!((driver.operations().shutdowns, driver.operations().resets), (0, 1));
        assert!(driver.failures()[0].contains("its peer does not read"), "{:?}", driver.failures());
    }
}

/// The senders were faster than the loop, and nothing waits in the output: an ordinary end would
/// tell the peer that it has everything.
#[test]
fn a_peer_whose_messages_are_lost_sees_a_reset_even_if_its_output_is_empty() {
    for in_place in [false, true] {
        for line in [&b""[..], b"quit\n", b"fail\n"] {
            let config = small().when_full(OutboxFull::End);
            let (mut driver, sender) = driver_with_calls(&config, in_place);
            driver.peer().send(line);
            for number in 0..5 {
                assert_eq!(sender.send(message(number)).is_ok(), number < 4);
            }
            driver.settle();
            assert!(driver.is_dropped());
            assert_eq!((driver.operations().shutdowns, driver.operations().resets), (0, 1));
        }
    }
}

#[test]
fn a_protocol_that_fails_before_accepted_messages_are_sent_resets_its_connection() {
    for in_place in [false, true] {
        for messages in 0..2 {
            let (mut driver, sender) = driver_with_calls(&small(), in_place);
            driver.peer().send(b"fail\n");
            (0..messages).for_each(|number| sender.send(message(number)).expect("there is room"));
            driver.settle();
            assert!(driver.is_dropped());
            assert_eq!(driver.operations().resets, messages);
        }
    }
}

#[test]
fn messages_of_a_lost_connection_are_freed_although_a_sender_remains() {
    let (mut driver, sender) = driver(&small());
    driver.limit_room(0);
    let shared: Arc<[u8]> = Arc::from(&b"many get this\n"[..]);
    for _ in 0..4 {
        sender.send(shared.clone()).expect("there is room");
    }
    driver.settle();
    assert_eq!((sender.len(), Arc::strong_count(&shared)), (3, 4));
    driver.reset();
    assert!(driver.is_dropped() && !sender.is_open());
    assert_eq!((sender.len(), sender.bytes(), Arc::strong_count(&shared)), (0, 0, 1));
}
