//! Spans of requests.

use std::sync::Arc;
use std::time::Duration;

use rotor_core::{Port, Scope};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server, ServerConfig,
};
use rotor_http::{Method, Status, TraceContext};
use rotor_stream::testing::Driver;
use rotor_tracing::tracing::{Level, Span, info, span, span_enabled};
use rotor_tracing::{Spans, Traced, current};

use crate::notes::{Notes, serialize_tests};

const SECOND: Duration = Duration::from_secs(1);

const CAME: &str = "00-12345678901234567890123456789012-1234567890123456-01";

/// What the handlers have seen, and what the test gives them.
#[derive(Default)]
struct Shared {
    contexts: Vec<Option<Arc<TraceContext>>>,
    port: Option<Port<()>>,
}

/// Does what the path of the request says.
struct Paths;

impl Server for Paths {
    type Context = Shared;
    type Seed = ();
    type Upgrade = NoUpgrade<Shared>;

    fn supports(_: Method<'_>) -> bool {
        true
    }

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        info!("head");
        scope.contexts.push(current());
        match head.path() {
            "/wait" => Next::go_on(Paths).keep_deadline(),
            "/body" => Next::recv(Paths, RecvMode::Buffered(9)).keep_deadline(),
            "/panic" => panic!("as asked"),
            "/forget" => Next::finished(),
            "/fail" => Next::fail(Status::BAD_GATEWAY),
            "/broken" => Next::fail(Status::INTERNAL_SERVER_ERROR),
            path @ ("/half" | "/short" | "/long" | "/early" | "/rest-later") => {
                response.status(Status::OK).expect("the first");
                response.add_length(4).expect("the first");
                response.done_headers().expect("there is a length");
                match path {
                    "/half" => Next::fail(Status::BAD_GATEWAY),
                    "/short" => Next::finished(),
                    "/early" => Next::recv(Paths, RecvMode::Buffered(9)).keep_deadline(),
                    "/rest-later" => {
                        let (port, future) = scope.create_future();
                        scope.port = Some(port);
                        Next::wait(future, scope.now() + SECOND, |_, _, _| Next::finished())
                    }
                    _ => Next::go_on(Paths).keep_deadline(),
                }
            }
            "/later" => {
                let (port, future) = scope.create_future();
                scope.port = Some(port);
                Next::wait(
                    future,
                    scope.now() + SECOND,
                    |came, response, scope: &mut Scope<'_, Shared>| {
                        info!("later {}", came.is_ok());
                        scope.contexts.push(current());
                        response.reply(Status::OK, "text/plain", b"later")
                    },
                )
            }
            "/after" => Next::after(scope.now() + SECOND, |response, _| {
                info!("after");
                response.reply(Status::ACCEPTED, "text/plain", b"after")
            }),
            _ => response.reply(Status::OK, "text/plain", b"now").into(),
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Shared>,
    ) -> Next<Self> {
        info!("body");
        scope.contexts.push(current());
        match body {
            b"fail" => return Next::fail(Status::BAD_GATEWAY),
            b"panic" => panic!("as asked"),
            b"short" => return Next::finished(),
            _ => {}
        }
        response.reply(Status::CREATED, "text/plain", b"made").into()
    }
}

type Test<P> = Driver<Connection<Traced<Paths, P>>>;

fn driver<P: Spans>() -> Test<P> {
    Driver::new(HttpSeed::new((), ServerConfig::new()), Shared::default())
}

fn request(path: &str, fields: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").into_bytes()
}

/// The value of a field in the last record, which must be that of a closed span.
fn field<'n>(notes: &'n [String], name: &str) -> Option<&'n str> {
    let last = notes.last().filter(|note| note.starts_with("- request "))?;
    last.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
}

/// The records without the fields of the spans.
fn short(notes: &[String]) -> Vec<&str> {
    notes.iter().map(|note| note.split_inclusive("- request").next().unwrap_or(note)).collect()
}

