//! `Probe`: a handler that does what the path of its request says, and records in the context what
//! happened to it.

use std::time::Duration;

use rotor_core::{Notifier, Time};
use rotor_http::server::{
    Connection, Finished, Head, HttpSeed, Next, RecvMode, Response, Scope, Server, ServerConfig,
};
use rotor_http::{BodyError, MessageError, Method, Status, Trailers};
use rotor_stream::testing::Driver;

use crate::relay::Relay;

/// What the handlers of a test share.
#[derive(Default, Debug)]
pub(crate) struct TestContext {
    pub(crate) events: Vec<String>,
    pub(crate) notifier: Option<Notifier>,
    /// The text that the waiting handler answers with when it is woken.
    pub(crate) words: String,
}

/// One request.
///
/// | path | what it does |
/// |--|--|
/// | `/ignore` | answers without asking for the body |
/// | `/progressive` | takes the body in pieces of at least 4 bytes |
/// | `/blocks` | takes the body in blocks, each after it was woken |
/// | `/hold` | takes the body in pieces of at least 4 bytes, each after it was woken |
/// | `/pause` | takes the body in pieces of at least 4 bytes, and holds it when it is woken |
/// | `/wait`, `/wait-for-ever` | answers when it is woken |
/// | `/big` | a megabyte in one call, `/stream` the same at the peer's pace, of unknown length |
/// | `/panic`, `/panic-late`, `/panic-in-body` | panics before its answer, after it, or when it gets the body |
/// | `/chunked` | an answer of unknown length, with a trailer |
/// | `/status/204` | that status, and nothing else |
/// | `/authority` | answers with the host that the request is for |
/// | `/large-head` | answers with a field of 14,000 bytes, and no body |
/// | `/length-304` | 304 with the length that GET would have had |
/// | `/hints`, `/hints-fail` | sends 103, then answers, or fails with 502 |
/// | `/short`, `/split` | finishes with less than it announced, or after a field that would split the answer |
/// | `/mirror` | sends each byte of its body back a hundred times, immediately |
/// | `/slow` | takes the whole body, then waits to be woken |
/// | `/stop` | takes a piece of the body, and answers |
/// | `/take`, `/take-ask` | takes the body that has come with the head, and answers immediately, or asks for more |
/// | `/take-wait` | takes the body that has come with the head, and answers when it is woken |
/// | `/up-early` | tries to switch protocols whatever the request says |
/// | `/stream-panic`, `/stream-short`, `/stream-long` | panics, finishes or writes too much when a part has been sent |
/// | `/stream-fail`, `/fail` | fails with 502 when a part, or nothing, has been sent |
/// | `/busy` | fails with 503 |
/// | `/timer` | answers after ten seconds |
/// | `/early` | answers, then takes the body |
/// | `/up`, `/wait-up` | switches to another protocol, at once or when it is woken |
/// | anything else | takes the whole body and sends it back |
pub(crate) struct Probe {
    method: String,
    path: String,
    body: Vec<u8>,
    left: usize,
    wants_upgrade: bool,
}

pub(crate) const BIG: usize = 1 << 20;

type Sc<'a, 'b> = &'a mut Scope<'b, TestContext>;

impl Probe {
    /// Answers with the method, the path and the body.
    fn answer(
        &self,
        body: &[u8],
        trailers: &str,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        let text =
            format!("{} {} {}{trailers}", self.method, self.path, String::from_utf8_lossy(body));
        self.begin(Status::OK, response)?;
        response.add_length(text.len() as u64)?;
        response.done_headers()?;
        response.write_body(text.as_bytes())?;
        response.done()
    }

    fn begin(&self, status: Status, response: &mut Response<'_>) -> Result<(), MessageError> {
        response.status(status)?;
        response.add_header("Content-Type", "text/plain")?;
        response.add_header("X-Method", &self.method)
    }

    fn chunked(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        self.begin(Status::OK, response)?;
        response.add_chunked()?;
        response.done_headers()?;
        response.write_body("one")?;
        response.write_body("two")?;
        response.done_with_trailers(&[("X-Sum", b"6")])
    }

