//! Static files, asked for over real sockets.
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the client is no machine, and the loop has a thread of its own"
)]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream as Client};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};

use rotor_core::net::{ListenOptions, Listener, TcpListener};
use rotor_core::{Config, Loop, LoopHandle, OffloadPool, Response as Answer};
use rotor_http::files::{FilesConfig, StaticFiles};
use rotor_http::h1::parse_date;
use rotor_http::server::{self, HttpAccept, HttpSeed, ServerConfig};

/// Longer than anything here takes.
const PATIENCE: Duration = Duration::from_secs(30);

const TEXT: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";

/// A directory of its own that is removed at the end.
struct Tree(PathBuf);

impl Tree {
    fn new() -> Tree {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("rotor-http-{}-{}", std::process::id(), NUMBER.fetch_add(1, Relaxed));
        let tree = Tree(std::env::temp_dir().join(name));
        fs::create_dir_all(tree.root().join("sub/no-index")).expect("a directory");
        fs::create_dir_all(tree.root().join("odd/index.html")).expect("a directory");
        for (name, content) in [
            ("secret", &b"secret"[..]),
            ("root/text.txt", TEXT),
            ("root/empty", b""),
            ("root/index.html", b"the index"),
            ("root/sub/index.html", b"the sub index"),
            ("root/sub/a b%.css", b"escaped"),
            ("root/.hidden", b"hidden"),
        ] {
            tree.write(name, content);
        }
        symlink("text.txt", tree.root().join("link")).expect("a link");
        symlink("../secret", tree.root().join("escape")).expect("a link");
        let made = Command::new("mkfifo").arg(tree.root().join("fifo")).status();
        assert!(made.expect("mkfifo is there").success());
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }

    /// Writes a file and makes it a day old, so that its tag is strong.
    fn write(&self, name: &str, content: &[u8]) {
        let path = self.0.join(name);
        fs::write(&path, content).expect("a file");
        self.age(&path);
    }