#[test]
fn a_request_span_joins_the_incoming_trace() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut driver = driver::<rotor_tracing::HttpSpans>();
        let fields = format!("traceparent: {CAME}\r\ntracestate: a=1\r\nContent-Length: 2\r\n");
        driver.send(&request("/body", &fields));
        assert_eq!(notes.take(), ["+ request", "> request", "request: head", "< request"]);
        driver.send(b"hi");
        let told = notes.take();
        assert_eq!(short(&told), ["> request", "request: body", "< request", "- request"]);
        let contexts = &driver.context().contexts;
        let context = contexts[0].clone().expect("the handler is in a trace");
        assert_eq!(contexts[1].as_ref(), Some(&context), "the same in each call");
        assert_eq!(current(), None, "and in nothing else");
        let expected = [
            ("http.request.method", "\"GET\"".to_owned()),
            ("http.response.status_code", "201".into()),
            ("network.protocol.version", "1.1".into()),
            ("otel.kind", "\"server\"".into()),
            ("parent_span_id", "1234567890123456".into()),
            ("span_id", format!("{:016x}", context.parent_id())),
            ("trace_id", "12345678901234567890123456789012".into()),
            ("url.path", "\"/body\"".into()),
        ];
        for (name, value) in &expected {
            assert_eq!(field(&told, name), Some(&value[..]), "{name} in {told:?}");
        }
        assert_eq!(told[3].split(' ').count() - 2, expected.len(), "and nothing else: {told:?}");
        // What other services are told: the same trace, with this span as the parent.
        let here = format!("{:016x}", context.parent_id());
        assert_ne!(here, "1234567890123456");
        assert_eq!(
            (context.traceparent(), context.tracestate()),
            (CAME.replace("1234567890123456-01", &format!("{here}-01")), "a=1")
        );
    });
}

#[test]
fn methods_that_are_unknown_share_one_value() {
    let _alone = serialize_tests();
    for (method, name, original) in [
        ("PATCH", "\"PATCH\"", None),
        ("PURGE", "\"_OTHER\"", Some("\"PURGE\"")),
        ("get", "\"_OTHER\"", Some("\"get\"")),
    ] {
        Notes::collect(|notes| {
            let mut driver = driver::<rotor_tracing::HttpSpans>();
            driver.send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes());
            let notes = notes.take();
            let fields = ["http.request.method", "http.request.method_original"];
            assert_eq!(fields.map(|name| field(&notes, name)), [Some(name), original], "{notes:?}");
        });
    }
}

#[test]
fn a_new_trace_begins_without_a_valid_parent() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut driver = driver::<rotor_tracing::HttpSpans>();
        for fields in ["", "traceparent: 00-1-2-3\r\ntracestate: a=1\r\n", "tracestate: a=1\r\n"] {
            driver.send(&request("/", fields));
            let told = notes.take();
            assert_eq!(field(&told, "parent_span_id"), None, "{told:?}");
            assert_eq!(field(&told, "http.response.status_code"), Some("200"));
        }
        let contexts: Vec<_> = driver.context().contexts.iter().flatten().collect();
        assert_eq!(contexts.len(), 3);
        assert!(contexts.iter().all(|one| one.is_sampled() && one.tracestate().is_empty()));
        assert_ne!(contexts[0].trace_id(), contexts[1].trace_id());
        assert_ne!(contexts[0].parent_id(), contexts[1].parent_id());
    });
}

#[test]
fn a_waiting_reply_runs_in_the_span_of_its_handler() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut driver = driver::<rotor_tracing::HttpSpans>();
        driver.send(&request("/later", ""));
        notes.take();
        driver.wakeup();
        assert_eq!(notes.take(), [""; 0], "a spurious wake-up is no call");
        driver.context_mut().port.take().expect("it waits").set(()).expect("it is there");
        driver.settle();
        let told = notes.take();
        assert_eq!(short(&told), ["> request", "request: later true", "< request", "- request"]);
        assert_eq!(field(&told, "http.response.status_code"), Some("200"));
        let contexts = &driver.context().contexts;
        assert!(contexts[0].is_some() && contexts[0] == contexts[1]);
        driver.send(&request("/after", ""));
        notes.take();
        driver.advance(SECOND);
        let told = notes.take();
        assert_eq!(short(&told), ["> request", "request: after", "< request", "- request"]);
        assert_eq!(field(&told, "http.response.status_code"), Some("202"));
        // Too late: no reply of the handler runs, and the status is the connection's 503.
        driver.send(&request("/later", ""));
        notes.take();
        driver.advance(SECOND);
        let told = notes.take();
        assert_eq!(short(&told), ["> request", "< request", "- request"]);
        assert_eq!(field(&told, "http.response.status_code"), Some("503"));
        assert_eq!(field(&told, "error.type"), Some("503"));
    });
}

