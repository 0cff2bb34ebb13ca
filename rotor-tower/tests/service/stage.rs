//! A service on one connection, over a scripted socket.

use rotor_core::BoxError;
use rotor_http::server::{Connection, Http2Config, HttpSeed, NoUpgrade, ServerConfig};
use rotor_stream::testing::Driver;
use rotor_tower::{Body, Tower, TowerServer};
use tower_service::Service;

pub(crate) type Stage<S, B> = Driver<Connection<TowerServer<S, B, (), NoUpgrade<()>>>>;

pub(crate) fn serving<S, B>(service: S) -> Stage<S, B>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
{
    serving_as(Tower::new(service))
}

pub(crate) fn serving_as<S, B>(tower: Tower<S>) -> Stage<S, B>
where
    S: Service<http::Request<Body>, Response = http::Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body + 'static,
    B::Error: Into<BoxError>,
{
    let config = ServerConfig::new().http2(Http2Config::new().prior_knowledge(true));
    Driver::new(HttpSeed::new(tower, config), ())
}

pub(crate) fn request(start: &str, fields: &str, body: &str) -> Vec<u8> {
    format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}").into_bytes()
}

/// The status and the body of a single answer.
pub(crate) fn exchange(answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    format!("{} {body}", head.get(9..12).unwrap_or_default())
}