    fn age(&self, path: &Path) {
        let yesterday = SystemTime::now() - Duration::from_secs(86_400);
        File::options()
            .write(true)
            .open(path)
            .and_then(|file| file.set_modified(yesterday))
            .expect("it is ours");
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A server on a thread of its own.
struct Site {
    address: SocketAddr,
    handle: LoopHandle,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    fn of(tree: &Tree) -> Site {
        Site::start(FilesConfig::new(tree.root()), Config::new())
    }

    fn start(files: FilesConfig, config: Config) -> Site {
        let (sender, receiver) = mpsc::channel();
        let thread = thread::spawn(move || {
            let files = files.open().expect("a directory");
            let mut creator = Loop::<HttpAccept<StaticFiles<()>, TcpListener>>::new(&config).expect("a loop");
            let mut address = None;
            creator
                .add_machine_with(|scope| {
                    Answer::attempt(|| {
                        let any = "127.0.0.1:0".parse()?;
                        let listener = TcpListener::bind(&any, &ListenOptions::new(), scope)?;
                        address = listener.local_address();
                        Ok(server::listen(listener, HttpSeed::new(files, ServerConfig::new()), scope))
                    })
                })
                .expect("a listener");
            sender.send((address.expect("it is bound"), creator.handle())).expect("the test waits");
            creator.instantiate(()).run().expect("it runs");
        });
        let (address, handle) = receiver.recv_timeout(PATIENCE).expect("it starts");
        Site { address, handle, thread: Some(thread) }
    }

    fn connect(&self) -> Client {
        let client = Client::connect(self.address).expect("it listens");
        client.set_read_timeout(Some(PATIENCE)).expect("not zero");
        client
    }

    fn ask(&self, method: &str, target: &str, fields: &str) -> Reply {
        let mut client = self.connect();
        send(&mut client, method, target, fields);
        receive(&mut client, method == "HEAD")
    }

    fn get(&self, target: &str, fields: &str) -> Reply {
        self.ask("GET", target, fields)
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.handle.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn send(client: &mut Client, method: &str, target: &str, fields: &str) {
    write!(client, "{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").expect("the server takes it");
}

#[derive(Debug)]
struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> Option<&str> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn length(&self) -> usize {
        self.field("Content-Length").map_or(0, |length| length.parse().expect("a number"))
    }
}

fn receive_head(client: &mut Client) -> Reply {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        client
            .read_exact(&mut byte)
            .unwrap_or_else(|e| panic!("{e} after {:?}", String::from_utf8_lossy(&head)));
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).expect("text");
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
    Reply { status, head, body: Vec::new() }
}

/// Reads one answer, exactly as long as it says.
fn receive(client: &mut Client, is_head: bool) -> Reply {
    let mut reply = receive_head(client);
    let has_body = !is_head && !matches!(reply.status, 204 | 304);
    reply.body = vec![0; if has_body { reply.length() } else { 0 }];
    client.read_exact(&mut reply.body).expect("the whole body");
    reply
}

#[test]
fn paths_lead_to_files_inside_or_nowhere() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    for (target, status, body) in [
        ("/text.txt", 200, TEXT),
        ("/text.txt?query=1", 200, TEXT),
        ("/te%78t.txt", 200, TEXT),
        ("http://a/text.txt", 200, TEXT),
        ("/", 200, b"the index"),
        ("http://a", 200, b"the index"),
        ("/sub/", 200, b"the sub index"),
        ("/sub/index.html", 200, b"the sub index"),
        ("/sub/a%20b%25.css", 200, b"escaped"),
        ("/empty", 200, b""),
        ("/nothing", 404, b"404 Not Found\n"),
        ("/text.txt/", 404, b"404 Not Found\n"),
        ("/text.txt/more", 404, b"404 Not Found\n"),
        ("/sub/no-index/", 404, b"404 Not Found\n"),
        ("/odd/", 404, b"404 Not Found\n"),
        ("/link", 404, b"404 Not Found\n"),
        ("/escape", 404, b"404 Not Found\n"),
        ("/fifo", 404, b"404 Not Found\n"),
        ("/.hidden", 404, b"404 Not Found\n"),
        ("/%2ehidden", 404, b"404 Not Found\n"),
        ("/../secret", 404, b"404 Not Found\n"),
        ("/sub/../../secret", 404, b"404 Not Found\n"),
        ("/%2e%2e/secret", 404, b"404 Not Found\n"),
        ("/..%2fsecret", 404, b"404 Not Found\n"),
        ("/%252e%252e/secret", 404, b"404 Not Found\n"),
        ("/..\\secret", 404, b"404 Not Found\n"),
        ("//text.txt", 404, b"404 Not Found\n"),
        ("/sub//index.html", 404, b"404 Not Found\n"),
        ("/text.txt%00", 400, b"400 Bad Request\n"),
        ("/%zz", 400, b"400 Bad Request\n"),
    ] {
        // Twice: the second time it may be known.
        for _ in 0..2 {
            let reply = site.get(target, "");
            assert_eq!((reply.status, &reply.body[..]), (status, body), "{target}");
        }
    }
}

#[test]
fn links_and_hidden_files_are_served_where_that_is_wanted() {
    let tree = Tree::new();
    let config = FilesConfig::new(tree.root()).follow_links(true).hidden(true).no_index();
    let site = Site::start(config, Config::new());
    for (target, status) in [
        ("/link", 200),
        ("/escape", 404),
        ("/.hidden", 200),
        ("/../secret", 404),
        ("/", 404),
        ("/sub", 404),
        ("/sub/", 404),
        ("/sub/index.html", 200),
    ] {
        assert_eq!(site.get(target, "").status, status, "{target}");
    }
}

#[test]
fn a_file_is_described_by_the_fields_of_its_answer() {
    let tree = Tree::new();
    let config = FilesConfig::new(tree.root()).cache_control("max-age=60");
    let site = Site::start(config, Config::new());
    let reply = site.get("/text.txt", "");
    assert_eq!(reply.length(), TEXT.len());
    assert_eq!(reply.field("Content-Type"), Some("text/plain; charset=utf-8"));
    assert_eq!(reply.field("Accept-Ranges"), Some("bytes"));
    assert_eq!(reply.field("Cache-Control"), Some("max-age=60"));
    assert!(reply.field("ETag").is_some_and(|tag| tag.starts_with('"') && tag.ends_with('"')), "{reply:?}");
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
fn a_file_that_was_just_changed_has_a_weak_tag() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    fs::write(tree.root().join("new"), "new").expect("a file");
    let reply = site.get("/new", "");
    let tag = reply.field("ETag").expect("a tag").to_owned();
    assert!(tag.starts_with("W/\""), "{tag}");
    // It may be kept, but no part of it may be joined to another.
    assert_eq!(site.get("/new", &format!("If-None-Match: {tag}\r\n")).status, 304);
    assert_eq!(site.get("/new", &format!("Range: bytes=0-0\r\nIf-Range: {tag}\r\n")).status, 200);
    assert_eq!(site.get("/new", &format!("If-Match: {tag}\r\n")).status, 412);
    // A date to come would be taken for a change that is to come.
    let future = SystemTime::now() + Duration::from_secs(86_400);
    File::options()
        .write(true)
        .open(tree.root().join("empty"))
        .and_then(|file| file.set_modified(future))
        .expect("it is ours");
    let reply = site.get("/empty", "");
    let seconds = |name| parse_date(reply.field(name).unwrap_or_default().as_bytes(), 0).expect("a date");
    // `Date` itself may be a second old.
    assert!(seconds("Last-Modified") <= seconds("Date") + 1, "{reply:?}");
}

#[test]
fn conditions_are_honoured() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).cache_control("no-cache"), Config::new());
    let first = site.get("/text.txt", "");
    let tag = first.field("ETag").expect("a tag");
    let date = first.field("Last-Modified").expect("a date");
    const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    for (fields, status) in [
        (format!("If-None-Match: {tag}\r\n"), 304),
        (format!("If-None-Match: W/{tag}\r\n"), 304),
        (format!("If-None-Match: \"x\", {tag}\r\n"), 304),
        ("If-None-Match: *\r\n".into(), 304),
        ("If-None-Match: \"x\"\r\n".into(), 200),
        (format!("If-Modified-Since: {date}\r\n"), 304),
        (format!("If-Modified-Since: {OLD}\r\n"), 200),
        ("If-Modified-Since: 0\r\n".into(), 200),
        (format!("If-Modified-Since: {date}\r\nIf-None-Match: \"x\"\r\n"), 200),
        (format!("If-Match: {tag}\r\n"), 200),
        ("If-Match: \"x\"\r\n".into(), 412),
        (format!("If-Unmodified-Since: {date}\r\n"), 200),
        (format!("If-Unmodified-Since: {OLD}\r\n"), 412),
        (format!("If-Unmodified-Since: {OLD}\r\nIf-None-Match: {tag}\r\n"), 412),
        (format!("Range: bytes=0-1\r\nIf-None-Match: {tag}\r\n"), 304),
        (format!("Range: bytes=999-\r\nIf-Match: \"x\", {tag}\r\n"), 416),
    ] {
        for method in ["GET", "HEAD"] {
            let status = if (method, status) == ("HEAD", 416) { 200 } else { status };
            let reply = site.ask(method, "/text.txt", &fields);
            assert_eq!(reply.status, status, "{method} {fields}");
            if status == 304 {
                assert_eq!((reply.field("ETag"), reply.field("Last-Modified")), (Some(tag), Some(date)));
                assert_eq!(reply.field("Cache-Control"), Some("no-cache"));
                assert!(reply.field("Date").is_some());
                assert_eq!((reply.field("Content-Length"), reply.field("Content-Type")), (None, None));
            }
        }
    }
    assert_eq!(site.get("/nothing", "If-Match: \"x\"\r\n").status, 404, "no condition on what is not there");
    assert_eq!(site.get("/sub", "If-None-Match: *\r\n").status, 301);
}

