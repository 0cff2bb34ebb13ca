//! Which side waits for which: the peer, the disk, the handler.

use std::time::Duration;

use rotor_http::server::ServerConfig;
use rotor_http::{BodyError, Limits};
use rotor_stream::testing::Driver;

use super::{
    Machine, Mirror, OnWakeup, SECOND, answer, driver, driver_with, head, in_chunks, take_answer,
    until, with_length,
};
use crate::place::{SlowDisk, SpoolDirectory, pattern_bytes, wait_until_empty};

#[test]
fn continue_is_sent_once_the_file_is_open() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    driver.send(&head("Content-Length: 10000\r\nExpect: 100-continue"));
    assert_eq!(driver.received_len(), 0, "there may be no space for it");
    // The peer does not time out, since the disk is the slow side.
    driver.advance(Duration::from_secs(50));
    assert_eq!(driver.received_len(), 0);
    disk.release();
    until(&mut driver, |driver| driver.received_len() > 0);
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(&pattern_bytes(10_000));
    assert_eq!(answer(&mut driver), (200, pattern_bytes(10_000)));
    // A body that fits into memory waits for no file.
    disk.hold();
    driver.send(&head("Content-Length: 1000\r\nExpect: 100-continue"));
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(&pattern_bytes(1_000));
    assert_eq!(answer(&mut driver), (200, pattern_bytes(1_000)));
}

#[test]
fn a_slow_disk_pauses_the_peer_without_timing_it_out() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    let body = pattern_bytes(200_000);
    driver.send(&with_length(&body));
    assert_eq!(spool.unwritten_bytes(), 0, "nothing is taken before there is a file");
    let unread = driver.peer().unread_len();
    assert!(unread > 100_000, "{unread}");
    for _ in 0..50 {
        driver.advance(Duration::from_secs(1));
    }
    assert_eq!(driver.peer().unread_len(), unread);
    disk.release();
    until(&mut driver, |driver| driver.peer().unread_len() < unread);
    assert_eq!(answer(&mut driver), (200, body.clone()));
    // Nor does it time out while the disk writes: two pieces and the bytes read with them are
    // pending.
    disk.hold();
    driver.send(&in_chunks(&body, 2_000));
    driver.settle();
    assert!(driver.peer().unread_len() > 100_000);
    driver.advance(Duration::from_secs(50));
    disk.release();
    assert_eq!(answer(&mut driver), (200, body));
    assert_eq!(driver.context().errors, []);
}

#[test]
fn a_stalled_disk_counts_as_handler_time_and_is_a_503() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let limits = Limits::new().handler_timeout(Duration::from_secs(7));
    let mut driver = driver_with(ServerConfig::new().limits(limits).spool(spool.clone()));
    driver.send(&with_length(&pattern_bytes(10_000)));
    driver.advance(Duration::from_secs(6));
    assert_eq!(driver.received_len(), 0);
    driver.advance(Duration::from_secs(2));
    assert!(driver.take_received().starts_with(b"HTTP/1.1 503 "));
    disk.release();
    wait_until_empty(&spool);
    assert!(place.is_empty());
}

#[test]
fn a_slow_peer_times_out_while_the_disk_keeps_up() {
    let place = SpoolDirectory::new();
    let spool = place.spool();
    let mut driver = driver(&spool);
    driver.send(&head("Content-Length: 10000"));
    driver.send(&pattern_bytes(100));
    until(&mut driver, |driver| driver.peer().unread_len() == 0);
    driver.advance(Duration::from_secs(30));
    let mut received = driver.take_received();
    assert!(received.starts_with(b"HTTP/1.1 408 "), "{:?}", take_answer(&mut received));
    assert_eq!(driver.context().errors, [BodyError::TooSlow]);
    wait_until_empty(&spool);
}

#[test]
fn a_handler_is_woken_and_may_hold_the_body_while_it_is_stored() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    let body = pattern_bytes(100_000);
    driver.send(&head("Content-Length: 100000"));
    disk.release();
    driver.send(&body[..1]);
    until(&mut driver, |driver| driver.peer().unread_len() == 0);
    disk.hold();
    driver.send(&body[1..]);
    let unread = driver.peer().unread_len();
    assert!(unread > 10_000, "{unread}");
    // The disk is behind, so the body is paused for two reasons.
    driver.context_mut().on_wakeup = OnWakeup::Hold;
    let notifier = driver.context().notifier.clone().expect("the handler is there");
    let before = driver.context().wakeups;
    notifier.wakeup();
    until(&mut driver, |driver| driver.context().wakeups > before);
    disk.release();
    until(&mut driver, |_| spool.unwritten_bytes() == 0);
    for _ in 0..100 {
        driver.settle();
    }
    assert_eq!(driver.peer().unread_len(), unread, "the handler wants nothing");
    // The reverse: the disk is behind when the handler resumes.
    driver.context_mut().on_wakeup = OnWakeup::More;
    notifier.wakeup();
    assert_eq!(answer(&mut driver), (200, body));
}

