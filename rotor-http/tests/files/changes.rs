//! Cached files, and files that change, grow or shrink while they are served.

use std::fs::{self, File, Metadata};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rotor_core::{Config, OffloadPool};
use rotor_http::files::FilesConfig;

use crate::site::{PATIENCE, Site, TEXT, Tree, receive, receive_head, send};

#[test]
fn pipelined_requests_are_answered_in_order_cached_or_not() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    let mut client = site.connect();
    let targets = ["/text.txt", "/nothing", "/", "/text.txt", "/sub/", "/empty", "/text.txt"];
    let requests: String =
        targets.iter().map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n")).collect();
    client.write_all(requests.as_bytes()).expect("the server takes it");
    let bodies: Vec<Vec<u8>> = targets.iter().map(|_| receive(&mut client, false).body).collect();
    assert_eq!(bodies, [TEXT, b"404 Not Found\n", b"the index", TEXT, b"the sub index", b"", TEXT]);
}

#[test]
fn a_changed_file_is_seen_after_the_renewal_time() {
    let tree = Tree::new();
    let always = FilesConfig::new(tree.root()).renew_after(Duration::ZERO);
    let site = Site::start(always, Config::new());
    let first = site.get("/text.txt", "");
    let tag = first.field("ETag").expect("a tag");
    fs::write(tree.root().join("text.txt"), "changed").expect("it is ours");
    let reply = site.get("/text.txt", &format!("If-None-Match: {tag}\r\n"));
    assert_eq!((reply.status, &reply.body[..]), (200, &b"changed"[..]));
    fs::remove_file(tree.root().join("text.txt")).expect("it is ours");
    assert_eq!(site.get("/text.txt", "").status, 404);
}

/// Deployments often set one date for all files, and an index page that names another script may have
/// its old length.
#[test]
fn a_file_rewritten_with_its_old_date_and_length_has_another_tag() {
    let tree = Tree::new();
    let always = FilesConfig::new(tree.root()).renew_after(Duration::ZERO);
    let site = Site::start(always, Config::new());
    let first = site.get("/text.txt", "");
    let tag = first.field("ETag").expect("a tag");
    let path = tree.root().join("text.txt");
    let before = fs::metadata(&path).expect("it is there");
    let changed = |metadata: &Metadata| (metadata.ctime(), metadata.ctime_nsec());
    // Again if the clock of the file system stands still meanwhile.
    while changed(&fs::metadata(&path).expect("it is there")) == changed(&before) {
        fs::write(&path, [b'x'; TEXT.len()]).expect("it is ours");
        let file = File::options().write(true).open(&path).expect("it is ours");
        file.set_modified(before.modified().expect("it has one")).expect("it is ours");
    }
    for fields in
        [format!("If-None-Match: {tag}\r\n"), format!("Range: bytes=1-\r\nIf-Range: {tag}\r\n")]
    {
        let reply = site.get("/text.txt", &fields);
        assert_eq!((reply.status, &reply.body[..]), (200, &[b'x'; TEXT.len()][..]), "{fields}");
        assert_eq!(reply.field("Last-Modified"), first.field("Last-Modified"));
    }
}

/// Serves a file, changes it, and requests it until the status is the expected one, and once more.
fn change_a_served_file(change: impl FnOnce(&Path), expected: u16) {
    let tree = Tree::new();
    let sometimes = FilesConfig::new(tree.root()).renew_after(Duration::from_millis(500));
    let site = Site::start(sometimes, Config::new());
    let mut client = site.connect();
    let mut status = || {
        send(&mut client, "GET", "/text.txt", "");
        receive(&mut client, false).status
    };
    assert_eq!(status(), 200);
    change(&tree.root().join("text.txt"));
    // The cached file is served until a request renews it. Meanwhile other requests may get the old
    // one for as long again, but not after the renewal.
    let begun = Instant::now();
    while status() != expected {
        assert!(begun.elapsed() < PATIENCE, "it is shown forever");
    }
    assert_eq!(status(), expected);
}

#[test]
fn a_file_found_removed_is_no_longer_served() {
    change_a_served_file(|file| fs::remove_file(file).expect("it is ours"), 404);
}

#[test]
fn a_file_found_replaced_by_a_directory_is_no_longer_served() {
    let replace = |file: &Path| {
        fs::remove_file(file).expect("it is ours");
        fs::create_dir(file).expect("it is ours");
    };
    change_a_served_file(replace, 301);
}

#[test]
fn a_cached_file_is_not_looked_up_again() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).renew_after(PATIENCE), Config::new());
    assert_eq!(site.get("/text.txt", "").status, 200);
    fs::rename(tree.root().join("text.txt"), tree.root().join("moved.txt")).expect("it is ours");
    assert_eq!(site.get("/text.txt", "").body, TEXT, "it is held");
    assert_eq!(site.get("/moved.txt", "").body, TEXT);
    // A file that is too large for memory is kept open.
    let large = vec![b'x'; 100_000];
    tree.write("root/large", &large);
    assert_eq!(site.get("/large", "").body, large);
    fs::rename(tree.root().join("large"), tree.root().join("larger")).expect("it is ours");
    assert_eq!(site.get("/large", "").body, large, "it is held open");

    let forgetful = FilesConfig::new(tree.root()).renew_after(PATIENCE).known_files_max(0);
    let site = Site::start(forgetful, Config::new());
    assert_eq!(site.get("/moved.txt", "").status, 200);
    fs::rename(tree.root().join("moved.txt"), tree.root().join("text.txt")).expect("it is ours");
    assert_eq!(site.get("/moved.txt", "").status, 404, "nothing is held");
}

