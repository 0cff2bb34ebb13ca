//! Services on HTTP/2 streams.

use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use rotor_http::h2::frame::{FrameHeader, PREFACE, flag, kind};
use rotor_http::h2::frame_writer::{self, frame_header};
use rotor_http::h2::hpack::{Bounds, FieldList, HpackDecoder, HpackEncoder};
use rotor_http::server::Head;
use rotor_tower::{Body, BodyLost, Tower};

use crate::stage::{serving, serving_as};

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    [&frame_header(payload.len(), kind, flags, stream)[..], payload].concat()
}

fn beginning() -> Vec<u8> {
    let mut settings = Vec::new();
    frame_writer::settings(&[], &mut settings);
    [&PREFACE[..], &settings, &frame_writer::settings_ack()].concat()
}

fn block(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        HpackEncoder::new().field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    block
}

fn headers(stream: u32, method: &str, path: &str, is_end: bool) -> Vec<u8> {
    let list =
        [(":method", method), (":scheme", "http"), (":path", path), (":authority", "a.example")];
    frame(kind::HEADERS, flag::END_HEADERS | u8::from(is_end), stream, &block(&list))
}

/// What has arrived on this stream: fields, bodies, the end and resets, as text.
fn stream_summary(received: &[u8], stream: u32) -> String {
    let (mut rest, mut stream_summary) = (received, String::new());
    let mut decoder = HpackDecoder::new(4096);
    while let Some(header) = FrameHeader::read(rest) {
        let payload = &rest[9..9 + header.len];
        rest = &rest[9 + header.len..];
        let mut list = FieldList::new();
        if header.kind == kind::HEADERS {
            let bounds = Bounds { list_bytes_max: 1 << 20, decoded_bytes_max: 1 << 20 };
            decoder.decode(payload, &mut list, &bounds).expect("a block of fields");
        }
        if header.stream != stream {
            continue;
        }
        for field in list.fields().iter().filter(|field| !["date"].contains(&field.name)) {
            stream_summary += &format!("{}={};", field.name, String::from_utf8_lossy(field.value));
        }
        match header.kind {
            kind::DATA => stream_summary += &format!("{};", String::from_utf8_lossy(payload)),
            kind::RST_STREAM => stream_summary += "reset;",
            _ => {}
        }
        let ends = matches!(header.kind, kind::DATA | kind::HEADERS);
        if ends && header.flags & flag::END_STREAM != 0 {
            stream_summary += "end";
        }
    }
    stream_summary
}

#[test]
fn routes_respond_concurrently_on_their_streams() {
    let routes = Router::new()
        .route("/", get(|uri: http::Uri| async move { uri.to_string() }))
        .route("/version", get(|version: http::Version| async move { format!("{version:?}") }))
        .route("/body", post(|body: Bytes| async move { body }));
    let mut stage = serving(routes);
    stage.send(&beginning());
    stage.send(&headers(1, "POST", "/body", false));
    stage.send(&headers(3, "GET", "/", true));
    stage.send(&headers(5, "GET", "/version", true));
    stage.send(&frame(kind::DATA, 0, 1, b"wo"));
    stage.send(&frame(kind::DATA, flag::END_STREAM, 1, b"rd"));
    stage.send(&headers(7, "GET", "/nothing", true));
    let received = stage.take_received();
    for (stream, expected) in [
        (1, ":status=200;content-type=application/octet-stream;content-length=4;word;end"),
        (
            3,
            ":status=200;content-type=text/plain; charset=utf-8;content-length=17;\
             http://a.example/;end",
        ),
        (5, ":status=200;content-type=text/plain; charset=utf-8;content-length=8;HTTP/2.0;end"),
        (7, ":status=404;content-length=0;end"),
    ] {
        assert_eq!(stream_summary(&received, stream), expected);
    }
    assert!(!stage.is_ended());
}