#[test]
fn a_span_ends_with_its_handler_however_that_ends() {
    let _alone = serialize_tests();
    type Ends = fn(&mut Test<rotor_tracing::HttpSpans>);
    let ends: [(&str, Ends, _, _); 9] = [
        ("/panic", |_| {}, None, "\"unanswered\""),
        ("/forget", |_| {}, None, "\"unanswered\""),
        ("/fail", |_| {}, Some("502"), "502"),
        ("/broken", |_| {}, Some("500"), "500"),
        // Their heads are withdrawn.
        ("/half", |_| {}, Some("502"), "502"),
        ("/short", |_| {}, None, "\"unanswered\""),
        ("/wait", |driver| driver.reset(), None, "\"unanswered\""),
        ("/later", |driver| driver.reset(), None, "\"unanswered\""),
        ("/wait", |driver| driver.advance(100 * SECOND), Some("503"), "503"),
    ];
    for (path, end, status, error) in ends {
        Notes::collect(|notes| {
            let mut driver = driver();
            driver.send(&request(path, ""));
            end(&mut driver);
            let told = notes.take();
            assert_eq!(field(&told, "http.response.status_code"), status, "{path}: {told:?}");
            assert_eq!(field(&told, "error.type"), Some(error), "{path}: {told:?}");
            let count = |sign: &str| told.iter().filter(|note| note.starts_with(sign)).count();
            assert_eq!((count("+"), count("-")), (1, 1), "{path}: {told:?}");
            assert_eq!(count("> "), count("< "), "{path}: {told:?}");
            assert_eq!(current(), None, "{path}");
        });
    }
}

#[test]
fn an_unfinished_response_has_the_status_that_was_sent() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut driver = driver::<rotor_tracing::HttpSpans>();
        driver.send(&request("/long", ""));
        assert!(driver.take_received().starts_with(b"HTTP/1.1 200 "));
        driver.reset();
        let told = notes.take();
        assert_eq!(field(&told, "http.response.status_code"), Some("200"), "{told:?}");
        assert_eq!(field(&told, "error.type"), None, "{told:?}");
    });
}

#[test]
fn an_unsent_head_can_be_replaced_in_a_later_call() {
    let _alone = serialize_tests();
    for (body, is_at_once, peer_gets, status, error) in [
        // The body has arrived with the head: nothing is sent between the two calls.
        ("fail", true, "502", Some("502"), Some("502")),
        ("panic", true, "500", None, Some("\"unanswered\"")),
        ("short", true, "500", None, Some("\"unanswered\"")),
        ("fail", false, "200", Some("200"), None),
        ("panic", false, "200", Some("200"), None),
        ("short", false, "200", Some("200"), None),
    ] {
        Notes::collect(|notes| {
            let mut driver = driver::<rotor_tracing::HttpSpans>();
            let head = request("/early", &format!("Content-Length: {}\r\n", body.len()));
            let (begin, rest) =
                if is_at_once { ([&head, body.as_bytes()].concat(), "") } else { (head, body) };
            driver.send(&begin);
            driver.send(rest.as_bytes());
            let received = String::from_utf8(driver.take_received()).expect("text");
            assert_eq!(received.get(9..12), Some(peer_gets), "{body} {is_at_once}");
            let told = notes.take();
            assert_eq!(field(&told, "http.response.status_code"), status, "{body}: {told:?}");
            assert_eq!(field(&told, "error.type"), error, "{body}: {told:?}");
        });
    }
}

#[test]
fn a_waiting_response_has_the_status_that_was_sent() {
    let _alone = serialize_tests();
    type Ends = fn(&mut Test<rotor_tracing::HttpSpans>);
    let ends: [Ends; 3] = [
        |driver| driver.reset(),
        |driver| driver.context_mut().port = None,
        |driver| driver.advance(SECOND),
    ];
    for end in ends {
        Notes::collect(|notes| {
            let mut driver = driver();
            driver.send(&request("/rest-later", ""));
            assert!(driver.take_received().starts_with(b"HTTP/1.1 200 "));
            end(&mut driver);
            driver.settle();
            let told = notes.take();
            assert_eq!(field(&told, "http.response.status_code"), Some("200"), "{told:?}");
            assert_eq!(field(&told, "error.type"), None, "{told:?}");
        });
    }
}

