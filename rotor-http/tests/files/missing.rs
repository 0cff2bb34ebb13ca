//! What is sent for paths at which there is no file.

use std::fs;
use std::io::ErrorKind;

use rotor_core::Config;
use rotor_http::files::{FilesConfig, Precompressed};

use crate::site::{Site, TEXT, Tree};

const PAGE: &[u8] = b"<h1>There is nothing here</h1>";

/// Paths of nothing, of what is never served, and of a directory without an index page.
const MISSING: [&str; 7] =
    ["/none", "/sub/none/", "/sub/no-index/", "/.hidden", "/a%2Fb", "/a//b", "/../secret"];

fn tree() -> Tree {
    let tree = Tree::new();
    tree.write("root/404.html", PAGE);
    tree.write("root/404.html.gz", b"as gzip");
    tree
}

#[test]
fn a_missing_file_gets_the_configured_page() {
    let tree = tree();
    let config =
        FilesConfig::new(tree.root()).not_found_page("404.html").cache_control("max-age=60");
    let site = Site::start(config.precompressed([Precompressed::Gzip]), Config::new());
    for path in MISSING {
        // Conditions and ranges are about a file that is there.
        for fields in ["", "If-None-Match: *\r\n", "Range: bytes=0-0\r\n", "If-Match: \"x\"\r\n"] {
            let reply = site.get(path, fields);
            assert_eq!((reply.status, &reply.body[..]), (404, PAGE), "{path} {fields}");
            assert_eq!(reply.field("Content-Type"), Some("text/html; charset=utf-8"));
            assert_eq!(reply.field("Vary"), Some("Accept-Encoding"));
            for name in ["ETag", "Last-Modified", "Cache-Control", "Accept-Ranges"] {
                assert_eq!(reply.field(name), None, "{path}");
            }
        }
        let head = site.ask("HEAD", path, "");
        assert_eq!((head.status, head.length(), head.body.len()), (404, PAGE.len(), 0), "{path}");
        let coded = site.get(path, "Accept-Encoding: gzip\r\n");
        assert_eq!((coded.status, &coded.body[..]), (404, &b"as gzip"[..]), "{path}");
        assert_eq!(coded.field("Content-Encoding"), Some("gzip"));
    }
    assert_eq!(site.get("/404.html", "").status, 200, "under its own name it is a file");
    assert_eq!(site.get("/text.txt", "").body, TEXT);
    assert_eq!(site.get("/sub", "").status, 301);
    assert_eq!(site.get("/%zz", "").status, 400);
    assert_eq!(site.ask("POST", "/none", "").status, 405);
    fs::remove_file(tree.root().join("text.txt")).expect("it is there");
    fs::remove_file(tree.root().join("404.html")).expect("it is there");
    let bare = site.get("/none", "");
    assert_eq!((bare.status, &bare.body[..]), (404, &b"404 Not Found\n"[..]));
}

#[test]
fn a_fallback_is_sent_like_any_other_file() {
    let tree = tree();
    let config = FilesConfig::new(tree.root()).fallback("index.html").mounted_at("/app");
    let site = Site::start(config.cache_control("no-cache"), Config::new());
    let index = site.get("/app/index.html", "");
    for path in MISSING {
        let path = format!("/app{path}");
        let reply = site.get(&path, "");
        assert_eq!((reply.status, &reply.body[..]), (200, &b"the index"[..]), "{path}");
        for name in ["ETag", "Last-Modified", "Cache-Control", "Accept-Ranges", "Content-Type"] {
            assert_eq!(reply.field(name), index.field(name), "{path}");
        }
        let fields = format!("If-None-Match: {}\r\n", index.field("ETag").expect("a tag"));
        assert_eq!(site.get(&path, &fields).status, 304, "{path}");
        assert_eq!(site.get(&path, "Range: bytes=4-\r\n").body, b"index", "{path}");
    }
    for path in ["/none", "/application", "/"] {
        assert_eq!(site.get(path, "").status, 404, "{path} is elsewhere");
    }
    assert_eq!(site.get("/app/text.txt", "").body, TEXT);
}

#[test]
fn a_mount_path_without_an_index_gets_the_fallback() {
    let tree = tree();
    let config = FilesConfig::new(tree.root()).mounted_at("/app").no_index();
    let site = Site::start(config.fallback("text.txt"), Config::new());
    for path in ["/app", "/app/", "/app/sub"] {
        assert_eq!(site.get(path, "").body, TEXT, "{path}");
    }
}

#[test]
fn a_page_that_cannot_be_served_is_reported_when_the_directory_is_opened() {
    let tree = tree();
    for name in ["none.html", "", "sub", "sub/", "/404.html", "../secret", "link", "fifo", "a\0b"] {
        for config in [FilesConfig::not_found_page, FilesConfig::fallback] {
            let opened = config(FilesConfig::new(tree.root()), name).open();
            assert_eq!(opened.expect_err(name).kind(), ErrorKind::NotFound, "{name}");
        }
    }
    let inner = FilesConfig::new(tree.root()).not_found_page("sub/a b%.css").open();
    inner.expect("a file below");
}
