//! A handler that uses the writer in every wrong way, in every order: what reaches the wire is a good answer, an error
//! page, or the beginning of a good answer and the end of the connection; and the next request gets its own answer.

use rotor_http::h1::{MessageError, Method, Status};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::probe::{get, probe, request, seconds};
use crate::wire::{self, Answer};

/// One call of the writer, or of what comes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Status(u16),
    Header(&'static str, &'static str),
    Length(u64),
    Chunked,
    DoneHeaders,
    Body(&'static str),
    Block(usize),
    Done,
    DoneWithTrailers,
    Interim(u16),
    Close,
    Send,
    Panic,
    GoOn,
}

const CALLS: [Call; 29] = [
    Call::Status(200),
    Call::Status(204),
    Call::Status(304),
    Call::Status(205),
    Call::Status(101),
    Call::Status(100),
    Call::Status(404),
    Call::Header("X-A", "b"),
    Call::Header("X-A", "b\r\nX-C: d"),
    Call::Header("X-A", "b\0"),
    Call::Header("X A", "b"),
    Call::Header("", "b"),
    Call::Header("Content-Length", "3"),
    Call::Header("Transfer-Encoding", "chunked"),
    Call::Header("Connection", "keep-alive"),
    Call::Header("Upgrade", "x"),
    Call::Header("Date", "today"),
    Call::Length(3),
    Call::Length(0),
    Call::Chunked,
    Call::DoneHeaders,
    Call::Body("abc"),
    Call::Body(""),
    Call::Block(3),
    Call::Done,
    Call::DoneWithTrailers,
    Call::Interim(103),
    Call::Close,
    Call::Send,
];

/// Makes the calls that its seed lists, whatever comes of them.
struct Misuser(Vec<Call>);

fn make(calls: &[Call], response: &mut Response<'_>) {
    for call in calls {
        let _misuse = match *call {
            Call::Status(code) => response.status(Status::new(code).expect("a status")),
            Call::Header(name, value) => response.add_header(name, value),
            Call::Length(length) => response.add_length(length),
            Call::Chunked => response.add_chunked(),
            Call::DoneHeaders => response.done_headers(),
            Call::Body(bytes) => response.write_body(bytes),
            Call::Block(len) => response.write_block(vec![b'x'; len]),
            Call::Done => response.done(),
            Call::DoneWithTrailers => response.done_with_trailers(&[("X-T", b"u"), ("Host", b"v")]),
            Call::Interim(code) => response.interim(Status::new(code).expect("a status"), &[("X-I", b"j")]),
            Call::Close => {
                response.close();
                Ok(())
            }
            Call::Send => response.send(Status::OK, "text/plain", b"sent"),
            Call::Panic => panic!("as asked"),
            Call::GoOn => Ok(()),
        };
    }
}

impl Server for Misuser {
    type Context = ();
    type Seed = Vec<Call>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        calls: Vec<Call>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        if head.path() == "/good" {
            let _good = response.send(Status::OK, "text/plain", b"good");
            return Next::finished();
        }
        if let Some(at) = calls.iter().position(|call| *call == Call::GoOn) {
            make(&calls[..at], response);
            return Next::recv(Misuser(calls[at..].to_vec()), RecvMode::Buffered(10)).keep_deadline();
        }
        make(&calls, response);
        Next::finished()
    }

    fn request_received(self, _: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        make(&self.0, response);
        Next::finished()
    }
}

/// Reads all answers; the last may be cut, if the connection ended with it. To HEAD, none has a body.
fn read(mut bytes: &[u8], is_ended: bool, is_head: bool, calls: &[Call]) -> Vec<Answer> {
    let mut answers: Vec<Answer> = Vec::new();
    while !bytes.is_empty() {
        let finals = answers.iter().filter(|answer| answer.status >= 200).count();
        let taken = match is_head && finals == 0 {
            true => take_head(&mut bytes),
            false => wire::take(&mut bytes),
        };
        match taken {
            Ok(answer) => answers.push(answer),
            Err(error) if error == "cut" && is_ended => break,
            Err(error) => panic!("{error} after {calls:?}: {}", bytes.escape_ascii()),
        }
    }
    answers
}

/// An answer to HEAD, which does not say so.
fn take_head(bytes: &mut &[u8]) -> Result<Answer, String> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or("cut")? + 4;
    let (head, rest) = bytes.split_at(end);
    let marked = [&head[..end - 2], b"X-Method: HEAD\r\n\r\n"].concat();
    *bytes = rest;
    wire::take(&mut &marked[..])
}

