//! `static_files` with curl: whole files, ranges, conditions, and paths that lead nowhere.

use std::fs;
use std::path::Path;

use rotor_bench::server::Server;
use rotor_test_kit::Directory;

use crate::support::{curl, program, start_example_in, text, url};

/// A temporary directory with a few files, and a server for them.
struct Site {
    directory: Directory,
    server: Server,
}

impl Site {
    fn start() -> Site {
        let directory = Directory::create();
        fs::create_dir_all(directory.join("root/inner")).expect("a temporary directory");
        fs::write(directory.join("outside.txt"), "outside").expect("a temporary file");
        fs::write(directory.join("root/page.html"), "<p>page</p>").expect("a temporary file");
        fs::write(directory.join("root/inner/index.html"), "<p>inner</p>")
            .expect("a temporary file");
        fs::write(directory.join("root/large"), large()).expect("a temporary file");
        let server = start_example_in("static_files", &directory.join("root"));
        Site { directory, server }
    }

    /// What curl prints on its standard output.
    fn curl(&self, program: &Path, path: &str, arguments: &[&str]) -> Vec<u8> {
        curl(program, &[arguments, &[&url(&self.server, path)]].concat()).stdout
    }
}

/// More than a socket takes in one write; no two parts are alike.
fn large() -> Vec<u8> {
    (0..2_000_000_u32).flat_map(u32::to_be_bytes).collect()
}

#[test]
fn curl_gets_files_whole_and_in_parts() {
    let Some(program) = program("curl") else { return };
    let site = Site::start();
    let large = large();
    assert!(site.curl(&program, "/large", &[]) == large);
    assert!(site.curl(&program, "/large", &["--http1.0"]) == large);
    for (range, part) in [
        ("0-0", &large[..1]),
        ("100-299999", &large[100..300_000]),
        ("7999990-", &large[7_999_990..]),
        ("-5", &large[large.len() - 5..]),
    ] {
        let got = site.curl(&program, "/large", &["-r", range, "-w", "%{http_code}"]);
        let (body, status) = got.split_at(got.len() - 3);
        assert_eq!((status, body == part), (&b"206"[..], true), "{range}");
    }
    let parts = site.curl(&program, "/large", &["-r", "0-3,8000-8003", "-i"]);
    let parts = String::from_utf8_lossy(&parts);
    assert!(
        parts.contains("206 Partial Content") && parts.contains("multipart/byteranges"),
        "{parts}"
    );
    assert!(
        parts.contains("bytes 0-3/8000000") && parts.contains("bytes 8000-8003/8000000"),
        "{parts}"
    );
    assert_eq!(
        site.curl(&program, "/large", &["-r", "8000000-", "-w", "%{http_code}", "-o", "/dev/null"]),
        b"416"
    );
}

#[test]
fn curl_resumes_a_partial_file() {
    let Some(program) = program("curl") else { return };
    let site = Site::start();
    let (file, large) = (site.directory.join("half"), large());
    fs::write(&file, &large[..3_000_000]).expect("a temporary file");
    site.curl(&program, "/large", &["-C", "-", "-o", &file.display().to_string()]);
    assert!(fs::read(&file).expect("curl wrote it") == large);
}

#[test]
fn curl_sends_conditional_and_head_requests() {
    let Some(program) = program("curl") else { return };
    let site = Site::start();
    // A file that has just been written gets a weak ETag, because it may be written again within the
    // same clock tick.
    let head = loop {
        let head = site.curl(&program, "/page.html", &["-I"]);
        let head = String::from_utf8(head).expect("a head is text");
        if !head.contains("ETag: W/") {
            break head;
        }
    };
    assert!(
        head.contains("Content-Length: 11\r\n") && head.contains("Content-Type: text/html"),
        "{head}"
    );
    let tag = head.lines().find_map(|line| line.strip_prefix("ETag: ")).expect("a tag").trim();
    let code = ["-o", "/dev/null", "-w", "%{http_code}"];
    for (field, status) in [
        (format!("If-None-Match: {tag}"), "304"),
        ("If-None-Match: \"other\"".to_owned(), "200"),
        (format!("If-Match: {tag}"), "200"),
        ("If-Match: \"other\"".to_owned(), "412"),
    ] {
        let got = site.curl(&program, "/page.html", &[&code[..], &["-H", &field]].concat());
        assert_eq!(got, status.as_bytes(), "{field}");
    }
}

#[test]
fn curl_is_redirected_to_index_pages_and_never_out_of_the_directory() {
    let Some(program) = program("curl") else { return };
    let site = Site::start();
    assert_eq!(site.curl(&program, "/inner", &["-L"]), b"<p>inner</p>");
    for path in [
        "/../outside.txt",
        "/inner/../../outside.txt",
        "/%2e%2e/outside.txt",
        "/..%2foutside.txt",
        "/inner/%2e%2e/%2e%2e/outside.txt",
        "//etc/passwd",
        "/page.html/",
    ] {
        let got = site.curl(&program, path, &["--path-as-is", "-w", "%{http_code}"]);
        let got = String::from_utf8_lossy(&got);
        assert!(got.ends_with("404") || got.ends_with("400"), "{path}: {got}");
    }
    let posted = curl(&program, &["-i", "-d", "x", &url(&site.server, "/page.html")]);
    assert!(
        text(&posted).contains("405 Method Not Allowed")
            && text(&posted).contains("Allow: GET, HEAD")
    );
}
