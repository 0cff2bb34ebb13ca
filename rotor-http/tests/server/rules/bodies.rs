//! Rules 25 to 41: lengths, codings, chunks.

use super::{BAD, Rule, posted, rule, server_rule};
use crate::probe::{get, post, request};

fn chunked(body: &str) -> Vec<u8> {
    posted("Transfer-Encoding: chunked", body)
}

pub(super) fn lengths() -> Vec<Rule> {
    let length = |value: &str| posted(&format!("Content-Length: {value}"), "hi");
    let mut rules = Vec::new();
    for value in [
        "+2",
        "-2",
        "-0",
        "0x2",
        "0o2",
        "2_0",
        "1 2",
        "2.0",
        "2e0",
        "",
        " ",
        "two",
        "2;",
        "\"2\"",
        "18446744073709551616",
        "18446744073709551618",
        "99999999999999999999999",
    ] {
        rules.push(rule(25, "no number", length(value), BAD));
    }
    let cut = "3\r\nGET"; // This would be the next request if it were not part of the body.
    rules.extend([
        rule(25, "leading zeros", length("002"), "200 POST / hi"),
        rule(25, "no octal", posted("Content-Length: 010", "0123456789"), "200 POST / 0123456789"),
        rule(26, "two", posted("Content-Length: 2\r\nContent-Length: 3", "hi"), BAD),
        rule(
            26,
            "two, equal (ours: 400)",
            posted("Content-Length: 2\r\nContent-Length: 2", "hi"),
            BAD,
        ),
        rule(26, "a list", length("2, 3"), BAD),
        rule(26, "a list, equal (ours: 400)", length("2, 2"), BAD),
        rule(26, "an empty element", length("2,"), BAD),
        rule(27, "fewer octets, then the end", posted("Content-Length: 3", "hi"), BAD),
        server_rule(
            27,
            "a huge length",
            posted("Content-Length: 9223372036854775807", "hi"),
            "413 close",
        ),
        rule(28, "neither", [posted("A: b", ""), get("/b")].concat(), "200 POST / | 200 GET /b"),
        server_rule(
            29,
            "drained",
            [post("/ignore", "hi"), get("/b")].concat(),
            "200 POST /ignore | 200 GET /b",
        ),
        server_rule(
            29,
            "too long to be drained",
            [post("/ignore", &"x".repeat(70_000)), get("/b")].concat(),
            "200 POST /ignore close",
        ),
        server_rule(
            29,
            "drained in chunks",
            [
                request("POST /ignore", "Transfer-Encoding: chunked\r\n", "2\r\nhi\r\n0\r\n\r\n"),
                get("/b"),
            ]
            .concat(),
            "200 POST /ignore | 200 GET /b",
        ),
    ]);
    for method in ["GET", "DELETE", "OPTIONS", "PUT", "PATCH"] {
        let with_length = request(&format!("{method} /"), "Content-Length: 3\r\n", "GET");
        let in_chunks = request(
            &format!("{method} /"),
            "Transfer-Encoding: chunked\r\n",
            &format!("{cut}\r\n0\r\n\r\n"),
        );
        for input in [with_length, in_chunks] {
            let expected = format!("200 {method} / GET | 200 GET /b");
            rules.push(rule(
                28,
                "a body where the next request should be",
                [input, get("/b")].concat(),
                expected,
            ));
        }
    }
    // The answer to HEAD does not show whether the body was read as one.
    let head = request("HEAD /", "Content-Length: 3\r\n", "GET");
    rules.push(server_rule(28, "HEAD with a body", [head, get("/b")].concat(), "200 | 200 GET /b"));
    rules
}

