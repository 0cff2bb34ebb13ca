//! Peers that read a response slowly, or may not send: their frames are read, and they do not time
//! out because of the server.

use super::client::{Client, config, data, frame, headers, http2, preface_and_settings};
use crate::probe::{BIG, seconds};

fn window_update(stream: u32, more: u32) -> Vec<u8> {
    frame(8, 0, stream, &more.to_be_bytes())
}

/// A response fills the output while the peer reads nothing. The peer's frames are still read, and
/// the replies are queued after the response.
#[test]
fn a_stalled_response_leaves_room_for_replies_to_other_frames() {
    let mut client = Client::silent(config());
    client.driver.peer().limit_room(0);
    client.send(&[preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat());
    client.get(1, "/big");
    for _ in 0..100 {
        client.send(&frame(6, 0, 0, &[0; 8]));
    }
    client.get(3, "/wait");
    let events = &client.driver.context().events;
    assert_eq!(*events, ["GET /big", "GET /wait"]);
}

/// Above that limit, reading stops until half of the output is sent. Then it resumes, whatever else
/// happens meanwhile.
#[test]
fn reading_resumes_at_half_of_the_output_whatever_else_happens() {
    let mut client = Client::silent(config());
    client.driver.peer().limit_room(0);
    client.send(&[preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat());
    client.get(1, "/big");
    client.get(3, "/wait-for-ever");
    for _ in 0..500 {
        client.send(&frame(6, 0, 0, &[0; 8]));
    }
    client.get(5, "/wait");
    let is_heard = |client: &Client| client.driver.context().events.len() == 3;
    assert!(!is_heard(&client));
    for _ in 0..20 {
        client.driver.make_room(4096);
        client.driver.context().notifier.clone().expect("it waits").wakeup();
        client.driver.settle();
    }
    assert!(is_heard(&client));
    assert!(!client.answer(1).is_whole);
}

/// The rest of the frame may not be read while the output is full.
#[test]
fn a_frame_does_not_time_out_behind_a_slowly_read_response() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.driver.peer().limit_room(0);
    client.send(&[preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat());
    client.get(1, "/big");
    let head = headers(3, "GET", "/authority", &[], true);
    let (first, rest) = head.split_at(head.len() / 2);
    client.send(first);
    for _ in 0..15 {
        client.driver.make_room(2_048);
        client.driver.advance(seconds(1));
    }
    assert_eq!((counters.head_timeouts(), client.driver.is_ended()), (0, false));
    client.send(rest);
    client.driver.make_room(2 * BIG);
    client.read();
    assert_eq!(client.outcome(3), "200 a");
    // If no output is pending, the usual head timeout applies.
    client.send(first);
    client.driver.advance(seconds(11));
    assert_eq!((counters.head_timeouts(), client.driver.is_ended()), (1, true));
}

/// A head is not sent in parts, and other responses must not take all the room that there is.
#[test]
fn a_large_head_does_not_wait_for_the_end_of_another_response() {
    let mut client = Client::silent(config());
    client.driver.peer().limit_room(0);
    client.send(&[preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat());
    client.get(1, "/big");
    client.get(3, "/large-head");
    // Each event of the connection is an attempt to send.
    client.send(&frame(6, 0, 0, &[0; 8]));
    let mut taken = 0;
    while client.answer(3).status == 0 {
        client.driver.make_room(1_024);
        client.read();
        taken += 1_024;
        assert!(taken < 200 << 10, "{} bytes of the other one", client.body_len(1));
    }
    assert!(client.answer(3).is_whole && !client.answer(1).is_whole);
}

/// It may be there, but is not read while the output is above its mark.
#[test]
fn an_acknowledgement_is_not_late_while_no_input_is_read() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.driver.peer().limit_room(0);
    let all = [preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat();
    let (begun, rest) = all.split_at(all.len() - 13 - 9);
    let (acknowledgement, update) = rest.split_at(9);
    client.send(&[begun, update].concat());
    client.get(1, "/big");
    for _ in 0..500 {
        client.send(&frame(6, 0, 0, &[0; 8]));
    }
    client.send(acknowledgement);
    for _ in 0..13 {
        client.driver.make_room(2_048);
        client.driver.advance(seconds(1));
    }
    assert_eq!((counters.settings_timeouts(), client.driver.is_ended()), (0, false));
    client.driver.make_room(2 * BIG);
    client.driver.advance(seconds(13));
    client.read();
    assert_eq!((client.answer(1).is_whole, client.end()), (true, None));
}

/// The WINDOW_UPDATE frames of the body wait behind the response.
#[test]
fn a_body_does_not_time_out_behind_a_slowly_read_response() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::silent(config);
    client.driver.peer().limit_room(0);
    client.send(&[preface_and_settings(&[(4, 4 << 20)]), window_update(0, 4 << 20)].concat());
    client.get(1, "/big");
    client.send(&headers(3, "POST", "/progressive", &[], false));
    let mut sent = 0;
    for second in 0..200 {
        while client.upload(3, 2_048, 0, false) {
            sent += 2_048;
        }
        client.driver.make_room(2_048);
        client.driver.advance(seconds(1));
        client.read();
        assert_eq!(counters.body_timeouts(), 0, "after {second} s");
    }
    assert!(sent > 200_000, "{sent}");
    client.driver.make_room(2 * BIG);
    client.read();
    assert!(client.upload(3, 0, 0, true));
    assert_eq!((client.answer(3).status, client.answer(1).is_whole), (200, true));
    // If no output is pending, the usual body timeout applies.
    client.send(&headers(5, "POST", "/progressive", &[], false));
    client.driver.advance(seconds(6));
    client.read();
    assert_eq!((client.answer(5).status, counters.body_timeouts()), (408, 1));
}

/// A body that its handler does not consume uses up the connection window.
#[test]
fn a_body_does_not_time_out_while_others_hold_the_window() {
    let config = config().http2(http2().connection_window(65_535));
    let counters = config.counters();
    let mut client = Client::new(config);
    client.send(&headers(1, "POST", "/wait-for-ever", &[], false));
    assert!((0..4).all(|piece| client.upload(1, 16_384 - usize::from(piece == 3), 0, false)));
    client.send(&headers(3, "POST", "/progressive", &[], false));
    assert!(!client.upload(3, 1, 0, false), "there is nothing left");
    client.driver.advance(seconds(50));
    client.send(&frame(3, 0, 1, &[0, 0, 0, 8]));
    assert_eq!((client.answer(3).status, counters.body_timeouts()), (0, 0));
    assert!(client.upload(3, 10, 0, true));
    assert_eq!(client.answer(3).status, 200);
    // This lasts at most as long as the handler timeout.
    client.send(&headers(5, "POST", "/wait-for-ever", &[], false));
    assert!((0..3).all(|_| client.upload(5, 16_384, 0, false)));
    while client.upload(5, 1_000, 0, false) {}
    client.send(&headers(7, "POST", "/progressive", &[], false));
    client.driver.advance(seconds(66));
    client.read();
    assert_eq!((client.answer(7).status, counters.body_timeouts()), (408, 1));
}

#[test]
fn a_stream_of_messages_may_be_silent_while_its_handler_waits() {
    let config = config();
    let counters = config.counters();
    let mut client = Client::new(config);
    for (stream, path) in [(1, "/live"), (3, "/progressive")] {
        client.send(&headers(stream, "POST", path, &[], false));
    }
    for _ in 0..3 {
        client.driver.advance(seconds(59));
        assert!(client.answer(1).status == 0 && client.driver.is_alive());
        client.send(&data(1, b"x", false));
    }
    assert_eq!((client.answer(3).status, counters.body_timeouts()), (408, 1), "no stream");
    client.driver.advance(seconds(61));
    client.read();
    assert_eq!((client.answer(1).status, counters.handler_timeouts()), (503, 1));
}