    /// Answers that need no body of the request.
    fn plain(&self, head: &Head<'_>, response: &mut Response<'_>) -> Result<(), MessageError> {
        match self.path.as_str() {
            "/hints" => {
                hint(response);
                return self.answer(b"", "", response);
            }
            "/length-304" => self.begin(Status::NOT_MODIFIED, response)?,
            _ => self.begin(Status::OK, response)?,
        }
        if self.path == "/split" {
            response
                .add_header("X-Split", "a\r\n\r\nHTTP/1.1 200 OK")
                .expect_err("it would split the answer");
            return Ok(());
        }
        let authority = head.authority().unwrap_or_default();
        response.add_length(authority.len() as u64 + u64::from(self.path == "/short"))?;
        response.done_headers()?;
        match self.path.as_str() {
            "/authority" => response.write_body(authority)?,
            "/short" => return response.write_body(authority),
            _ => {}
        }
        response.done()
    }

    fn big(&self, response: &mut Response<'_>) -> Result<(), MessageError> {
        self.begin(Status::OK, response)?;
        response.add_length(BIG as u64)?;
        response.done_headers()?;
        response.write_block(vec![b'b'; BIG])?;
        response.done()
    }

    /// Writes as much as there is room for.
    fn pump(&mut self, response: &mut Response<'_>) -> Result<bool, MessageError> {
        while self.left > 0 && response.room() > 0 {
            let count = self.left.min(4096);
            response.write_body(&[b's'; 4096][..count])?;
            self.left -= count;
        }
        if self.left == 0 {
            response.done()?;
        }
        Ok(self.left == 0)
    }

    /// Takes the body if it has come with the head.
    fn take(self, head: &Head<'_>, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let Some(body) = head.take_body() else {
            return Next::recv(self, RecvMode::Buffered(usize::MAX)).keep_deadline();
        };
        assert_eq!(head.take_body(), None, "it is taken once");
        scope.events.push(format!("taken {}", String::from_utf8_lossy(body)));
        match self.path.as_str() {
            "/take-ask" => return Next::recv(self, RecvMode::Buffered(usize::MAX)).keep_deadline(),
            "/take-wait" => {
                scope.notifier = Some(scope.notifier());
                return Next::go_on(self).no_deadline();
            }
            _ => self.answer(body, "", response).expect("an answer"),
        }
        Next::finished()
    }

    fn stream(mut self, response: &mut Response<'_>) -> Next<Self> {
        self.left = BIG;
        self.begin(Status::OK, response)
            .and_then(|()| response.add_chunked())
            .expect("an answer that begins");
        response.done_headers().expect("fields that end");
        if self.pump(response).expect("a body") {
            return Next::finished();
        }
        Next::go_on(self).no_deadline()
    }
}

