//! Which file a path refers to, and which paths are not found.

use std::io::Write;

use rotor_core::Config;
use rotor_http::files::FilesConfig;

use crate::site::{Site, TEXT, Tree, receive, send};

#[test]
fn paths_resolve_to_files_inside_the_root_or_to_404() {
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
        // Twice: the second time the file may be cached.
        for _ in 0..2 {
            let reply = site.get(target, "");
            assert_eq!((reply.status, &reply.body[..]), (status, body), "{target}");
        }
    }
}

#[test]
fn links_and_hidden_files_are_served_when_configured() {
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
fn a_directory_without_its_slash_redirects_on_this_host() {
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
    // A redirect to a target that begins with two slashes would lead to another host.
    for target in ["//sub", "//sub/..", "/\\sub", "http://a//sub"] {
        let reply = site.get(target, "");
        assert_eq!((reply.status, reply.field("Location")), (404, None), "{target}");
    }
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
            assert_eq!(
                (reply.status, reply.field("Location")),
                (301, Some(location)),
                "{mount}: {target}"
            );
        }
    }
    let site =
        Site::start(FilesConfig::new(tree.root()).mounted_at("/static").no_index(), Config::new());
    for (target, status) in [("/static", 404), ("/static/", 404), ("/static/text.txt", 200)] {
        assert_eq!(site.get(target, "").status, status, "{target}");
    }
}

#[test]
fn other_methods_get_the_allowed_methods() {
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
        assert_eq!(
            (reply.status, reply.field("Allow")),
            (status, Some("GET, HEAD, OPTIONS")),
            "{method}"
        );
    }
    assert_eq!(site.ask("BREW", "/", "").status, 501);
    // An unwanted body does not disturb the requests after it.
    let mut client = site.connect();
    client
        .write_all(b"POST /text.txt HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nGET /")
        .expect("taken");
    assert_eq!(receive(&mut client, false).status, 405);
    send(&mut client, "GET", "/text.txt", "");
    assert_eq!(receive(&mut client, false).body, TEXT);
}
