//! Each field of a configuration at its extremes, with a body that goes to a file and one that does
//! not.

use rotor_body::{Body, Faults, Spool, SpoolConfig, SpoolError};

use crate::{Feed, TestDirectory, config, read, wait_until_empty};

type Set = fn(SpoolConfig, usize) -> SpoolConfig;

const FIELDS: [(&str, Set); 10] = [
    ("ram_bytes_max", SpoolConfig::ram_bytes_max),
    ("body_bytes_max", |config, n| config.body_bytes_max(n as u64)),
    ("piece_bytes", SpoolConfig::piece_bytes),
    ("pieces_under_way", SpoolConfig::pieces_under_way),
    ("unwritten_bytes_max", SpoolConfig::unwritten_bytes_max),
    ("all_bytes_max", |config, n| config.all_bytes_max(n as u64)),
    ("files_max", SpoolConfig::files_max),
    // What is kept free is no maximum.
    ("keep_free_bytes", |config, n| config.keep_free_bytes(!(n as u64))),
    ("read_bytes", SpoolConfig::read_bytes),
    ("mode", |config, n| config.mode(n as u32)),
];

/// Each field with each of its extremes, and whether that restricts nothing; then all of them
/// together.
fn extremes(new: impl Fn() -> SpoolConfig) -> Vec<(String, SpoolConfig, bool)> {
    let mut all = Vec::new();
    let [mut least, mut greatest] = [new(), new()];
    for (name, set) in FIELDS {
        for size in [0, 1, usize::MAX] {
            all.push((format!("{name}({size})"), set(new(), size), size == usize::MAX));
        }
        (least, greatest) = (set(least, 0), set(greatest, usize::MAX));
    }
    all.push(("the least of all".to_owned(), least, false));
    all.push(("the greatest of all".to_owned(), greatest, true));
    all
}

fn check(case: &str, result: Result<Body, SpoolError>, len: usize, is_greatest: bool) {
    match result {
        Ok(body) => {
            let expected: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
            assert!(read(&body) == expected, "{case}: other bytes");
        }
        Err(SpoolError::TooLarge | SpoolError::NoRoom | SpoolError::DiskFull(_))
            if !is_greatest => {}
        Err(error) => panic!("{case}: {error:?}"),
    }
}

#[test]
fn with_any_field_at_its_extremes_a_body_is_whole_or_refused() {
    let directory = TestDirectory::new();
    for (name, config, is_greatest) in extremes(|| config(&directory)) {
        let on_disk = config.clone().open().expect("it can be written");
        let in_memory = Spool::in_memory(config, Faults::none());
        for spool in [on_disk, in_memory] {
            for (len, step) in [(0, 1), (500, 7), (10_000, 700)] {
                for announced in [None, Some(len as u64)] {
                    let case = format!("{name}, {len} bytes, announced {announced:?}, {spool:?}");
                    let feed = Feed { announced, ..Feed::new(Some(&spool), len, step) };
                    check(&case, feed.result(), len, is_greatest);
                }
            }
            wait_until_empty(&spool);
        }
    }
}
