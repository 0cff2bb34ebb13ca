//! `Page`: handles the requests for the page and for its data.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use rotor_core::{Future, Outcome, Token, Verdict};
use rotor_http::server::{Head, Next, NoUpgrade, Reply, Response, Scope, Server};
use rotor_http::{Method, Status};

use crate::access::{Access, Refusal};
use crate::api;
use crate::inspected::Inspected;
use crate::query::{parameter, query_of};
use crate::walk::Snapshot;

/// How long a loop may take to answer before it is shown as blocked.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// How many such times a walk may take while its loop makes turns.
const WALK_SECONDS_MAX: u32 = 10;

/// The time limit of a drain that the page starts.
const DRAIN_TIME: Duration = Duration::from_secs(60);

type Sc<'a, 'b> = &'a mut Scope<'b, ()>;

/// A request that waits for an answer of a loop.
pub(crate) struct Page {
    inspected: Arc<Inspected>,
    place: usize,
    waits: Waits,
}

enum Waits {
    Walk { snapshot: Future<Snapshot>, seconds: u32, _turn: Turn },
    Verdict(Future<bool>),
}

/// Permission to walk. There is one for all visitors.
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(is_taken: &Arc<AtomicBool>) -> Option<Turn> {
        (!is_taken.swap(true, Acquire)).then(|| Turn(is_taken.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.0.store(false, Release);
    }
}

impl Server for Page {
    type Context = ();
    type Seed = Arc<Inspected>;
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        inspected: Arc<Inspected>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        let changes = head.method() == Method::Post;
        let mut allowed = inspected.access.check(head, changes);
        // The page itself may be opened by a link on another site.
        if allowed.is_ok() && head.path().starts_with("/api/") {
            allowed = Access::check_origin(head);
        }
        if let Err(refusal) = allowed {
            inspected.refused.fetch_add(1, Relaxed);
            return refuse(refusal, response).into();
        }
        let query = head.query().unwrap_or_default();
        // HEAD is answered like GET (RFC 9110 §9.3.2): the connection omits the body.
        let method = match head.method() {
            Method::Head => Method::Get,
            method => method,
        };
        match (method, head.path()) {
            (Method::Get, "/api/loops") => {
                send(response, JSON, &api::loops(&inspected, scope.now())).into()
            }
            (Method::Get, "/api/failures") => {
                send(response, JSON, &api::failures(&inspected, scope.wall_time())).into()
            }
            (Method::Get, "/api/machines") => walk(inspected, query, response, scope),
            (Method::Post, "/api/decide") => decide(inspected, query, response, scope),
            (Method::Post, "/api/drain") => match inspected.find(query) {
                Some(place) => {
                    inspected.loops[place].drain(DRAIN_TIME);
                    send(response, JSON, "true").into()
                }
                None => not_found(response).into(),
            },
            (method, path) => match asset(path).filter(|_| method == Method::Get) {
                Some((kind, text)) => send(response, kind, text).into(),
                None => missed(path, response).into(),
            },
        }
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let Page { inspected, place, waits } = self;
        let watched = &inspected.loops[place];
        match waits {
            Waits::Walk { snapshot, seconds, _turn } => match snapshot.take() {
                Outcome::Value(snapshot) => {
                    let text = api::machines(watched, snapshot, scope.now());
                    send(response, JSON, &text).into()
                }
                Outcome::Lost(_) => gone(response).into(),
                Outcome::Pending(snapshot) => {
                    let waits = Waits::Walk { snapshot, seconds, _turn };
                    Next::go_on(Page { inspected, place, waits }).keep_deadline()
                }
            },
            Waits::Verdict(told) => match told.take() {
                Outcome::Value(true) => send(response, JSON, "true").into(),
                Outcome::Value(false) => not_found(response).into(),
                Outcome::Lost(_) => gone(response).into(),
                Outcome::Pending(told) => {
                    let waits = Waits::Verdict(told);
                    Next::go_on(Page { inspected, place, waits }).keep_deadline()
                }
            },
        }
    }

    fn timeout(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        let Page { inspected, place, waits } = self;
        let now = scope.now();
        let is_blocked = api::blocked_for(&inspected.loops[place].stats.times(), now).is_some();
        match waits {
            // A loop that has very much to do, or very many machines, needs several turns for a
            // walk.
            Waits::Walk { snapshot, seconds, _turn }
                if !is_blocked && seconds + 1 < WALK_SECONDS_MAX =>
            {
                let waits = Waits::Walk { snapshot, seconds: seconds + 1, _turn };
                return Next::go_on(Page { inspected, place, waits }).deadline(now + ANSWER_TIME);
            }
            _ => {}
        }
        let text = api::blocked(&inspected.loops[place], now);
        reply(response, Status::GATEWAY_TIMEOUT, JSON, &text).into()
    }
}

