//! A server connection of HTTP/2 with its handlers: any bytes after the preface, however they are
//! cut. Handlers are called for the same requests, pending data stays bounded, and silence ends
//! every connection.

use std::time::Duration;

use rotor_http::h2::frame::{FrameHeader, PREFACE};
use rotor_http::server::{Http2Config, HttpSeed, ServerConfig};
use rotor_http::{Limits, server};
use rotor_stream::testing::Driver;

use super::connection::{Site, TestContext};
use super::input::Input;

/// More than twice the sum of all configured times.
const IDLE_TIME: Duration = Duration::from_secs(1_000);

/// So many that no stream is refused, since refusal depends on how fast other streams end.
const STREAMS_MAX: u32 = 100_000;

pub(super) fn run(data: &[u8]) {
    let mut choices = Input::new(data);
    let piece = choices.pick(&[1, 2, 9, 10, 100]);
    let begins = choices.flag();
    let rest = data.get(2..).unwrap_or_default();
    let mut bytes = PREFACE.to_vec();
    if begins {
        bytes.extend_from_slice(&[0, 0, 0, 4, 0, 0, 0, 0, 0]);
    }
    bytes.extend_from_slice(rest);
    let whole = serve(&bytes, bytes.len());
    assert_eq!(serve(&bytes, piece), whole, "in pieces of {piece}");
}

/// The requests that handlers have seen.
fn serve(bytes: &[u8], piece: usize) -> Vec<String> {
    let http2 = Http2Config::new()
        .prior_knowledge(true)
        .streams_max(STREAMS_MAX)
        .collected_bytes_max(usize::MAX)
        .unsent_bytes_max(usize::MAX >> 8)
        .responses_bytes_max(usize::MAX);
    let limits = Limits::new().buffered_body_bytes_max(1000);
    let config = ServerConfig::new().limits(limits).http2(http2);
    let mut driver: Driver<server::Connection<Site>> =
        Driver::new(HttpSeed::new((), config), TestContext::default());
    for piece in bytes.chunks(piece) {
        driver.send(piece);
        let waits = driver.peer().unread_len();
        assert!(waits <= bytes.len(), "{waits}");
    }
    driver.advance(IDLE_TIME);
    driver.end();
    driver.advance(IDLE_TIME);
    assert_eq!(driver.failures(), [""; 0]);
    assert!(!driver.is_alive(), "silence ends it");
    assert_eq!(driver.context().misuses, 0);
    let received = driver.take_received();
    let mut rest = &received[..];
    while let Some(header) = FrameHeader::read(rest) {
        assert!(header.len <= 16 << 10 && rest.len() >= 9 + header.len, "{header:?}");
        rest = &rest[9 + header.len..];
    }
    assert!(rest.is_empty(), "frames are whole");
    driver.context().heads.clone()
}
