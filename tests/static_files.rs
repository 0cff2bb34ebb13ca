//! The file server of `examples/static_files`, started as a user starts it and tested from outside.
//!
//! `cargo test --workspace` builds the examples first. `cargo test -p rotor-tests --test
//! static_files` does not; it runs the example of an earlier build.
#![forbid(unsafe_code)]
#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "a client with plain blocking sockets, outside of any loop"
)]

use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rotor_bench::program::find;
use rotor_bench::server::Server;
use rotor_test_kit::Directory;

/// Far more than anything here takes.
const PATIENCE: Duration = Duration::from_secs(100);

/// A temporary directory: `root` is served, `secret` lies beside it.
struct Tree(Directory);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(Directory::create());
        fs::create_dir_all(tree.root().join("docs")).expect("a directory");
        for (name, content) in [
            ("secret", "secret"),
            ("root/index.html", "<p>the index"),
            ("root/docs/index.html", "<p>the docs"),
            ("root/digits.txt", "0123456789"),
            ("root/.hidden", "hidden"),
        ] {
            fs::write(tree.0.join(name), content).expect("a file");
        }
        symlink("../secret", tree.root().join("escape")).expect("a link");
        symlink("/", tree.root().join("docs/top")).expect("a link");
        let made = Command::new("mkfifo").arg(tree.root().join("fifo")).status();
        assert!(made.expect("mkfifo is there").success());
        tree
    }

    fn root(&self) -> PathBuf {
        self.0.join("root")
    }
}

/// Starts the example on a free port.
fn serve(directory: &Path) -> Server {
    Server::start(example(directory), PATIENCE).unwrap_or_else(|e| panic!("{e}"))
}

/// The example. Its address still has to be appended.
fn example(directory: &Path) -> Command {
    let example = rotor_test_kit::example("static_files");
    // The runner puts the address last; the example wants it first.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" \"$2\" \"$1\""]).arg(example.get_program()).arg(directory);
    for (name, value) in example.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command
}

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| found.eq_ignore_ascii_case(name)).map_or("", |(_, value)| value)
    }
}

/// Sends the bytes unchanged, and reads until the server closes.
fn exchange(server: &Server, request: &str) -> Reply {
    let mut socket = TcpStream::connect(server.address()).expect("it listens");
    socket.set_read_timeout(Some(PATIENCE)).expect("not zero");
    socket.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).expect("it is answered");
    let end = answer.windows(4).position(|found| found == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8(answer[..end].to_vec()).expect("text");
    let status = head[9..12].parse().expect("a number");
    Reply { status, head, body: answer.split_off(end) }
}

fn get(server: &Server, target: &str, fields: &str) -> Reply {
    exchange(
        server,
        &format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{fields}\r\n"),
    )
}

fn digest(octets: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(octets);
    hasher.finish()
}

#[test]
fn the_server_prints_what_to_try_and_ends_on_sigterm() {
    let tree = Tree::new();
    let server = serve(&tree.root());
    let line = server.next_line(PATIENCE).unwrap_or_default();
    assert!(
        line.starts_with("try: curl") && line.contains(&server.address().to_string()),
        "{line:?}"
    );
    assert_eq!(get(&server, "/", "").body, b"<p>the index");
    assert!(server.terminate(PATIENCE).expect("it ends").success());
}

#[test]
fn a_path_that_is_no_directory_is_named() {
    let missing = Path::new("/no/such/directory");
    let output = example(missing).arg("127.0.0.1:0").output().expect("it runs");
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(
        message.contains("cannot open the directory /no/such/directory: No such file"),
        "{message}"
    );
}

