//! Handlers that panic, fail, finish early or have a bad error page: what their peer gets, and that
//! no other connection notices.

use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_http::{MessageError, Method, Status};
use rotor_stream::testing::Driver;

use crate::probe::{get, probe, request, seconds};
use crate::wire;

/// A seed whose clone panics.
struct PanickingSeed;

impl Clone for PanickingSeed {
    fn clone(&self) -> PanickingSeed {
        panic!("as asked")
    }
}

/// A handler that is never created.
struct NeverCreated;

impl Server for NeverCreated {
    type Context = ();
    type Seed = PanickingSeed;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: PanickingSeed,
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::finished()
    }
}

#[test]
fn a_seed_that_panics_when_it_is_cloned_is_a_500() {
    let config = ServerConfig::new();
    let counters = config.counters();
    let mut driver =
        Driver::<Connection<NeverCreated>>::new(HttpSeed::new(PanickingSeed, config), ());
    driver.send(&get("/"));
    assert_eq!(wire::transcript(&driver.take_received()), "500 close");
    assert_eq!((counters.panics(), driver.failures().len()), (1, 0));
}

/// Panics when it is asked whether it supports `BOOM`.
struct PanickingSupports;

impl Server for PanickingSupports {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn supports(method: Method<'_>) -> bool {
        match method {
            Method::Extension(_) => panic!("as asked"),
            method => method == Method::Get,
        }
    }

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.send(Status::OK, "text/plain", b"x").expect("an answer");
        Next::finished()
    }
}

#[test]
fn a_panic_in_supports_is_a_500() {
    for (method, expected, panics, requests) in
        [("GET", "200 x", 0, 2), ("BOOM", "500 close", 1, 1), ("PUT", "501 close", 0, 1)]
    {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver =
            Driver::<Connection<PanickingSupports>>::new(HttpSeed::new((), config), ());
        driver.send(&[get("/"), request(&format!("{method} /"), "", "")].concat());
        assert_eq!(
            wire::transcript(&driver.take_received()),
            format!("200 x | {expected}"),
            "{method}"
        );
        assert_eq!((counters.panics(), driver.failures().len()), (panics, 0), "{method}");
        assert_eq!(counters.requests(), requests, "{method}: those that came to a handler");
    }
}

#[test]
fn a_panic_in_the_log_hook_costs_no_response() {
    let config = ServerConfig::new().log(|_| panic!("as asked"));
    let counters = config.counters();
    let mut driver = probe(config);
    driver.send(&[get("/a"), get("/panic"), get("/b")].concat());
    assert_eq!(wire::transcript(&driver.take_received()), "200 GET /a | 500 close");
    // Two panics of the hook, one of the handler.
    assert_eq!((counters.panics(), driver.failures().len()), (3, 0));
    let mut driver = probe(ServerConfig::new().log(|_| panic!("as asked")));
    driver.send(&get("/wait"));
    driver.reset();
    assert_eq!((driver.is_alive(), driver.failures().len()), (false, 0));
}

#[test]
fn a_server_name_invalid_as_a_field_value_is_omitted() {
    for (name, expected) in
        [("rotor", Some("rotor")), ("a\tb", Some("a\tb")), ("a\r\nB: c", None), ("a\0", None)]
    {
        let mut driver = probe(ServerConfig::new().server("x").server(name));
        driver.send(&get("/"));
        let bytes = driver.take_received();
        let text = String::from_utf8_lossy(&bytes);
        let server = text.lines().find_map(|line| line.strip_prefix("Server: "));
        assert!(text.starts_with("HTTP/1.1 200 "), "{name:?}");
        assert_eq!(server, expected, "{name:?}");
    }
}

/// Its error pages are as invalid as its answers.
struct BadPages;

impl Server for BadPages {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let _ = head;
        Next::finished()
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        match status {
            Status::BAD_REQUEST => panic!("as asked"),
            Status::URI_TOO_LONG => {}
            _ => {
                let _unfinished = response.status(status).and_then(|()| response.add_length(5));
            }
        }
    }
}

#[test]
fn an_invalid_error_page_is_replaced() {
    for (input, expected) in [
        (get("/"), "500 close"),
        (request("GET /", "A : b\r\n", ""), "400 close"),
        (get(&"/a".repeat(5000)), "414 close"),
    ] {
        let mut driver =
            Driver::<Connection<BadPages>>::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(&input);
        assert_eq!(wire::transcript(&driver.take_received()), expected);
    }
}

