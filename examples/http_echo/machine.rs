//! The handler: it serves a page with validators, and sends back what the client sent.

use rotor::Time;
use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status, list_elements, parse_date};

/// The content of `GET /`. It never changes, so neither do its validators.
const PAGE: &[u8] = b"Hello from http_echo. POST / sends your body back, /echo your fields.\n";
const ETAG: &str = "\"http-echo-1\"";
const LAST_MODIFIED: &str = "Fri, 01 Jan 2021 00:00:00 GMT";
const LAST_MODIFIED_SECONDS: i64 = 1_609_459_200;

const ALLOW_ALL: &str = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS";
const ALLOW_PAGE: &str = "GET, HEAD, POST, OPTIONS";

/// The longest body that is sent back, in bytes.
const BODY_MAX: usize = 1 << 20;

/// One request. The answer is decided by its head, and sent when its body has arrived completely.
pub(crate) struct Echo {
    reply: Reply,
}

enum Reply {
    Page,
    NotModified,
    /// A condition failed for a resource that has not changed.
    ConditionFailed,
    Body,
    Fields(Vec<u8>),
    Options(&'static str),
    NotAllowed(&'static str),
    NotFound,
}

impl Reply {
    fn to(head: &Head<'_>, now: i64) -> Reply {
        match (head.path(), head.method()) {
            ("*", _) => Reply::Options(ALLOW_ALL),
            ("/", Method::Options) => Reply::Options(ALLOW_PAGE),
            ("/echo", Method::Options) => Reply::Options(ALLOW_ALL),
            ("/", Method::Get | Method::Head) => conditional(head, now),
            ("/", Method::Post) => Reply::Body,
            ("/", _) => Reply::NotAllowed(ALLOW_PAGE),
            ("/echo", _) => Reply::Fields(fields(head)),
            _ => Reply::NotFound,
        }
    }

    fn write(&self, body: &[u8], response: &mut Response<'_>) -> Result<(), MessageError> {
        match self {
            Reply::Page => page(Status::OK, PAGE, response),
            Reply::NotModified => {
                response.status(Status::NOT_MODIFIED)?;
                add_validators(response)?;
                response.done_headers()?;
                response.done()
            }
            Reply::ConditionFailed => text(Status::PRECONDITION_FAILED, None, response),
            Reply::Body => response.send(Status::OK, "application/octet-stream", body),
            Reply::Fields(fields) => response.send(Status::OK, "text/plain", fields),
            Reply::Options(allow) => {
                response.status(Status::NO_CONTENT)?;
                response.add_header("Allow", allow)?;
                response.done_headers()?;
                response.done()
            }
            Reply::NotAllowed(allow) => text(Status::METHOD_NOT_ALLOWED, Some(allow), response),
            Reply::NotFound => text(Status::NOT_FOUND, None, response),
        }
    }
}

impl Server for Echo {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let now = scope.wall_time().duration_since(std::time::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        let echo = Echo { reply: Reply::to(head, now) };
        if head.has_body() {
            // Whatever the body is for, nothing is answered before its framing has turned out to be
            // valid.
            return Next::recv(echo, RecvMode::Buffered(BODY_MAX)).keep_deadline();
        }
        echo.request_received(b"", response, scope)
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        // An error would be a mistake of this program; the connection then answers with 500 by
        // itself.
        let _written = self.reply.write(body, response);
        Next::finished()
    }

    fn draining(self, _: Time, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        Next::go_on(self).keep_deadline()
    }
}

/// Evaluates the conditions in the order of RFC 9110 §13.2.2.
fn conditional(head: &Head<'_>, now: i64) -> Reply {
    let has_tag = |value: &[u8], weakly: bool| {
        list_elements(value).any(|tag| {
            let strong = tag.strip_prefix(b"W/").filter(|_| weakly).unwrap_or(tag);
            strong == b"*" || strong == ETAG.as_bytes()
        })
    };
    let date = |name| parse_date(head.field(name)?, now);
    let tags =
        |name| head.fields().iter().filter(move |field| field.name.eq_ignore_ascii_case(name));
    if tags("If-Match").next().is_some() {
        if !tags("If-Match").any(|field| has_tag(field.value, false)) {
            return Reply::ConditionFailed;
        }
    } else if date("If-Unmodified-Since").is_some_and(|date| date < LAST_MODIFIED_SECONDS) {
        return Reply::ConditionFailed;
    }
    let is_known = match tags("If-None-Match").next() {
        Some(_) => tags("If-None-Match").any(|field| has_tag(field.value, true)),
        None => date("If-Modified-Since").is_some_and(|date| date >= LAST_MODIFIED_SECONDS),
    };
    if is_known { Reply::NotModified } else { Reply::Page }
}

/// Returns the received fields, one on each line.
fn fields(head: &Head<'_>) -> Vec<u8> {
    let mut lines = Vec::new();
    for field in head.fields().iter() {
        lines.extend_from_slice(field.name.as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(field.value);
        lines.push(b'\n');
    }
    lines
}

fn page(status: Status, body: &[u8], response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(status)?;
    add_validators(response)?;
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(body.len() as u64)?;
    response.done_headers()?;
    response.write_body(body)?;
    response.done()
}

fn add_validators(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.add_header("ETag", ETAG)?;
    response.add_header("Last-Modified", LAST_MODIFIED)
}

fn text(
    status: Status,
    allow: Option<&str>,
    response: &mut Response<'_>,
) -> Result<(), MessageError> {
    let line = format!("{} {}\n", status.code(), status.reason());
    response.status(status)?;
    if let Some(allow) = allow {
        response.add_header("Allow", allow)?;
    }
    response.add_header("Content-Type", "text/plain")?;
    response.add_length(line.len() as u64)?;
    response.done_headers()?;
    response.write_body(line)?;
    response.done()
}