/// Sends a request whose file is opened, and whose whole body then waits for the disk.
fn send_to_a_held_disk(driver: &mut Driver<Machine<Mirror>>, disk: &mut SlowDisk) {
    driver.send(&head("Content-Length: 10000\r\nExpect: 100-continue"));
    disk.release();
    until(driver, |driver| driver.received_len() > 0);
    driver.take_received();
    disk.hold();
    driver.send(&pattern_bytes(10_000));
}

#[test]
fn a_body_that_has_arrived_is_delivered_to_a_holding_handler() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    send_to_a_held_disk(&mut driver, &mut disk);
    assert_eq!((driver.peer().unread_len(), spool.unwritten_bytes()), (0, 10_000));
    driver.context_mut().on_wakeup = OnWakeup::Hold;
    let notifier = driver.context().notifier.clone().expect("it was called");
    notifier.wakeup();
    driver.settle();
    assert!(matches!(driver.context().on_wakeup, OnWakeup::Nothing), "it holds now");
    disk.release();
    assert_eq!(answer(&mut driver), (200, pattern_bytes(10_000)));
}

#[test]
fn continue_is_sent_when_a_holding_handler_resumes() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    driver.send(&head("Content-Length: 10000\r\nExpect: 100-continue"));
    let notifier = driver.context().notifier.clone().expect("the handler is there");
    // The handler pauses before the file is open.
    driver.context_mut().on_wakeup = OnWakeup::Hold;
    notifier.wakeup();
    driver.settle();
    assert_eq!(driver.context().wakeups, 1);
    disk.release();
    // The thread reports the open file to the connection, which wakes the handler again.
    until(&mut driver, |driver| driver.context().wakeups > 1);
    assert_eq!(driver.received_len(), 0, "the handler wants nothing");
    driver.context_mut().on_wakeup = OnWakeup::More;
    notifier.wakeup();
    driver.settle();
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(&pattern_bytes(10_000));
    assert_eq!(answer(&mut driver), (200, pattern_bytes(10_000)));
}

#[test]
fn a_response_before_the_deferred_continue_closes_the_connection() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    driver.send(&head("Content-Length: 10000\r\nExpect: 100-continue"));
    let notifier = driver.context().notifier.clone().expect("the handler is there");
    driver.context_mut().on_wakeup = OnWakeup::Respond;
    notifier.wakeup();
    driver.settle();
    let received = String::from_utf8(driver.take_received()).expect("it is text");
    assert!(received.starts_with("HTTP/1.1 409 "), "{received}");
    // The peer may leave the body out, so what it sends next could be either.
    assert!(received.contains("\r\nConnection: close\r\n"), "{received}");
    assert!(driver.is_ended());
    disk.release();
    wait_until_empty(&spool);
}

#[test]
fn a_body_stored_during_a_wait_is_delivered_to_the_next_handler() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    send_to_a_held_disk(&mut driver, &mut disk);
    driver.context_mut().on_wakeup = OnWakeup::Wait;
    let notifier = driver.context().notifier.clone().expect("it was called");
    notifier.wakeup();
    driver.settle();
    assert!(matches!(driver.context().on_wakeup, OnWakeup::Nothing), "it waits now");
    let mut work = |driver: &mut Driver<Machine<Mirror>>| {
        // The work that is queued on the disk, and the work that its results lead to.
        for _ in 0..10 {
            disk.release();
            disk.hold();
            driver.settle();
        }
    };
    work(&mut driver);
    assert_eq!(driver.received_len(), 0, "something else waits in the handler's place");
    driver.advance(SECOND);
    work(&mut driver);
    let answer = take_answer(&mut driver.take_received());
    assert!(answer == Some((200, pattern_bytes(10_000))), "the body is not lost");
}

#[test]
fn a_pipelined_request_waits_for_the_stored_one() {
    let place = SpoolDirectory::new();
    let mut disk = SlowDisk::new();
    let spool = place.config().pool(disk.pool.clone()).open().expect("it can be written");
    let mut driver = driver(&spool);
    let mut both = with_length(&pattern_bytes(9_000));
    both.extend(with_length(b"second"));
    driver.send(&both);
    assert_eq!(driver.received_len(), 0);
    disk.release();
    let mut received = Vec::new();
    until(&mut driver, |driver| {
        received.extend(driver.take_received());
        received.ends_with(b"second")
    });
    assert_eq!(take_answer(&mut received), Some((200, pattern_bytes(9_000))));
    assert_eq!(take_answer(&mut received), Some((200, b"second".to_vec())));
}