#[test]
fn a_full_offload_pool_is_answered_with_503() {
    let tree = Tree::new();
    let pool = OffloadPool::new(1, 1);
    let site = Site::start(FilesConfig::new(tree.root()), Config::new().offload_pool(pool.clone()));
    assert_eq!(site.get("/text.txt", "").status, 200);
    let (begun, has_begun) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let mut job = Some(move || {
        begun.send(()).expect("the test waits");
        let _ = released.recv();
    });
    while !pool.offer(&mut || Box::new(job.take().expect("called once"))) {
        thread::yield_now();
    }
    has_begun.recv_timeout(PATIENCE).expect("the thread runs it");
    assert!(pool.offer(&mut || Box::new(|| {})), "one may wait");
    let reply = site.get("/sub/", "");
    assert_eq!((reply.status, reply.field("Retry-After")), (503, Some("1")));
    drop(release);
    while site.get("/sub/", "").status != 200 {
        thread::yield_now();
    }
}

#[test]
fn a_file_of_any_size_comes_whole() {
    let tree = Tree::new();
    let big: Vec<u8> = (0..3_000_001_u32).map(|at| (at % 251) as u8).collect();
    tree.write("root/big", &big);
    let site = Site::of(&tree);
    let mut client = site.connect();
    for fields in
        ["", "Range: bytes=1000000-2999999\r\n", "Range: bytes=0-999999,2000000-2999999\r\n"]
    {
        send(&mut client, "GET", "/big", fields);
        let reply = receive(&mut client, false);
        match reply.status {
            200 => assert!(reply.body == big),
            _ if fields.contains(',') => {
                let count = |part: &[u8]| {
                    reply.body.windows(part.len()).filter(|found| *found == part).count()
                };
                assert!(count(&big[..1_000_000]) == 1 && count(&big[2_000_000..3_000_000]) == 1);
            }
            _ => assert!(reply.body == big[1_000_000..3_000_000]),
        }
    }
}

#[test]
fn a_small_file_is_served_consistently_while_it_changes() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).renew_after(PATIENCE), Config::new());
    let first = site.get("/text.txt", "");
    // In place, so that a change of an open file would be seen.
    fs::write(tree.root().join("text.txt"), "short").expect("it is ours");
    let again = site.get("/text.txt", "");
    assert_eq!(
        (&again.body[..], again.field("ETag")),
        (TEXT, first.field("ETag")),
        "body and tag belong together"
    );
    assert_eq!(site.get("/text.txt", "Range: bytes=30-\r\n").body, TEXT[30..]);
}

#[test]
fn a_growing_file_is_sent_with_its_original_length() {
    let tree = Tree::new();
    const SIZE: u64 = 64 << 20;
    let path = tree.root().join("growing");
    // More than any buffers hold.
    File::create(&path).and_then(|file| file.set_len(SIZE)).expect("a file with a hole");
    let site = Site::of(&tree);
    let mut client = site.connect();
    send(&mut client, "GET", "/growing", "");
    send(&mut client, "GET", "/text.txt", "");
    let reply = receive_head(&mut client);
    File::options()
        .append(true)
        .open(&path)
        .and_then(|mut file| file.write_all(b"more"))
        .expect("it is ours");
    let mut body = (&mut client).take(SIZE);
    let sent = std::io::copy(&mut body, &mut std::io::sink()).expect("the whole body");
    assert_eq!((reply.length() as u64, sent), (SIZE, SIZE));
    assert_eq!(receive(&mut client, false).body, TEXT, "the next answer follows at once");
}

#[test]
fn a_file_that_shrinks_while_it_is_sent_ends_the_connection() {
    let tree = Tree::new();
    const SIZE: u64 = 256 << 20;
    let path = tree.root().join("shrinking");
    // Without bytes on the disk, and more than any buffers hold.
    File::create(&path).and_then(|file| file.set_len(SIZE)).expect("a file with a hole");
    let site = Site::of(&tree);
    let mut client = site.connect();
    send(&mut client, "GET", "/shrinking", "");
    send(&mut client, "GET", "/text.txt", "");
    let reply = receive_head(&mut client);
    assert_eq!(reply.length() as u64, SIZE);
    File::options().write(true).open(&path).and_then(|file| file.set_len(1)).expect("it is ours");
    let mut received = 0;
    let mut chunk = vec![0; 1 << 20];
    loop {
        match client.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => {
                assert!(chunk[..count].iter().all(|&octet| octet == 0), "nothing but the file");
                received += count as u64;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            // The process was stopped meanwhile and continued (signal(7)).
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => panic!("{error}"),
        }
    }
    assert!(received < SIZE, "{received} octets came");
    assert_eq!(site.get("/text.txt", "").body, TEXT, "the server goes on");
}
