//! `http_get` and `crawler`: clients with our own servers and with hostile ones.

use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Output;
use std::sync::mpsc::channel;
use std::thread;

use rotor_test_kit::Directory;

use crate::client::{PATIENCE, again, command, start, start_command};
use crate::upstream::upstream;

fn run(example: &str, arguments: &[&str]) -> Output {
    command(example)
        .args(arguments)
        .output()
        .unwrap_or_else(|error| panic!("example {example}: {error}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A server that sends these bytes on each connection, whatever the request, and closes.
fn says(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let mut request = [0; 4096];
            let _ended_early = again(|| client.read(&mut request));
            let _ended_early = client.write_all(bytes);
        }
    });
    address
}

#[test]
fn a_page_is_written_to_stdout_and_its_head_to_stderr() {
    let server = start("hello_world_server");
    let output = run("http_get", &[&format!("http://{}/", server.address())]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "Hello, World!");
    assert!(text(&output.stderr).starts_with("HTTP/1.1 200 OK\n"), "{}", text(&output.stderr));
    assert!(text(&output.stderr).contains("\nContent-Length: 13\n"));
}

/// `localhost` is in /etc/hosts, or resolves to this machine anyway. It may also have an address on
/// which nobody listens.
#[test]
fn a_host_name_is_resolved() {
    let server = start("hello_world_server");
    let url = format!("http://LocalHost:{}/", server.address().port());
    let output = run("http_get", &[&url]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "Hello, World!");
}

/// Pieces of one byte each are written, and the first of them is not lost when the last is missing.
#[test]
fn a_body_in_small_chunks_is_written_as_far_as_it_arrives() {
    let (address, _heads) = upstream(|client, head| {
        let chunks = "1\r\nx\r\n".repeat(10_000);
        let end = if head.starts_with("GET /whole ") { "0\r\n\r\n" } else { "" };
        let answer = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}{end}");
        let _ended_early = client.write_all(answer.as_bytes());
        let _is_gone = client.shutdown(Shutdown::Write);
    });
    for (page, is_whole) in [("whole", true), ("cut", false)] {
        let output = run("http_get", &[&format!("http://{address}/{page}")]);
        assert_eq!(output.status.success(), is_whole, "{}", text(&output.stderr));
        assert_eq!(text(&output.stdout), "x".repeat(10_000));
    }
}

#[test]
fn an_output_that_cannot_be_written_ends_the_download_with_an_error() {
    let server = start("hello_world_server");
    let url = format!("http://{}/", server.address());
    let full = || fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let body = command("http_get").arg(&url).stdout(full()).output().expect("it starts");
    let message = text(&body.stderr);
    assert!(message.contains("error: cannot write the body: No space left"), "{message}");
    assert_eq!(body.status.code(), Some(1));
    // In a thread, because it did not end once.
    let (ended, outcome) = channel();
    thread::spawn(move || {
        let head = command("http_get").arg(&url).stderr(full()).output().expect("it starts");
        let _nobody_waits = ended.send(head.status.code());
    });
    assert_eq!(outcome.recv_timeout(PATIENCE), Ok(Some(1)));
}

#[test]
fn a_large_body_is_written_to_a_file_with_progress() {
    const COUNT: u64 = 100 << 20;
    let server = start("streaming");
    let directory = Directory::create();
    let file = directory.join("big");
    let name = file.to_str().expect("a name in ASCII");
    let output = run("http_get", &[&format!("http://{}/big?{COUNT}", server.address()), name]);
    let written = fs::metadata(&file).map(|metadata| metadata.len());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(written.expect("it was written"), COUNT);
    assert_eq!(text(&output.stdout), format!("200 OK, {COUNT} bytes\n"));
    let progress = text(&output.stderr).lines().filter(|line| line.ends_with(" bytes")).count();
    assert_eq!(progress, (COUNT >> 23) as usize, "a line for every 8 MiB");
}

#[test]
fn a_file_is_unchanged_until_an_answer_arrives() {
    let directory = Directory::create();
    let file = directory.join("page");
    fs::write(&file, "the page of yesterday").expect("it is ours");
    let name = file.to_str().expect("a name in ASCII");
    let output = run("http_get", &["http://no.such.host.invalid/", name]);
    assert!(!output.status.success());
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "the page of yesterday");
    let server = start("hello_world_server");
    let url = format!("http://{}/", server.address());
    assert!(run("http_get", &[&url, name]).status.success());
    assert_eq!(fs::read_to_string(&file).expect("it is there"), "Hello, World!");
    assert!(run("http_get", &[&url, "/dev/null"]).status.success(), "a device has no length");
}

