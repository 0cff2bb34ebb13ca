//! Precompressed variants of files in the same directory.

use std::fs;
use std::os::unix::fs::symlink;

use rotor_core::Config;
use rotor_http::files::{FilesConfig, Precompressed};

use crate::site::{Reply, Site, TEXT, Tree};

const BROTLI: &[u8] = b"as brotli";
const GZIP: &[u8] = b"as gzip, say";

/// `text.txt` has two variants, the index page has one.
fn tree() -> Tree {
    let tree = Tree::new();
    tree.write("root/text.txt.br", BROTLI);
    tree.write("root/text.txt.gz", GZIP);
    tree.write("root/sub/index.html.gz", GZIP);
    tree
}

fn site(tree: &Tree) -> Site {
    let codings = [Precompressed::Brotli, Precompressed::Zstd, Precompressed::Gzip];
    Site::start(FilesConfig::new(tree.root()).precompressed(codings), Config::new())
}

/// `Content-Encoding`, `Vary` and `Content-Type`.
type Description<'a> = [Option<&'a str>; 3];

fn description(reply: &Reply) -> Description<'_> {
    ["Content-Encoding", "Vary", "Content-Type"].map(|name| reply.field(name))
}

#[test]
fn a_client_that_accepts_a_coding_gets_the_precompressed_file() {
    let tree = tree();
    let site = site(&tree);
    const PLAIN: Option<&str> = Some("text/plain; charset=utf-8");
    const HTML: Option<&str> = Some("text/html; charset=utf-8");
    const VARY: Option<&str> = Some("Accept-Encoding");
    let cases: [(&str, &str, &[u8], Description<'_>); 8] = [
        ("/text.txt", "gzip, deflate, br, zstd", BROTLI, [Some("br"), VARY, PLAIN]),
        ("/text.txt", "gzip, zstd", GZIP, [Some("gzip"), VARY, PLAIN]),
        ("/text.txt", "br;q=0.5, gzip", GZIP, [Some("gzip"), VARY, PLAIN]),
        ("/text.txt", "zstd", TEXT, [None, VARY, PLAIN]),
        ("/text.txt", "identity", TEXT, [None, VARY, PLAIN]),
        ("/sub/", "br, gzip", GZIP, [Some("gzip"), VARY, HTML]),
        ("/index.html", "br, gzip", b"the index", [None, None, HTML]),
        // Under its own name it is an ordinary file.
        ("/text.txt.gz", "gzip", GZIP, [None, None, Some("application/gzip")]),
    ];
    // The first time the files are opened for the request, the second time they are cached.
    for _ in 0..2 {
        for (path, accepted, body, expected) in cases {
            let fields = format!("Accept-Encoding: {accepted}\r\n");
            let reply = site.get(path, &fields);
            assert_eq!((reply.status, &reply.body[..]), (200, body), "{path}, {accepted}");
            assert_eq!(description(&reply), expected, "{path}, {accepted}");
            let head = site.ask("HEAD", path, &fields);
            assert_eq!(description(&head), expected, "{path}, {accepted}");
            assert_eq!(head.length(), body.len(), "{path}, {accepted}");
        }
    }
    assert_eq!(site.get("/text.txt", "").body, TEXT);
}

#[test]
fn each_coding_has_its_own_etag_and_ranges_apply_to_it() {
    let tree = tree();
    let site = site(&tree);
    let ask = |accepted: &str, fields: &str| {
        site.get("/text.txt", &format!("Accept-Encoding: {accepted}\r\n{fields}"))
    };
    let tag = |accepted| ask(accepted, "").field("ETag").expect("a tag").to_owned();
    let (plain, gzip, brotli) = (tag("identity"), tag("gzip"), tag("br"));
    assert!(plain != gzip && gzip != brotli && plain != brotli, "{plain}, {gzip}, {brotli}");
    for (accepted, known, status) in
        [("gzip", &gzip, 304), ("gzip", &plain, 200), ("br", &gzip, 200), ("identity", &gzip, 200)]
    {
        let reply = ask(accepted, &format!("If-None-Match: {known}\r\n"));
        assert_eq!(reply.status, status, "{accepted} for who knows {known}");
        assert_eq!(reply.field("Vary"), Some("Accept-Encoding"), "caches need it with 304, too");
    }
    let reply = ask("gzip", &format!("Range: bytes=3-6\r\nIf-Range: {gzip}\r\n"));
    assert_eq!((reply.status, &reply.body[..]), (206, &GZIP[3..7]));
    assert_eq!(reply.field("Content-Encoding"), Some("gzip"));
    assert_eq!(reply.field("Content-Range"), Some("bytes 3-6/12"));
    // The client has a part of the plain file; of the compressed one it needs all.
    let reply = ask("gzip", &format!("Range: bytes=3-6\r\nIf-Range: {plain}\r\n"));
    assert_eq!((reply.status, &reply.body[..]), (200, GZIP));
    // All variants have the same modification time, so the date identifies none of them (RFC 9110
    // §8.8.1).
    let date = ask("gzip", "").field("Last-Modified").expect("a date").to_owned();
    let reply = ask("gzip", &format!("Range: bytes=3-6\r\nIf-Range: {date}\r\n"));
    assert_eq!((reply.status, &reply.body[..]), (200, GZIP));
    let alone = site.get("/index.html", "").field("Last-Modified").expect("a date").to_owned();
    let fields = format!("Range: bytes=3-6\r\nIf-Range: {alone}\r\n");
    assert_eq!(site.get("/index.html", &fields).status, 206, "there is only one of it");
    // Several ranges of a compressed file cannot be described, so it is sent whole.
    let reply = ask("gzip", "Range: bytes=0-0, 5-6\r\n");
    assert_eq!((reply.status, &reply.body[..]), (200, GZIP));
    assert_eq!(reply.field("Content-Encoding"), Some("gzip"));
    assert_eq!(ask("identity", "Range: bytes=0-0, 5-6\r\n").status, 206);
}

#[test]
fn only_regular_files_count_as_precompressed_siblings() {
    let tree = tree();
    fs::create_dir(tree.root().join("empty.br")).expect("a directory");
    symlink("text.txt.gz", tree.root().join("empty.gz")).expect("a link");
    tree.write("root/nothing.gz", GZIP);
    let site = site(&tree);
    let reply = site.get("/empty", "Accept-Encoding: br, gzip\r\n");
    assert_eq!((reply.status, reply.length()), (200, 0));
    assert_eq!((reply.field("Content-Encoding"), reply.field("Vary")), (None, None));
    assert_eq!(site.get("/nothing", "Accept-Encoding: gzip\r\n").status, 404);
    // Not enabled: the variants exist and are not looked for.
    let site = Site::of(&tree);
    let reply = site.get("/text.txt", "Accept-Encoding: br, gzip\r\n");
    assert_eq!((&reply.body[..], reply.field("Vary")), (TEXT, None));
}
