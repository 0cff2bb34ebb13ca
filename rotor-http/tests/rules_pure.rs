//! The rules of HTTP/1.1 that independent suites check, as far as the pure half decides them: one row or more for each
//! rule, run whole, byte by byte, and cut in two at every point. Where a rule allows two answers, the row says which
//! one is ours.

use std::fmt::Write;

use rotor_http::h1::{
    Body, BodyDecoder, BodyError, FieldStorage, FramingError, HeadReader, Limits, Method, RequestTerms,
    ResponseHeadError, ResponseTerms,
};

/// A server's view of one connection: what it has not consumed, and what it has made of the rest.
struct Connection {
    input: Vec<u8>,
    reader: HeadReader,
    body: Option<BodyDecoder>,
    answers: String,
    is_over: bool,
    limits: Limits,
}

impl Connection {
    fn new(limits: Limits) -> Connection {
        let (input, answers) = Default::default();
        Connection { input, reader: HeadReader::new(), body: None, answers, is_over: false, limits }
    }

    fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while !self.is_over && self.step() {}
    }

    /// One head or one piece of body; answers whether there may be more.
    fn step(&mut self) -> bool {
        if self.body.is_some() {
            return self.body_step();
        }
        let mut storage = FieldStorage::new();
        let head = match self.reader.read_request(&self.input, &mut storage, &self.limits) {
            Ok(None) => return false,
            Ok(Some(head)) => head,
            Err(error) => return self.refuse(error.status().code()),
        };
        let len = head.input_len();
        let terms = match RequestTerms::of(&head) {
            Ok(terms) => terms,
            Err(error) => return self.refuse(error.status().code()),
        };
        if let Method::Extension(_) = head.method() {
            return self.refuse(501);
        }
        let flags = [
            (!terms.keep_alive, "close "),
            (terms.expects_continue, "continue "),
            (terms.wants_upgrade, "upgrade "),
        ];
        write!(self.answers, "{} {} ", head.method(), head.path()).expect("to a string");
        flags.iter().filter(|(is_set, _)| *is_set).for_each(|(_, flag)| self.answers.push_str(flag));
        self.is_over = terms.wants_upgrade || head.method() == Method::Connect;
        let (body, keep_alive) = (terms.body, terms.keep_alive);
        self.input.drain(..len);
        self.body = (body != Body::Empty)
            .then(|| BodyDecoder::new(body, u64::MAX, &self.limits).expect("no limit on the body"));
        if self.body.is_none() {
            self.is_over |= !keep_alive;
            self.answers.push_str("| ");
        }
        true
    }

    fn body_step(&mut self) -> bool {
        let Some(body) = &mut self.body else { return false };
        let decoded = match body.decode(&self.input) {
            Ok(decoded) => decoded,
            Err(error) => return self.refuse(error.status().code()),
        };
        let data = String::from_utf8_lossy(&self.input[decoded.skip..decoded.consumed()]);
        self.answers.push_str(&data);
        self.input.drain(..decoded.consumed());
        if decoded.is_end {
            let trailers = self.body.take().map(BodyDecoder::into_trailers).unwrap_or_default();
            trailers.iter().for_each(|trailer| write!(self.answers, " {trailer:?}").expect("to a string"));
            self.answers.push_str(" | ");
        }
        decoded.data > 0 || decoded.is_end
    }

    fn refuse(&mut self, status: u16) -> bool {
        write!(self.answers, "{status}").expect("to a string");
        self.is_over = true;
        false
    }

    fn finish(mut self) -> String {
        let is_partial = self.body.is_some() || !self.reader.is_idle();
        if !self.is_over && is_partial {
            self.answers.push_str("...");
        }
        self.answers.trim_end_matches(['|', ' ']).to_owned()
    }
}

/// What a server makes of the pieces: each request with its body, then the status with which it refuses the rest, or
/// `...` where it waits.
fn answers<'a>(limits: &Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut connection = Connection::new(limits.clone());
    pieces.into_iter().for_each(|piece| connection.feed(piece));
    connection.finish()
}

/// Runs the input whole, byte by byte, and in two pieces (in all ways if it is short), and demands one answer.
fn check(name: &str, limits: &Limits, input: &[u8], expected: &str) {
    assert_eq!(answers(limits, [input]), expected, "{name}, whole: {}", input.escape_ascii());
    let bytes = answers(limits, input.chunks(1));
    assert_eq!(bytes, expected, "{name}, byte by byte: {}", input.escape_ascii());
    let step = input.len() / 300 + 1;
    for cut in (0..input.len()).step_by(step) {
        let (first, second) = input.split_at(cut);
        let cut_answers = answers(limits, [first, second]);
        assert_eq!(cut_answers, expected, "{name}, cut at {cut}: {}", input.escape_ascii());
    }
}

fn check_all(rows: &[(&str, &[u8], &str)]) {
    let limits = Limits::new();
    rows.iter().for_each(|(name, input, expected)| check(name, &limits, input, expected));
}

/// A GET with these field lines beside `Host`.
fn get(lines: &str) -> Vec<u8> {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").into_bytes()
}