#[test]
fn files_are_served_whole_by_range_and_not_modified() {
    let tree = Tree::new();
    let server = serve(&tree.root());
    let whole = get(&server, "/digits.txt", "");
    assert_eq!((whole.status, &whole.body[..]), (200, &b"0123456789"[..]));
    assert_eq!(whole.field("Content-Type"), "text/plain; charset=utf-8");
    assert_eq!(whole.field("Content-Length"), "10");
    assert_eq!(get(&server, "/docs/", "").body, b"<p>the docs");
    let redirect = get(&server, "/docs", "");
    assert_eq!((redirect.status, redirect.field("Location")), (301, "/docs/"));

    let part = get(&server, "/digits.txt", "Range: bytes=2-4\r\n");
    assert_eq!((part.status, part.field("Content-Range")), (206, "bytes 2-4/10"));
    assert_eq!(part.body, b"234");
    let parts = get(&server, "/digits.txt", "Range: bytes=0-1,8-9\r\n");
    assert!(parts.field("Content-Type").starts_with("multipart/byteranges; boundary="));
    assert_eq!(parts.field("Content-Length"), parts.body.len().to_string());
    assert_eq!(get(&server, "/digits.txt", "Range: bytes=10-\r\n").status, 416);

    let tag = format!("If-None-Match: {}\r\n", whole.field("ETag"));
    let date = format!("If-Modified-Since: {}\r\n", whole.field("Last-Modified"));
    for fields in [&tag, &date] {
        let reply = get(&server, "/digits.txt", fields);
        assert_eq!((reply.status, reply.body.len()), (304, 0), "{fields}");
    }
    let head =
        exchange(&server, "HEAD /digits.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!((head.status, head.field("Content-Length"), head.body.len()), (200, "10", 0));
}

#[test]
fn etags_of_the_same_files_differ_between_processes() {
    let tree = Tree::new();
    let tag = || get(&serve(&tree.root()), "/digits.txt", "").field("ETag").to_owned();
    let tags = [tag(), tag()];
    assert!(tags[0] != tags[1] && tags.iter().all(|tag| tag.ends_with('"')), "{tags:?}");
}

#[test]
fn no_path_leads_outside_of_the_directory() {
    let tree = Tree::new();
    let server = serve(&tree.root());
    for target in [
        "/../secret",
        "/../etc/passwd",
        "/../../../../../../../../etc/passwd",
        "/docs/../../secret",
        "/%2e%2e/secret",
        "/%2e%2e%2fsecret",
        "/..%2fsecret",
        "/.%2e/secret",
        "/%252e%252e/secret",
        "/..\\secret",
        "/..%5csecret",
        "/%c0%ae%c0%ae/secret",
        "//etc/passwd",
        "/./secret",
        "/escape",
        "/docs/top/etc/passwd",
        "/fifo",
        "/.hidden",
        "/digits.txt/../../secret",
        "http://a/../secret",
    ] {
        let reply = get(&server, target, "");
        assert_eq!((reply.status, &reply.body[..]), (404, &b"404 Not Found\n"[..]), "{target}");
    }
    for target in ["/digits.txt%00", "/%", "/a%0d%0aX:y"] {
        assert_eq!(get(&server, target, "").status, 400, "{target}");
    }
    assert_eq!(get(&server, "/digits.txt", "").status, 200, "it goes on");
}

#[test]
fn a_large_file_arrives_unchanged() {
    let tree = Tree::new();
    // Pseudo-random content: no two parts are alike, so a gap or a swap is noticed.
    let mut state = 1_u32;
    let big: Vec<u8> = (0..40 << 20)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    fs::write(tree.root().join("big.bin"), &big).expect("there is room");
    let server = serve(&tree.root());
    let reply = get(&server, "/big.bin", "");
    assert_eq!((reply.status, reply.body.len()), (200, big.len()));
    assert_eq!(digest(&reply.body), digest(&big));
    let middle = get(&server, "/big.bin", "Range: bytes=1000000-39999999\r\n");
    assert_eq!(digest(&middle.body), digest(&big[1_000_000..40_000_000]));
}

#[test]
fn curl_resumes_a_download() {
    let Some(curl) = find("curl") else {
        eprintln!("skipped: there is no curl");
        return;
    };
    let tree = Tree::new();
    let server = serve(&tree.root());
    let half = tree.0.join("half");
    fs::write(&half, "01234").expect("a file");
    let url = format!("http://{}/digits.txt", server.address());
    // Without the user's configuration and without a proxy.
    let mut command = Command::new(curl);
    command.args(["-q", "--noproxy", "*", "-sS", "-f", "-C", "-", "-o"]).arg(&half).arg(url);
    assert!(command.status().expect("it runs").success());
    assert_eq!(fs::read(&half).expect("it is there"), b"0123456789");
}