/// A call in both directions: each piece of the request is sent back. The head of the response is
/// sent at once, or with the first piece.
async fn converse(request: http::Request<Body>) -> Result<http::Response<ResponseBody>, BodyLost> {
    let is_late = request.uri().path() == "/late";
    let mut body = request.into_body();
    let first = if is_late { body.frame().await.transpose()? } else { None };
    let rest = stream::unfold(body, async |mut body| Some((body.frame().await?, body)));
    let frames = stream::iter(first.map(Ok)).chain(rest);
    Ok(http::Response::new(StreamBody::new(frames.boxed_local())))
}

type ResponseBody = StreamBody<stream::LocalBoxStream<'static, Result<Frame<Bytes>, BodyLost>>>;

#[test]
fn a_peer_may_pause_within_a_call_to_which_the_service_has_responded() {
    let is_call = |head: &Head<'_>| head.field("x-call").is_some();
    for (path, is_declared, expected) in [
        ("/", false, ":status=200;one;two;end"),
        ("/late", false, ":status=408;"),
        ("/late", true, ":status=200;one;two;end"),
    ] {
        let tower = Tower::new(tower::service_fn(converse)).stream_requests(is_call);
        let mut stage = serving_as(tower);
        stage.send(&beginning());
        let mut fields = vec![(":method", "POST"), (":scheme", "http"), (":path", path)];
        fields.push((":authority", "a.example"));
        if is_declared {
            fields.push(("x-call", "yes"));
        }
        stage.send(&frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&fields)));
        for (text, flags) in [("one", 0), ("two", flag::END_STREAM)] {
            for _ in 0..59 {
                stage.advance(Duration::from_secs(1));
            }
            stage.send(&frame(kind::DATA, flags, 1, text.as_bytes()));
        }
        let summary = stream_summary(&stage.take_received(), 1);
        assert!(summary.starts_with(expected), "{path}, declared: {is_declared}: {summary}");
    }
}

#[test]
fn trailers_are_passed_both_ways_on_a_stream() {
    let service = tower::service_fn(|request: http::Request<Body>| async {
        let collected = request.into_body().collect().await?;
        let trailers = collected.trailers().cloned().unwrap_or_default();
        let frames = [Frame::data(collected.to_bytes()), Frame::trailers(trailers)];
        let body = futures_util::stream::iter(frames.map(Ok::<_, BodyLost>));
        Ok::<_, BodyLost>(http::Response::new(StreamBody::new(body)))
    });
    let mut stage = serving(service);
    stage.send(&beginning());
    stage.send(&headers(1, "POST", "/", false));
    stage.send(&frame(kind::DATA, 0, 1, b"word"));
    let trailers = block(&[("x-sum", "4")]);
    stage.send(&frame(kind::HEADERS, flag::END_HEADERS | flag::END_STREAM, 1, &trailers));
    assert_eq!(stream_summary(&stage.take_received(), 1), ":status=200;word;x-sum=4;end");
}