#[test]
fn a_bad_head_is_answered_with_a_reason_that_quotes_no_input() {
    let long = format!("A: {}\r\n", "x".repeat(20_000));
    for (input, expected) in [
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "400 Bad Request: Host is missing"),
        (
            b"GET / HTTP/1.1\nHost: <script>\n\n".to_vec(),
            "400 Bad Request: a line does not end with CR LF",
        ),
        (
            request("GET /", "<script>: a\r\n", ""),
            "400 Bad Request: a field name is not a token followed by a colon",
        ),
        (
            request("POST /", "Content-Length: 1\r\nContent-Length: 1\r\n", ""),
            "400 Bad Request: more than one Content-Length",
        ),
        (
            request("GET /", &long, ""),
            "431 Request Header Fields Too Large: a field line is too long",
        ),
        (get(&"/a".repeat(5000)), "414 URI Too Long: the request target is too long"),
        (
            b"GET / HTTP/9.9\r\n\r\n".to_vec(),
            "505 HTTP Version Not Supported: the major protocol version is not supported",
        ),
        (
            request("GET /", "Expect: more\r\n", ""),
            "417 Expectation Failed: an expectation other than 100-continue",
        ),
        (b"GET / HT".to_vec(), "408 Request Timeout: the head arrives too slowly"),
        // An error that is not the fault of the head has only its status as text.
        (get("/panic"), "500 Internal Server Error"),
    ] {
        let mut driver = probe(ServerConfig::new());
        driver.send(&input);
        driver.advance(seconds(60));
        let answers = wire::answers(&driver.take_received());
        assert_eq!((answers.len(), answers[0].text()), (1, &*format!("{expected}\n")));
    }
    // The page that replaces an invalid one contains the reason, too.
    let mut driver =
        Driver::<Connection<BadPages>>::new(HttpSeed::new((), ServerConfig::new()), ());
    driver.send(&request("GET /", "A : b\r\n", ""));
    assert!(
        wire::answers(&driver.take_received())[0].text().contains("a field name is not a token")
    );
}

/// Receives three bytes at most.
struct SmallBodies;

impl Server for SmallBodies {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        Next::recv(SmallBodies, RecvMode::Buffered(3)).keep_deadline()
    }
}

#[test]
fn a_bad_body_is_answered_with_a_reason_that_quotes_no_input() {
    let chunked = |body: &str| request("POST /", "Transfer-Encoding: chunked\r\n", body);
    let sized = |body: &str| request("POST /", "Content-Length: 3\r\n", body);
    for (input, room, expected) in [
        (chunked("<b>\r\n"), 1 << 20, "400 Bad Request: a chunk size is not a hexadecimal number"),
        (
            chunked("0\r\n<b>: c\r\n\r\n"),
            1 << 20,
            "400 Bad Request: a field name is not a token followed by a colon",
        ),
        (chunked("4\r\n"), 1 << 20, "413 Content Too Large: the body is larger than its limit"),
        (sized("a"), 1 << 20, "408 Request Timeout: the body arrives too slowly"),
        // What this side lacks is not the peer's business.
        (sized("a"), 0, "503 Service Unavailable"),
    ] {
        let config = ServerConfig::new().bodies_bytes_max(room);
        let mut driver = Driver::<Connection<SmallBodies>>::new(HttpSeed::new((), config), ());
        driver.send(&input);
        driver.advance(seconds(60));
        let answers = wire::answers(&driver.take_received());
        assert_eq!((answers.len(), answers[0].text()), (1, &*format!("{expected}\n")));
    }
}

#[test]
fn a_panic_after_a_partial_response_truncates_only_that_response() {
    for room in [1000, 40_000, 100_000] {
        let mut driver = probe(ServerConfig::new());
        driver.limit_room(room);
        driver.send(&[get("/a"), get("/stream-panic"), get("/b")].concat());
        driver.make_room(usize::MAX / 2);
        assert!(driver.is_ended());
        let bytes = driver.take_received();
        let mut rest = &bytes[..];
        assert_eq!(wire::take(&mut rest).expect("the first answer").text(), "GET /a ", "{room}");
        assert_eq!(wire::take(&mut rest), Err("cut".to_owned()), "{room}");
        assert!(!bytes.windows(4).any(|window| window == b" 500"), "{room}");
    }
}