/// A POST with these field lines beside `Host`, and what follows the head.
fn post(lines: &str, body: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n\r\n{body}").into_bytes()
}

fn check_each<T: AsRef<str>>(name: &str, inputs: impl IntoIterator<Item = (T, Vec<u8>)>, expected: &str) {
    let limits = Limits::new();
    for (part, input) in inputs {
        check(&format!("{name} {:?}", part.as_ref()), &limits, &input, expected);
    }
}

#[test]
fn rules_1_to_3_start_line() {
    check_all(&[
        ("1 one empty line", b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("1 two empty lines", b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("1 three empty lines", b"\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        (
            "1 empty lines between requests",
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / | GET /b",
        ),
        ("1 nothing but empty lines is idle", b"\r\n\r\n", ""),
        ("2 bare LF after the start line", b"GET / HTTP/1.1\nHost: a\r\n\r\n", "400"),
        ("2 bare LF after a field", b"GET / HTTP/1.1\r\nHost: a\n\r\n", "400"),
        ("2 bare LF after a later field", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\nD: e\r\n\r\n", "400"),
        ("2 bare LF after an empty value", b"GET / HTTP/1.1\r\nHost: a\r\nB:\nD: e\r\n\r\n", "400"),
        ("2 bare LF as the last line", b"GET / HTTP/1.1\r\nHost: a\r\n\n", "400"),
        ("2 bare LFs only", b"GET / HTTP/1.1\nHost: a\n\n", "400"),
        ("2 bare LF before the request line", b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("2 bare CR before the request line", b"\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("2 bare CR in the start line", b"GET /\r HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("2 bare CR in a value", b"GET / HTTP/1.1\r\nHost: a\rb\r\n\r\n", "400"),
        ("2 bare CR in a name", b"GET / HTTP/1.1\r\nHost: a\r\nB\rc: d\r\n\r\n", "400"),
        ("2 CR CR LF", b"GET / HTTP/1.1\r\nHost: a\r\r\n\r\n", "400"),
        ("3 two spaces after the method", b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 two spaces after the target", b"GET /  HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 TAB", b"GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 TAB after the target", b"GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 VT", b"GET\x0b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 FF", b"GET /\x0cHTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 NUL", b"GET\0/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 space before the method", b" GET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 TAB before the method", b"\tGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 byte order mark before the method", b"\xef\xbb\xbfGET / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("3 space after the version", b"GET / HTTP/1.1 \r\nHost: a\r\n\r\n", "400"),
        ("3 a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "400"),
    ]);
}

#[test]
fn rules_4_to_11_method_and_target() {
    check_all(&[
        ("4 non-token method", b"G@T / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("4 quoted method", b"\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("4 empty method", b" / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("4 unknown method", b"BREW / HTTP/1.1\r\nHost: a\r\n\r\n", "501"),
        ("4 lower case is another method", b"get / HTTP/1.1\r\nHost: a\r\n\r\n", "501"),
        ("4 a very long method (ours: 501)", &[b'A'; 5000], "501"),
        ("5 no target", b"GET HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 empty target", b"GET  HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 space in target", b"GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 fragment", b"GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 NUL", b"GET /a\0 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 CTL", b"GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 DEL", b"GET /a\x7f HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 UTF-8", "GET /\u{e9} HTTP/1.1\r\nHost: a\r\n\r\n".as_bytes(), "400"),
        ("5 Latin-1", b"GET /\xe9 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 quotes", b"GET /\"a\" HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("5 what browsers send in queries", b"GET /?a|b^{c}`\\d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /"),
        ("6 encoded CR LF NUL", b"GET /%0d%0aX:%00 HTTP/1.1\r\nHost: a\r\n\r\n", "GET /%0d%0aX:%00"),
        ("8 relative", b"GET index.html HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("8 absolute", b"GET http://b/c?d HTTP/1.1\r\nHost: a\r\n\r\n", "GET /c"),
        ("8 absolute without Host field", b"GET http://b/c HTTP/1.1\r\n\r\n", "400"),
        ("8 absolute without host", b"GET http:///c HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("8 userinfo", b"GET http://u@b/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("8 port 0", b"GET http://b:0/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("8 port 65536", b"GET http://b:65536/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("9 OPTIONS *", b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS *"),
        ("9 GET *", b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("9 OPTIONS */x", b"OPTIONS */x HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("9 authority form without CONNECT", b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("10 CONNECT", b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", "CONNECT"),
        ("10 CONNECT without port", b"CONNECT a HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("10 CONNECT in origin form", b"CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("10 CONNECT in absolute form", b"CONNECT http://a:80/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"),
        ("11 a status line", b"HTTP/1.1 200 OK\r\nHost: a\r\n\r\n", "400"),
    ]);
}

#[test]
fn rule_7_a_request_line_of_8000_octets_is_accepted() {
    let path = format!("/{}", "a".repeat(8000 - "GET / HTTP/1.1".len()));
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    check("7", &Limits::new(), request.as_bytes(), &format!("GET {path}"));
}

#[test]
fn rule_8_the_authority_of_the_target_wins() {
    let input = b"GET http://b:8080/c HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut storage = FieldStorage::new();
    let head = HeadReader::new().read_request(input, &mut storage, &Limits::new());
    let head = head.expect("a good head").expect("a whole head");
    let terms = RequestTerms::of(&head).expect("a good request");
    assert_eq!(terms.authority.map(|authority| authority.as_str()), Some("b:8080"));
}

#[test]
fn rule_12_version() {
    check_all(&[
        ("12 1.2 is 1.1", b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", "GET /"),
        ("12 1.9 is 1.1", b"GET / HTTP/1.9\r\nHost: a\r\nB: c\r\n\r\n", "GET /"),
        ("12 2.0", b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", "505"),
        ("12 9.9", b"GET / HTTP/9.9\r\nHost: a\r\n\r\n", "505"),
        ("12 the HTTP/2 preface (ours: 505)", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "505"),
        ("12 0.9 by name", b"GET / HTTP/0.9\r\nHost: a\r\n\r\n", "400"),
        ("12 0.9 by form", b"GET /\r\n", "400"),
    ]);
    let versions = [
        "http/1.1",
        "HTTP/1",
        "HTTP/01.1",
        "HTTP/1.11",
        "HTTP/ 1.1",
        "HTTPS/1.1",
        "ICY/1.1",
        "HTTP/1,1",
        "HTTP/-1.1",
        "",
    ];
    let request = |version| format!("GET / {version}\r\nHost: a\r\n\r\n").into_bytes();
    check_each("12", versions.map(|version| (version, request(version))), "400");
}

#[test]
fn rules_13_to_22_fields() {
    check_all(&[
        ("13 space before the colon", b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"),
        ("13 TAB before the colon", b"GET / HTTP/1.1\r\nHost\t: a\r\n\r\n", "400"),
        ("14 folding", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n d\r\n\r\n", "400"),
        ("14 folding with TAB", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n\td\r\n\r\n", "400"),
        ("14 folding to nothing", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\r\n \r\n\r\n", "400"),
        ("14 whitespace before the first field", b"GET / HTTP/1.1\r\n Host: a\r\n\r\n", "400"),
        ("15 non-token name", b"GET / HTTP/1.1\r\nHost: a\r\nB@c: d\r\n\r\n", "400"),
        ("15 name beyond ASCII", b"GET / HTTP/1.1\r\nHost: a\r\nB\xe9: d\r\n\r\n", "400"),
        ("15 NUL in a name", b"GET / HTTP/1.1\r\nHost: a\r\nB\0: d\r\n\r\n", "400"),
        ("15 empty name", b"GET / HTTP/1.1\r\nHost: a\r\n: d\r\n\r\n", "400"),
        ("15 no colon", b"GET / HTTP/1.1\r\nHost: a\r\nBcd\r\n\r\n", "400"),
        ("16 NUL", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\0d\r\n\r\n", "400"),
        ("16 CTL", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\x01d\r\n\r\n", "400"),
        ("16 DEL", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\x7fd\r\n\r\n", "400"),
        ("16 TAB is fine", b"GET / HTTP/1.1\r\nHost: a\r\nB: c\td\r\n\r\n", "GET /"),
        ("17 SP and TAB are trimmed", b"GET / HTTP/1.1\r\nHost: \t a \t \r\n\r\n", "GET /"),
        ("17 VT is not", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: \x0bclose\r\n\r\n", "400"),
        ("17 NBSP is not", b"GET / HTTP/1.1\r\nHost: a\r\nConnection: \xa0close\r\n\r\n", "GET /"),
        ("18 empty value", b"GET / HTTP/1.1\r\nHost: a\r\nB:\r\nC: \t\r\n\r\n", "GET /"),
        ("18 opaque bytes", b"GET / HTTP/1.1\r\nHost: a\r\nB: \x80\xff\r\n\r\n", "GET /"),
        ("19 names in any case", b"POST / HTTP/1.1\r\nhOST: a\r\ncONTENT-lENGTH: 2\r\n\r\nhi", "POST / hi"),
        ("19 _ is not -", b"GET / HTTP/1.1\r\nHost: a\r\nContent_Length: 2\r\n\r\n", "GET /"),
        ("20 one CR LF is not the end", b"GET / HTTP/1.1\r\nHost: a\r\n", "..."),
        ("20 LF CR", b"GET / HTTP/1.1\r\nHost: a\n\r\n\r", "400"),
        ("22 any prefix waits", b"GET / HTT", "..."),
    ]);
}

#[test]
fn rule_21_a_head_of_ten_thousand_fields_is_refused() {
    let many = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "a:b\r\n".repeat(10_000));
    check("21 many", &Limits::new(), many.as_bytes(), "431");
    let large = format!("GET / HTTP/1.1\r\nHost: a\r\nB: {}", "c".repeat(1 << 20));
    assert_eq!(answers(&Limits::new(), [large.as_bytes()]), "431");
    assert_eq!(answers(&Limits::new(), large.as_bytes().chunks(1000)), "431");
}

#[test]
fn rules_23_and_24_host() {
    check_all(&[
        ("23 no Host", b"GET / HTTP/1.1\r\n\r\n", "400"),
        ("23 two", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "400"),
        ("23 two equal", b"GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n", "400"),
        ("23 two in 1.0", b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", "400"),
        ("24 1.0 without Host", b"GET / HTTP/1.0\r\n\r\n", "GET / close"),
        ("24 bad Host in 1.0", b"GET / HTTP/1.0\r\nHost: a/b\r\n\r\n", "400"),
    ]);
    let bad = [
        "u@a", "a/b", "/", "a, b", "a,b", "a b", "a:x", "a:99999", "a:0", "[::1", "::1", "[x]", "",
        "http://a", "a?b", "a#b",
    ];
    let request = |host| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").into_bytes();
    check_each("24", bad.map(|host| (host, request(host))), "400");
    let good = ["a", "a:80", "a.b-c_d:65535", "[::1]:80", "127.0.0.1", "a:"];
    check_each("24", good.map(|host| (host, request(host))), "GET /");
}

#[test]
fn rules_25_to_28_content_length() {
    let bad = [
        "+5",
        "-5",
        "0x5",
        "5_0",
        "5 0",
        "5.0",
        "5e1",
        "",
        "five",
        "5;",
        "\"5\"",
        "18446744073709551616",
        "99999999999999999999999",
    ];
    check_each("25", bad.map(|length| (length, post(&format!("Content-Length: {length}"), "hello"))), "400");
    check_each(
        "25 leading zeros",
        [("", post("Content-Length: 0000000000000000000000005", "hello"))],
        "POST / hello",
    );
    check_each(
        "26 list",
        [("", post("Content-Length: 5, 5", "hello")), ("", post("Content-Length: 5,6", "hello"))],
        "400",
    );
    check_each(
        "26 lines",
        [
            ("differ", post("Content-Length: 5\r\nContent-Length: 6", "hello")),
            ("equal (ours: 400)", post("Content-Length: 5\r\nContent-Length: 5", "hello")),
        ],
        "400",
    );
    check_each("27 fewer bytes", [("", post("Content-Length: 6", "hello"))], "POST / hello...");
    check_each("27 huge", [("", post("Content-Length: 9223372036854775808", ""))], "POST / ...");
    check_each("28 neither", [("", post("B: c", ""))], "POST /");
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let head = "HTTP/1.1\r\nHost: a\r\nContent-Length: 18\r\n\r\n";
        let request = format!("{method} / {head}GET /b HTTP/1.1\r\n\r\nGET /c HTTP/1.1\r\nHost: a\r\n\r\n");
        let expected = format!("{method} / GET /b HTTP/1.1\r\n\r\n | GET /c");
        let expected = expected.replacen("18", "19", 1);
        check("28", &Limits::new(), request.replacen("18", "19", 1).as_bytes(), &expected);
    }
}

#[test]
fn rules_30_to_35_transfer_encoding() {
    let coded = |coding: &str| post(&format!("Transfer-Encoding: {coding}"), "2\r\nhi\r\n0\r\n\r\n");
    check_each("30", ["chunked", "CHUNKED", " Chunked\t"].map(|coding| (coding, coded(coding))), "POST / hi");
    check_all(&[
        (
            "30 upper-case hex, leading zeros",
            b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n000A\r\n0123456789\r\n000\r\n\r\n",
            "POST / 0123456789",
        ),
        ("35 in 1.0", b"POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"),
    ]);
    for lines in
        ["Content-Length: 5\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5"]
    {
        check_each("31", [(lines, post(lines, "0\r\n\r\n"))], "400");
    }
    let unknown = ["gzip", "identity", "xchunked", "chunkedx", "gzip, chunked"];
    check_each("32", unknown.map(|coding| (coding, coded(coding))), "501");
    let bad = [
        "chunked, gzip",
        "chunked, identity",
        "chunked, chunked",
        "chunked;a=b",
        "\"chunked\"",
        "",
        "chunked\0",
        "\x0bchunked",
        "chunked\x0c",
        "chunked chunked",
        ", chunked",
        "chunked,",
        "chunked\r\nTransfer-Encoding: chunked",
    ];
    check_each("32-34 (ours: 400 for empty elements)", bad.map(|coding| (coding, coded(coding))), "400");
}

#[test]
fn rules_36_to_41_chunks() {
    let chunked = |body: &str| post("Transfer-Encoding: chunked", body);
    for size in ["+2", "-2", "0x2", "2_0", " 2", "2 ", "\t2", "", "g", "2 ;a", "0 ", "1\u{7f}"] {
        check_each("36 size", [(size, chunked(&format!("{size}\r\nhi\r\n0\r\n\r\n")))], "POST / 400");
    }
    for size in ["10000000000000000", "fffffffffffffffff", "ffffffffffffffff0"] {
        check_each("36 overflow", [(size, chunked(&format!("{size}\r\nhi")))], "POST / 400");
    }
    check_each("36 sum overflow", [("", chunked("1\r\na\r\nffffffffffffffff\r\n"))], "POST / a400");
    for body in ["2\r\nhix\r\n0\r\n\r\n", "2\r\nhi0\r\n\r\n", "2\r\nhi\n0\r\n\r\n", "2\r\nhi\r0\r\n\r\n"] {
        check_each("37", [(body, chunked(body))], "POST / hi400");
    }
    check_each("37 shorter", [("", chunked("3\r\nhi\r\n0\r\n\r\n"))], "POST / hi\r400");
    for body in [
        "2\nhi\r\n0\r\n\r\n",
        "2\rhi\r\n",
        "2;a\nhi\r\n",
        "2;a\rb\r\nhi\r\n",
        "2;a=\"\r\n\"\r\nhi",
        "2;a=b\n\r\n",
        "0\n\r\n",
        "0\r\n\n",
        "0\r\n\rx",
    ] {
        check_each("38", [(body, chunked(body))], "POST / 400");
    }
    for extension in [";a", ";a=b", ";a=\"b c\"", ";a;b=c;d=\"\\\"e;\"", ";a=\"\"", ";a=\"\u{e9}\\\u{e9}\t\""]
    {
        check_each(
            "39 good",
            [(extension, chunked(&format!("2{extension}\r\nhi\r\n0{extension}\r\n\r\n")))],
            "POST / hi",
        );
    }
    for extension in [
        ";",
        ";;a",
        ";=b",
        ";a=",
        ";a=\"",
        ";a=\"b",
        ";a=\"b\"c",
        ";a b",
        "; a",
        ";a =b",
        ";a= b",
        ";a@",
        ";a=b@",
        ";a=\"\x01\"",
        ";a=\"\\\x01\"",
        ";\0",
        ";a=b=c",
    ] {
        check_each(
            "39 bad",
            [(extension, chunked(&format!("2{extension}\r\nhi\r\n0\r\n\r\n")))],
            "POST / 400",
        );
    }
    check_each("40 no last chunk", [("", chunked("2\r\nhi\r\n"))], "POST / hi...");
    check_each(
        "41 trailers",
        [("", chunked("2\r\nhi\r\n0\r\nX-A: b\r\nY: \t c \r\n\r\n"))],
        "POST / hi X-A: b Y: c",
    );
    check_each(
        "41 forbidden ones have no effect",
        [(
            "",
            chunked(
                "0\r\nContent-Length: 5\r\nHost: b\r\nAuthorization: c\r\nX-Forwarded-For: d\r\nX: y\r\n\r\n",
            ),
        )],
        "POST /  X: y",
    );
    for trailer in ["X : y", " X: y", "X", ": y", "X: \0", "X: y\r", "X: y\n", "X@: y"] {
        check_each("41 bad", [(trailer, chunked(&format!("0\r\n{trailer}\r\n\r\n")))], "POST / 400");
    }
    check_each(
        "41 what follows is the next request",
        [("", [chunked("0\r\nX: y\r\n\r\n"), get("")].concat())],
        "POST /  X: y | GET /",
    );
}

#[test]
fn rules_42_to_48_connection() {
    let pipelined: Vec<u8> =
        (0..50).flat_map(|_| [post("Content-Length: 2", "hi"), get("")].concat()).collect();
    let expected = "POST / hi | GET / | ".repeat(50);
    check("42 pipelined", &Limits::new(), &pipelined, expected.trim_end_matches(['|', ' ']));
    check_each("42 valid then garbage", [("", [get(""), b"\0garbage".to_vec()].concat())], "GET / | 400");
    let closing = ["close", "CLOSE", "keep-alive, Close", "x,close,", "close\r\nConnection: keep-alive"];
    let then_more = |value| [get(&format!("Connection: {value}\r\n")), get("")].concat();
    check_each("43", closing.map(|value| (value, then_more(value))), "GET / close");
    check_all(&[
        ("44 1.0 closes", b"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n", "GET / close"),
        (
            "44 1.0 keep-alive",
            b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
            "GET / | GET / close",
        ),
    ]);
    check_each(
        "47 with a body",
        [("", post("Expect: 100-Continue\r\nContent-Length: 2", "hi"))],
        "POST / continue hi",
    );
    check_each("47 without", [("", post("Expect: 100-continue", ""))], "POST /");
    check_each(
        "47 other",
        ["x", "100-continue, x", "100-continue=1"]
            .map(|value| (value, post(&format!("Expect: {value}"), ""))),
        "417",
    );
    check_all(&[(
        "47 in 1.0",
        b"POST / HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\nhi",
        "POST / close hi",
    )]);
    check_each("48", [("", get("Upgrade: echo\r\nConnection: keep-alive, Upgrade\r\n"))], "GET / upgrade");
    check_each("48 without the option", [("", get("Upgrade: echo\r\n"))], "GET /");
    check_each("48 without the field", [("", get("Connection: upgrade\r\n"))], "GET /");
    check_all(&[(
        "48 in 1.0",
        b"GET / HTTP/1.0\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n",
        "GET / close",
    )]);
}

/// Limits hold at n − 1 and n, and not at n + 1. `input(n)` has a part of that size.
fn check_limit(name: &str, limits: &Limits, n: usize, input: impl Fn(usize) -> Vec<u8>, status: &str) {
    for size in [n - 1, n] {
        let made = answers(limits, [input(size).as_slice()]);
        assert!(!made.contains(status), "{name} at {size} of {n}: {made}");
        check(&format!("{name} at {size} of {n}"), limits, &input(size), &made);
    }
    let input = input(n + 1);
    let made = answers(limits, [input.as_slice()]);
    assert!(made.ends_with(status), "{name} at {}: {made}", n + 1);
    check(&format!("{name} at {} of {n}", n + 1), limits, &input, &made);
}

#[test]
fn limits_hold_exactly() {
    let limits = Limits::new().head_bytes_max(200).field_bytes_max(60).fields_max(5).target_bytes_max(40);
    let limits =
        limits.chunk_line_bytes_max(20).extension_bytes_max(30).trailer_bytes_max(50).trailers_max(3);
    let frame = "GET / HTTP/1.1\r\nHost: a\r\n\r\n".len() + 3 * "B: \r\n".len();
    let head = |size: usize| {
        let rest = size - frame;
        let value = |len| "c".repeat(len);
        let lines = format!("B: {}\r\nB: {}\r\nB: {}\r\n", value(55), value(55), value(rest - 110));
        get(&lines)
    };
    assert_eq!(head(200).len(), 200);
    check_limit("head", &limits, 200, head, "431");
    let framed_head = |size| [b"\r\n\r\n".to_vec(), head(size)].concat();
    check_limit("head after empty lines", &limits, 200, framed_head, "431");
    check_limit("field", &limits, 60, |size| get(&format!("B: {}\r\n", "c".repeat(size - 3))), "431");
    check_limit(
        "field with padding",
        &limits,
        60,
        |size| get(&format!("B:{}c\r\n", " ".repeat(size - 3))),
        "431",
    );
    check_limit("field name", &limits, 60, |size| get(&format!("{}:\r\n", "c".repeat(size - 1))), "431");
    check_limit("fields", &limits, 5, |count| get(&"B: c\r\n".repeat(count - 1)), "431");
    let target =
        |size: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(size - 1)).into_bytes();
    check_limit("target", &limits, 40, target, "414");
    let method = |size: usize| format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "A".repeat(size)).into_bytes();
    check("method", &limits, &method(Method::OCTETS_MAX), "501");
    check("method", &limits, &method(Method::OCTETS_MAX + 1), "501");

    let chunked = |body: String| post("Transfer-Encoding: chunked", &body);
    let line = |size: usize| chunked(format!("0;{}\r\n\r\n", "a".repeat(size - 2)));
    check_limit("chunk line", &limits, 20, line, "400");
    let size = |size: usize| chunked(format!("{}2\r\nhi\r\n0\r\n\r\n", "0".repeat(size - 1)));
    check_limit("chunk size", &limits, 20, size, "400");
    let extensions =
        |size: usize| chunked(format!("1;{}\r\na\r\n0;{}\r\n\r\n", "b".repeat(14), "c".repeat(size - 16)));
    check_limit("extensions of a body", &limits, 30, extensions, "400");
    let trailer = |size: usize| chunked(format!("0\r\nB: {}\r\n\r\n", "c".repeat(size - 7)));
    check_limit("trailer bytes", &limits, 50, trailer, "431");
    check_limit(
        "trailer fields",
        &limits,
        3,
        |count| chunked(format!("0\r\n{}\r\n", "B: c\r\n".repeat(count))),
        "431",
    );

    let limits = Limits::new();
    let many = |count: usize| get(&"B: c\r\n".repeat(count - 1));
    check_limit("default fields", &limits, 100, many, "431");
    check_limit("fast fields", &limits.clone().fields_max(64), 64, many, "431");
    let target =
        |size: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(size - 1)).into_bytes();
    check_limit("default target", &limits, 8190, target, "414");
}

#[test]
fn a_limit_on_trailers_may_be_any_number() {
    let limits = Limits::new().trailer_bytes_max(16 << 20).trailers_max(usize::MAX);
    let count = usize::from(u16::MAX) + 2;
    let input = format!("0\r\n{}\r\n", "B:\r\n".repeat(count));
    let mut body = BodyDecoder::new(Body::Chunked, 0, &limits).expect("no length is announced");
    assert_eq!(body.decode(input.as_bytes()).map(|decoded| decoded.is_end), Ok(true));
    assert_eq!(body.into_trailers().iter().count(), count);
}

#[test]
fn a_body_over_its_limit_is_refused_before_its_data() {
    let limits = Limits::new();
    for size in [9, 10] {
        assert!(BodyDecoder::new(Body::Length(size), 10, &limits).is_ok());
    }
    assert_eq!(BodyDecoder::new(Body::Length(11), 10, &limits).err(), Some(BodyError::TooLarge));
    let mut chunked = BodyDecoder::new(Body::Chunked, 10, &limits).expect("no length is announced");
    assert_eq!(chunked.decode(b"a\r\n0123456789").map(|decoded| decoded.data), Ok(10));
    assert_eq!(chunked.decode(b"\r\n1\r\n"), Err(BodyError::TooLarge));
    assert_eq!(chunked.decode(b""), Err(BodyError::TooLarge), "the decoder keeps saying so");
    let mut until_close = BodyDecoder::new(Body::UntilClose, 10, &limits).expect("no length is announced");
    assert_eq!(until_close.decode(b"0123456789").map(|decoded| decoded.data), Ok(10));
    assert_eq!(until_close.decode(b"0"), Err(BodyError::TooLarge));
    let mut whole = BodyDecoder::new(Body::UntilClose, 10, &limits).expect("no length is announced");
    assert_eq!(whole.decode(b"0123456789a").map(|decoded| decoded.data), Ok(10), "wherever it is cut");
    assert_eq!(whole.decode(b"a"), Err(BodyError::TooLarge));
}

#[test]
fn rule_54_a_body_cut_short_is_an_error() {
    let limits = Limits::new();
    let body = |body| BodyDecoder::new(body, u64::MAX, &limits).expect("no limit on the body");
    let mut length = body(Body::Length(3));
    assert_eq!(length.decode(b"ab").map(|decoded| decoded.data), Ok(2));
    assert_eq!((length.received(), length.left()), (2, 1));
    assert_eq!(length.finish(), Err(BodyError::Truncated));
    let mut chunked = body(Body::Chunked);
    assert_eq!(chunked.decode(b"2\r\nab\r\n").map(|decoded| decoded.data), Ok(2));
    assert_eq!(chunked.finish(), Err(BodyError::Truncated));
    let mut until_close = body(Body::UntilClose);
    assert_eq!(until_close.decode(b"ab").map(|decoded| decoded.data), Ok(2));
    assert_eq!(until_close.finish(), Ok(()));
    assert_eq!(body(Body::Empty).finish(), Ok(()));
}

#[test]
fn a_buffered_body_is_moved_together_in_place() {
    let limits = Limits::new();
    let mut input = b"1;a=b\r\na\r\n2\r\nbc\r\n003\r\ndef\r\n0\r\nX: y\r\n\r\nGET".to_vec();
    let mut body = BodyDecoder::new(Body::Chunked, 6, &limits).expect("no length is announced");
    let done = body.compact(&mut input).expect("a good body");
    assert_eq!(&input[..done.data], b"abcdef");
    assert_eq!(&input[done.consumed..], b"GET");
    assert!(done.is_end && body.is_end());
    assert_eq!(body.into_trailers().get("x"), Some(&b"y"[..]));
}

#[test]
fn an_error_in_a_head_is_final() {
    let limits = Limits::new().head_bytes_max(64);
    let request = get(&format!("B: {}\r\n", "c".repeat(33)));
    let response = format!("HTTP/1.1 200 OK\r\nB: {}\r\n\r\n", "c".repeat(45)).into_bytes();
    assert!(request.len() == 65 && response.len() == 69);
    let refused = |reader: &mut HeadReader, input: &[u8]| {
        let mut storage = FieldStorage::new();
        reader.read_request(input, &mut storage, &limits).expect_err("refused before and refused again")
    };
    let mut reader = HeadReader::new();
    let error = refused(&mut reader, &request[..64]);
    for len in [64, 65, 64] {
        assert_eq!(refused(&mut reader, &request[..len]), error, "the head is not taken at {len} after all");
    }
    let mut reader = HeadReader::new();
    for len in [64, 64, 69] {
        let mut storage = FieldStorage::new();
        assert!(reader.read_response(&response[..len], &mut storage, &limits).is_err(), "at {len}");
    }
}

#[test]
fn a_reader_that_is_used_for_both_kinds_of_head_does_not_panic() {
    let limits = Limits::new();
    let (request, response) = (get(""), b"HTTP/1.1 200 OK\r\n\r\n");
    let mut reader = HeadReader::new();
    let mut storage = FieldStorage::new();
    assert!(matches!(reader.read_request(&request[..1], &mut storage, &limits), Ok(None)));
    let mut storage = FieldStorage::new();
    assert!(reader.read_response(&request, &mut storage, &limits).is_err());
    let mut reader = HeadReader::new();
    let mut storage = FieldStorage::new();
    assert!(matches!(reader.read_response(&response[..1], &mut storage, &limits), Ok(None)));
    let mut storage = FieldStorage::new();
    assert!(reader.read_request(response, &mut storage, &limits).is_err());
}

/// A client's view: the response head whole and byte by byte, then its terms.
fn response(
    input: &[u8],
    method: Method<'_>,
) -> Result<Option<(u16, String, ResponseTerms, usize)>, ResponseHeadError> {
    let limits = Limits::new();
    let read = |reader: &mut HeadReader, input: &[u8]| {
        let mut storage = FieldStorage::new();
        let Some(head) = reader.read_response(input, &mut storage, &limits)? else { return Ok(None) };
        let terms = ResponseTerms::of(&head, method, false)?;
        Ok(Some((head.status().code(), head.reason().to_owned(), terms, head.input_len())))
    };
    let whole = read(&mut HeadReader::new(), input);
    let mut reader = HeadReader::new();
    let found = (0..=input.len()).map(|len| read(&mut reader, &input[..len])).find(|read| read != &Ok(None));
    assert_eq!(found.unwrap_or(Ok(None)), whole, "byte by byte: {}", input.escape_ascii());
    whole
}

#[test]
fn rules_54_to_60_response_heads() {
    let good = |input: &[u8], method| response(input, method).expect("a good head").expect("a whole head");
    let (code, reason, terms, len) =
        good(b"HTTP/1.1 200 Fine by me\r\nContent-Length: 2\r\n\r\nhi", Method::Get);
    assert_eq!(
        (code, reason.as_str(), terms.body, terms.keep_alive, len),
        (200, "Fine by me", Body::Length(2), true, 46)
    );
    assert_eq!(good(b"HTTP/1.1 204\r\n\r\n", Method::Get).0, 204);
    assert_eq!(good(b"HTTP/1.1 404 \r\n\r\n", Method::Get).1, "");
    assert_eq!(good(b"HTTP/1.1 200 \xe9\r\nA: b\r\n\r\n", Method::Get).1, "");
    let until_close = good(b"HTTP/1.1 200 OK\r\n\r\n", Method::Get).2;
    assert_eq!((until_close.body, until_close.keep_alive), (Body::UntilClose, false));
    for (input, method, keep_alive) in [
        (&b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"[..], Method::Head, true),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", Method::Get, true),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n", Method::Get, false),
        (b"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Method::Get, false),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", Method::Connect, false),
        (b"HTTP/1.0 204 No Content\r\n\r\n", Method::Get, false),
    ] {
        let terms = good(input, method).2;
        assert_eq!((terms.body, terms.keep_alive), (Body::Empty, keep_alive), "57 {}", input.escape_ascii());
    }
    assert!(good(b"HTTP/1.1 100 Continue\r\n\r\n", Method::Get).2.is_interim);
    assert_eq!(
        response(b"HTTP/1.1 101 Switching Protocols\r\n\r\n", Method::Get),
        Err(ResponseHeadError::UnexpectedSwitch)
    );
    for (lines, error) in [
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", FramingError::LengthAndCoding),
        ("Content-Length: 5\r\nContent-Length: 5", FramingError::SeveralLengths),
        ("Content-Length: x", FramingError::Length),
        ("Transfer-Encoding: gzip", FramingError::CodingUnknown),
        ("Transfer-Encoding: chunked, gzip", FramingError::Coding),
    ] {
        let input = format!("HTTP/1.1 200 OK\r\n{lines}\r\n\r\n");
        assert_eq!(response(input.as_bytes(), Method::Get), Err(error.into()), "55 {lines}");
    }
    for line in [
        "\r\nHTTP/1.1 200 OK",
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1.1\t200 OK",
        "HTTP/2.0 200 OK",
        "http/1.1 200 OK",
        "HTTP/1.1 200 O\0K",
        "HTTP/1.1 2x0 OK",
        "SSH-2.0-OpenSSH",
        "HTTP/1.1",
        "\n",
        "<html>",
    ] {
        let input = format!("{line}\r\n\r\n");
        assert!(response(input.as_bytes(), Method::Get).is_err(), "60 {line:?}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n{}", "A: b\r\n".repeat(10_000));
    assert!(response(&endless.as_bytes()[..20_000], Method::Get).is_err());
}

/// The fast way and the scanner must never differ: good heads with one to three bytes changed, whole and in bytes.
#[test]
fn changed_heads_get_one_answer_however_they_come() {
    let seeds: [&[u8]; 5] = [
        b"GET /a?b=c HTTP/1.1\r\nHost: a:80\r\nX-Y: z \t\r\nEmpty:\r\n\r\n",
        b"\r\nPOST http://a/b HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabcGET",
        b"POST / HTTP/1.1\r\nhost:a\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"b\"\r\nabc\r\n0\r\nX: y\r\n\r\n",
        b"OPTIONS * HTTP/1.1\r\nHost: [::1]\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: a\r\nUpgrade: b\r\nConnection: close, upgrade\r\n\r\n",
    ];
    let bytes = b"\0\t\n\r \"#%,/09:;=@AZ[\\]az\x7f\x80\xc3\xa9\xff";
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    let limits = Limits::new();
    for round in 0..30_000 {
        let mut input = seeds[round % seeds.len()].to_vec();
        for _ in 0..=random(3) {
            let at = random(input.len());
            match random(3) {
                0 => input[at] = bytes[random(bytes.len())],
                1 => input.insert(at, bytes[random(bytes.len())]),
                _ => drop(input.remove(at)),
            }
        }
        let whole = answers(&limits, [input.as_slice()]);
        let bytewise = answers(&limits, input.chunks(1));
        assert_eq!(whole, bytewise, "{}", input.escape_ascii());
        let (first, second) = input.split_at(random(input.len()));
        assert_eq!(whole, answers(&limits, [first, second]), "{}", input.escape_ascii());
    }
}
