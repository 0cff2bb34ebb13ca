//! CORS around an async handler, on a connection.

use rotor_async::http::{Answer, AsyncServer, Request};
use rotor_http::Status;
use rotor_http::server::{Connection, HttpSeed, ServerConfig};
use rotor_service::{Cors, CorsLayer, Rejection};
use rotor_stream::testing::Driver;

/// Refuses everything except GET, so a preflight that reaches it is noticed.
async fn answer(request: Request) -> Result<&'static str, Status> {
    match request.method().as_str() {
        "GET" => Ok("Hello!"),
        _ => Err(Status::METHOD_NOT_ALLOWED),
    }
}

fn ask<H: rotor_async::http::Handler<()>>(handler: H, start: &str, fields: &str) -> String {
    type Server<H> = Connection<AsyncServer<H, ()>>;
    let mut driver: Driver<Server<H>> =
        Driver::new(HttpSeed::new(handler, ServerConfig::new()), ());
    driver.send(format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
    let text = String::from_utf8(driver.take_received()).expect("text");
    text.replace("Date: Thu, 01 Jan 1970 00:00:01 GMT\r\n", "").replace("\r\n", "|")
}

fn layered() -> CorsLayer<impl rotor_async::http::Handler<()>> {
    Cors::of(["https://app.example"]).expect("an origin").layer(answer)
}

const PREFLIGHT: &str = "Origin: https://app.example\r\nAccess-Control-Request-Method: PATCH\r\n\
                         Access-Control-Request-Headers: content-type\r\n";

#[test]
fn a_preflight_is_answered_before_any_handler() {
    assert_eq!(
        ask(layered(), "OPTIONS /x", PREFLIGHT),
        "HTTP/1.1 204 No Content|Vary: Origin|\
         Access-Control-Allow-Origin: https://app.example|\
         Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE|\
         Access-Control-Allow-Headers: Content-Type||"
    );
}

#[test]
fn every_handler_response_has_the_cors_fields() {
    let origin = "Origin: https://app.example\r\n";
    let (hello, refused) = (ask(layered(), "GET /", origin), ask(layered(), "OPTIONS /", origin));
    let fields = "|Vary: Origin|Access-Control-Allow-Origin: https://app.example|";
    assert!(hello.starts_with("HTTP/1.1 200 OK|") && hello.contains(fields), "{hello}");
    assert!(refused.starts_with("HTTP/1.1 405 ") && refused.contains(fields), "{refused}");
    let other = ask(layered(), "GET /", "Origin: https://evil.example\r\n");
    assert!(other.contains("|Vary: Origin|") && !other.contains("Access-Control"), "{other}");
    assert!(other.ends_with("||Hello!"), "it is the browser that keeps it back");
}

#[test]
fn an_async_handler_can_return_a_refusal() {
    let refuses = |_: Request| async { Err::<Answer, _>(Rejection::not_allowed("GET")) };
    let answer = ask(refuses, "PUT /", "Content-Length: 0\r\n");
    assert!(answer.starts_with("HTTP/1.1 405 ") && answer.contains("|Allow: GET|"), "{answer}");
    assert!(answer.ends_with("||{\"error\":\"method not allowed\"}"), "{answer}");
}