#[test]
fn each_failure_is_reported_with_its_exit_code() {
    // The local port of a connected socket: it is in use, but nobody listens there.
    let elsewhere = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let taken = elsewhere.local_addr().and_then(TcpStream::connect).expect("it listens");
    let closed = taken.local_addr().expect("it is bound");
    let cases = [
        (
            format!("http://{closed}/"),
            "could not connect to the server: cannot connect: Connection refused",
        ),
        (format!("http://{}/", says(b"")), "the server closed the connection before its response"),
        (format!("http://{}/", says(b"nonsense\r\n\r\n")), "bad head: the head is malformed"),
        (
            format!("http://{}/", says(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort")),
            "bad body: the stream ended before the body did",
        ),
        (
            format!("http://{}/", says(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")),
            "the server answered 404 Not Found",
        ),
        (
            // SETTINGS, and GOAWAY for all streams.
            format!(
                "h2c://{}/",
                says(b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\0")
            ),
            "the server refused the request without processing it",
        ),
        (
            "http://no.such.host.invalid/".into(),
            "cannot resolve: no such host: the name no.such.host.invalid does not exist",
        ),
        ("http:///".into(), "should be like http://127.0.0.1:8080/ (the URL has no host"),
        ("http://b\u{fc}cher.example/".into(), "not ASCII (write xn--"),
        ("h2cs://127.0.0.1/".into(), "should be like http://127.0.0.1:8080/"),
    ];
    for (url, expected) in cases {
        let output = run("http_get", &[&url]);
        assert_eq!(output.status.code(), Some(1), "{url}");
        let message = text(&output.stderr);
        assert!(message.contains(expected), "{url}: {message}");
    }
}

#[test]
fn a_site_is_crawled_once_and_broken_links_are_shown() {
    let site = Directory::create();
    fs::create_dir_all(site.join("deep")).expect("a directory");
    let links = |links: &[&str]| -> String {
        links.iter().map(|link| format!("<a href=\"{link}\">x</a>")).collect()
    };
    let pages = [
        (
            "index.html",
            links(&[
                "a.html",
                "/deep/b.html#top",
                "gone.html",
                "http://elsewhere/",
                "mailto:x",
                "//h/",
            ]),
        ),
        ("a.html", links(&["index.html", "deep/../a.html", "./a.html"])),
        ("deep/b.html", links(&["../a.html", "c.html", "/"])),
        ("deep/c.html", links(&["?page=2", ".", ".."])),
        ("deep/never.html", links(&[])),
    ];
    for (name, page) in &pages {
        fs::write(site.join(name), page).expect("a file");
    }
    let mut server = command("static_files");
    server.current_dir(&site);
    let server = start_command(server);
    for at_once in ["1", "2", "50"] {
        let output = run("crawler", &[&format!("http://{}/", server.address()), at_once]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let stdout = text(&output.stdout);
        let mut lines: Vec<String> = stdout.lines().map(str::to_owned).collect();
        let summary = lines.pop().expect("a last line");
        let mut pages: Vec<&str> =
            lines.iter().filter_map(|line| line.split_whitespace().last()).collect();
        pages.sort_unstable();
        assert_eq!(
            pages,
            [
                "/",
                "/a.html",
                "/deep/",
                "/deep/b.html",
                "/deep/c.html",
                "/deep/c.html?page=2",
                "/gone.html",
                "/index.html"
            ]
        );
        let gone = lines.iter().find(|line| line.ends_with("/gone.html")).expect("it is linked to");
        assert!(gone.starts_with("404 "), "{gone}");
        assert!(
            summary.starts_with(&format!("8 pages, 2 not found or broken, {at_once} at once")),
            "{summary}"
        );
    }
}

#[test]
fn a_crawl_follows_redirects_and_links_of_pages_that_are_not_quite_correct() {
    let (address, _heads) = upstream(|client, head| {
        let (fields, page) = match head.split(' ').nth(1) {
            Some("/") => ("Location: /b\u{e4}r?a=1\r\n", String::new()),
            Some("/b%E4r?a=1") => (
                "Content-Type: text/html; charset=iso-8859-1\r\n",
                format!(
                    "<p>\u{e4}<a href=\"/c d?a=1&amp;b=2\"> <a href=\"/\"> <a href=\"/{}\"> <a href=\"/{}\">",
                    "e".repeat(7_999),
                    "f".repeat(8_000)
                ),
            ),
            _ => ("", String::new()),
        };
        let status = if fields.starts_with("Location") { "302 Found" } else { "200 OK" };
        let length = page.chars().count();
        let answer = format!("HTTP/1.1 {status}\r\n{fields}Content-Length: {length}\r\n\r\n{page}");
        // In Latin-1, which has one byte for each of the characters.
        let answer: Vec<u8> = answer.chars().map(|char| char as u8).collect();
        let _ended_early = client.write_all(&answer);
    });
    let output = run("crawler", &[&format!("http://{address}/"), "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let pages: Vec<&str> =
        stdout.lines().filter_map(|line| line.split_whitespace().nth(2)).take(4).collect();
    let long = format!("/{}", "e".repeat(7_999));
    assert_eq!(pages, ["/", "/b%E4r?a=1", "/c%20d?a=1&b=2", &long], "{stdout}");
}

#[test]
fn a_crawl_with_many_pages_at_once_finds_room_for_each_of_them() {
    let (address, _heads) = upstream(|client, head| {
        let is_first = head.starts_with("GET / ");
        let links = (0..2_000).map(|page| format!("<a href=\"/{page}\">"));
        let page: String = if is_first { links.collect() } else { String::new() };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
        let _ended_early = client.write_all(answer.as_bytes());
    });
    let output = run("crawler", &[&format!("http://{address}/"), "2000"]);
    let stdout = text(&output.stdout);
    assert!(stdout.contains("\n2001 pages, 0 not found or broken, 512 at once "), "{stdout}");
}

#[test]
fn a_path_that_begins_with_two_slashes_belongs_to_the_site() {
    let (address, _heads) = upstream(|client, head| {
        let page = match head.split(' ').nth(1) {
            Some("/") => "<a href=\"/.//b/c.html\">",
            Some("//b/c.html") => "<a href=\"d.html\"> <a href=\"//b/e.html\">",
            _ => "",
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{page}",
            page.len()
        );
        let _ended_early = client.write_all(answer.as_bytes());
    });
    let output = run("crawler", &[&format!("http://{address}/"), "1"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let stdout = text(&output.stdout);
    let pages: Vec<&str> = stdout
        .lines()
        .filter_map(|line| line.strip_prefix("200 ")?.split(' ').next_back())
        .collect();
    assert_eq!(pages, ["/", "//b/c.html", "//b/d.html"], "{stdout}");
}