/// The end of a stream may come long after its last byte, which the content length already
/// announces.
#[test]
fn the_last_byte_of_a_stream_does_not_wait_for_its_end() {
    let service = tower::service_fn(|request: http::Request<Body>| async {
        let mut body = request.into_body();
        let first = body.frame().await.transpose()?.and_then(|frame| frame.into_data().ok());
        Ok::<_, BodyLost>(http::Response::new(Full::new(first.unwrap_or_default())))
    });
    let mut stage = serving(service);
    stage.send(&beginning());
    let fields = [
        (":method", "POST"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a.example"),
        ("content-length", "4"),
    ];
    stage.send(&frame(kind::HEADERS, flag::END_HEADERS, 1, &block(&fields)));
    stage.send(&frame(kind::DATA, 0, 1, b"word"));
    assert!(
        stream_summary(&stage.take_received(), 1).starts_with(":status=200;content-length=4;word;")
    );
}

#[test]
fn a_body_of_known_length_has_trailers_on_a_stream() {
    let service = tower::service_fn(|_| async {
        let trailers = http::HeaderMap::from_iter([(
            http::HeaderName::from_static("x-sum"),
            http::HeaderValue::from_static("4"),
        )]);
        let body = Full::new(Bytes::from_static(b"word"));
        let body = body.with_trailers(std::future::ready(Some(Ok::<_, Infallible>(trailers))));
        Ok::<_, Infallible>(http::Response::new(body))
    });
    let mut stage = serving(service);
    stage.send(&beginning());
    stage.send(&headers(1, "GET", "/", true));
    stage.send(&headers(3, "HEAD", "/", true));
    let received = stage.take_received();
    assert_eq!(stream_summary(&received, 1), ":status=200;content-length=4;word;x-sum=4;end");
    assert_eq!(stream_summary(&received, 3), ":status=200;content-length=4;end");
}

thread_local! {
    static ALIVE: Cell<u32> = const { Cell::new(0) };
}

struct Alive;

impl Drop for Alive {
    fn drop(&mut self) {
        ALIVE.set(ALIVE.get() - 1);
    }
}

#[test]
fn a_reset_stream_drops_only_its_own_future() {
    let service = tower::service_fn(|_| async {
        ALIVE.set(ALIVE.get() + 1);
        let _alive = Alive;
        std::future::pending::<Result<http::Response<String>, Infallible>>().await
    });
    let mut stage = serving(service);
    stage.send(&beginning());
    stage.send(&headers(1, "GET", "/", true));
    stage.send(&headers(3, "GET", "/", true));
    assert_eq!(ALIVE.get(), 2);
    stage.send(&frame(kind::RST_STREAM, 0, 1, &8_u32.to_be_bytes()));
    assert_eq!((ALIVE.get(), stage.is_ended()), (1, false));
}

#[test]
fn a_silent_body_on_a_stream_is_dropped_after_the_peer_has_ended() {
    let silent = get(|| async {
        let events = futures_util::stream::pending::<Result<Frame<Bytes>, Infallible>>();
        axum::body::Body::new(StreamBody::new(events))
    });
    let mut stage = serving(Router::new().route("/", silent));
    stage.send(&[beginning(), headers(1, "GET", "/", true)].concat());
    assert!(stream_summary(&stage.take_received(), 1).starts_with(":status=200;"));
    stage.end();
    stage.advance(Duration::from_secs(9));
    assert!(!stage.is_ended());
    stage.advance(Duration::from_secs(1));
    assert!(stage.is_ended());
}

/// A body of 5 KiB pieces, each larger than the minimum that every stream may buffer.
fn pieces(stream: impl Stream<Item = ()> + Send + 'static) -> axum::body::Body {
    let piece = |()| Ok::<_, Infallible>(Frame::data(Bytes::from_static(&[b'x'; 5 << 10])));
    axum::body::Body::new(StreamBody::new(stream.map(piece)))
}

#[test]
fn a_silent_body_without_room_waits_and_does_not_spin() {
    let silent = get(|| async { pieces(stream::once(async {}).chain(stream::pending())) });
    let endless = get(|| async {
        rotor_async::sleep(Duration::from_secs(1)).await;
        pieces(stream::repeat(()))
    });
    let tower = Tower::new(Router::new().route("/", silent).route("/endless", endless));
    let mut stage = serving_as(tower.half_close_timeout(Duration::from_secs(3)));
    // SETTINGS_INITIAL_WINDOW_SIZE of 0: no byte of a body may be sent.
    let mut settings = Vec::new();
    frame_writer::settings(&[(4, 0)], &mut settings);
    stage.send(&[&PREFACE[..], &settings, &frame_writer::settings_ack()].concat());
    stage.send(&headers(1, "GET", "/", true));
    for number in 1..40 {
        stage.send(&headers(1 + 2 * number, "GET", "/endless", true));
    }
    // From now on the first body is silent; a second later the others take all the room.
    stage.end();
    stage.advance(Duration::from_secs(9));
    assert!(!stage.is_ended());
    stage.advance(Duration::from_secs(2));
    assert!(stage.is_ended(), "its peer has not taken what it could");
}
