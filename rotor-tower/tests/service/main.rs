//! Services on a connection, with scripted sockets and in virtual time.
#![expect(clippy::disallowed_methods, reason = "one test plays the outside world: its sockets")]

mod answers;
mod ends;
mod http2;
mod stage;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use axum::Router;
use axum::body::Body as AxumBody;
use axum::extract::{Path, Query};
use axum::routing::{get, post};
use bytes::Bytes;
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use rotor_tower::{Body, BodyLost};

use crate::stage::{exchange, request, serving};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn site() -> Router {
    Router::new()
        .route("/", get(|| async { "Hello, World!" }))
        .route("/name/{name}", get(|Path(name): Path<String>| async move { name }))
        .route(
            "/query",
            get(|Query(pairs): Query<Vec<(String, String)>>| async move { format!("{pairs:?}") }),
        )
        .route("/body", post(|body: Bytes| async move { body }))
        .route("/empty", get(|| async { http::StatusCode::NO_CONTENT }))
        .route(
            "/panic",
            get(|| async {
                if true {
                    panic!("as asked")
                }
            }),
        )
        .route("/sleep", get(|| async { sleep_for(30).await }))
        .route("/long", get(|| async { sleep_for(61).await }))
        .route(
            "/headers",
            get(|headers: http::HeaderMap, uri: http::Uri, version: http::Version| async move {
                let all: Vec<_> = headers.get_all("x-a").iter().collect();
                format!("{uri} {version:?} {:?} {all:?}", headers["host"])
            }),
        )
}

/// A handler of axum has to be `Send`, and the loop's sleep is.
async fn sleep_for(time: u64) -> &'static str {
    rotor_async::sleep(seconds(time)).await;
    "slept"
}

