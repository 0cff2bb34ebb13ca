//! Disks that fail, directories that cannot be used, and peers that disconnect.

use std::fs;

use rotor_body::{Dir, Faults, Spool, SpoolConfig, SpoolError};
use rotor_stream::BytesHeld;

use crate::{Feed, TestDirectory, config, wait_until_empty};

#[test]
fn each_fault_is_reported_and_leaves_nothing() {
    use SpoolError as E;
    type Is = fn(&SpoolError) -> bool;
    let directory = TestDirectory::new();
    let full: Is = |error| matches!(error, E::DiskFull(_));
    let broken: Is = |error| matches!(error, E::Disk(_));
    let no_descriptor: Is = |error| matches!(error, E::NoDescriptor(_));
    let too_large: Is = |error| matches!(error, E::TooLarge);
    let no_room: Is = |error| matches!(error, E::NoRoom);
    let with = |faults: Faults| Spool::in_memory(config(&directory), faults);
    let limited = |config: SpoolConfig| Some(Spool::in_memory(config, Faults::none()));
    let rows: [(Option<Spool>, Is); 12] = [
        (Some(with(Faults::none().full_at(0))), full),
        (Some(with(Faults::none().full_at(9_999))), full),
        (Some(with(Faults::none().short_writes(100).full_at(5_000))), full),
        (Some(with(Faults::none().broken_at(0))), broken),
        (Some(with(Faults::none().broken_at(9_999))), broken),
        (Some(with(Faults::none().without_descriptor())), no_descriptor),
        (Some(with(Faults::none().without_directory())), broken),
        (None, too_large),
        (limited(config(&directory).body_bytes_max(9_999)), too_large),
        (limited(config(&directory).all_bytes_max(9_999)), no_room),
        (limited(config(&directory).files_max(0)), no_room),
        // Without a spool, full memory leaves no room.
        (None, no_room),
    ];
    for (number, (spool, is_expected)) in rows.into_iter().enumerate() {
        for is_announced in [false, true] {
            let mut feed = Feed::new(spool.as_ref(), 10_000, 100);
            feed.announced = is_announced.then_some(10_000);
            if number == 7 {
                feed.bytes_max = 9_999;
            }
            feed.memory = BytesHeld::new(if number == 11 { 5_000 } else { 1 << 20 });
            let memory = feed.memory.clone();
            let error = feed.result().expect_err("it fails");
            assert!(is_expected(&error), "row {number}: {error:?}");
            assert_eq!(memory.bytes(), 0);
            spool.iter().for_each(wait_until_empty);
        }
    }
}

#[test]
fn a_full_disk_is_detected_before_anything_is_accepted() {
    let directory = TestDirectory::new();
    let keep_all =
        config(&directory).keep_free_bytes(u64::MAX).open().expect("nothing is written yet");
    for announced in [None, Some(10_000)] {
        let mut feed = Feed::new(Some(&keep_all), 10_000, 100);
        feed.announced = announced;
        let error = feed.result().expect_err("nothing may be written");
        assert!(matches!(error, SpoolError::DiskFull(_)), "{error:?}");
        wait_until_empty(&keep_all);
    }
}

#[test]
fn a_body_that_is_aborted_leaves_nothing() {
    let directory = TestDirectory::new();
    let spool = config(&directory).open().expect("it can be written");
    for abort_at in [0, 500, 1_500, 50_000, 99_999] {
        for announced in [None, Some(100_000)] {
            let mut feed = Feed::new(Some(&spool), 100_000, 1_000);
            (feed.abort_at, feed.announced) = (abort_at, announced);
            assert!(feed.run().whole.is_none());
            wait_until_empty(&spool);
            assert_eq!(directory.names(), [""; 0]);
        }
    }
}

#[test]
fn an_unusable_directory_is_refused_at_once() {
    let directory = TestDirectory::new();
    fs::write(directory.join("file"), "").expect("it can be written");
    for name in ["missing", "file"] {
        let path = directory.join(name);
        let spool = SpoolConfig::new(&path).open().expect_err(name);
        let dir = Dir::open(&path).expect_err(name);
        for error in [spool, dir] {
            assert!(error.to_string().contains(&format!(" {}: ", path.display())), "{error}");
        }
    }
}