/// RFC 9112 §8: without chunks and without a length, an orderly close would complete the response.
#[test]
fn a_close_delimited_response_is_aborted_by_a_reset() {
    for (line, resets) in [
        ("GET /stream-panic HTTP/1.0", 1),
        ("GET /stream-panic HTTP/1.1", 0),
        ("HEAD /stream-panic HTTP/1.0", 0),
        ("GET /stream-fail HTTP/1.0", 0),
        ("GET /stream HTTP/1.0", 0),
    ] {
        let mut driver = probe(ServerConfig::new());
        driver.limit_room(1000);
        driver.send(format!("{line}\r\nHost: a\r\n\r\n").as_bytes());
        while !driver.is_ended() {
            assert!(!driver.take_received().is_empty(), "{line}");
            driver.make_room(100_000);
        }
        assert_eq!(driver.operations().resets, resets, "{line}");
        assert_eq!(driver.operations().shutdowns, 1 - resets, "{line}");
    }
}

/// The client must see this answer as cut short: it is not completed, and no other answer follows.
#[test]
fn a_misuse_after_a_partial_response_truncates_it_and_is_counted() {
    for path in ["/stream-short", "/stream-long"] {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = probe(config);
        driver.send(&[get("/a"), get(path), get("/b")].concat());
        assert!(driver.is_ended(), "{path}");
        let bytes = driver.take_received();
        let mut rest = &bytes[..];
        assert_eq!(wire::take(&mut rest).expect("the first answer").text(), "GET /a ", "{path}");
        assert_eq!(wire::take(&mut rest), Err("cut".to_owned()), "{path}");
        assert!(
            rest.ends_with(&[b'x'; 50]) && !rest.ends_with(&[b'x'; 51]),
            "{path}: only what was good"
        );
        assert_eq!((counters.unfinished(), counters.panics()), (1, 0), "{path}");
        assert_eq!(driver.failures(), [""; 0], "{path}");
    }
}

#[test]
fn a_failing_handler_yields_a_status_or_a_truncated_response() {
    for (path, expected) in [("/fail", Ok(502)), ("/stream-fail", Err("cut".to_owned()))] {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = probe(config);
        driver.send(&[get("/a"), get(path), get("/b")].concat());
        assert!(driver.is_ended(), "{path}");
        let bytes = driver.take_received();
        let mut rest = &bytes[..];
        assert_eq!(wire::take(&mut rest).expect("the first answer").text(), "GET /a ", "{path}");
        assert_eq!(wire::take(&mut rest).map(|answer| answer.status), expected, "{path}");
        assert!(
            !bytes.windows(6).any(|window| window == b"GET /b"),
            "{path}: no other answer follows"
        );
        assert_eq!((counters.unfinished(), counters.panics()), (0, 0), "{path}");
        assert_eq!(driver.failures(), [""; 0], "{path}");
    }
}

#[test]
fn a_broken_body_after_a_partial_response_truncates_it() {
    for (room, expected) in
        [(0, Ok(400)), (10, Err("cut".to_owned())), (usize::MAX / 2, Err("cut".to_owned()))]
    {
        let mut driver = probe(ServerConfig::new());
        driver.limit_room(room);
        driver.send(&request("POST /mirror", "Transfer-Encoding: chunked\r\n", "1\r\nx\r\n"));
        driver.send(b"nonsense");
        driver.make_room(usize::MAX / 2);
        assert!(driver.is_ended());
        let bytes = driver.take_received();
        assert_eq!(wire::take(&mut &bytes[..]).map(|answer| answer.status), expected, "{room}");
    }
}

/// Its error pages are JSON, and it waits forever.
struct JsonPages;

impl Server for JsonPages {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        _: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        match head.path() {
            "/panic" => panic!("as asked"),
            "/wait" => Next::go_on(JsonPages).keep_deadline(),
            "/body" => Next::recv(JsonPages, RecvMode::Buffered(3)).keep_deadline(),
            _ => Next::finished(),
        }
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        let page = format!("{{\"error\":{}}}", status.code());
        let _misuse = response.send(status, "application/json", page.as_bytes());
    }
}

#[test]
fn errors_without_a_handler_use_the_error_page_of_the_server() {
    for (input, status) in [
        (get("/wait"), 503),
        (get("/panic"), 500),
        (get("/nothing"), 500),
        (get(&"/a".repeat(5000)), 414),
        (b"nonsense\r\n\r\n".to_vec(), 400),
        (request("BREW /", "", ""), 501),
        (request("POST /body", "Content-Length: 4\r\n", ""), 413),
        (request("POST /body", "Content-Length: 3\r\n", "a"), 408),
        (request("POST /body", "Transfer-Encoding: chunked\r\n", "x"), 400),
    ] {
        let mut driver =
            Driver::<Connection<JsonPages>>::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(&input);
        driver.advance(seconds(60));
        let answers = wire::answers(&driver.take_received());
        assert_eq!(answers.len(), 1, "{status}");
        let page = (answers[0].status, answers[0].text(), answers[0].closes());
        assert_eq!(page, (status, &*format!("{{\"error\":{status}}}"), true));
    }
}