#[test]
fn axum_routes_respond_as_usual() {
    for (sent, expected) in [
        (request("GET /", "", ""), "200 Hello, World!"),
        (request("HEAD /", "", ""), "200 "),
        (request("GET /name/a%20b", "", ""), "200 a b"),
        (request("GET /query?a=b&c=d", "", ""), r#"200 [("a", "b"), ("c", "d")]"#),
        (request("POST /body", "Content-Length: 4\r\n", "word"), "200 word"),
        (
            request("POST /body", "Transfer-Encoding: chunked\r\n", "4\r\nword\r\n0\r\n\r\n"),
            "200 word",
        ),
        (request("GET /empty", "", ""), "204 "),
        (request("GET /nothing", "", ""), "404 "),
        (request("DELETE /", "", ""), "405 "),
        (
            request("GET /headers", "X-A: 1\r\nX-A: 2\r\n", ""),
            r#"200 /headers HTTP/1.1 "a" ["1", "2"]"#,
        ),
        (request("GET http://b/headers", "", ""), "200 http://b/headers"),
        (request("CONNECT a:1", "", ""), "501 501 Not Implemented\n"),
    ] {
        let mut stage = serving(site());
        stage.send(&sent);
        let (answer, sent) = (exchange(&stage.take_received()), String::from_utf8_lossy(&sent));
        assert!(answer.starts_with(expected), "{sent}: {answer}");
    }
}

#[test]
fn a_connection_serves_requests_in_sequence_despite_errors() {
    let mut stage = serving(site());
    for (path, status) in
        [("/", "200"), ("/nothing", "404"), ("/empty", "204"), ("/name/x", "200"), ("/", "200")]
    {
        stage.send(&request(&format!("GET {path}"), "", ""));
        assert_eq!(&exchange(&stage.take_received())[..3], status, "{path}");
    }
    // A body that no route reads is dropped after the answer.
    stage.send(&request("POST /nothing", "Content-Length: 1000\r\n", &"x".repeat(1000)));
    stage.send(&request("GET /", "", ""));
    assert!(stage.take_received().ends_with(b"Hello, World!"));
    stage.send(&request("GET /panic", "", ""));
    assert_eq!(&exchange(&stage.take_received())[..3], "500");
}

#[test]
fn a_service_sleeps_in_loop_time_within_the_handler_timeout() {
    let mut stage = serving(site());
    stage.send(&request("GET /sleep", "", ""));
    stage.advance(seconds(29));
    assert_eq!(stage.take_received(), b"");
    stage.advance(seconds(1));
    assert_eq!(exchange(&stage.take_received()), "200 slept");
    stage.send(&request("GET /long", "", ""));
    stage.advance(seconds(60));
    assert_eq!(&exchange(&stage.take_received())[..3], "503");
}

#[test]
fn a_100_continue_is_sent_when_the_service_reads() {
    let mut stage = serving(site());
    let fields = "Content-Length: 4\r\nExpect: 100-continue\r\n";
    stage.send(&request("POST /body", fields, ""));
    assert_eq!(stage.take_received(), b"HTTP/1.1 100 Continue\r\n\r\n");
    stage.send(b"word");
    assert_eq!(exchange(&stage.take_received()), "200 word");
    stage.send(&request("POST /nothing", fields, ""));
    assert_eq!(&exchange(&stage.take_received())[..3], "404", "nobody asked for it");
}

#[test]
fn a_short_body_that_came_with_its_head_is_ready_at_the_call() {
    let frames: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = frames.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let mut body = request.into_body();
        let hint = http_body::Body::size_hint(&body).exact();
        let mut context = std::task::Context::from_waker(Waker::noop());
        let mut poll = || {
            let frame = http_body::Body::poll_frame(std::pin::Pin::new(&mut body), &mut context);
            frame.map(|frame| frame.map(|frame| frame.expect("it is whole").into_data().ok()))
        };
        seen.lock().expect("alone").push(format!("{hint:?} {:?} {:?}", poll(), poll()));
        std::future::ready(Ok::<_, std::io::Error>(http::Response::new(String::new())))
    });
    let short = request("POST /", "Content-Length: 4\r\n", "word");
    let long = request("POST /", "Content-Length: 8193\r\n", &"x".repeat(8193));
    let mut stage = serving(service);
    // Whatever follows a body in the input. The last byte of the last body comes later.
    stage.send(&[&short[..], &short, &long, &short[..short.len() - 1]].concat());
    stage.send(b"d");
    let there = r#"Some(4) Ready(Some(Some(b"word"))) Ready(None)"#;
    let waits = |length: u32| format!("Some({length}) Pending Pending");
    let expected = [there.to_owned(), there.to_owned(), waits(8193), waits(4)];
    assert_eq!(*frames.lock().expect("alone"), expected);
}

/// How many bytes of a body may be held in addition to those in the socket: in the body, in one
/// more read, and in the connection's input.
const HELD_MAX: usize = (64 + 64 + 64) << 10;

type KeptBody = Arc<Mutex<Option<(Body, Waker)>>>;

/// A service that polls a body once and then only keeps it.
fn body_keeper(
    keep: KeptBody,
) -> impl tower::Service<
    http::Request<Body>,
    Response = http::Response<String>,
    Error = std::io::Error,
    Future: 'static,
> + Clone {
    tower::service_fn(move |request: http::Request<Body>| {
        let mut body = Some(request.into_body());
        let keep = keep.clone();
        std::future::poll_fn(move |context| {
            if let Some(mut body) = body.take() {
                let first = std::pin::Pin::new(&mut body);
                assert!(http_body::Body::poll_frame(first, context).is_pending());
                *keep.lock().expect("alone") = Some((body, context.waker().clone()));
            }
            Poll::<Result<http::Response<String>, std::io::Error>>::Pending
        })
    })
}

#[test]
fn unread_small_chunks_hold_up_the_peer_sooner() {
    let kept = KeptBody::default();
    let mut stage = serving(body_keeper(kept.clone()));
    stage.send(&request("POST /", "Transfer-Encoding: chunked\r\n", ""));
    let chunks = b"1\r\nx\r\n".repeat(100_000);
    stage.send(&chunks);
    // What the input holds, and one read: here, each piece takes some hundred bytes of memory.
    let taken = chunks.len() - stage.unread_len();
    assert!(taken < (64 + 64) << 10, "{taken} octets were taken");
}