pub(super) fn codings() -> Vec<Rule> {
    let coding =
        |value: &str| posted(&format!("Transfer-Encoding: {value}"), "2\r\nhi\r\n0\r\n\r\n");
    let mut rules = vec![
        rule(30, "any case", coding("ChUnKeD"), "200 POST / hi"),
        rule(30, "trimmed", coding(" \tchunked\t "), "200 POST / hi"),
        rule(30, "upper case, zeros", chunked("00A\r\n0123456789\r\n000\r\n\r\n"), "200 POST / 0123456789"),
        rule(31, "both", posted("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), BAD),
        rule(
            31,
            "both, the other way round",
            posted("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"),
            BAD,
        ),
        rule(31, "both, unknown coding", posted("Transfer-Encoding: gzip\r\nContent-Length: 2", "hi"), BAD),
        rule(35, "1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
        rule(
            35,
            "1.0, kept alive",
            b"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            BAD,
        ),
    ];
    for unknown in [
        "gzip",
        "identity",
        "xchunked",
        "chunkedx",
        "gzip, chunked",
        "deflate\r\nTransfer-Encoding: chunked",
    ] {
        rules.push(rule(32, "another coding", coding(unknown), "501 close"));
    }
    for bad in ["chunked, gzip", "chunked, identity", "chunked\r\nTransfer-Encoding: gzip"] {
        rules.push(rule(32, "chunked not last", coding(bad), BAD));
    }
    for bad in [
        "chunked, chunked",
        "chunked\r\nTransfer-Encoding: chunked",
        "chunked;a=b",
        "chunked; a",
        "\"chunked\"",
        "chunked\0",
        "\0chunked",
        "\x0bchunked",
        "chunked\x0b",
        "chunked\x0c",
        "",
        "chunked chunked",
    ] {
        rules.push(rule(33, "malformed", coding(bad), BAD));
    }
    for empty in [", chunked", "chunked,", ",", "chunked,,", "\r\nTransfer-Encoding: chunked"] {
        rules.push(rule(34, "empty elements (ours: 400)", coding(empty), BAD));
    }
    rules
}

pub(super) fn chunks() -> Vec<Rule> {
    let mut rules = Vec::new();
    for size in [
        "+2",
        "-2",
        "0x2",
        "2_",
        " 2",
        "2 ",
        "\t2",
        "2\t",
        "2 \t ",
        "2 0",
        "2 x",
        "",
        "g",
        "2h",
        "10000000000000002",
        "fffffffffffffffff",
        "ffffffffffffffff0",
        "2\u{7f}",
    ] {
        rules.push(rule(36, "no size", chunked(&format!("{size}\r\nhi\r\n0\r\n\r\n")), BAD));
    }
    let sum = "1\r\na\r\nffffffffffffffff\r\n";
    rules.push(server_rule(
        36,
        "a sum beyond 2^64",
        request("POST /progressive", "Transfer-Encoding: chunked\r\n", sum),
        BAD,
    ));
    for body in [
        "2\r\nhix\r\n0\r\n\r\n",
        "3\r\nhi\r\n0\r\n\r\n",
        "2\r\nhi0\r\n\r\n",
        "2\r\nhi\n0\r\n\r\n",
        "2\r\nhi\r0\r\n\r\n",
    ] {
        rules.push(rule(37, "data and size", chunked(body), BAD));
    }
    for body in [
        "2\nhi\r\n0\r\n\r\n",
        "2\rhi\r\n0\r\n\r\n",
        "2\r\rhi\r\n",
        "2;a\nb\r\nhi\r\n0\r\n\r\n",
        "2;a\rb\r\nhi\r\n0\r\n\r\n",
        "2;a=\"\r\n\"\r\nhi\r\n0\r\n\r\n",
        "2;a=b\n\r\nhi\r\n0\r\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "0\r\n\rx",
        "\r\n2\r\nhi\r\n0\r\n\r\n",
    ] {
        rules.push(rule(38, "bare CR or LF", chunked(body), BAD));
    }
    for good in [";a", ";a=b", ";a=\"b c\"", ";a;b=c;d=\"\\\"e;\"", ";a=\"\""] {
        let body = format!("2{good}\r\nhi\r\n0{good}\r\n\r\n");
        rules.push(rule(39, "ignored", chunked(&body), "200 POST / hi"));
    }
    // RFC 9110 §5.6.3: bad whitespace is parsed, wherever the grammar has it.
    for good in [
        " ;a",
        "\t;a",
        " \t ;\t a",
        "; a",
        ";a =b",
        ";a= b",
        ";a \t=\t b",
        ";a ;b",
        ";a=b ; c",
        ";a=\"b\" ;c",
        " ; a = \" b \" ; c ; d = e",
    ] {
        let body = format!("2{good}\r\nhi\r\n0{good}\r\n\r\n");
        rules.push(rule(36, "bad whitespace of an extension", chunked(&body), "200 POST / hi"));
    }
    for bad in [
        " ;",
        " ; ",
        "; ",
        ";a ",
        ";a\t",
        ";a= ",
        ";a =",
        ";a=b ",
        ";a=\"b\" ",
        ";a=b c",
        ";a b=c",
        ";a = = b",
        ";a=\"b\" \"c\"",
        " a",
        " =a",
        " ;\u{b}a",
        ";a\u{c}=b",
        ";a\u{a0}=b",
    ] {
        let body = format!("2{bad}\r\nhi\r\n0\r\n\r\n");
        rules.push(rule(36, "whitespace that ends a line or parts a word", chunked(&body), BAD));
    }
    for bad in [
        ";",
        ";;a",
        ";=b",
        ";a=",
        ";a=\"",
        ";a=\"b",
        ";a=\"b\"c",
        ";a b",
        ";a@",
        ";a=b@",
        ";a=b=c",
        ";a=\"\x01\"",
        ";a=\"\\\x01\"",
        ";\0",
        ";a\x7f",
    ] {
        rules.push(rule(39, "malformed", chunked(&format!("2{bad}\r\nhi\r\n0\r\n\r\n")), BAD));
    }
    let many = format!("1;a={}\r\nx\r\n", "b".repeat(200)).repeat(30);
    rules.push(rule(39, "too many in one body", chunked(&many), BAD));
    rules.extend([
        rule(40, "no last chunk", chunked("2\r\nhi\r\n"), BAD),
        rule(40, "half of it", chunked("2\r\nhi\r\n0\r\n"), BAD),
        rule(41, "then the next request", [chunked("0\r\nX: y\r\n\r\n"), get("/b")].concat(), "200 POST / | 200 GET /b"),
        server_rule(41, "too many", chunked(&format!("0\r\n{}\r\n", "X: y\r\n".repeat(33))), "431 close"),
        server_rule(41, "too large", chunked(&format!("0\r\nX: {}\r\n\r\n", "y".repeat(4096))), "431 close"),
        server_rule(
            41,
            "kept apart, without those that frame, route or authorise",
            request(
                "POST /progressive",
                "Transfer-Encoding: chunked\r\n",
                "2\r\nhi\r\n0\r\nX: \t y \r\nContent-Length: 9\r\nTransfer-Encoding: gzip\r\nHost: b\r\nConnection: close\r\n\
                 Authorization: c\r\nX-Forwarded-For: d\r\n\r\n",
            ),
            "200 POST /progressive hi X: y",
        ),
    ]);
    for trailer in ["X : y", " X: y", "X", ": y", "X: \0", "X: y\r", "X: y\n", "X@: y"] {
        rules.push(rule(41, "malformed", chunked(&format!("0\r\n{trailer}\r\n\r\n")), BAD));
    }
    rules
}