#[test]
fn ranges_are_sent_alone_or_framed() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    let whole = site.get("/text.txt", "");
    let tag = whole.field("ETag").expect("a tag");
    for (fields, range, body) in [
        ("Range: bytes=0-0\r\n".to_owned(), "bytes 0-0/36", &TEXT[..1]),
        ("Range: bytes=10-\r\n".into(), "bytes 10-35/36", &TEXT[10..]),
        ("Range: bytes=-6\r\n".into(), "bytes 30-35/36", &TEXT[30..]),
        ("Range: bytes=30-999\r\n".into(), "bytes 30-35/36", &TEXT[30..]),
        ("Range: bytes=5-9,0-5\r\n".into(), "bytes 0-9/36", &TEXT[..10]),
        ("Range: bytes=3-4,99-\r\n".into(), "bytes 3-4/36", &TEXT[3..5]),
        (format!("Range: bytes=0-1\r\nIf-Range: {tag}\r\n"), "bytes 0-1/36", &TEXT[..2]),
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
fn several_ranges_come_in_one_body_that_is_as_long_as_it_says() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    let list: Vec<String> = (0..16).map(|at| format!("{0}-{0}", 2 * at)).collect();
    for (ranges, expected) in [
        ("20-25,0-4", vec![("20-25", &TEXT[20..26]), ("0-4", &TEXT[..5])]),
        (&list.join(","), (0..16).map(|at| (list[at].as_str(), &TEXT[2 * at..=2 * at])).collect::<Vec<_>>()),
    ] {
        // On a connection that goes on: a wrong length would show in the next answer.
        let mut client = site.connect();
        send(&mut client, "GET", "/text.txt", &format!("Range: bytes={ranges}\r\n"));
        let reply = receive(&mut client, false);
        let content_type = reply.field("Content-Type").expect("a type");
        let boundary = content_type.strip_prefix("multipart/byteranges; boundary=").expect("several parts");
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

#[test]
fn other_methods_are_told_what_there_is() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    for (method, target, status) in [
        ("OPTIONS", "/text.txt", 204),
        ("OPTIONS", "*", 204),
        ("OPTIONS", "/nothing", 204),
        ("POST", "/text.txt", 405),
        ("PUT", "/text.txt", 405),
        ("DELETE", "/text.txt", 405),
        ("PATCH", "/", 405),
    ] {
        let reply = site.ask(method, target, "");
        assert_eq!((reply.status, reply.field("Allow")), (status, Some("GET, HEAD, OPTIONS")), "{method}");
    }
    assert_eq!(site.ask("BREW", "/", "").status, 501);
    // A body that nobody wants does not disturb what follows.
    let mut client = site.connect();
    client.write_all(b"POST /text.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /").expect("taken");
    assert_eq!(receive(&mut client, false).status, 405);
    send(&mut client, "GET", "/text.txt", "");
    assert_eq!(receive(&mut client, false).body, TEXT);
}

#[test]
fn a_directory_without_its_slash_is_elsewhere_on_this_host() {
    let tree = Tree::new();
    let site = Site::of(&tree);
    for (target, location) in [
        ("/sub", "/sub/"),
        ("/s%75b", "/s%75b/"),
        ("/sub?a=b?c", "/sub/?a=b?c"),
        ("/sub/no-index", "/sub/no-index/"),
        ("http://a/sub", "/sub/"),
    ] {
        let reply = site.get(target, "");
        assert_eq!((reply.status, reply.field("Location")), (301, Some(location)), "{target}");
    }
    // What begins with two slashes would be another host.
    for target in ["//sub", "//sub/..", "/\\sub", "http://a//sub"] {
        let reply = site.get(target, "");
        assert_eq!((reply.status, reply.field("Location")), (404, None), "{target}");
    }
}

#[test]
fn requests_in_a_row_are_answered_in_order_known_or_not() {
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
fn a_changed_file_is_seen_when_its_time_is_over() {
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

#[test]
fn a_known_file_is_not_looked_up_again() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).renew_after(PATIENCE), Config::new());
    assert_eq!(site.get("/text.txt", "").status, 200);
    fs::rename(tree.root().join("text.txt"), tree.root().join("moved.txt")).expect("it is ours");
    assert_eq!(site.get("/text.txt", "").body, TEXT, "it is held");
    assert_eq!(site.get("/moved.txt", "").body, TEXT);
    // One that is too large to be held in memory is held open.
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
fn where_no_thread_has_room_the_answer_is_busy() {
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
    for fields in ["", "Range: bytes=1000000-2999999\r\n", "Range: bytes=0-999999,2000000-2999999\r\n"] {
        send(&mut client, "GET", "/big", fields);
        let reply = receive(&mut client, false);
        match reply.status {
            200 => assert!(reply.body == big),
            _ if fields.contains(',') => {
                let count =
                    |part: &[u8]| reply.body.windows(part.len()).filter(|found| *found == part).count();
                assert!(count(&big[..1_000_000]) == 1 && count(&big[2_000_000..3_000_000]) == 1);
            }
            _ => assert!(reply.body == big[1_000_000..3_000_000]),
        }
    }
}

#[test]
fn a_small_file_is_one_whatever_becomes_of_it() {
    let tree = Tree::new();
    let site = Site::start(FilesConfig::new(tree.root()).renew_after(PATIENCE), Config::new());
    let first = site.get("/text.txt", "");
    // In place, so that a file that is held open would be seen to change.
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
fn a_file_that_grows_while_it_is_sent_is_sent_as_long_as_it_was() {
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
    // Without octets on the disk, and more than any buffers hold.
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
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(received < SIZE, "{received} octets came");
    assert_eq!(site.get("/text.txt", "").body, TEXT, "the server goes on");
}

#[test]
fn files_may_be_mounted_below_a_path() {
    let tree = Tree::new();
    for mount in ["/static/v1", "/static/v1/"] {
        let site = Site::start(FilesConfig::new(tree.root()).mounted_at(mount), Config::new());
        for (target, status, body) in [
            ("/static/v1/text.txt", 200, TEXT),
            ("/static/v1/", 200, b"the index"),
            ("/static/v1/sub/", 200, b"the sub index"),
            ("http://a/static/v1/text.txt", 200, TEXT),
            ("/static/v1/static/v1/text.txt", 404, b"404 Not Found\n"),
            ("/static/v1//text.txt", 404, b"404 Not Found\n"),
            ("/static/v1/../text.txt", 404, b"404 Not Found\n"),
            ("/static/v1text.txt", 404, b"404 Not Found\n"),
            ("/static/v%31/text.txt", 404, b"404 Not Found\n"),
            ("/static/text.txt", 404, b"404 Not Found\n"),
            ("/text.txt", 404, b"404 Not Found\n"),
            ("/", 404, b"404 Not Found\n"),
        ] {
            let reply = site.get(target, "");
            assert_eq!((reply.status, &reply.body[..]), (status, body), "{mount}: {target}");
        }
        for (target, location) in [
            ("/static/v1", "/static/v1/"),
            ("/static/v1?a=b", "/static/v1/?a=b"),
            ("/static/v1/sub", "/static/v1/sub/"),
        ] {
            let reply = site.get(target, "");
            assert_eq!((reply.status, reply.field("Location")), (301, Some(location)), "{mount}: {target}");
        }
    }
    let site = Site::start(FilesConfig::new(tree.root()).mounted_at("/static").no_index(), Config::new());
    for (target, status) in [("/static", 404), ("/static/", 404), ("/static/text.txt", 200)] {
        assert_eq!(site.get(target, "").status, status, "{target}");
    }
}