fn check(calls: &[Call], start: &str, fields: &str) {
    let is_head = start.starts_with("HEAD");
    let mut driver =
        Driver::<Connection<Misuser>>::new(HttpSeed::new(calls.to_vec(), ServerConfig::new()), ());
    driver.send(&[request(start, fields, ""), get("/good")].concat());
    let bytes = driver.take_received();
    let answers = read(&bytes, driver.is_ended(), is_head, calls);
    let finals: Vec<&Answer> = answers.iter().filter(|answer| answer.status >= 200).collect();
    let shown = bytes.escape_ascii();
    assert!((1..=2).contains(&finals.len()) || driver.is_ended(), "{calls:?}: {shown}");
    if let Some(second) = finals.get(1) {
        assert_eq!(second.text(), "good", "{calls:?}: {shown}");
    } else {
        assert!(driver.is_ended(), "{calls:?}: the next request is lost: {shown}");
    }
    assert!(finals.iter().all(|answer| answer.field("X-C").is_none()), "{calls:?}: {shown}");
    assert_eq!(driver.failures(), [""; 0]);
}

#[test]
fn no_order_of_calls_puts_a_malformed_answer_on_the_wire() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    // The way it should be, bent in one to four places, and mere chance.
    let good = [
        Call::Status(200),
        Call::Header("X-A", "b"),
        Call::Length(3),
        Call::DoneHeaders,
        Call::Body("abc"),
        Call::Done,
    ];
    for round in 0..12_000 {
        let mut calls: Vec<Call> = if round % 3 == 0 { Vec::new() } else { good.to_vec() };
        if calls.is_empty() {
            calls.extend((0..random(9)).map(|_| CALLS[random(CALLS.len())]));
        }
        for _ in 0..=random(3) {
            let at = random(calls.len() + 1);
            match random(3) {
                0 if at < calls.len() => drop(calls.remove(at)),
                1 if at < calls.len() => calls[at] = CALLS[random(CALLS.len())],
                _ => calls.insert(at, CALLS[random(CALLS.len())]),
            }
        }
        if round % 5 == 0 {
            calls.insert(random(calls.len() + 1), Call::GoOn);
        }
        let start = ["GET /", "HEAD /", "POST /"][random(3)];
        check(&calls, start, ["", "Connection: close\r\n"][usize::from(random(8) == 0)]);
    }
}

#[test]
fn a_panic_anywhere_is_a_500_or_the_end() {
    let good = [Call::Status(200), Call::Length(3), Call::DoneHeaders, Call::Body("abc"), Call::Done];
    for at in 0..=good.len() {
        let mut calls = good.to_vec();
        calls.insert(at, Call::Panic);
        let mut driver =
            Driver::<Connection<Misuser>>::new(HttpSeed::new(calls.clone(), ServerConfig::new()), ());
        driver.send(&[get("/good"), get("/"), get("/good")].concat());
        assert_eq!(wire::transcript(&driver.take_received()), "200 good | 500 close", "{calls:?}");
        // What was sent cannot be taken back.
        calls.insert(at, Call::GoOn);
        check(&calls, "GET /", "");
    }
}

#[test]
fn a_short_answer_of_which_nothing_was_sent_becomes_a_500() {
    let calls = [Call::Status(200), Call::Length(3), Call::DoneHeaders, Call::Body("")];
    for count in 0..=calls.len() {
        let seed = HttpSeed::new(calls[..count].to_vec(), ServerConfig::new());
        let mut driver = Driver::<Connection<Misuser>>::new(seed, ());
        driver.send(&[get("/"), get("/good")].concat());
        assert_eq!(wire::transcript(&driver.take_received()), "500 close", "{count}");
    }
    // An interim answer of an earlier call stays.
    let seed = HttpSeed::new(vec![Call::Interim(103), Call::GoOn, Call::Status(200)], ServerConfig::new());
    let mut driver = Driver::<Connection<Misuser>>::new(seed, ());
    driver.send(&get("/"));
    assert_eq!(wire::transcript(&driver.take_received()), "103 | 500 close");
}

/// A seed that some requests cannot be made from.
struct Brittle;

impl Clone for Brittle {
    fn clone(&self) -> Brittle {
        panic!("as asked")
    }
}

/// Is never made.
struct Unmade;

impl Server for Unmade {
    type Context = ();
    type Seed = Brittle;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(_: Brittle, _: &Head<'_>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::finished()
    }
}

#[test]
fn a_seed_that_panics_when_it_is_cloned_is_a_500() {
    let config = ServerConfig::new();
    let counters = config.counters();
    let mut driver = Driver::<Connection<Unmade>>::new(HttpSeed::new(Brittle, config), ());
    driver.send(&get("/"));
    assert_eq!(wire::transcript(&driver.take_received()), "500 close");
    assert_eq!((counters.panics(), driver.failures().len()), (1, 0));
}