impl Server for Probe {
    type Context = TestContext;
    type Seed = ();
    type Upgrade = Relay;

    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Trace | Method::Extension(_))
    }

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        let path = head.path().to_owned();
        scope.events.push(format!("{} {path}", head.method()));
        let probe = Probe {
            method: head.method().to_string(),
            path,
            body: Vec::new(),
            left: 0,
            wants_upgrade: head.wants_upgrade(),
        };
        if head.query() == Some("always") {
            response.add_always("X-Always", "1").expect("a field");
        }
        let mode = match (probe.path.as_str(), head.method()) {
            (_, Method::Connect) => {
                return connect(head.target() == "open:1", response);
            }
            ("/authority" | "/length-304" | "/hints" | "/short" | "/split", _) => {
                probe.plain(head, response).expect("an answer");
                return Next::finished();
            }
            ("/up-early", _) => return switch(response),
            ("/up", _) if head.wants_upgrade() && !head.has_body() => return switch(response),
            ("/large-head", _) => {
                probe.begin(Status::OK, response).expect("fields");
                response.add_header("X-Large", [b'x'; 14_000]).expect("a field");
                response
                    .add_length(0)
                    .and_then(|()| response.done_headers())
                    .and_then(|()| response.done())
                    .expect("an answer");
                return Next::finished();
            }
            ("/ignore", _) => {
                probe.answer(b"", "", response).expect("an answer");
                return Next::finished();
            }
            ("/phase", _) => {
                let phase = format!("{:?}", scope.phase());
                probe.answer(phase.as_bytes(), "", response).expect("an answer");
                return Next::finished();
            }
            ("/take" | "/take-ask" | "/take-wait", _) => return probe.take(head, response, scope),
            ("/wait" | "/wait-up" | "/wait-for-ever", _) => {
                scope.notifier = Some(scope.notifier());
                let next = Next::go_on(probe);
                return if head.path() == "/wait" {
                    next.keep_deadline()
                } else {
                    next.no_deadline()
                };
            }
            ("/timer" | "/timer-that-goes-on", _) => {
                return Next::go_on(probe).deadline(scope.now() + seconds(10));
            }
            ("/stream" | "/stream-panic", _) => return probe.stream(response),
            ("/fail", _) => return Next::fail(Status::BAD_GATEWAY),
            ("/hints-fail", _) => {
                hint(response);
                return Next::fail(Status::BAD_GATEWAY);
            }
            ("/busy", _) => return Next::fail(Status::SERVICE_UNAVAILABLE),
            ("/stream-short" | "/stream-long" | "/stream-fail", _) => {
                probe.begin(Status::OK, response).expect("fields");
                response
                    .add_length(100)
                    .and_then(|()| response.done_headers())
                    .expect("an answer begins");
                response.write_body("x".repeat(50)).expect("a half");
                return Next::go_on(probe).keep_deadline();
            }
            ("/big", _) => {
                probe.big(response).expect("an answer");
                return Next::finished();
            }
            ("/panic", _) => panic!("as asked"),
            ("/panic-late", _) => {
                probe.chunked(response).expect("an answer");
                panic!("as asked")
            }
            ("/chunked", _) => {
                probe.chunked(response).expect("an answer");
                return Next::finished();
            }
            ("/early", _) => {
                probe.answer(b"", "", response).expect("an answer");
                RecvMode::Progressive(1)
            }
            ("/mirror", _) => {
                probe
                    .begin(Status::OK, response)
                    .and_then(|()| response.add_chunked())
                    .expect("fields");
                response.done_headers().expect("the end of the fields");
                RecvMode::Progressive(1)
            }
            ("/progressive" | "/hold" | "/pause" | "/stop", _) => RecvMode::Progressive(4),
            ("/live", _) => {
                return Next::recv_stream(probe, RecvMode::Progressive(1)).keep_deadline();
            }
            ("/live-later", _) => RecvMode::Progressive(1),
            ("/blocks", _) => RecvMode::Blocks,
            (path, _) if path.starts_with("/status/") => {
                let code = path[8..].parse().expect("a number");
                probe.begin(Status::new(code).expect("a status"), response).expect("fields");
                response
                    .done_headers()
                    .and_then(|()| response.done())
                    .expect("a status without a body");
                return Next::finished();
            }
            _ => RecvMode::Buffered(usize::MAX),
        };
        Next::recv(probe, mode).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.events.push(format!("body {}", String::from_utf8_lossy(body)));
        match self.path.as_str() {
            "/panic-in-body" => panic!("as asked"),
            "/up" if self.wants_upgrade => return switch(response),
            "/slow" => return Next::go_on(self).keep_deadline(),
            _ => {}
        }
        self.answer(body, "", response).expect("an answer");
        Next::finished()
    }

    fn request_chunk(
        mut self,
        chunk: &[u8],
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.events.push(format!("chunk {}", String::from_utf8_lossy(chunk)));
        if self.path == "/stop" {
            self.answer(chunk, "", response).expect("an answer");
            return Next::finished();
        }
        if self.path == "/mirror" {
            response.write_body(chunk.repeat(100)).expect("a body");
        }
        self.body.extend_from_slice(chunk);
        if matches!(self.path.as_str(), "/hold" | "/blocks") {
            return Next::hold(self).no_deadline();
        }
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        trailers: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.events.push("end".to_owned());
        match self.path.as_str() {
            "/early" => {}
            "/mirror" => response.done().expect("the end of the body"),
            _ => {
                let trailers: String = trailers.iter().map(|field| format!(" {field:?}")).collect();
                self.answer(&self.body, &trailers, response).expect("an answer");
            }
        }
        Next::finished()
    }

    fn response_flushed(mut self, response: &mut Response<'_>, _: Sc<'_, '_>) -> Next<Self> {
        assert_ne!(self.path, "/stream-panic", "as asked");
        match self.path.as_str() {
            "/stream-short" => {
                assert_eq!(response.done(), Err(MessageError::BodyTooShort(50)));
                return Next::finished();
            }
            "/stream-fail" => return Next::fail(Status::BAD_GATEWAY),
            "/stream-long" => {
                assert_eq!(response.write_body("x".repeat(51)), Err(MessageError::BodyTooLong(50)));
                assert_eq!(response.status(Status::OK), Err(MessageError::StartLineTwice));
                return Next::finished();
            }
            _ => {}
        }
        if self.path == "/stream" && self.pump(response).expect("a body") {
            return Next::finished();
        }
        Next::go_on(self).keep_deadline()
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        if matches!(self.path.as_str(), "/hold" | "/blocks") {
            return Next::recv(self, RecvMode::Progressive(4)).keep_deadline();
        }
        if self.path == "/live-later" {
            return Next::recv_stream(self, RecvMode::Progressive(1)).keep_deadline();
        }
        if self.path == "/pause" {
            return Next::hold(self).keep_deadline();
        }
        if !self.path.contains("wait") || scope.words.is_empty() {
            return Next::go_on(self).keep_deadline();
        }
        let words = std::mem::take(&mut scope.words);
        if self.path == "/wait-up" {
            return switch(response);
        }
        self.answer(words.as_bytes(), "", response).expect("an answer");
        Next::finished()
    }

    fn timeout(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        if self.path == "/timer-that-goes-on" {
            scope.events.push("timeout".to_owned());
            return Next::go_on(self).keep_deadline();
        }
        if self.path == "/timer" {
            self.answer(b"", "", response).expect("an answer");
        } else if !response.is_started() {
            let page = b"503 Service Unavailable\n";
            response.close();
            response.send(Status::SERVICE_UNAVAILABLE, "text/plain", page).expect("an answer");
        }
        Next::finished()
    }

    fn draining(self, until: Time, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let _ = (until, response);
        scope.events.push("draining".to_owned());
        Next::go_on(self).keep_deadline()
    }

    fn bad_request(self, error: BodyError, scope: Sc<'_, '_>) {
        scope.events.push(format!("bad request: {error:?}"));
    }
}

