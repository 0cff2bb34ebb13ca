//! `Front`: the handler of the HTTP server. It answers at once if it can; a page of another server
//! is fetched first.

use std::time::Duration;

use rotor::http::client::{ClientError, Fetch, Fetched};
use rotor::http::server::{Head, Next, NoUpgrade, Reply, Response, Scope, Server};
use rotor::http::{MessageError, Method, Status};
use rotor::{Future, Outcome, with_causes};

use super::machine::Shared;
use rotor_examples::url::Url;

/// The time limit for a page: for finding its host, waiting for a connection, connecting, and the
/// whole response.
pub(crate) const FETCH_TIME_MAX: Duration = Duration::from_secs(10);
/// The maximum size of a page, in bytes. Pages are held in memory, so all waiting requests together
/// can take this times their number.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// The maximum length of a URL, in bytes.
const URL_BYTES_MAX: usize = 2_000;

const HELP: &str =
    "GET /fetch?url=http://HOST[:PORT][/PATH]   fetches a page\nGET /stats   what was counted\n";

/// A request that waits for a page.
pub(crate) struct Front {
    page: Future<Result<Fetched, ClientError>>,
}

impl Server for Front {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        scope.stats.own.requests += 1;
        let reply = match (head.method(), head.path()) {
            (Method::Get | Method::Head, "/") => {
                response.reply(Status::OK, "text/plain", HELP.as_bytes())
            }
            (Method::Get | Method::Head, "/stats") => {
                let page = format!("{:#}\n", scope.stats.to_json());
                response.reply(Status::OK, "application/json", page.as_bytes())
            }
            (Method::Get | Method::Head, "/fetch") => match requested_url(head.query()) {
                Ok(url) => return fetch(url, response, scope),
                Err(reason) => reply_text(Status::BAD_REQUEST, reason, response),
            },
            (_, "/" | "/stats" | "/fetch") => not_allowed(response),
            _ => reply_text(Status::NOT_FOUND, HELP, response),
        };
        reply.into()
    }

    /// Called when the page has arrived, or will not come. If the client goes away earlier, this
    /// value is dropped, and dropping the future cancels the request to the other server.
    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, Shared>) -> Next<Self> {
        let reply = match self.page.take() {
            Outcome::Pending(page) => return Next::go_on(Front { page }).keep_deadline(),
            Outcome::Value(Ok(page)) => {
                scope.stats.own.fetched += 1;
                forward(&page, response).into()
            }
            Outcome::Value(Err(error)) => {
                scope.stats.own.failed += 1;
                reply_text(error.gateway_status(), &with_causes(&error).to_string(), response)
            }
            Outcome::Lost(lost) => {
                scope.stats.own.failed += 1;
                reply_text(Status::BAD_GATEWAY, &lost.to_string(), response)
            }
        };
        reply.into()
    }
}

/// Asks the pool. The pool keeps the deadline in any case, so the handler needs none of its own.
fn fetch(url: Url, response: &mut Response<'_>, scope: &mut Scope<'_, Shared>) -> Next<Front> {
    let request = Fetch::get(url.target()).host(url.authority()).body_bytes_max(PAGE_BYTES_MAX);
    let deadline = scope.now() + FETCH_TIME_MAX;
    match scope.pool.ask_until(url.host(), request, deadline, scope) {
        Ok(page) => Next::go_on(Front { page }).no_deadline(),
        Err(_full_or_gone) => {
            scope.stats.own.failed += 1;
            reply_text(Status::SERVICE_UNAVAILABLE, "too many requests wait", response).into()
        }
    }
}

/// Returns the URL in a query `url=…`, either verbatim up to the end, or percent-encoded, as forms
/// and `curl --data-urlencode` send it.
fn requested_url(query: Option<&str>) -> Result<Url, &'static str> {
    const EXPECTED: &str = "expected /fetch?url=http://HOST[:PORT][/PATH]";
    let text = query.and_then(|query| query.strip_prefix("url=")).ok_or(EXPECTED)?;
    let url = if text.starts_with("http://") {
        text.to_owned()
    } else {
        percent_decode(text).ok_or(EXPECTED)?
    };
    if url.len() > URL_BYTES_MAX || !url.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("the URL is too long, or holds what has to be encoded");
    }
    // The pool's connections are not encrypted, so a page that is requested over TLS is refused
    // instead of being fetched in clear.
    url.parse().ok().filter(|url: &Url| !url.is_https()).ok_or(EXPECTED)
}

/// Removes the percent-encoding. Returns `None` if that is malformed.
fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, tail @ ..] = rest {
        let (byte, tail) = match (first, tail) {
            (b'%', [high, low, tail @ ..]) => {
                let digit = |byte: u8| char::from(byte).to_digit(16);
                (u8::try_from(digit(*high)? << 4 | digit(*low)?).ok()?, tail)
            }
            (b'%', _) => return None,
            (byte, tail) => (*byte, tail),
        };
        bytes.push(byte);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
}

/// Passes a page on, together with its content type. Its other fields only concern the connection
/// to its server.
fn forward(page: &Fetched, response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(page.status)?;
    response.add_header(
        "Content-Type",
        page.field("Content-Type").unwrap_or(b"application/octet-stream"),
    )?;
    if !page.status.forbids_body() {
        response.add_length(page.body.len() as u64)?;
    }
    response.done_headers()?;
    response.write_body(&page.body)?;
    response.done()
}

/// Answers with one line of text.
fn reply_text(status: Status, text: &str, response: &mut Response<'_>) -> Reply {
    response.reply(status, "text/plain", format!("{}\n", text.trim_end()).as_bytes())
}

fn not_allowed(response: &mut Response<'_>) -> Reply {
    response.reply_with(Status::METHOD_NOT_ALLOWED, &[("Allow", b"GET, HEAD")], "text/plain", b"")
}