#[test]
fn a_broken_body_has_its_status_and_a_truncated_one_has_none() {
    let _alone = serialize_tests();
    type Breaks = fn(&mut Test<rotor_tracing::HttpSpans>);
    let breaks: [(&str, Breaks, _, _); 4] = [
        ("the length", |driver| driver.send(b"xyz\r\n"), Some("400"), None),
        ("too long", |driver| driver.send(b"b\r\nhello, body\r\n"), Some("413"), None),
        ("the end", |driver| driver.end(), None, Some("\"unanswered\"")),
        ("a reset", |driver| driver.reset(), None, Some("\"unanswered\"")),
    ];
    for (what, breaks, status, error) in breaks {
        Notes::collect(|notes| {
            let mut driver = driver();
            driver.send(&request("/body", "Transfer-Encoding: chunked\r\n"));
            notes.take();
            breaks(&mut driver);
            let told = notes.take();
            assert_eq!(field(&told, "http.response.status_code"), status, "{what}: {told:?}");
            assert_eq!(field(&told, "error.type"), error, "{what}: {told:?}");
        });
    }
}

#[test]
fn a_body_broken_after_the_head_has_the_status_the_peer_gets() {
    let _alone = serialize_tests();
    for (is_at_once, peer_gets) in [(true, "400"), (false, "200")] {
        Notes::collect(|notes| {
            let mut driver = driver::<rotor_tracing::HttpSpans>();
            let head = request("/early", "Transfer-Encoding: chunked\r\n");
            let (begin, rest): (_, &[u8]) = match is_at_once {
                true => ([&head[..], b"xyz\r\n"].concat(), b""),
                false => (head, b"xyz\r\n"),
            };
            driver.send(&begin);
            driver.send(rest);
            let received = String::from_utf8(driver.take_received()).expect("text");
            assert_eq!(received.get(9..12), Some(peer_gets), "{is_at_once}: {received}");
            let told = notes.take();
            assert_eq!(field(&told, "http.response.status_code"), Some(peer_gets), "{told:?}");
        });
    }
}

#[test]
fn nothing_is_traced_and_nothing_changes_without_a_subscriber() {
    let _alone = serialize_tests();
    let mut driver = driver::<rotor_tracing::HttpSpans>();
    driver.send(&request("/", &format!("traceparent: {CAME}\r\n")));
    assert!(driver.take_received().ends_with(b"now"));
    driver.send(&request("/later", ""));
    driver.context_mut().port.take().expect("it waits").set(()).expect("it is there");
    driver.settle();
    assert!(driver.take_received().ends_with(b"later"));
    assert_eq!(driver.context().contexts, [None, None, None]);
}

/// Spans of one path only.
enum OfOnePath {}

impl Spans for OfOnePath {
    fn are_wanted() -> bool {
        span_enabled!(Level::INFO)
    }

    fn request(head: &Head<'_>, context: &TraceContext, came: Option<&TraceContext>) -> Span {
        assert_eq!(came.map(TraceContext::trace_id), came.map(|_| context.trace_id()));
        match head.path() {
            "/wait" => span!(Level::INFO, "mine"),
            _ => Span::none(),
        }
    }

    fn answered(_: &Span, status: Status) {
        info!("answered {status}");
    }

    fn unanswered(_: &Span) {
        info!("unanswered");
    }
}

#[test]
fn custom_spans_can_be_limited_to_some_requests() {
    let _alone = serialize_tests();
    Notes::collect(|notes| {
        let mut driver = driver::<OfOnePath>();
        driver.send(&request("/", &format!("traceparent: {CAME}\r\n")));
        assert_eq!(notes.take(), [": head"]);
        driver.send(&request("/wait", &format!("traceparent: {CAME}\r\n")));
        assert_eq!(notes.take(), ["+ mine", "> mine", "mine: head", "< mine"]);
        driver.reset();
        // The call that reports this is in the span, too.
        assert_eq!(notes.take(), ["> mine", "< mine", ": unanswered", "- mine "]);
        assert_eq!(driver.context().contexts.iter().flatten().count(), 1);
    });
}
