//! Bodies that are stored under a name.

use std::fs;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;

use rotor_body::{Body, Dir, Faults, IfExists, Spool, SpoolConfig};
use rotor_stream::Block;

use crate::{Feed, TestDirectory, config, read};

/// A body of every kind, with `len` bytes.
fn of_every_kind(spool: &Spool, len: usize) -> Vec<(&'static str, Body)> {
    let whole = Feed::new(Some(spool), len, 1_000).result().expect("nothing fails");
    let mut around = Feed::new(Some(spool), len + 2_000, 1_000);
    let bytes: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
    around.bytes = [&[7; 1_000][..], &bytes, &[7; 1_000]].concat();
    let part = around.result().expect("nothing fails").slice(1_000..1_000 + len as u64);
    let longer = Feed::new(Some(spool), len + 1, 1_000).result().expect("nothing fails");
    let blocks = bytes.chunks(700).map(|chunk| Block::from(chunk.to_vec())).collect();
    let in_memory = Spool::in_memory(SpoolConfig::new("").ram_bytes_max(0), Faults::none());
    let no_disk = Feed::new(Some(&in_memory), len, 1_000).result().expect("nothing fails");
    vec![
        ("file", whole),
        ("part of a file", part),
        ("beginning of a file", longer.slice(..len as u64)),
        ("blocks", blocks),
        ("block", Body::from(bytes)),
        ("no disk", no_disk),
    ]
}

#[test]
fn a_body_of_every_kind_is_stored_under_its_name_only() {
    let (spooled, kept) = (TestDirectory::new(), TestDirectory::new());
    let spool = config(&spooled).open().expect("it can be written");
    let dir = Dir::open(&*kept).expect("it is there");
    for (kind, body) in of_every_kind(&spool, 5_000) {
        for (how, is_there, syncs) in [
            (IfExists::New, false, false),
            (IfExists::New, true, false),
            (IfExists::Replace, true, true),
            (IfExists::Replace, true, false),
            (IfExists::Replace, false, false),
        ] {
            let path = kept.join("name");
            // The old file is not overwritten: it is the body itself.
            drop(fs::remove_file(&path));
            if is_there {
                fs::write(&path, "before").expect("it can be written");
            }
            let job = body.store_in(&dir, "name", how).mode(0o640);
            let stored = if syncs { job.sync().run() } else { job.run() };
            let found = fs::read(&path).expect("something is there");
            if how == IfExists::New && is_there {
                let error = stored.expect_err("the name is taken");
                assert_eq!(error.kind(), std::io::ErrorKind::AlreadyExists, "{kind}");
                assert_eq!(found, b"before", "{kind}");
            } else {
                stored.unwrap_or_else(|error| panic!("{kind} {how:?}: {error}"));
                assert!(found == read(&body), "{kind} {how:?}");
                use std::os::unix::fs::MetadataExt;
                let mode = fs::metadata(&path).expect("it is there").mode();
                assert_eq!(mode & 0o777, 0o640, "{kind} {how:?}");
            }
            assert_eq!(kept.names(), ["name"], "{kind} {how:?}");
        }
        fs::remove_file(kept.join("name")).expect("it is there");
    }
    assert_eq!(spooled.names(), [""; 0]);
}

#[test]
fn an_invalid_name_or_a_removed_directory_is_refused() {
    let kept = TestDirectory::new();
    let dir = Dir::open(&*kept).expect("it is there");
    let body = Body::from("x");
    for name in ["", ".", "..", "a/b", "/etc/passwd", "a\0b", "../a"] {
        for how in [IfExists::New, IfExists::Replace] {
            let error = body.store_in(&dir, name, how).run().expect_err("it is none");
            assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput, "{name:?}");
        }
    }
    fs::create_dir(kept.join("folder")).expect("it can be made");
    for how in [IfExists::New, IfExists::Replace] {
        assert!(body.store_in(&dir, "folder", how).run().is_err(), "a directory is not replaced");
    }
    assert_eq!(kept.names(), ["folder"]);
    fs::remove_dir(kept.join("folder")).expect("it is empty");
    fs::remove_dir(&*kept).expect("it is empty");
    assert!(body.store_in(&dir, "name", IfExists::New).run().is_err());
}

#[test]
fn only_one_of_several_concurrent_jobs_gets_a_new_name() {
    let (spooled, kept) = (TestDirectory::new(), TestDirectory::new());
    let spool = config(&spooled).open().expect("it can be written");
    let dir = Dir::open(&*kept).expect("it is there");
    let bodies = of_every_kind(&spool, 5_000);
    let stored = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for (_, body) in &bodies {
            scope.spawn(|| {
                if body.store_in(&dir, "name", IfExists::New).run().is_ok() {
                    stored.fetch_add(1, Relaxed);
                }
            });
        }
    });
    assert_eq!((stored.into_inner(), kept.names()), (1, vec!["name".to_owned()]));
}
