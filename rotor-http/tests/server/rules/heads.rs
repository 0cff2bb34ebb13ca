//! Rules 1 to 24: start lines, versions, fields, `Host`.

use super::{BAD, Rule, fields, rule, server_rule, start};
use crate::probe::get;

pub(super) fn start_lines() -> Vec<Rule> {
    let head = |line: &[u8]| [line, b"\r\nHost: a\r\n\r\n"].concat();
    let mut rules = vec![
        rule(1, "one empty line", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 GET /"),
        rule(1, "two", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 GET /"),
        rule(1, "three", b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(
            1,
            "between",
            [get("/"), b"\r\n\r\n".to_vec(), get("/b")].concat(),
            "200 GET / | 200 GET /b",
        ),
        rule(
            1,
            "three between",
            [get("/"), b"\r\n\r\n\r\n".to_vec(), get("/b")].concat(),
            "200 GET / | 400 close",
        ),
        rule(1, "nothing else", b"\r\n\r\n", ""),
        rule(2, "bare LF", b"GET / HTTP/1.1\nHost: a\r\n\r\n", BAD),
        rule(2, "bare LF after a field", b"GET / HTTP/1.1\r\nHost: a\n\r\n", BAD),
        rule(
            2,
            "bare LF after an empty field",
            b"GET / HTTP/1.1\r\nHost: a\r\nB:\nD: e\r\n\r\n",
            BAD,
        ),
        rule(2, "bare LF at the end", b"GET / HTTP/1.1\r\nHost: a\r\n\n", BAD),
        rule(2, "bare LFs only", b"GET / HTTP/1.1\nHost: a\n\n", BAD),
        rule(2, "bare LF first", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(2, "bare CR", b"GET / HTTP/1.1\rHost: a\r\n\r\n", BAD),
        rule(2, "bare CR first", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(2, "bare CR in a target", b"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(2, "bare CR in a name", fields("B\rc: d"), BAD),
        rule(2, "CR CR LF", b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", BAD),
        rule(3, "a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", BAD),
        rule(4, "no token", start("G@T / HTTP/1.1"), BAD),
        rule(4, "quoted", start("\"GET\" / HTTP/1.1"), BAD),
        rule(4, "empty", start(" / HTTP/1.1"), BAD),
        rule(4, "unknown", start("BREW / HTTP/1.1"), "501 close"),
        rule(4, "case", start("get / HTTP/1.1"), "501 close"),
        rule(4, "very long (ours: 501)", [b'A'; 5000], "501 close"),
        rule(5, "what browsers send in queries", start("GET /?a|b^{c}`\\d HTTP/1.1"), "200 GET /"),
        rule(6, "encoded CR LF NUL", get("/%0d%0aX:%00"), "200 GET /%0d%0aX:%00"),
        rule(11, "a status line", start("HTTP/1.1 200 OK"), BAD),
    ];
    for line in [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET\t/ HTTP/1.1",
        "GET /\tHTTP/1.1",
        "GET\x0b/ HTTP/1.1",
        "GET /\x0cHTTP/1.1",
        "GET\0/ HTTP/1.1",
        "GET /\0HTTP/1.1",
        " GET / HTTP/1.1",
        "\tGET / HTTP/1.1",
        "\0GET / HTTP/1.1",
        "\u{feff}GET / HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET / HTTP/1.1\t",
    ] {
        rules.push(rule(3, "separators", start(line), BAD));
    }
    for line in [
        &b"GET HTTP/1.1"[..],
        b"GET  HTTP/1.1",
        b"GET /a b HTTP/1.1",
        b"GET /a#b HTTP/1.1",
        b"GET # HTTP/1.1",
        b"GET /a\0 HTTP/1.1",
        b"GET /a\x01 HTTP/1.1",
        b"GET /a\x1f HTTP/1.1",
        b"GET /a\x7f HTTP/1.1",
        b"GET /\xe9 HTTP/1.1",
        b"GET /\xc3\xa9 HTTP/1.1",
        b"GET /\x80 HTTP/1.1",
        b"GET /?\xff HTTP/1.1",
        b"GET /\"a\" HTTP/1.1",
        b"GET /<a> HTTP/1.1",
    ] {
        rules.push(rule(5, "target", head(line), BAD));
    }
    rules
}

pub(super) fn targets() -> Vec<Rule> {
    let long = format!("/{}", "a".repeat(8000 - "GET / HTTP/1.1".len()));
    let mut rules = vec![
        rule(7, "8,000 octets", get(&long), format!("200 GET {long}")),
        rule(7, "over the limit", get(&"/a".repeat(4096)), "414 close"),
        rule(8, "absolute", start("GET http://b/c?d HTTP/1.1"), "200 GET /c"),
        rule(8, "absolute, no path", start("GET http://b HTTP/1.1"), "200 GET /"),
        server_rule(
            8,
            "the target's host wins",
            start("GET http://b:8080/authority HTTP/1.1"),
            "200 b:8080",
        ),
        server_rule(8, "else it is that of Host", get("/authority"), "200 a"),
        rule(9, "OPTIONS *", start("OPTIONS * HTTP/1.1"), "200 OPTIONS *"),
        server_rule(
            10,
            "no tunnel (ours: the handler's 405)",
            start("CONNECT a:1 HTTP/1.1"),
            "405 close",
        ),
    ];
    for target in [
        "a",
        "index.html",
        "http:///c",
        "http://:80/",
        "http://u@b/",
        "http://u:p@b/",
        "http://b:0/",
        "http://b:65536/",
        "http://b:x/",
        "http://",
        "http:b",
        "ftp://b/",
    ] {
        rules.push(rule(8, "no target of a server", start(&format!("GET {target} HTTP/1.1")), BAD));
    }
    for line in
        ["GET *", "PUT *", "POST *", "OPTIONS */x", "OPTIONS **", "GET a:80", "OPTIONS a:80"]
    {
        rules.push(rule(9, "form", start(&format!("{line} HTTP/1.1")), BAD));
    }
    for target in ["a", "a:", "a:0", "a:65536", "/", "http://a:80/", "u@a:80", "*", "a:80/"] {
        rules.push(rule(
            10,
            "no authority with a port",
            start(&format!("CONNECT {target} HTTP/1.1")),
            BAD,
        ));
    }
    rules
}

pub(super) fn versions() -> Vec<Rule> {
    let mut rules = vec![
        rule(12, "1.2", start("GET / HTTP/1.2"), "200 GET /"),
        rule(12, "1.9", start("GET / HTTP/1.9"), "200 GET /"),
        rule(12, "2.0", start("GET / HTTP/2.0"), "505 close"),
        rule(12, "9.9", start("GET / HTTP/9.9"), "505 close"),
        rule(12, "0.9 by name", start("GET / HTTP/0.9"), BAD),
        rule(12, "0.9 by form", b"GET /\r\n", BAD),
        rule(12, "the preface (ours: 505)", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 close"),
    ];
    for version in [
        "http/1.1",
        "Http/1.1",
        "HTTP/1",
        "HTTP/1.",
        "HTTP/.1",
        "HTTP/01.1",
        "HTTP/1.01",
        "HTTP/1.11",
        "HTTP/11.1",
        "HTTP/ 1.1",
        "HTTP /1.1",
        "HTTP/-1.1",
        "HTTP/1,1",
        "HTTP1.1",
        "HTTPS/1.1",
        "HTTTP/1.1",
        "ICY/1.1",
        "RTSP/1.0",
    ] {
        rules.push(rule(12, "no version", start(&format!("GET / {version}")), BAD));
    }
    rules
}

pub(super) fn field_lines() -> Vec<Rule> {
    let raw = |line: &[u8]| [b"GET / HTTP/1.1\r\nHost: a\r\n", line, b"\r\n\r\n"].concat();
    let mut rules = vec![
        rule(13, "space before the colon", fields("B : c"), BAD),
        rule(13, "TAB before the colon", fields("B\t: c"), BAD),
        rule(13, "of a field that frames", fields("Content-Length : 0"), BAD),
        rule(14, "folding", fields("B: c\r\n d"), BAD),
        rule(14, "folding with TAB", fields("B: c\r\n\td"), BAD),
        rule(14, "folding to nothing", fields("B: c\r\n "), BAD),
        rule(14, "a folded coding", fields("Transfer-Encoding:\r\n chunked"), BAD),
        rule(14, "before the first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", BAD),
        rule(14, "TAB before the first", b"GET / HTTP/1.1\r\n\tHost: a\r\n\r\n", BAD),
        rule(16, "TAB is fine", fields("B: c\td"), "200 GET /"),
        rule(17, "trimmed", fields("Connection: \t close \t"), "200 GET / close"),
        rule(17, "VT is not", fields("Connection: \x0bclose"), BAD),
        rule(17, "FF is not", fields("Connection: close\x0c"), BAD),
        rule(17, "NBSP is not", raw(b"Connection: \xa0close"), "200 GET /"),
        rule(18, "empty", fields("B:"), "200 GET /"),
        rule(18, "only spaces", fields("B: \t "), "200 GET /"),
        rule(18, "opaque", raw(b"B: \x80\xff"), "200 GET /"),
        rule(
            19,
            "case",
            b"GET / HTTP/1.1\r\nhOsT: a\r\ncOnNeCtIoN: cLoSe\r\n\r\n",
            "200 GET / close",
        ),
        rule(
            19,
            "_ is not -",
            fields("Content_Length: 2\r\nTransfer_Encoding: chunked"),
            "200 GET /",
        ),
        rule(20, "one CR LF is not the end", b"GET / HTTP/1.1\r\nHost: a\r\n", ""),
        rule(20, "LF CR is not", b"GET / HTTP/1.1\r\nHost: a\n\r\n\r", BAD),
        rule(20, "CR LF CR is not", b"GET / HTTP/1.1\r\nHost: a\r\n\rx", BAD),
        rule(
            21,
            "too large",
            fields(&format!("B: {}\r\n", "c".repeat(8000)).repeat(3)),
            "431 close",
        ),
        rule(21, "too many", fields(&"B: c\r\n".repeat(100)), "431 close"),
        rule(22, "in pieces", fields("B: c\r\nD: e\r\nF: g"), "200 GET /"),
    ];
    for line in [
        &b"B@: c"[..],
        b"B\xe9: c",
        b"B\0: c",
        b"(B): c",
        b"B\"C: d",
        b": c",
        b"Bc",
        b"B\x7f: c",
        b"B c: d",
    ] {
        rules.push(rule(15, "name", raw(line), BAD));
    }
    for line in [
        &b"B: c\0d"[..],
        b"B: \0",
        b"B: c\x01d",
        b"B: c\x1bd",
        b"B: c\x7fd",
        b"B: c\rd",
        b"B: c\nd",
        b"B: c\x08",
    ] {
        rules.push(rule(16, "value", raw(line), BAD));
    }
    rules
}

pub(super) fn hosts() -> Vec<Rule> {
    let host = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut rules = vec![
        rule(23, "none", b"GET / HTTP/1.1\r\n\r\n", BAD),
        rule(23, "none, absolute", b"GET http://a/ HTTP/1.1\r\n\r\n", BAD),
        rule(23, "two", fields("Host: b"), BAD),
        rule(23, "two, equal", fields("Host: a"), BAD),
        rule(23, "two, apart, in another case", fields("B: c\r\nhOST: a"), BAD),
        rule(24, "1.0 without", b"GET / HTTP/1.0\r\n\r\n", "200 GET / close"),
        rule(24, "1.0 with a bad one", b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", BAD),
    ];
    for bad in [
        "u@a", "a/b", "/", "a, b", "a,b", "a b", "a:x", "a:99999", "a:0", "a:-1", "a:80:80",
        "[::1", "::1", "[x]", "[]", "[::1]x", "", " ", "http://a", "a?b", "a#b", "a\\b",
    ] {
        rules.push(rule(24, "no host", host(bad), BAD));
    }
    for good in ["a", "a:80", "a.b-c_d:65535", "a:", "[::1]", "[::1]:80", "127.0.0.1"] {
        rules.push(rule(24, "a host", host(good), "200 GET /"));
    }
    rules
}
