//! Tunnels whose peers are late, send without end, or leave a frame incomplete.

use super::client::data;
use super::tunnels::client_with_relay;
use crate::probe::seconds;

#[test]
fn no_orderly_end_follows_discarded_output_of_a_tunnel() {
    // The protocol ends its output before the peer is late, or afterwards.
    for is_before in [true, false] {
        let mut client = client_with_relay();
        client.send(&data(1, b"H", false));
        client.driver.context_mut().words = "end".to_owned();
        let notifier = client.driver.context().notifier.clone().expect("it was made");
        if is_before {
            notifier.wakeup();
        }
        client.driver.advance(seconds(20));
        if !is_before {
            notifier.wakeup();
        }
        client.driver.settle();
        client.read();
        assert_eq!(client.outcome(1), "200 cut", "{is_before}");
        // Its own end.
        client.driver.drain(seconds(30));
        client.read();
        assert_eq!(client.answer(1).reset, Some(8), "{is_before}");
    }
}

#[test]
fn a_drain_reaches_tunnels_while_a_frame_is_incomplete() {
    // Frames are handled in batches of 64.
    for frames in (0..20).map(|batches| batches * 64) {
        let mut client = client_with_relay();
        let whole = data(1, b".", false).repeat(frames);
        client.driver.peer().send(&[whole, data(1, b"abc", false)[..10].to_vec()].concat());
        client.driver.drain(seconds(30));
        client.read();
        assert_eq!(client.answer(1).text(), "hellobye", "{frames}");
    }
}

#[test]
fn a_flood_does_not_put_off_the_deadline_of_a_tunnel() {
    let mut client = client_with_relay();
    client.send(&data(1, b"T", false));
    client.driver.peer().send(&data(1, &[b'.'; 16_000], false).repeat(4));
    client.driver.test().turn();
    client.driver.test().world().advance(seconds(10));
    client.driver.test().turn();
    client.read();
    assert_eq!(client.answer(1).text(), "hello<T>late");
}
