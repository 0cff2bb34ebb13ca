//! What all bodies hold together: memory, unwritten bytes, files.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rotor_body::{Body, SpoolError};
use rotor_core::OffloadPool;
use rotor_stream::BytesHeld;

use crate::{Feed, TestDirectory, config, read, wait_until_empty};

#[test]
fn a_body_of_another_length_than_announced_counts_as_it_arrives() {
    let directory = TestDirectory::new();
    for announced in [10, 1_001, 9_999] {
        let spool = config(&directory).all_bytes_max(10_000).open().expect("it can be written");
        let mut feed = Feed::new(Some(&spool), 10_000, 1_000);
        feed.announced = Some(announced);
        let body = feed.result().expect("there is room for that");
        assert_eq!((body.len(), spool.bytes()), (10_000, 10_000));
        drop(body);
        wait_until_empty(&spool);
        let mut feed = Feed::new(Some(&spool), 10_001, 1_000);
        feed.announced = Some(announced);
        let error = feed.result().expect_err("it has grown past what all may hold");
        assert!(matches!(error, SpoolError::NoRoom), "{error:?}");
        wait_until_empty(&spool);
    }
    let spool = config(&directory).open().expect("it can be written");
    let mut feed = Feed::new(Some(&spool), 5_000, 1_000);
    feed.announced = Some(10_000);
    let body = feed.result().expect("an end is an end");
    assert_eq!(read(&body).len(), 5_000);
}

#[test]
fn exhausted_memory_sends_bodies_to_files() {
    let directory = TestDirectory::new();
    let spool = config(&directory).open().expect("it can be written");
    let mut feed = Feed::new(Some(&spool), 900, 100);
    feed.memory = BytesHeld::new(500);
    let bytes = feed.bytes.clone();
    let body = feed.result().expect("there is a file");
    assert!(!body.is_in_memory() && read(&body) == bytes);
}

#[test]
fn unwritten_bytes_are_bounded_for_all_bodies() {
    let directory = TestDirectory::new();
    for (max, most) in [(0, 1_000 + 1_000), (3_000, 3_000), (1 << 20, 2 * 4_000)] {
        let spool = config(&directory).unwritten_bytes_max(max).open().expect("it can be written");
        let mut feed = Feed::new(Some(&spool), 100_000, 1_000);
        feed.announced = Some(100_000);
        let expected = feed.bytes.clone();
        let feed = feed.run();
        assert!(feed.unwritten_max <= most, "{} with {max}", feed.unwritten_max);
        let body = feed.whole.expect("it came to something").expect("nothing fails");
        assert!(read(&body) == expected);
    }
}

#[test]
fn bytes_waiting_for_a_file_are_always_counted() {
    let directory = TestDirectory::new();
    for (max, is_unwritten) in [(0, false), (1 << 20, true)] {
        let pool = OffloadPool::new(1, 10);
        let config = config(&directory).unwritten_bytes_max(max).pool(pool.clone());
        let spool = config.open().expect("it can be written");
        // The only thread runs this job first, so it opens no file before the waiting bytes are
        // counted.
        let feed = Feed::new(Some(&spool), 10_000, 1_000);
        let (of_thread, memory) = (spool.clone(), feed.memory.clone());
        let counted = Arc::new(AtomicU32::new(0));
        let sees = counted.clone();
        let is_taken = pool.offer(&mut || {
            let (spool, memory, sees) = (of_thread.clone(), memory.clone(), sees.clone());
            Box::new(move || {
                // 1,000 bytes that memory keeps, and another 1,000 that it does not.
                while spool.files() == 0 {
                    std::thread::yield_now();
                }
                let bytes = if is_unwritten { spool.unwritten_bytes() } else { memory.bytes() };
                sees.store(bytes as u32, Relaxed);
            })
        });
        assert!(is_taken);
        drop(feed.result().expect("nothing fails"));
        let least = if is_unwritten { 2_000 } else { 1_000 };
        assert_eq!(counted.load(Relaxed), least, "{max}");
        wait_until_empty(&spool);
    }
}

#[test]
fn a_file_that_an_output_still_sends_counts_until_it_is_closed() {
    let directory = TestDirectory::new();
    let spool = config(&directory).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 10_000, 1_000).result().expect("nothing fails");
    let Body::File(file) = &body else { panic!("it is in a file") };
    let (sent, offset) = file.file().expect("it is on a disk");
    assert_eq!(offset, 0);
    drop(body);
    assert_eq!((spool.files(), spool.bytes()), (1, 10_000), "an output has it");
    drop(sent);
    // The next body causes the file to be closed.
    let next = Feed::new(Some(&spool), 2_000, 1_000).result().expect("nothing fails");
    while spool.files() > 1 {
        std::thread::yield_now();
    }
    assert_eq!(spool.bytes(), 2_000);
    drop(next);
    wait_until_empty(&spool);
}

#[test]
fn the_place_of_a_sent_file_is_free_before_it_is_closed() {
    let directory = TestDirectory::new();
    let pool = OffloadPool::new(1, 10);
    let spool =
        config(&directory).files_max(1).pool(pool.clone()).open().expect("it can be written");
    let body = Feed::new(Some(&spool), 10_000, 1_000).result().expect("nothing fails");
    let Body::File(file) = &body else { panic!("it is in a file") };
    let sent = file.file().expect("it is on a disk");
    drop(body);
    drop(sent);
    // The thread that is to close the file is busy until the next body has its room.
    let of_thread = spool.clone();
    let is_taken = pool.offer(&mut || {
        let spool = of_thread.clone();
        Box::new(move || {
            while spool.bytes() != 2_000 {
                std::thread::yield_now();
            }
        })
    });
    assert!(is_taken);
    let mut next = Feed::new(Some(&spool), 2_000, 1_000);
    next.announced = Some(2_000);
    drop(next.result().expect("there is room for one file"));
    wait_until_empty(&spool);
}
