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
use crate::query::{parameter, parse_query};
use crate::walk::Snapshot;

/// How long a loop may take to answer before it is shown as blocked.
const ANSWER_TIME: Duration = Duration::from_secs(1);

/// How many such times a walk may take while its loop makes turns.
const WALK_SECONDS_MAX: u32 = 10;

/// The time limit of a drain that the page starts.
const DRAIN_TIME: Duration = Duration::from_secs(60);

type ScopeRef<'a, 'b> = &'a mut Scope<'b, ()>;

/// A request that waits for an answer of a loop.
pub(crate) struct Page {
    inspected: Arc<Inspected>,
    loop_index: usize,
    pending: PendingAnswer,
}

enum PendingAnswer {
    Walk { snapshot: Future<Snapshot>, seconds: u32, _permit: WalkPermit },
    Verdict(Future<bool>),
}

/// Permission to walk. There is one for all visitors.
struct WalkPermit(Arc<AtomicBool>);

impl WalkPermit {
    fn try_acquire(is_taken: &Arc<AtomicBool>) -> Option<WalkPermit> {
        (!is_taken.swap(true, Acquire)).then(|| WalkPermit(is_taken.clone()))
    }
}

impl Drop for WalkPermit {
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
        scope: ScopeRef<'_, '_>,
    ) -> Next<Self> {
        let changes = head.method() == Method::Post;
        let mut allowed = inspected.access.check(head, changes);
        // The page itself may be opened by a link on another site.
        if allowed.is_ok() && head.path().starts_with("/api/") {
            allowed = Access::check_origin(head);
        }
        if let Err(refusal) = allowed {
            inspected.refused.fetch_add(1, Relaxed);
            return reply_refusal(refusal, response).into();
        }
        let query = head.query().unwrap_or_default();
        // HEAD is answered like GET (RFC 9110 §9.3.2): the connection omits the body.
        let method = match head.method() {
            Method::Head => Method::Get,
            method => method,
        };
        match (method, head.path()) {
            (Method::Get, "/api/loops") => {
                reply_ok(response, JSON, &api::loops(&inspected, scope.now())).into()
            }
            (Method::Get, "/api/failures") => {
                reply_ok(response, JSON, &api::failures(&inspected, scope.wall_time())).into()
            }
            (Method::Get, "/api/machines") => request_walk(inspected, query, response, scope),
            (Method::Post, "/api/decide") => request_decision(inspected, query, response, scope),
            (Method::Post, "/api/drain") => match inspected.find_loop(query) {
                Some(loop_index) => {
                    inspected.loops[loop_index].drain(DRAIN_TIME);
                    reply_ok(response, JSON, "true").into()
                }
                None => not_found(response).into(),
            },
            (method, path) => match asset(path).filter(|_| method == Method::Get) {
                Some((kind, text)) => reply_ok(response, kind, text).into(),
                None => method_not_allowed_or_not_found(path, response).into(),
            },
        }
    }

    fn wakeup(self, response: &mut Response<'_>, scope: ScopeRef<'_, '_>) -> Next<Self> {
        let Page { inspected, loop_index, pending } = self;
        let watched = &inspected.loops[loop_index];
        match pending {
            PendingAnswer::Walk { snapshot, seconds, _permit } => match snapshot.take() {
                Outcome::Value(snapshot) => {
                    let text = api::machines(watched, snapshot, scope.now());
                    reply_ok(response, JSON, &text).into()
                }
                Outcome::Lost(_) => loop_unavailable(response).into(),
                Outcome::Pending(snapshot) => {
                    let pending = PendingAnswer::Walk { snapshot, seconds, _permit };
                    Next::go_on(Page { inspected, loop_index, pending }).keep_deadline()
                }
            },
            PendingAnswer::Verdict(verdict_result) => match verdict_result.take() {
                Outcome::Value(true) => reply_ok(response, JSON, "true").into(),
                Outcome::Value(false) => not_found(response).into(),
                Outcome::Lost(_) => loop_unavailable(response).into(),
                Outcome::Pending(verdict_result) => {
                    let pending = PendingAnswer::Verdict(verdict_result);
                    Next::go_on(Page { inspected, loop_index, pending }).keep_deadline()
                }
            },
        }
    }

    fn timeout(self, response: &mut Response<'_>, scope: ScopeRef<'_, '_>) -> Next<Self> {
        let Page { inspected, loop_index, pending } = self;
        let now = scope.now();
        let is_blocked =
            api::blocked_for(&inspected.loops[loop_index].stats.times(), now).is_some();
        match pending {
            // A loop that has very much to do, or very many machines, needs several turns for a
            // walk.
            PendingAnswer::Walk { snapshot, seconds, _permit }
                if !is_blocked && seconds + 1 < WALK_SECONDS_MAX =>
            {
                let pending = PendingAnswer::Walk { snapshot, seconds: seconds + 1, _permit };
                return Next::go_on(Page { inspected, loop_index, pending })
                    .deadline(now + ANSWER_TIME);
            }
            _ => {}
        }
        let text = api::blocked_loop(&inspected.loops[loop_index], now);
        reply(response, Status::GATEWAY_TIMEOUT, JSON, &text).into()
    }
}

fn request_walk(
    inspected: Arc<Inspected>,
    query: &str,
    response: &mut Response<'_>,
    scope: ScopeRef<'_, '_>,
) -> Next<Page> {
    let Some(loop_index) = inspected.find_loop(query) else { return not_found(response).into() };
    let Some(_permit) = WalkPermit::try_acquire(&inspected.is_walking) else {
        return reply(response, Status::SERVICE_UNAVAILABLE, TEXT, "another one asks\n").into();
    };
    let requested = parse_query(query);
    let (port, snapshot) = scope.create_future();
    if !inspected.loops[loop_index].walk(requested, port) {
        return loop_unavailable(response).into();
    }
    let pending = PendingAnswer::Walk { snapshot, seconds: 0, _permit };
    Next::go_on(Page { inspected, loop_index, pending }).deadline(scope.now() + ANSWER_TIME)
}

fn request_decision(
    inspected: Arc<Inspected>,
    query: &str,
    response: &mut Response<'_>,
    scope: ScopeRef<'_, '_>,
) -> Next<Page> {
    let verdict = match parameter(query, "do").as_deref() {
        Some("wake") => Verdict::Wake,
        Some("expire") => Verdict::Expire,
        Some("drain") => Verdict::Drain,
        Some("end") => Verdict::End,
        _ => return not_found(response).into(),
    };
    let token = parameter(query, "token").and_then(|token| token.parse().ok());
    let (Some(loop_index), Some(token)) = (inspected.find_loop(query), token) else {
        return not_found(response).into();
    };
    let (port, verdict_result) = scope.create_future();
    if !inspected.loops[loop_index].decide(Token::from_usize(token), verdict, port) {
        return loop_unavailable(response).into();
    }
    let pending = PendingAnswer::Verdict(verdict_result);
    Next::go_on(Page { inspected, loop_index, pending }).deadline(scope.now() + ANSWER_TIME)
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
fn method_not_allowed_or_not_found(path: &str, response: &mut Response<'_>) -> Reply {
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

fn reply_refusal(refusal: Refusal, response: &mut Response<'_>) -> Reply {
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

fn loop_unavailable(response: &mut Response<'_>) -> Reply {
    reply(response, Status::SERVICE_UNAVAILABLE, TEXT, "the loop is gone, or takes no more\n")
}

fn reply_ok(response: &mut Response<'_>, kind: &str, text: &str) -> Reply {
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