fn walk(
    inspected: Arc<Inspected>,
    query: &str,
    response: &mut Response<'_>,
    scope: Sc<'_, '_>,
) -> Next<Page> {
    let Some(place) = inspected.find(query) else { return not_found(response).into() };
    let Some(_turn) = Turn::take(&inspected.is_walking) else {
        return reply(response, Status::SERVICE_UNAVAILABLE, TEXT, "another one asks\n").into();
    };
    let asked = query_of(query);
    let (port, snapshot) = scope.create_future();
    if !inspected.loops[place].walk(asked, port) {
        return gone(response).into();
    }
    let waits = Waits::Walk { snapshot, seconds: 0, _turn };
    Next::go_on(Page { inspected, place, waits }).deadline(scope.now() + ANSWER_TIME)
}

fn decide(
    inspected: Arc<Inspected>,
    query: &str,
    response: &mut Response<'_>,
    scope: Sc<'_, '_>,
) -> Next<Page> {
    let verdict = match parameter(query, "do").as_deref() {
        Some("wake") => Verdict::Wake,
        Some("expire") => Verdict::Expire,
        Some("drain") => Verdict::Drain,
        Some("end") => Verdict::End,
        _ => return not_found(response).into(),
    };
    let token = parameter(query, "token").and_then(|token| token.parse().ok());
    let (Some(place), Some(token)) = (inspected.find(query), token) else {
        return not_found(response).into();
    };
    let (port, told) = scope.create_future();
    if !inspected.loops[place].decide(Token::from_usize(token), verdict, port) {
        return gone(response).into();
    }
    let waits = Waits::Verdict(told);
    Next::go_on(Page { inspected, place, waits }).deadline(scope.now() + ANSWER_TIME)
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// Returns the type and the text of a static file.
fn asset(path: &str) -> Option<(&'static str, &'static str)> {
    match path {
        "/" => Some(("text/html; charset=utf-8", include_str!("../assets/index.html"))),
        "/inspect.js" => Some(("text/javascript", include_str!("../assets/inspect.js"))),
        "/inspect.css" => Some(("text/css", include_str!("../assets/inspect.css"))),
        _ => None,
    }
}

/// The path does not exist, or not for this method (RFC 9110 §15.5.6).
fn missed(path: &str, response: &mut Response<'_>) -> Reply {
    let allow = match path {
        "/api/loops" | "/api/failures" | "/api/machines" => "GET, HEAD",
        "/api/decide" | "/api/drain" => "POST",
        _ if asset(path).is_some() => "GET, HEAD",
        _ => return not_found(response),
    };
    response.with_fields(&[("Allow", allow.as_bytes())], |response| {
        reply(response, Status::METHOD_NOT_ALLOWED, TEXT, "not by this method\n")
    })
}

fn refuse(refusal: Refusal, response: &mut Response<'_>) -> Reply {
    match refusal {
        Refusal::Token => {
            let ask: &[(&str, &[u8])] = &[("WWW-Authenticate", b"Basic realm=\"rotor-inspect\"")];
            response.reply_with(Status::UNAUTHORIZED, ask, TEXT, b"a token is wanted\n")
        }
        Refusal::Host => reply(response, Status::FORBIDDEN, TEXT, "not by that name\n"),
        Refusal::Foreign => reply(response, Status::FORBIDDEN, TEXT, "not from there\n"),
        Refusal::ReadOnly => reply(response, Status::FORBIDDEN, TEXT, "changes are off\n"),
    }
}

fn not_found(response: &mut Response<'_>) -> Reply {
    reply(response, Status::NOT_FOUND, TEXT, "there is no such thing\n")
}

fn gone(response: &mut Response<'_>) -> Reply {
    reply(response, Status::SERVICE_UNAVAILABLE, TEXT, "the loop is gone, or takes no more\n")
}

fn send(response: &mut Response<'_>, kind: &str, text: &str) -> Reply {
    reply(response, Status::OK, kind, text)
}

fn reply(response: &mut Response<'_>, status: Status, kind: &str, text: &str) -> Reply {
    let fields: &[(&str, &[u8])] = &[
        // Allows no resources of other origins and no inline code, and the page must not be in a
        // frame.
        (
            "Content-Security-Policy",
            b"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
              frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
        ),
        ("X-Content-Type-Options", b"nosniff"),
        ("Cross-Origin-Resource-Policy", b"same-origin"),
        ("Referrer-Policy", b"no-referrer"),
        ("Cache-Control", b"no-store"),
    ];
    response.reply_with(status, fields, kind, text.as_bytes())
}
