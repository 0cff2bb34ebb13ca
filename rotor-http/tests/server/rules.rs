//! The rules of HTTP/1.1 that independent suites check, numbered 1 to 53: each is asked of the parser alone, where that
//! decides, and of a whole server on a scripted socket and on a kernel's, with the bytes coming whole, one by one, and
//! (on the scripted one) cut at every point. Where two answers are allowed, the row says which is ours.

use rotor_http::h1::{BodyDecoder, FieldStorage, HeadReader, Limits, Method, RequestTerms};
use rotor_http::server::Settings;

use crate::probe::{get, post, probe, request};
use crate::tcp::TcpServer;
use crate::wire::{answers, transcript};

struct Rule {
    number: u32,
    name: &'static str,
    input: Vec<u8>,
    expected: String,
    /// Whether the parser alone decides.
    is_pure: bool,
}

fn rule(number: u32, name: &'static str, input: impl AsRef<[u8]>, expected: impl Into<String>) -> Rule {
    Rule { number, name, input: input.as_ref().to_vec(), expected: expected.into(), is_pure: true }
}

/// A rule for whole servers: it depends on a handler.
fn served(number: u32, name: &'static str, input: impl AsRef<[u8]>, expected: impl Into<String>) -> Rule {
    Rule { is_pure: false, ..rule(number, name, input, expected) }
}

/// A request line with a `Host`.
fn start(line: &str) -> Vec<u8> {
    format!("{line}\r\nHost: a\r\n\r\n").into_bytes()
}

/// A GET with these field lines after `Host`.
fn fields(lines: &str) -> Vec<u8> {
    request("GET /", &format!("{lines}\r\n"), "")
}

fn posted(lines: &str, body: &str) -> Vec<u8> {
    request("POST /", &format!("{lines}\r\n"), body)
}

fn chunked(body: &str) -> Vec<u8> {
    posted("Transfer-Encoding: chunked", body)
}

const BAD: &str = "400 close";