#[test]
fn a_service_that_does_not_read_holds_up_its_peer() {
    let kept = KeptBody::default();
    let mut stage = serving(body_keeper(kept.clone()));
    stage.send(&request("POST /", "Content-Length: 10000000\r\n", ""));
    for _ in 0..100 {
        stage.send(&[b'x'; 100_000]);
    }
    let taken = 10_000_000 - stage.unread_len();
    assert!((64 << 10..HELD_MAX).contains(&taken), "{taken} octets were taken");
    // The rest arrives as the service reads.
    let (mut body, _) = kept.lock().expect("alone").take().expect("it was called");
    let mut read = 0;
    while read < 10_000_000 {
        let mut context = std::task::Context::from_waker(Waker::noop());
        match http_body::Body::poll_frame(std::pin::Pin::new(&mut body), &mut context) {
            Poll::Ready(Some(Ok(frame))) => read += frame.into_data().expect("no trailers").len(),
            Poll::Ready(other) => panic!("{other:?}"),
            Poll::Pending => stage.settle(),
        }
    }
    assert_eq!((read, stage.unread_len()), (10_000_000, 0));
    assert!(http_body::Body::is_end_stream(&body));
}

#[test]
fn bodies_stream_both_ways_and_an_unread_response_stops_the_service() {
    let echo = post(|body: AxumBody| async move { AxumBody::new(body) });
    let mut stage = serving(Router::new().route("/", echo));
    stage.limit_room(0);
    stage.send(&request("POST /", "Transfer-Encoding: chunked\r\n", ""));
    let chunk = [b"10000\r\n", &[b'x'; 0x10000][..], b"\r\n"].concat();
    for _ in 0..100 {
        stage.send(&chunk);
    }
    let taken = 100 * chunk.len() - stage.unread_len();
    assert!(taken < 2 * HELD_MAX, "{taken} octets were taken");
    stage.make_room(usize::MAX / 2);
    stage.settle();
    let echoed = stage.received_len();
    assert!(echoed > 6_500_000, "{echoed} octets came back before the request has ended");
    stage.send(b"0\r\n\r\n");
    assert!(stage.take_received().ends_with(b"\r\n0\r\n\r\n"));
    assert!(!stage.is_ended());
}

#[test]
fn trailers_are_passed_both_ways() {
    let service = tower::service_fn(|request: http::Request<Body>| async {
        let collected = request.into_body().collect().await?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let frames = [Frame::data(collected.to_bytes()), Frame::trailers(trailers)]
            .map(Ok::<_, rotor_tower::BodyLost>);
        let body = StreamBody::new(futures_util::stream::iter(frames));
        Ok::<_, rotor_tower::BodyLost>(http::Response::new(body))
    });
    let mut stage = serving(service);
    let body = "4\r\nword\r\n0\r\nX-Sum: 4\r\n\r\n";
    stage.send(&request("POST /", "Transfer-Encoding: chunked\r\n", body));
    let text = String::from_utf8(stage.take_received()).expect("text");
    assert!(text.ends_with("\r\n\r\n4\r\nword\r\n0\r\nx-sum: 4\r\n\r\n"), "{text}");
}

#[test]
fn trailers_that_are_not_allowed_are_left_out() {
    let service = tower::service_fn(|_| async {
        let mut trailers = http::HeaderMap::new();
        for (name, value) in [("date", "now"), ("grpc-status", "0"), ("x-a", "1"), ("x-a", "2")] {
            trailers.append(name, value.parse().expect("a value"));
        }
        let frames = [Ok::<_, std::io::Error>(Frame::<Bytes>::trailers(trailers))];
        let body = StreamBody::new(futures_util::stream::iter(frames));
        Ok::<_, std::io::Error>(http::Response::new(body))
    });
    let mut stage = serving(service);
    stage.send(&request("GET /", "", ""));
    let text = String::from_utf8(stage.take_received()).expect("text");
    let expected = "\r\n\r\n0\r\ngrpc-status: 0\r\nx-a: 1\r\nx-a: 2\r\n\r\n";
    assert!(text.ends_with(expected), "{text}");
}