/// Does not say what it supports.
struct Undecided;

impl Server for Undecided {
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
fn a_panic_about_what_is_supported_is_a_500() {
    for (method, expected, panics, requests) in
        [("GET", "200 x", 0, 2), ("BOOM", "500 close", 1, 1), ("PUT", "501 close", 0, 1)]
    {
        let config = ServerConfig::new();
        let counters = config.counters();
        let mut driver = Driver::<Connection<Undecided>>::new(HttpSeed::new((), config), ());
        driver.send(&[get("/"), request(&format!("{method} /"), "", "")].concat());
        assert_eq!(wire::transcript(&driver.take_received()), format!("200 x | {expected}"), "{method}");
        assert_eq!((counters.panics(), driver.failures().len()), (panics, 0), "{method}");
        assert_eq!(counters.requests(), requests, "{method}: those that came to a handler");
    }
}

#[test]
fn a_panic_of_the_log_hook_costs_no_answer() {
    let config = ServerConfig::new().log(|_| panic!("as asked"));
    let counters = config.counters();
    let mut driver = probe(config);
    driver.send(&[get("/a"), get("/panic"), get("/b")].concat());
    assert_eq!(wire::transcript(&driver.take_received()), "200 GET /a | 500 close");
    // Twice the hook, once the handler.
    assert_eq!((counters.panics(), driver.failures().len()), (3, 0));
    let mut driver = probe(ServerConfig::new().log(|_| panic!("as asked")));
    driver.send(&get("/wait"));
    driver.reset();
    assert_eq!((driver.is_alive(), driver.failures().len()), (false, 0));
}

#[test]
fn a_name_of_the_server_that_cannot_stand_in_a_field_is_left_out() {
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

/// Its error pages are as bad as its answers.
struct BadPages;

impl Server for BadPages {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received((): (), head: &Head<'_>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
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
fn an_error_page_that_is_none_is_replaced() {
    for (input, expected) in [
        (get("/"), "500 close"),
        (request("GET /", "A : b\r\n", ""), "400 close"),
        (get(&"/a".repeat(5000)), "414 close"),
    ] {
        let mut driver = Driver::<Connection<BadPages>>::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(&input);
        assert_eq!(wire::transcript(&driver.take_received()), expected);
    }
}

#[test]
fn a_panic_after_a_part_was_sent_cuts_the_answer_and_spares_the_ones_before() {
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

/// A client may read this answer as cut short, and nothing else: neither is it made up for, nor does another follow.
#[test]
fn a_misuse_after_a_part_was_sent_cuts_the_answer_and_is_counted() {
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
        assert!(rest.ends_with(&[b'x'; 50]) && !rest.ends_with(&[b'x'; 51]), "{path}: only what was good");
        assert_eq!((counters.unfinished(), counters.panics()), (1, 0), "{path}");
        assert_eq!(driver.failures(), [""; 0], "{path}");
    }
}

#[test]
fn a_body_that_breaks_after_a_part_was_sent_cuts_the_answer() {
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

/// Its error pages are JSON, and it waits for ever.
struct JsonPages;

impl Server for JsonPages {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received((): (), head: &Head<'_>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
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
fn every_error_that_no_handler_answers_has_the_page_of_the_server() {
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
        let mut driver = Driver::<Connection<JsonPages>>::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(&input);
        driver.advance(seconds(60));
        let answers = wire::answers(&driver.take_received());
        assert_eq!(answers.len(), 1, "{status}");
        let page = (answers[0].status, answers[0].text(), answers[0].closes());
        assert_eq!(page, (status, &*format!("{{\"error\":{status}}}"), true));
    }
}

/// Sends what the test is about by `send_with`; if it is refused, something else.
struct Whole;

type Wanted = (u16, Vec<(&'static str, &'static [u8])>, &'static str, &'static [u8]);

impl Server for Whole {
    type Context = (Wanted, Option<MessageError>);
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
            response.add_length(0).and_then(|()| response.done_headers()).expect("it goes on as it began");
            response.done().expect("whole");
            return Next::finished();
        }
        let status = Status::new(*status).expect("a status");
        let unsent = response.unsent();
        if let Err(refused) = response.send_with(status, fields, content_type, body) {
            assert!(!response.is_started() && response.unsent() == unsent, "{refused}");
            *error = Some(refused);
            response.send(Status::OK, "text/plain", b"another").expect("as if nothing had been");
        }
        Next::finished()
    }
}

#[test]
fn a_whole_response_with_fields_is_written_whole_or_not_at_all() {
    let ask = |wanted: Wanted, request: &[u8]| {
        let mut driver =
            Driver::<Connection<Whole>>::new(HttpSeed::new((), ServerConfig::new()), (wanted, None));
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
}
