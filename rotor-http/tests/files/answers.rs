//! The answer for a file: fields, conditions, ranges.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

use rotor_core::Config;
use rotor_http::files::FilesConfig;
use rotor_http::parse_date;

use crate::site::{Reply, Site, TEXT, Tree, receive, send};

#[test]
fn a_file_is_described_by_its_response_fields() {
    let tree = Tree::new();
    let config = FilesConfig::new(tree.root()).cache_control("max-age=60");
    let site = Site::start(config, Config::new());
    let reply = site.get("/text.txt", "");
    assert_eq!(reply.length(), TEXT.len());
    assert_eq!(reply.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(reply.field("Cache-Control"), Some("max-age=60"));
    assert!(
        reply.field("ETag").is_some_and(|tag| tag.starts_with('"') && tag.ends_with('"')),
        "{reply:?}"
    );
    assert!(reply.field("Last-Modified").is_some_and(|date| date.ends_with(" GMT")), "{reply:?}");
    assert!(reply.field("Date").is_some(), "{reply:?}");
    assert_eq!(reply.field("Content-Range"), None);

    let head = site.ask("HEAD", "/text.txt", "");
    let fields = |reply: &Reply| {
        let lines = reply.head.lines().filter(|line| !line.starts_with("Date: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(fields(&head), fields(&reply));
    assert_eq!(site.ask("HEAD", "/nothing", "").status, 404);
    assert_eq!(site.ask("HEAD", "/empty", "").length(), 0);
}

#[test]
fn a_recently_changed_file_has_a_weak_etag() {
    let tree = Tree::new();
    let files = FilesConfig::new(tree.root());
    let site = Site::start_ahead(files, Config::new(), Duration::ZERO);
    // With a date of yesterday, which does not tell when it was written.
    tree.write("root/new", b"new");
    let reply = site.get("/new", "");
    let tag = reply.field("ETag").expect("a tag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    // The file may be cached, but ranges of it may not be combined.
    assert_eq!(site.get("/new", &format!("If-None-Match: {tag}\r\n")).status, 304);
    assert_eq!(site.get("/new", &format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n")).status, 200);
    assert_eq!(site.get("/new", &format!("If-Match: {tag}\r\n")).status, 412);
    // A date in the future must not be sent as `Last-Modified`.
    let future = SystemTime::now() + Duration::from_secs(86_400);
    File::options()
        .write(true)
        .open(tree.root().join("empty"))
        .and_then(|file| file.set_modified(future))
        .expect("it is ours");
    let reply = site.get("/empty", "");
    let seconds =
        |name| parse_date(reply.field(name).unwrap_or_default().as_bytes(), 0).expect("a date");
    // `Date` itself may be one second old.
    assert!(seconds("Last-Modified") <= seconds("Date") + 1, "{reply:?}");
}

#[test]
fn conditions_are_honoured() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).cache_control("no-cache"), Config::new());
    let first = site.get("/text.txt", "");
    let tag = first.field("ETag").expect("a tag");
    let date = first.field("Last-Modified").expect("a date");
    const OLD_DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: W/{tag}\r\n"), 304),
        (format!("If-None-Match: \"x\", {tag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"x\"\r\n".into(), 200),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        (format!("If-Modified-Since: {OLD_DATE}\r\n"), 200),
        ("If-Modified-Since: 0\r\n".into(), 200),
        (format!("If-Modified-Since: {date}\r\nIf-None-Match: \"x\"\r\n"), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: \"x\"\r\n".into(), 412),
        (format!("If-Unmodified-Since: {date}\r\n"), 200),
        (format!("If-Unmodified-Since: {OLD_DATE}\r\n"), 412),
        (format!("If-Unmodified-Since: {OLD_DATE}\r\nIf-None-Match: {tag}\r\n"), 412),
        (format!("Range: bytes=0-1\r\nIf-None-Match: {tag}\r\n"), 304),
        (format!("Range: bytes=999-\r\nIf-Match: \"x\", {tag}\r\n"), 416),
    ] {
        for method in ["GET", "HEAD"] {
            let status = if (method, status) == ("HEAD", 416) { 200 } else { status };
            let reply = site.ask(method, "/text.txt", &fields);
            assert_eq!(reply.status, status, "{method} {fields}");
            if status == 304 {
                assert_eq!(
                    (reply.field("ETag"), reply.field("Last-Modified")),
                    (Some(tag), Some(date))
                );
                assert_eq!(reply.field("Cache-Control"), Some("no-cache"));
                assert!(reply.field("Date").is_some());
                assert_eq!(
                    (reply.field("Content-Length"), reply.field("Content-Type")),
                    (None, None)
                );
            }
        }
    }
    assert_eq!(
        site.get("/nothing", "If-Match: \"x\"\r\n").status,
        404,
        "no condition on what is not there"
    );
    assert_eq!(site.get("/sub", "If-None-Match: *\r\n").status, 301);
}

#[test]
fn ranges_are_sent_alone_or_framed() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    let whole = site.get("/text.txt", "");
    let tag = whole.field("ETag").expect("a tag");
    let date = whole.field("Last-Modified").expect("a date");
    for (fields, range, body) in [
        ("Range: bytes=0-0\r\n".to_owned(), "bytes 0-0/36", &TEXT[..1]),
        ("Range: bytes=10-\r\n".into(), "bytes 10-35/36", &TEXT[10..]),
        ("Range: bytes=-6\r\n".into(), "bytes 30-35/36", &TEXT[30..]),
        ("Range: bytes=30-999\r\n".into(), "bytes 30-35/36", &TEXT[30..]),
        ("Range: bytes=5-9,0-5\r\n".into(), "bytes 0-9/36", &TEXT[..10]),
        ("Range: bytes=3-4,99-\r\n".into(), "bytes 3-4/36", &TEXT[3..5]),
        (format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"), "bytes 0-1/36", &TEXT[..2]),
        (format!("Range: bytes=0-1\r\nIf-Range: {date}\r\n"), "bytes 0-1/36", &TEXT[..2]),
    ] {
        let reply = site.get("/text.txt", &fields);
        assert_eq!((reply.status, reply.field("Content-Range")), (206, Some(range)), "{fields}");
        assert_eq!(reply.body, body, "{fields}");
        assert_eq!(reply.field("Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(reply.field("ETag"), Some(tag));
        assert_eq!(reply.field("Last-Modified"), whole.field("Last-Modified"));
    }
    for fields in [
        "Range: bytes=2-1\r\n",
        "Range: lines=0-1\r\n",
        "Range: bytes=0-1\r\nIf-Range: \"x\"\r\n",
        "Range: bytes=0-1\r\nRange: bytes=2-3\r\n",
        &format!(
            "Range: bytes={}\r\n",
            (0..17).map(|at| format!("{0}-{0}", 2 * at)).collect::<Vec<_>>().join(",")
        ),
    ] {
        let reply = site.get("/text.txt", fields);
        assert_eq!((reply.status, &reply.body[..]), (200, TEXT), "{fields}");
    }
    for target in ["/text.txt", "/empty"] {
        let reply = site.get(target, "Range: bytes=36-\r\n");
        let size = if target == "/empty" { 0 } else { 36 };
        assert_eq!(reply.status, 416);
        assert_eq!(reply.field("Content-Range"), Some(&*format!("bytes */{size}")));
        assert_eq!(reply.body, b"416 Range Not Satisfiable\n");
    }
    let reply = site.ask("HEAD", "/text.txt", "Range: bytes=0-1\r\n");
    assert_eq!((reply.status, reply.length()), (200, 36), "only GET has ranges");
}

#[test]
fn the_etag_of_a_file_does_not_reveal_its_inode() {
    /// The factor of a mixing function without a key, every step of which can be undone, and its
    /// inverse modulo 2^64.
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    const INVERSE: u64 = 0xf1de_83e1_9937_733d;
    let fold = |bits: u64| bits ^ bits >> 32;
    let mixed = |bits: u64| (0..2).fold(bits, |bits, _| fold(bits).wrapping_mul(FACTOR));
    let undone = |bits: u64| (0..2).fold(fold(bits), |bits, _| fold(bits.wrapping_mul(INVERSE)));
    assert_eq!(undone(fold(mixed(123_456))), 123_456);

    let tree = Tree::new();
    let site = Site::of(&tree);
    let reply = site.get("/text.txt", "");
    let tag = reply.field("ETag").expect("a tag");
    let (_, digits) = tag.trim_matches('"').split_once('-').expect("a length, and what is mixed");
    let told = u64::from_str_radix(digits, 16).expect("a number");
    // The peer may know the time of change.
    let metadata = fs::metadata(tree.root().join("text.txt")).expect("it is there");
    let nanos = metadata.ctime() as u64 * 1_000_000_000 + metadata.ctime_nsec() as u64;
    assert_ne!(undone(told) ^ fold(mixed(nanos)), metadata.ino());
}

#[test]
fn etags_agree_between_loops_and_with_one_key_between_processes() {
    let tree = Tree::new();
    let tag = |config: FilesConfig| {
        let reply = Site::start(config, Config::new()).get("/text.txt", "");
        reply.field("ETag").expect("a tag").to_owned()
    };
    let config = || FilesConfig::new(tree.root());
    assert_eq!(tag(config()), tag(config()), "whoever opened the directory");
    assert_eq!(tag(config().tag_key([7; 16])), tag(config().tag_key([7; 16])));
    assert_ne!(tag(config().tag_key([7; 16])), tag(config().tag_key([8; 16])));
    assert_ne!(tag(config().tag_key([7; 16])), tag(config()));
}

#[test]
fn a_multipart_boundary_does_not_depend_on_the_loop_seed() {
    let tree = Tree::new();
    let boundary = || {
        // With the same seed, both loops would draw the same boundary from their generator.
        let site = Site::start(FilesConfig::new(tree.root()), Config::new().seed(1));
        let reply = site.get("/text.txt", "Range: bytes=0-0,9-9\r\n");
        let content_type = reply.field("Content-Type").expect("a type");
        content_type
            .strip_prefix("multipart/byteranges; boundary=")
            .expect("several parts")
            .to_owned()
    };
    let boundaries = [boundary(), boundary()];
    assert_ne!(boundaries[0], boundaries[1]);
    assert_eq!(boundaries.map(|boundary| boundary.len()), [32; 2], "128 bits");
}

#[test]
fn several_ranges_come_in_one_body_of_the_announced_length() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    let list: Vec<String> = (0..16).map(|at| format!("{0}-{0}", 2 * at)).collect();
    for (ranges, expected) in [
        ("20-25,0-4", vec![("20-25", &TEXT[20..26]), ("0-4", &TEXT[..5])]),
        (
            &list.join(","),
            (0..16).map(|at| (list[at].as_str(), &TEXT[2 * at..=2 * at])).collect::<Vec<_>>(),
        ),
    ] {
        // On a persistent connection, where a wrong length would show in the next answer.
        let mut client = site.connect();
        send(&mut client, "GET", "/text.txt", &format!("Range: bytes={ranges}\r\n"));
        let reply = receive(&mut client, false);
        let content_type = reply.field("Content-Type").expect("a type");
        let boundary =
            content_type.strip_prefix("multipart/byteranges; boundary=").expect("several parts");
        let mut wanted = Vec::new();
        for (range, octets) in expected {
            let head = format!(
                "--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/36\r\n\r\n"
            );
            wanted.extend_from_slice(&[head.as_bytes(), octets, b"\r\n"].concat());
        }
        wanted.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        assert_eq!((reply.status, reply.field("Content-Range")), (206, None));
        assert_eq!(String::from_utf8_lossy(&reply.body), String::from_utf8_lossy(&wanted));
        send(&mut client, "GET", "/", "");
        assert_eq!(receive(&mut client, false).body, b"the index");
    }
}
