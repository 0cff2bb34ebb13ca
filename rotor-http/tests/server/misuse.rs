//! A handler that uses the writer in every wrong way, in every order. The wire carries a valid
//! answer, an error page, or the beginning of a valid answer followed by the end of the connection;
//! and the next request gets its own answer.

use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::probe::{get, request};
use crate::wire::{self, Answer};

/// One call of the writer, or of a method next to it.
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

const CALLS: [Call; 30] = [
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
    Call::Interim(100),
    Call::Interim(103),
    Call::Close,
    Call::Send,
];

/// Makes the calls that its seed lists, and ignores their results.
struct MisusingHandler(Vec<Call>);

fn make_calls(calls: &[Call], response: &mut Response<'_>) {
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
            Call::Interim(code) => {
                response.interim(Status::new(code).expect("a status"), &[("X-I", b"j")])
            }
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

impl Server for MisusingHandler {
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
            make_calls(&calls[..at], response);
            return Next::recv(MisusingHandler(calls[at..].to_vec()), RecvMode::Buffered(10))
                .keep_deadline();
        }
        make_calls(&calls, response);
        Next::finished()
    }

    fn request_received(
        self,
        _: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        make_calls(&self.0, response);
        Next::finished()
    }
}

/// Reads all answers. The last one may be cut if the connection ended with it. Answers to HEAD have
/// no body.
fn read_responses(mut bytes: &[u8], is_ended: bool, is_head: bool, calls: &[Call]) -> Vec<Answer> {
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

/// Takes an answer to HEAD, which does not identify itself as one.
fn take_head(bytes: &mut &[u8]) -> Result<Answer, String> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").ok_or("cut")? + 4;
    let (head, rest) = bytes.split_at(end);
    let marked = [&head[..end - 2], b"X-Method: HEAD\r\n\r\n"].concat();
    *bytes = rest;
    wire::take(&mut &marked[..])
}

fn check(calls: &[Call], start: &str, fields: &str) {
    let is_head = start.starts_with("HEAD");
    let mut driver = Driver::<Connection<MisusingHandler>>::new(
        HttpSeed::new(calls.to_vec(), ServerConfig::new()),
        (),
    );
    driver.send(&[request(start, fields, ""), get("/good")].concat());
    let bytes = driver.take_received();
    let answers = read_responses(&bytes, driver.is_ended(), is_head, calls);
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
fn no_order_of_calls_sends_a_malformed_response() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below as u64) as usize
    };
    // The correct order with one to four changes, and random calls.
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
fn a_panic_anywhere_is_a_500_or_ends_the_connection() {
    let good =
        [Call::Status(200), Call::Length(3), Call::DoneHeaders, Call::Body("abc"), Call::Done];
    for at in 0..=good.len() {
        let mut calls = good.to_vec();
        calls.insert(at, Call::Panic);
        let mut driver = Driver::<Connection<MisusingHandler>>::new(
            HttpSeed::new(calls.clone(), ServerConfig::new()),
            (),
        );
        driver.send(&[get("/good"), get("/"), get("/good")].concat());
        assert_eq!(wire::transcript(&driver.take_received()), "200 good | 500 close", "{calls:?}");
        // Bytes that were sent cannot be taken back.
        calls.insert(at, Call::GoOn);
        check(&calls, "GET /", "");
    }
}

#[test]
fn an_incomplete_unsent_response_becomes_a_500() {
    let calls = [Call::Status(200), Call::Length(3), Call::DoneHeaders, Call::Body("")];
    for count in 0..=calls.len() {
        let seed = HttpSeed::new(calls[..count].to_vec(), ServerConfig::new());
        let mut driver = Driver::<Connection<MisusingHandler>>::new(seed, ());
        driver.send(&[get("/"), get("/good")].concat());
        assert_eq!(wire::transcript(&driver.take_received()), "500 close", "{count}");
    }
    // An interim answer that an earlier call has sent stays.
    let seed =
        HttpSeed::new(vec![Call::Interim(103), Call::GoOn, Call::Status(200)], ServerConfig::new());
    let mut driver = Driver::<Connection<MisusingHandler>>::new(seed, ());
    driver.send(&get("/"));
    assert_eq!(wire::transcript(&driver.take_received()), "103 | 500 close");
}

#[test]
fn continue_is_sent_once_and_by_the_connection() {
    let asked = "HTTP/1.1 100 Continue\r\n\r\n";
    for (calls, expected) in [
        (vec![Call::Interim(100), Call::Interim(101), Call::GoOn, Call::Send], asked),
        // The handler does not want the body, so the peer must not be asked to send it.
        (vec![Call::Interim(100), Call::Interim(101), Call::Send], ""),
    ] {
        let seed = HttpSeed::new(calls.clone(), ServerConfig::new());
        let mut driver = Driver::<Connection<MisusingHandler>>::new(seed, ());
        let fields = "Content-Length: 1\r\nExpect: 100-continue\r\n";
        driver.send(&request("POST /", fields, ""));
        let received = String::from_utf8(driver.take_received()).expect("ASCII");
        let interim = received.split("HTTP/1.1 200 ").next().expect("a first part");
        assert_eq!(interim, expected, "{calls:?}");
    }
}
