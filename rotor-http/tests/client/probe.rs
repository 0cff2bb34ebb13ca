//! `Probe`: a handler that follows its plan, and records its events in the context.

use std::collections::VecDeque;
use std::fmt::Write;
use std::time::Duration;

use rotor_core::{Future, Notifier, Outcome};
use rotor_http::client::{Client, ClientError, Head, Job, Next, RecvMode, Request, Scope, Stage};
use rotor_http::{MessageError, Method, Trailers};
use rotor_stream::Block;

use crate::shout::Shout;

pub(crate) type Sc<'a, 'b> = &'a mut Scope<'b, TestContext>;
pub(crate) type Result = rotor_http::client::ClientResult<Probe>;

/// The context that the machines of a test share.
#[derive(Default, Debug)]
pub(crate) struct TestContext {
    pub(crate) events: Vec<String>,
    /// Whether taking a job is recorded as an event, too.
    pub(crate) records_jobs: bool,
    /// The requests that a connection will make, in this order.
    pub(crate) plans: VecDeque<Probe>,
    pub(crate) futures: VecDeque<Future<Result>>,
    /// Wakes the connection.
    pub(crate) notifier: Option<Notifier>,
    /// Wake the handlers, in the order in which they were prepared.
    pub(crate) handlers: Vec<Notifier>,
    pub(crate) returned_jobs: Vec<Job<Probe>>,
    /// Whether returned jobs are offered again.
    pub(crate) retakes_jobs: bool,
    /// What the handler does when it is woken.
    pub(crate) on_wakeup: Option<OnWakeup>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum OnWakeup {
    Hold,
    Resume,
    /// Writes the request, of which nothing was written before.
    Write,
    WriteRest,
    Finish,
    Panic,
}

/// How a request's body is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum BodyPlan {
    Nothing,
    /// Immediately, with its length.
    Whole(&'static str),
    /// The first half immediately, in chunks; the rest when there is room.
    Chunked(&'static str),
    /// This many bytes, as there is room.
    Much(u64),
    /// The head announces one byte, and this body follows.
    TooLong(&'static str),
    /// The same, written when woken.
    LaterTooLong(&'static str),
    /// First only the head; the body when it is requested.
    Expected(&'static str),
    /// First only the head; the body when woken.
    Later(&'static str),
}

#[derive(Debug)]
pub(crate) struct Probe {
    pub(crate) method: &'static str,
    pub(crate) target: &'static str,
    pub(crate) sends: BodyPlan,
    pub(crate) mode: RecvMode,
    /// Pauses the body after each chunk.
    pub(crate) holds: bool,
    /// Pauses after each interim head.
    pub(crate) holds_interim: bool,
    /// Finishes when it gets the head.
    pub(crate) is_head_only: bool,
    /// Finishes with its response only once its request is written.
    pub(crate) writes_all: bool,
    /// Does not finish with its response, but when woken.
    pub(crate) waits_after: bool,
    pub(crate) upgrade: Option<&'static str>,
    pub(crate) panics_in: &'static str,
    /// Whether the handler was asked to write its request.
    pub(crate) is_prepared: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) deadline: Duration,
    pub(crate) asks_to_close: bool,
    /// Writes nothing before it is woken.
    pub(crate) defers_write: bool,
    /// Its future is dropped immediately.
    pub(crate) is_cancelled: bool,
    /// The size that the handler reports, in bytes.
    pub(crate) held: usize,
    pub(crate) left: u64,
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    /// Whether the whole response was received, or with `writes_all` a piece of it.
    pub(crate) has_body: bool,
}

impl Probe {
    pub(crate) fn new(method: &'static str, target: &'static str) -> Probe {
        Probe {
            method,
            target,
            sends: BodyPlan::Nothing,
            mode: RecvMode::Buffered(1 << 20),
            holds: false,
            holds_interim: false,
            is_head_only: false,
            writes_all: false,
            waits_after: false,
            upgrade: None,
            panics_in: "",
            is_prepared: false,
            timeout: None,
            deadline: Duration::from_secs(1_000),
            asks_to_close: false,
            defers_write: false,
            is_cancelled: false,
            held: 0,
            left: 0,
            status: 0,
            body: Vec::new(),
            has_body: false,
        }
    }

    pub(crate) fn get(target: &'static str) -> Probe {
        Probe::new("GET", target)
    }

    pub(crate) fn post(sends: BodyPlan) -> Probe {
        Probe { sends, ..Probe::new("POST", "/") }
    }

    pub(crate) fn progressive(self) -> Probe {
        Probe { mode: RecvMode::Progressive(1), ..self }
    }

    fn write(&mut self, request: &mut Request<'_>) -> std::result::Result<(), MessageError> {
        request.start(Method::new(self.method).ok_or(MessageError::StartLine)?, self.target)?;
        request.add_header("Host", "h")?;
        if let Some(upgrade) = self.upgrade {
            request.add_header("Upgrade", upgrade)?;
        }
        if self.asks_to_close {
            request.close();
        }
        match &self.sends {
            BodyPlan::Nothing => {}
            BodyPlan::Whole(body) | BodyPlan::Later(body) => {
                request.add_length(body.len() as u64)?
            }
            BodyPlan::Chunked(_) => request.add_chunked()?,
            BodyPlan::Much(octets) => request.add_length(*octets)?,
            BodyPlan::TooLong(_) | BodyPlan::LaterTooLong(_) => request.add_length(1)?,
            BodyPlan::Expected(body) => {
                request.expect_continue();
                request.add_length(body.len() as u64)?;
            }
        }
        request.done_headers()?;
        match &self.sends {
            BodyPlan::Nothing => request.done(),
            BodyPlan::TooLong(body) => request.write_body(body),
            BodyPlan::Whole(body) => {
                request.write_body(body)?;
                request.done()
            }
            BodyPlan::Chunked(body) => request.write_body(&body[..body.len() / 2]),
            BodyPlan::Much(octets) => {
                self.left = *octets;
                self.write_much(request)
            }
            BodyPlan::Expected(_) | BodyPlan::Later(_) | BodyPlan::LaterTooLong(_) => Ok(()),
        }
    }

    fn write_much(&mut self, request: &mut Request<'_>) -> std::result::Result<(), MessageError> {
        let count = self.left.min(request.room() as u64);
        request.write_body(vec![b'x'; count as usize])?;
        self.left -= count;
        if self.left == 0 { request.done() } else { Ok(()) }
    }

    fn write_rest(&mut self, request: &mut Request<'_>) -> std::result::Result<(), MessageError> {
        match &self.sends {
            BodyPlan::Chunked(body) => {
                request.write_body(&body[body.len() / 2..])?;
                request.done_with_trailers(&[("X-Sum", b"1")])
            }
            BodyPlan::Much(_) => self.write_much(request),
            BodyPlan::LaterTooLong(body) => request.write_body(body),
            BodyPlan::Expected(body) | BodyPlan::Later(body) => {
                request.write_body(body)?;
                request.done()
            }
            _ => Ok(()),
        }
    }

    fn record(&self, name: &str, scope: Sc<'_, '_>) {
        if !self.panics_in.is_empty() && name.starts_with(self.panics_in) {
            panic!("told to");
        }
        scope.events.push(format!("{} {name}", self.target));
    }

    fn wait(self, scope: Sc<'_, '_>) -> Next<Probe> {
        match self.timeout {
            Some(timeout) => Next::go_on(self).deadline(scope.now() + timeout),
            None => Next::go_on(self).keep_deadline(),
        }
    }

    fn text(&self, trailers: &str) -> String {
        let body = match self.body.len() {
            0..100 => String::from_utf8_lossy(&self.body).into_owned(),
            len => format!("{len} octets"),
        };
        format!("{} {body}{trailers}", self.status).trim_end().to_owned()
    }
}

impl Client for Probe {
    type Context = TestContext;
    type Output = String;
    type Upgrade = Shout;

    fn held_bytes(&self) -> usize {
        assert_ne!(self.panics_in, "weighed", "told to");
        assert!(self.panics_in != "weighed again" || !self.is_prepared, "told to");
        self.held
    }

    fn prepare_request(mut self, request: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.record("prepare", scope);
        self.is_prepared = true;
        scope.notifier = Some(scope.notifier());
        let own = scope.notifier();
        scope.handlers.push(own);
        if self.defers_write {
            return self.wait(scope);
        }
        match self.write(request) {
            Ok(()) => self.wait(scope),
            Err(error) => Next::error(error),
        }
    }

    fn body_wanted(mut self, request: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.record("wanted", scope);
        self.write_rest(request).expect("it was announced");
        Next::go_on(self).keep_deadline()
    }

    fn request_flushed(mut self, request: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        if matches!(self.sends, BodyPlan::Later(_) | BodyPlan::LaterTooLong(_)) {
            return Next::go_on(self).keep_deadline();
        }
        if !matches!(self.sends, BodyPlan::Much(_)) {
            self.record("flushed", scope);
        }
        self.write_rest(request).expect("it was announced");
        if self.has_body && request.is_complete() {
            return Next::finished(self.text(""));
        }
        Next::go_on(self).keep_deadline()
    }

    fn interim_received(
        self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.record(&format!("interim {}", head.status().code()), scope);
        if self.holds_interim {
            return Next::hold(self).keep_deadline();
        }
        Next::go_on(self).keep_deadline()
    }

    fn headers_received(
        mut self,
        head: &Head<'_>,
        _: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.status = head.status().code();
        self.record(&format!("head {} {:?}", self.status, head.body_length()), scope);
        if self.status == 101 || self.method == "CONNECT" && head.status().is_success() {
            return Next::upgrade(self.upgrade == Some("roar"), "switched".into());
        }
        if self.is_head_only {
            let text = self.text("");
            return Next::finished(text);
        }
        let mode = self.mode;
        Next::recv(self, mode).keep_deadline()
    }

    fn response_received(
        mut self,
        body: &[u8],
        request: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.record("body", scope);
        self.body = body.to_owned();
        if self.waits_after || self.writes_all && !request.is_complete() {
            self.has_body = true;
            return Next::go_on(self).keep_deadline();
        }
        Next::finished(self.text(""))
    }

    fn response_chunk(
        mut self,
        chunk: &[u8],
        _: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        if chunk.len() < 50 {
            self.record(&format!("chunk {}", String::from_utf8_lossy(chunk)), scope);
        }
        self.body.extend_from_slice(chunk);
        self.has_body |= self.writes_all;
        if self.holds {
            Next::hold(self).keep_deadline()
        } else {
            Next::go_on(self).keep_deadline()
        }
    }

    fn response_block(
        self,
        block: Block,
        request: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.record(&format!("block {}", block.len()), scope);
        self.response_chunk(&block, request, scope)
    }

    fn response_end(
        self,
        trailers: &Trailers,
        _: &mut Request<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        self.record("end", scope);
        let mut text = String::new();
        for field in trailers.iter() {
            write!(text, " {}={}", field.name, String::from_utf8_lossy(field.value))
                .expect("a string");
        }
        Next::finished(self.text(&text))
    }

    fn bad_response(self, error: ClientError, scope: Sc<'_, '_>) -> Result {
        self.record("bad", scope);
        Err(error)
    }

    fn timeout(self, _: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        self.record("timeout", scope);
        if let BodyPlan::Later(_) = self.sends {
            // Like the default method.
            return Next::error(ClientError::Deadline(Stage::Receiving));
        }
        Next::finished("timed out".into())
    }

    fn wakeup(mut self, request: &mut Request<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        match scope.on_wakeup.take() {
            None => Next::go_on(self).keep_deadline(),
            Some(OnWakeup::Panic) => panic!("told to"),
            Some(OnWakeup::Finish) => Next::finished(self.text("")),
            Some(OnWakeup::Hold) => Next::hold(self).keep_deadline(),
            Some(OnWakeup::Resume) => {
                let mode = self.mode;
                Next::recv(self, mode).keep_deadline()
            }
            Some(OnWakeup::Write) => {
                self.write(request).expect("nothing is wrong with it");
                Next::go_on(self).keep_deadline()
            }
            Some(OnWakeup::WriteRest) => match self.write_rest(request) {
                Ok(()) => Next::go_on(self).keep_deadline(),
                Err(error) => Next::error(error),
            },
        }
    }
}

/// The same, from the context of a loop.
pub(crate) fn outcome_of(seen: &mut TestContext) -> Option<String> {
    let future = seen.futures.pop_front()?;
    match future.take() {
        Outcome::Pending(future) => {
            seen.futures.push_front(future);
            None
        }
        Outcome::Value(result) => Some(describe(result)),
        Outcome::Lost(lost) => Some(format!("{lost:?}")),
    }
}

pub(crate) fn describe(result: Result) -> String {
    match result {
        Ok(text) => text,
        Err(error) => {
            let cause = match &error {
                ClientError::Head(cause) => format!("Head({cause:?})"),
                other => format!("{other:?}"),
            };
            format!("{:?}: {cause}", error.fault())
        }
    }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