fn hint(response: &mut Response<'_>) {
    let hint: [(&str, &[u8]); 1] = [("Link", b"</a.css>; rel=preload")];
    let _not_to_http10 = response.interim(Status::EARLY_HINTS, &hint);
}

fn connect(is_open: bool, response: &mut Response<'_>) -> Next<Probe> {
    if is_open {
        response.status(Status::OK).expect("first");
        response.done_headers().and_then(|()| response.done()).expect("no body");
        return Next::upgrade(());
    }
    response.status(Status::METHOD_NOT_ALLOWED).expect("first");
    response.add_header("Allow", "GET, HEAD, POST, OPTIONS").expect("a field");
    response.add_length(0).and_then(|()| response.done_headers()).expect("an answer");
    response.done().expect("no body");
    Next::finished()
}

fn switch<S: Server<Upgrade = Relay>>(response: &mut Response<'_>) -> Next<S> {
    response.status(Status::SWITCHING_PROTOCOLS).expect("it was asked for");
    response.add_header("Upgrade", "relay").expect("a field");
    response.done_headers().and_then(|()| response.done()).expect("no body");
    Next::upgrade(())
}

/// A connection on a scripted socket.
pub(crate) type ProbeDriver = Driver<Connection<Probe>>;

pub(crate) fn probe(config: ServerConfig) -> ProbeDriver {
    Driver::new(HttpSeed::new((), config), TestContext::default())
}

/// A request with this method and target, such as `GET /`.
pub(crate) fn request(start: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").into_bytes()
}

pub(crate) fn get(path: &str) -> Vec<u8> {
    request(&format!("GET {path}"), "", "")
}

pub(crate) fn post(path: &str, body: &str) -> Vec<u8> {
    request(&format!("POST {path}"), &format!("Content-Length: {}\r\n", body.len()), body)
}

/// One line of a log.
pub(crate) fn log_line(finished: &Finished<'_>) -> String {
    let status = finished.status.map_or(0, |status| status.code());
    format!("{} {} {status} {}", finished.method, finished.target, finished.bytes)
}

pub(crate) const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