#[test]
fn a_broken_request_body_is_an_error_and_truncates_its_echo() {
    let errors: Arc<Mutex<Vec<String>>> = Arc::default();
    let seen = errors.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        let seen = seen.clone();
        async move {
            let body = request.into_body().map_err(move |error| {
                seen.lock().expect("alone").push(error.to_string());
                error
            });
            Ok::<_, std::io::Error>(http::Response::new(body))
        }
    });
    let mut stage = serving(service.clone());
    stage.send(&request("POST /", "Content-Length: 8\r\n", "half"));
    assert!(stage.take_received().ends_with(b"half"), "what has come is sent on");
    stage.end();
    assert!(stage.is_ended());
    let mut stage = serving(service);
    stage.send(&request("POST /", "Transfer-Encoding: chunked\r\n", "4\r\nword\r\nnonsense\r\n"));
    let text = String::from_utf8(stage.take_received()).expect("text");
    assert!(!text.ends_with("0\r\n\r\n"), "nobody takes it for whole: {text}");
    assert!(stage.is_ended());
}

#[test]
fn a_body_that_another_thread_reads_is_lost_with_its_request() {
    let kept: Arc<Mutex<Option<Body>>> = Arc::default();
    let keep = kept.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        *keep.lock().expect("alone") = Some(request.into_body());
        std::future::pending::<Result<http::Response<String>, std::io::Error>>()
    });
    let mut stage = serving(service);
    stage.send(&request("POST /", "Content-Length: 8\r\n", ""));
    let mut body = kept.lock().expect("alone").take().expect("it was called");
    let woken = Arc::new(WakeCounter::default());
    let waker = Waker::from(woken.clone());
    let mut poll = || {
        let mut context = std::task::Context::from_waker(&waker);
        http_body::Body::poll_frame(std::pin::Pin::new(&mut body), &mut context)
    };
    assert!(poll().is_pending(), "the peer is asked for it now");
    stage.settle();
    stage.send(b"half");
    assert_eq!(woken.0.load(Relaxed), 1, "who reads is told, wherever that is");
    assert!(matches!(poll(), Poll::Ready(Some(Ok(_)))) && poll().is_pending());
    stage.reset();
    stage.settle();
    assert_eq!(woken.0.load(Relaxed), 2);
    let polled = poll();
    let Poll::Ready(Some(Err(lost))) = polled else { panic!("{polled:?}") };
    assert!(lost.to_string().contains("the stream ended"), "{lost}");
    assert!(matches!(poll(), Poll::Ready(None)), "who reads on comes to an end");
}

#[test]
fn a_body_read_after_the_response_is_reported_as_finished() {
    let kept: Arc<Mutex<Option<Body>>> = Arc::default();
    let keep = kept.clone();
    let service = tower::service_fn(move |request: http::Request<Body>| {
        *keep.lock().expect("alone") = Some(request.into_body());
        std::future::ready(Ok::<_, std::io::Error>(http::Response::new(String::new())))
    });
    let mut stage = serving(service);
    stage.send(&request("POST /", "Content-Length: 8\r\n", ""));
    assert_eq!(exchange(&stage.take_received()), "200 ");
    let mut body = kept.lock().expect("alone").take().expect("it was called");
    let mut context = std::task::Context::from_waker(Waker::noop());
    let polled = http_body::Body::poll_frame(std::pin::Pin::new(&mut body), &mut context);
    assert!(matches!(polled, Poll::Ready(Some(Err(BodyLost::Finished)))), "{polled:?}");
}

#[derive(Default)]
struct WakeCounter(AtomicU32);

impl Wake for WakeCounter {
    fn wake(self: Arc<WakeCounter>) {
        self.0.fetch_add(1, Relaxed);
    }
}
