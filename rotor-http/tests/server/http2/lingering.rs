//! Handlers that continue after their response is complete and their stream is closed.

use rotor_http::Status;
use rotor_http::h2::frame::{FrameHeader, kind};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response, Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use super::client::{headers, http2, preface_and_settings};
use crate::probe::seconds;

/// Answers immediately, and continues to work for ten seconds.
struct LingeringHandler;

impl Server for LingeringHandler {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (): (),
        _: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        response.send(Status::OK, "text/plain", b"done").expect("an answer");
        Next::go_on(LingeringHandler).deadline(scope.now() + seconds(10))
    }
}

/// The kinds of the received frames, each with its error code if it has one.
fn frames(driver: &mut Driver<Connection<LingeringHandler>>) -> Vec<(u8, u32)> {
    let received = driver.take_received();
    let (mut rest, mut frames) = (&received[..], Vec::new());
    while let Some(header) = FrameHeader::read(rest) {
        let payload = &rest[9..9 + header.len];
        let code = payload.last_chunk().map_or(0, |code| u32::from_be_bytes(*code));
        match header.kind {
            kind::RST_STREAM | kind::GOAWAY => frames.push((header.kind, code)),
            kind::HEADERS => frames.push((header.kind, 0)),
            _ => {}
        }
        rest = &rest[9 + header.len..];
    }
    frames
}

/// RFC 9113 §5.1.2: streams that are closed "do not count toward the maximum number of streams".
#[test]
fn lingering_handlers_use_stream_slots_without_counting_as_provoked() {
    let limited = http2().streams_max(2).provoked_resets(3, 0);
    let config = ServerConfig::new().http2(limited);
    let counters = config.counters();
    let mut driver = Driver::<Connection<LingeringHandler>>::new(HttpSeed::new((), config), ());
    driver.send(&preface_and_settings(&[]));
    let ask = |driver: &mut Driver<_>, stream| driver.send(&headers(stream, "GET", "/", &[], true));
    (0..12).for_each(|at| ask(&mut driver, 2 * at + 1));
    let mut expected = vec![(kind::HEADERS, 0); 2];
    expected.extend([(kind::RST_STREAM, 7); 10]);
    assert_eq!(frames(&mut driver), expected, "it may make them again");
    assert_eq!(counters.streams_refused(), 10);
    driver.advance(seconds(10));
    ask(&mut driver, 25);
    assert_eq!(frames(&mut driver), [(kind::HEADERS, 0)]);
    assert!(!driver.is_ended() && driver.failures().is_empty());
}