fn start_lines() -> Vec<Rule> {
    let long = format!("/{}", "a".repeat(8000 - "GET / HTTP/1.1".len()));
    vec![
        rule(1, "two empty lines", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "200 GET /"),
        rule(1, "three", b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(
            1,
            "between requests",
            [get("/"), b"\r\n".to_vec(), get("/b")].concat(),
            "200 GET / | 200 GET /b",
        ),
        rule(2, "bare LF", b"GET / HTTP/1.1\nHost: a\r\n\r\n", BAD),
        rule(2, "bare LF after a field", b"GET / HTTP/1.1\r\nHost: a\n\r\n", BAD),
        rule(2, "bare CR", b"GET / HTTP/1.1\rHost: a\r\n\r\n", BAD),
        rule(3, "two spaces", start("GET  / HTTP/1.1"), BAD),
        rule(3, "TAB", start("GET\t/ HTTP/1.1"), BAD),
        rule(3, "NUL", start("GET\0/ HTTP/1.1"), BAD),
        rule(3, "something before the method", start(" GET / HTTP/1.1"), BAD),
        rule(4, "no token", start("G@T / HTTP/1.1"), BAD),
        rule(4, "unknown", start("BREW / HTTP/1.1"), "501 close"),
        rule(4, "case", start("get / HTTP/1.1"), "501 close"),
        rule(4, "very long (ours: 501)", [b'A'; 5000], "501 close"),
        rule(5, "no target", start("GET HTTP/1.1"), BAD),
        rule(5, "fragment", start("GET /a#b HTTP/1.1"), BAD),
        rule(5, "raw byte", b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", BAD),
        rule(5, "DEL", start("GET /\x7f HTTP/1.1"), BAD),
        rule(6, "encoded CR LF NUL", get("/%0d%0aX:%00"), "200 GET /%0d%0aX:%00"),
        rule(7, "8,000 octets", get(&long), format!("200 GET {long}")),
        rule(7, "over the limit", get(&"/a".repeat(4096)), "414 close"),
        rule(8, "relative", start("GET a HTTP/1.1"), BAD),
        rule(8, "absolute", start("GET http://b/c?d HTTP/1.1"), "200 GET /c"),
        rule(8, "userinfo", start("GET http://u@b/ HTTP/1.1"), BAD),
        rule(8, "port 65536", start("GET http://b:65536/ HTTP/1.1"), BAD),
        rule(9, "OPTIONS *", start("OPTIONS * HTTP/1.1"), "200 OPTIONS *"),
        rule(9, "GET *", start("GET * HTTP/1.1"), BAD),
        rule(9, "authority form", start("GET a:80 HTTP/1.1"), BAD),
        rule(10, "CONNECT without a port", start("CONNECT a HTTP/1.1"), BAD),
        served(10, "CONNECT, no tunnel (ours: the handler's 405)", start("CONNECT a:1 HTTP/1.1"), "405"),
        rule(11, "a status line", start("HTTP/1.1 200 OK"), BAD),
        rule(12, "2.0", start("GET / HTTP/2.0"), "505 close"),
        rule(12, "1.2", start("GET / HTTP/1.2"), "200 GET /"),
        rule(12, "1.11", start("GET / HTTP/1.11"), BAD),
        rule(12, "0.9", b"GET /\r\n", BAD),
        rule(12, "the preface (ours: 505)", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505 close"),
    ]
}

fn field_lines() -> Vec<Rule> {
    vec![
        rule(13, "space before the colon", fields("B : c"), BAD),
        rule(14, "folding", fields("B: c\r\n d"), BAD),
        rule(14, "before the first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", BAD),
        rule(15, "no token", fields("B@: c"), BAD),
        rule(15, "empty", fields(": c"), BAD),
        rule(15, "no colon", fields("Bc"), BAD),
        rule(16, "NUL", fields("B: c\0"), BAD),
        rule(16, "CTL", fields("B: c\x01"), BAD),
        rule(17, "trimmed", posted("Content-Length: \t 2 \t", "hi"), "200 POST / hi"),
        rule(17, "VT is not", posted("Content-Length: \x0b2", "hi"), BAD),
        rule(17, "NBSP is not", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: \xa02\r\n\r\nhi", BAD),
        rule(18, "empty", fields("B:"), "200 GET /"),
        rule(18, "opaque", b"GET / HTTP/1.1\r\nHost: a\r\nB: \x80\xff\r\n\r\n", "200 GET /"),
        rule(19, "case", posted("cOnTeNt-LeNgTh: 2", "hi"), "200 POST / hi"),
        rule(19, "_ is not -", posted("Content_Length: 2", ""), "200 POST /"),
        rule(20, "one CR LF is not the end", b"GET / HTTP/1.1\r\nHost: a\r\n", ""),
        rule(21, "too large", fields(&format!("B: {}\r\n", "c".repeat(8000)).repeat(3)), "431 close"),
        rule(21, "too many", fields(&"B: c\r\n".repeat(100)), "431 close"),
        rule(22, "in pieces", fields("B: c\r\nD: e\r\nF: g"), "200 GET /"),
        rule(23, "none", b"GET / HTTP/1.1\r\n\r\n", BAD),
        rule(23, "two, equal", fields("Host: a"), BAD),
        rule(24, "userinfo", b"GET / HTTP/1.1\r\nHost: a@b\r\n\r\n", BAD),
        rule(24, "list", b"GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", BAD),
        rule(24, "empty", b"GET / HTTP/1.1\r\nHost:\r\n\r\n", BAD),
        rule(24, "bad port", b"GET / HTTP/1.1\r\nHost: a:b\r\n\r\n", BAD),
        rule(24, "1.0 without", b"GET / HTTP/1.0\r\n\r\n", "200 GET / close"),
    ]
}

fn lengths_and_codings() -> Vec<Rule> {
    let length = |value: &str| posted(&format!("Content-Length: {value}"), "hi");
    let coding = |value: &str| posted(&format!("Transfer-Encoding: {value}"), "2\r\nhi\r\n0\r\n\r\n");
    let mut rules: Vec<Rule> = ["+2", "-2", "0x2", "2_0", "1 2", "2.0", "2e0", "", "18446744073709551616"]
        .map(|value| rule(25, "no number", length(value), BAD))
        .into();
    rules.extend([
        rule(25, "leading zeros", length("002"), "200 POST / hi"),
        rule(26, "two, equal", posted("Content-Length: 2\r\nContent-Length: 2", "hi"), BAD),
        rule(26, "a list (ours: 400)", length("2, 2"), BAD),
        rule(27, "fewer octets, then the end", posted("Content-Length: 3", "hi"), BAD),
        served(27, "a huge length", posted("Content-Length: 9223372036854775807", "hi"), "413 close"),
        rule(
            28,
            "POST without a length",
            [posted("A: b", ""), get("/b")].concat(),
            "200 POST / | 200 GET /b",
        ),
        rule(
            28,
            "a body where the next request should be",
            [request("GET /", "Content-Length: 3\r\n", "GET"), get("/b")].concat(),
            "200 GET / GET | 200 GET /b",
        ),
        served(29, "drained", [post("/ignore", "hi"), get("/b")].concat(), "200 POST /ignore | 200 GET /b"),
        served(
            29,
            "too long to be drained",
            [post("/ignore", &"x".repeat(70_000)), get("/b")].concat(),
            "200 POST /ignore close",
        ),
        rule(30, "any case", coding("ChUnKeD"), "200 POST / hi"),
        rule(30, "upper case, zeros", chunked("00A\r\n0123456789\r\n000\r\n\r\n"), "200 POST / 0123456789"),
        rule(31, "both", posted("Content-Length: 2\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), BAD),
        rule(32, "gzip", coding("gzip"), "501 close"),
        rule(32, "gzip, chunked", coding("gzip, chunked"), "501 close"),
        rule(32, "identity", coding("identity"), "501 close"),
        rule(32, "chunked not last", coding("chunked, gzip"), BAD),
        rule(33, "twice", coding("chunked, chunked"), BAD),
        rule(33, "two lines", coding("chunked\r\nTransfer-Encoding: chunked"), BAD),
        rule(33, "parameters", coding("chunked;a=b"), BAD),
        rule(33, "empty", coding(""), BAD),
        rule(34, "empty elements (ours: 400)", coding(", chunked"), BAD),
        rule(35, "1.0", b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", BAD),
    ]);
    rules
}

fn chunks() -> Vec<Rule> {
    let mut rules = Vec::new();
    for size in ["+2", "0x2", "2_", " 2", "2 ", "", "10000000000000002"] {
        rules.push(rule(36, "no size", chunked(&format!("{size}\r\nhi\r\n0\r\n\r\n")), BAD));
    }
    rules.extend([
        rule(37, "longer", chunked("2\r\nhix\r\n0\r\n\r\n"), BAD),
        rule(37, "shorter", chunked("3\r\nhi\r\n0\r\n\r\n"), BAD),
        rule(38, "bare LF", chunked("2\nhi\r\n0\r\n\r\n"), BAD),
        rule(38, "bare CR", chunked("2\rhi\r\n0\r\n\r\n"), BAD),
        rule(38, "LF in an extension", chunked("2;a\nb\r\nhi\r\n0\r\n\r\n"), BAD),
        rule(39, "ignored", chunked("2;a;b=c;d=\"e\\\"\"\r\nhi\r\n0\r\n\r\n"), "200 POST / hi"),
        rule(39, "no name", chunked("2;\r\nhi\r\n0\r\n\r\n"), BAD),
        rule(39, "unbalanced", chunked("2;a=\"\r\nhi\r\n0\r\n\r\n"), BAD),
        rule(39, "too many", chunked(&format!("1;a={}\r\nx\r\n", "b".repeat(200)).repeat(30)), BAD),
        rule(40, "no last chunk", chunked("2\r\nhi\r\n"), BAD),
        rule(41, "malformed", chunked("0\r\nX : y\r\n\r\n"), BAD),
        served(
            41,
            "kept apart, without those that frame",
            request(
                "POST /progressive",
                "Transfer-Encoding: chunked\r\n",
                "2\r\nhi\r\n0\r\nX: y\r\nContent-Length: 9\r\n\r\n",
            ),
            "200 POST /progressive hi X: y",
        ),
    ]);
    rules
}

fn connections() -> Vec<Rule> {
    let pair = [posted("Content-Length: 2", "hi"), get("/b")].concat();
    let expected = ["200 POST / hi | 200 GET /b"; 20].join(" | ");
    let closing = |value: &str| [fields(&format!("Connection: {value}")), get("/b")].concat();
    let old = "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n".repeat(2);
    let expect = |value: &str, body: &str| posted(&format!("Expect: {value}\r\nContent-Length: 2"), body);
    vec![
        rule(42, "pipelined", pair.repeat(20), expected),
        rule(42, "then garbage", [get("/"), b"\0garbage".to_vec()].concat(), "200 GET / | 400 close"),
        rule(43, "close", closing("close"), "200 GET / close"),
        rule(43, "in a list", closing("x, CLOSE"), "200 GET / close"),
        rule(44, "1.0", b"GET / HTTP/1.0\r\n\r\nGET /b HTTP/1.0\r\n\r\n", "200 GET / close"),
        rule(44, "1.0 keep-alive", &old, "200 GET / | 200 GET /"),
        served(44, "no chunks to 1.0", b"GET /chunked HTTP/1.0\r\n\r\n", "200 onetwo close"),
        rule(45, "half-close", get("/"), "200 GET /"),
        rule(46, "a part of a head, then the end", b"GET / HT", ""),
        rule(47, "in 1.0", b"POST / HTTP/1.0\r\nExpect: x\r\n\r\n", "417 close"),
        rule(47, "other", expect("100-continue, x", ""), "417 close"),
        rule(47, "wanted", expect("100-continue", "hi"), "200 POST / hi"),
        rule(48, "unknown", fields("Upgrade: x\r\nConnection: upgrade"), "200 GET /"),
        rule(48, "without the option", fields("Upgrade: x"), "200 GET /"),
    ]
}

fn responses() -> Vec<Rule> {
    vec![
        served(49, "HEAD", [start("HEAD / HTTP/1.1"), get("/b")].concat(), "200 | 200 GET /b"),
        served(
            49,
            "HEAD, unknown length",
            [start("HEAD /chunked HTTP/1.1"), get("/b")].concat(),
            "200 | 200 GET /b",
        ),
        served(49, "204", [get("/status/204"), get("/b")].concat(), "204 | 200 GET /b"),
        served(49, "205", [get("/status/205"), get("/b")].concat(), "205 | 200 GET /b"),
        served(49, "304", [get("/status/304"), get("/b")].concat(), "304 | 200 GET /b"),
        served(50, "unknown length", [get("/chunked"), get("/b")].concat(), "200 onetwo | 200 GET /b"),
        served(51, "TRACE", start("TRACE / HTTP/1.1"), "501 close"),
        served(
            52,
            "a cut answer is never followed by another",
            [get("/panic"), get("/b")].concat(),
            "500 close",
        ),
        // Conditional requests are the handler's: the connection hands it the fields.
        served(
            53,
            "conditions reach the handler",
            fields("If-None-Match: \"x\"\r\nRange: bytes=0-"),
            "200 GET /",
        ),
    ]
}

fn all() -> Vec<Rule> {
    [start_lines(), field_lines(), lengths_and_codings(), chunks(), connections(), responses()]
        .into_iter()
        .flatten()
        .collect()
}

/// The parser's view of a connection.
struct Parsed {
    done: Vec<String>,
    /// The request whose body comes, and whether another may follow it.
    current: Option<(String, BodyDecoder, bool)>,
}

impl Parsed {
    fn refuse(mut self, status: u16) -> String {
        self.done.push(format!("{status} close"));
        self.done.join(" | ")
    }
}

/// What the parser alone makes of the pieces, in the words of a transcript.
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let limits = Limits::new();
    let (mut input, mut reader) = (Vec::new(), HeadReader::new());
    let mut parsed = Parsed { done: Vec::new(), current: None };
    let mut pieces = pieces.into_iter();
    loop {
        if let Some((text, decoder, keep_alive)) = &mut parsed.current {
            let Ok(decoded) = decoder.decode(&input) else { return parsed.refuse(400) };
            text.push_str(&String::from_utf8_lossy(&input[decoded.skip..decoded.consumed()]));
            input.drain(..decoded.consumed());
            if decoded.is_end {
                let close = if *keep_alive { "" } else { " close" };
                parsed.done.push(format!("{}{close}", text.trim_end()));
                parsed.current = None;
                if !close.is_empty() {
                    return parsed.done.join(" | ");
                }
            }
            if decoded.is_end || !decoded.needs_input() {
                continue;
            }
        } else {
            let mut storage = FieldStorage::new();
            match reader.read_request(&input, &mut storage, &limits) {
                Err(error) => return parsed.refuse(error.status().code()),
                Ok(Some(head)) => {
                    let terms = match RequestTerms::of(&head) {
                        Ok(_) if matches!(head.method(), Method::Extension(_)) => return parsed.refuse(501),
                        Ok(terms) => terms,
                        Err(error) => return parsed.refuse(error.status().code()),
                    };
                    let text = format!("200 {} {} ", head.method(), head.path());
                    let decoder = BodyDecoder::new(terms.body, u64::MAX, &limits).expect("no limit");
                    parsed.current = Some((text, decoder, terms.keep_alive));
                    let len = head.input_len();
                    input.drain(..len);
                    continue;
                }
                Ok(None) => {}
            }
        }
        match pieces.next() {
            Some(piece) => input.extend_from_slice(piece),
            None if parsed.current.is_some() => return parsed.refuse(400),
            None => return parsed.done.join(" | "),
        }
    }
}

#[test]
fn every_rule_is_there() {
    let mut numbers: Vec<u32> = all().iter().map(|rule| rule.number).collect();
    numbers.dedup();
    assert_eq!(numbers, (1..=53).collect::<Vec<_>>());
}

#[test]
fn the_parser_keeps_the_rules_that_it_decides() {
    for Rule { number, name, input, expected, .. } in all().iter().filter(|rule| rule.is_pure) {
        assert_eq!(&parse([&input[..]]), expected, "{number} {name}, whole");
        assert_eq!(&parse(input.chunks(1)), expected, "{number} {name}, byte by byte");
    }
}

#[test]
fn a_server_keeps_every_rule_on_a_scripted_socket() {
    for Rule { number, name, input, expected, .. } in all() {
        let check = |pieces: &[&[u8]], how: &str| {
            let mut driver = probe(Settings::new());
            pieces.iter().for_each(|piece| driver.send(piece));
            driver.end();
            assert_eq!(transcript(&driver.take_received()), expected, "{number} {name}, {how}");
            assert!(driver.is_ended(), "{number} {name}, {how}: it ends");
            assert_eq!(driver.failures(), [""; 0], "{number} {name}, {how}");
        };
        check(&[&input], "whole");
        check(&input.chunks(1).collect::<Vec<_>>(), "byte by byte");
        for cut in (1..input.len()).step_by(input.len() / 150 + 1) {
            check(&[&input[..cut], &input[cut..]], &format!("cut at {cut}"));
        }
    }
}

#[test]
fn a_server_keeps_every_rule_on_a_kernel_socket() {
    let mut server = TcpServer::new(Settings::new());
    for Rule { number, name, input, expected, .. } in all() {
        for piece in [usize::MAX, 1] {
            let bytes = server.ask(&input, piece);
            assert_eq!(transcript(&bytes), expected, "{number} {name}, {piece} octets at once");
        }
    }
    while server.instance.machines().len() > 1 {
        server.turn(std::time::Duration::from_millis(10));
    }
}

#[test]
fn rule_8_the_authority_of_the_target_wins_and_23_is_still_asked_for() {
    let input = b"GET http://b:8080/c HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut storage = FieldStorage::new();
    let head = HeadReader::new().read_request(input, &mut storage, &Limits::new());
    let terms = RequestTerms::of(&head.expect("good").expect("whole")).expect("good");
    assert_eq!(terms.authority.map(|authority| authority.as_str()), Some("b:8080"));
}

#[test]
fn rule_47_continue_is_sent_when_the_handler_wants_the_body_and_not_otherwise() {
    let expecting =
        |path: &str| request(&format!("POST {path}"), "Expect: 100-continue\r\nContent-Length: 2\r\n", "");
    let mut driver = probe(Settings::new());
    driver.send(&expecting("/"));
    assert_eq!(driver.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    driver.send(b"hi");
    assert_eq!(transcript(&driver.take_received()), "200 POST / hi");
    // The body has begun to come: nobody waits.
    driver.send(&[&expecting("/")[..], b"h"].concat());
    assert_eq!(driver.take_received(), b"");
    driver.send(b"i");
    assert_eq!(transcript(&driver.take_received()), "200 POST / hi");
    // Not wanted: the final status, and the connection closes, since the body may come or not.
    driver.send(&expecting("/ignore"));
    let answers = answers(&driver.take_received());
    assert_eq!((answers.len(), answers[0].status, answers[0].closes()), (1, 200, true));
    driver.send(b"hi");
    driver.send(&get("/b"));
    assert_eq!(driver.take_received(), b"");
}

#[test]
fn rule_49_head_has_the_fields_of_get() {
    let mut driver = probe(Settings::new());
    for path in ["/", "/chunked"] {
        driver.send(&get(path));
        let got = answers(&driver.take_received());
        driver.send(&start(&format!("HEAD {path} HTTP/1.1")));
        let bytes = driver.take_received();
        let head = answers(&bytes);
        assert!(bytes.ends_with(b"\r\n\r\n"), "no body: {}", bytes.escape_ascii());
        let names = |answer: &crate::wire::Answer| {
            let fields = answer.fields.iter().map(|(name, _)| name.clone());
            fields.filter(|name| name != "X-Sum").collect::<Vec<_>>()
        };
        assert_eq!(names(&got[0]), names(&head[0]), "{path}");
    }
    // A refusal too has no body where the method is known.
    driver.send(b"HEAD / HTTP/1.1\r\nHost: a\r\nExpect: x\r\n\r\n");
    let bytes = driver.take_received();
    assert!(bytes.starts_with(b"HTTP/1.1 417 ") && bytes.ends_with(b"\r\n\r\n"), "{}", bytes.escape_ascii());
}

#[test]
fn rule_51_every_answer_is_dated_and_says_what_its_body_is() {
    for input in [get("/"), get("/chunked"), get("/status/204"), get("/status/304"), fields("A : b")] {
        let mut driver = probe(Settings::new());
        driver.send(&input);
        let answers = answers(&driver.take_received());
        assert_eq!(answers[0].field("Date"), Some("Thu, 01 Jan 1970 00:00:01 GMT"), "{answers:?}");
        assert!(answers[0].field("Content-Type").is_some());
    }
}
