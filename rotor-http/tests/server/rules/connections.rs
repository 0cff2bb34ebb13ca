//! Rules 42 to 53: connections and answers.

use super::{BAD, Rule, fields, posted, rule, server_rule, start};
use crate::probe::{get, request};

pub(super) fn connections() -> Vec<Rule> {
    let pair = [posted("Content-Length: 2", "hi"), get("/b")].concat();
    let expected = ["200 POST / hi | 200 GET /b"; 20].join(" | ");
    let old = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n".repeat(2);
    let expect =
        |value: &str, body: &str| posted(&format!("Expect: {value}\r\nContent-Length: 2"), body);
    let mut rules = vec![
        rule(42, "pipelined", pair.repeat(20), expected),
        rule(
            42,
            "then garbage",
            [get("/"), b"\0garbage".to_vec()].concat(),
            "200 GET / | 400 close",
        ),
        rule(
            42,
            "then garbage that looks like more",
            [get("/"), b"x\r\n\r\n".to_vec(), get("/c")].concat(),
            "200 GET / | 400 close",
        ),
        rule(44, "1.0", b"GET / HTTP/1.0\r\n\r\nGET /b HTTP/1.0\r\n\r\n", "200 GET / close"),
        rule(44, "1.0 keep-alive", &old, "200 GET / | 200 GET /"),
        rule(
            44,
            "1.0 both",
            b"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\nGET /b HTTP/1.0\r\n\r\n",
            "200 GET / close",
        ),
        server_rule(44, "no chunks to 1.0", b"GET /chunked HTTP/1.0\r\n\r\n", "200 onetwo close"),
        server_rule(
            44,
            "no chunks to 1.0 that is kept alive",
            b"GET /chunked HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            "200 onetwo close",
        ),
        rule(45, "half-close", get("/"), "200 GET /"),
        rule(46, "nothing", b"", ""),
        rule(46, "a part of a head, then the end", b"GET / HT", ""),
        rule(47, "in 1.0", b"POST / HTTP/1.0\r\nExpect: x\r\n\r\n", "417 close"),
        rule(
            47,
            "continue in 1.0",
            b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
            "200 POST / hi close",
        ),
        rule(47, "other", expect("x", ""), "417 close"),
        rule(47, "other beside it", expect("100-continue, x", ""), "417 close"),
        rule(47, "with a value", expect("100-continue=1", ""), "417 close"),
        rule(47, "wanted", expect("100-Continue", "hi"), "200 POST / hi"),
        rule(47, "no body", posted("Expect: 100-continue", ""), "200 POST /"),
        server_rule(
            47,
            "not wanted",
            request("POST /ignore", "Expect: 100-continue\r\nContent-Length: 2\r\n", "hi"),
            "200 POST /ignore close",
        ),
        rule(
            48,
            "unknown",
            [fields("Upgrade: x\r\nConnection: upgrade"), get("/b")].concat(),
            "200 GET / | 200 GET /b",
        ),
        rule(
            48,
            "h2c",
            [
                fields("Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AA"),
                get("/b"),
            ]
            .concat(),
            "200 GET / | 200 GET /b",
        ),
        rule(48, "without the option", fields("Upgrade: x"), "200 GET /"),
        rule(48, "without the field", fields("Connection: upgrade"), "200 GET /"),
        rule(
            48,
            "in 1.0",
            b"GET / HTTP/1.0\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
            "200 GET / close",
        ),
    ];
    for value in [
        "close",
        "CLOSE",
        "x, Close",
        "close,",
        ",close",
        "keep-alive, close",
        "x\r\nConnection: close",
        "close\r\nConnection: keep-alive",
    ] {
        let input = [fields(&format!("Connection: {value}")), get("/b")].concat();
        rules.push(rule(43, "close", input, "200 GET / close"));
    }
    for value in ["closed", "clos", "\"close\"", "x", ""] {
        let input = [fields(&format!("Connection: {value}")), get("/b")].concat();
        rules.push(rule(43, "something else", input, "200 GET / | 200 GET /b"));
    }
    rules
}

pub(super) fn responses() -> Vec<Rule> {
    vec![
        server_rule(49, "HEAD", [start("HEAD / HTTP/1.1"), get("/b")].concat(), "200 | 200 GET /b"),
        server_rule(
            49,
            "HEAD, unknown length",
            [start("HEAD /chunked HTTP/1.1"), get("/b")].concat(),
            "200 | 200 GET /b",
        ),
        server_rule(
            49,
            "HEAD, much",
            [start("HEAD /big HTTP/1.1"), get("/b")].concat(),
            "200 | 200 GET /b",
        ),
        server_rule(49, "204", [get("/status/204"), get("/b")].concat(), "204 | 200 GET /b"),
        server_rule(49, "205", [get("/status/205"), get("/b")].concat(), "205 | 200 GET /b"),
        server_rule(49, "304", [get("/status/304"), get("/b")].concat(), "304 | 200 GET /b"),
        server_rule(
            49,
            "304 with the length of GET",
            [get("/length-304"), get("/b")].concat(),
            "304 | 200 GET /b",
        ),
        server_rule(
            49,
            "103 before the answer",
            [get("/hints"), get("/b")].concat(),
            "103 | 200 GET /hints | 200 GET /b",
        ),
        server_rule(49, "no 103 to 1.0", b"GET /hints HTTP/1.0\r\n\r\n", "200 GET /hints close"),
        server_rule(
            50,
            "unknown length",
            [get("/chunked"), get("/b")].concat(),
            "200 onetwo | 200 GET /b",
        ),
        server_rule(51, "TRACE", start("TRACE / HTTP/1.1"), "501 close"),
        server_rule(
            52,
            "a cut answer is never followed by another",
            [get("/panic"), get("/b")].concat(),
            "500 close",
        ),
        server_rule(
            52,
            "nor one that is too short",
            [get("/short"), get("/b")].concat(),
            "500 close",
        ),
        server_rule(
            52,
            "nor one that would split",
            [get("/split"), get("/b")].concat(),
            "500 close",
        ),
        // Conditional requests are the handler's task (see `files`). The connection passes it the
        // fields.
        server_rule(
            53,
            "conditions reach the handler",
            fields("If-None-Match: \"x\"\r\nRange: bytes=0-"),
            "200 GET /",
        ),
        rule(
            53,
            "bad ones are no reason to refuse",
            fields("If-Modified-Since: x\r\nRange: y"),
            "200 GET /",
        ),
        rule(53, "BAD stays bad", fields("Range : bytes=0-"), BAD),
    ]
}