/// Sends the response of the test by `send` or `send_with`; if it is refused, sends another one.
struct WholeResponse;

type ResponseParts = (u16, Vec<(&'static str, &'static [u8])>, &'static str, &'static [u8]);

impl Server for WholeResponse {
    type Context = (ResponseParts, Option<MessageError>);
    type Seed = ();
    type Upgrade = NoUpgrade<Self::Context>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Self::Context>,
    ) -> Next<Self> {
        let ((status, fields, content_type, body), error) = &mut **scope;
        if head.path() == "/begun" {
            response.status(Status::OK).expect("the first");
            assert!(response.send_with(Status::OK, fields, content_type, body).is_err());
            response
                .add_length(0)
                .and_then(|()| response.done_headers())
                .expect("it goes on as it began");
            response.done().expect("whole");
            return Next::finished();
        }
        let status = Status::new(*status).expect("a status");
        let unsent = response.unsent();
        let sent = match head.path() {
            "/send" => response.send(status, content_type, body),
            _ => response.send_with(status, fields, content_type, body),
        };
        if let Err(refused) = sent {
            assert!(!response.is_started() && response.unsent() == unsent, "{refused}");
            *error = Some(refused);
            response.send(Status::OK, "text/plain", b"another").expect("as if nothing had been");
        }
        Next::finished()
    }
}

#[test]
fn a_whole_response_is_written_whole_or_not_at_all() {
    let ask = |wanted: ResponseParts, request: &[u8]| {
        let mut driver = Driver::<Connection<WholeResponse>>::new(
            HttpSeed::new((), ServerConfig::new()),
            (wanted, None),
        );
        driver.send(request);
        let received = driver.take_received();
        (received, driver.context_mut().1.take())
    };
    let good = || (405, vec![("Allow", &b"GET"[..]), ("X-A", b"b")], "text/plain", &b"no"[..]);
    let (received, error) = ask(good(), &get("/"));
    let answer = &wire::answers(&received)[0];
    assert!(error.is_none() && answer.status == 405 && answer.text() == "no" && !answer.closes());
    for (name, value) in [("Allow", "GET"), ("X-A", "b"), ("Content-Type", "text/plain")] {
        assert_eq!(answer.field(name), Some(value));
    }
    let (received, error) = ask(good(), &request("HEAD /", "", ""));
    let text = String::from_utf8(received).expect("text");
    assert!(
        error.is_none() && text.contains("Content-Length: 2\r\n") && text.ends_with("\r\n\r\n"),
        "{text}"
    );
    let (received, _) = ask(good(), &get("/begun"));
    assert_eq!(wire::transcript(&received), "200");

    type Fields = Vec<(&'static str, &'static [u8])>;
    let bad: [(u16, Fields, &str, &[u8]); 9] = [
        (200, vec![("X-A", b"b"), ("X-A", b"b\r\nX-C: d")], "text/plain", b""),
        (200, vec![("X-A", b"b"), ("X A", b"b")], "text/plain", b""),
        (200, vec![("X-A", b"b"), ("Content-Length", b"3")], "text/plain", b"abc"),
        (200, vec![("X-A", b"b"), ("connection", b"close")], "text/plain", b""),
        (200, vec![("X-A", b"b"), ("content-type", b"a/b")], "text/plain", b""),
        (200, vec![], "text/plain\r\nX: y", b""),
        (204, vec![("X-A", b"b")], "text/plain", b"abc"),
        (426, vec![("X-A", b"b")], "text/plain", b"abc"),
        (103, vec![("X-A", b"b")], "text/plain", b""),
    ];
    for wanted in bad {
        let (received, error) = ask(wanted.clone(), &get("/"));
        let answers = wire::answers(&received);
        assert!(error.is_some() && answers.len() == 1, "{wanted:?}");
        assert_eq!((answers[0].text(), answers[0].field("X-A")), ("another", None), "{wanted:?}");
    }
    let bad_alone: [(u16, &str, &[u8]); 5] = [
        (200, "text/plain\r\nX: y", b""),
        (204, "text/plain", b"abc"),
        (205, "text/plain", b"abc"),
        (426, "text/plain", b"abc"),
        (103, "text/plain", b""),
    ];
    for (status, content_type, body) in bad_alone {
        let (received, error) = ask((status, vec![], content_type, body), &get("/send"));
        assert!(error.is_some(), "{status}");
        assert_eq!(wire::transcript(&received), "200 another", "{status}");
    }
}
