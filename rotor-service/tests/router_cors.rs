//! CORS in front of the functions of a router, on a connection.

use std::time::Duration;

use rotor_http::server::{Connection, HttpSeed, Next, Reply, Response, Scope, ServerConfig};
use rotor_http::{Method, Status};
use rotor_service::{Cors, Json, Path, Rejection, RouteFn, RouteSeed, Router, json};
use rotor_stream::testing::Driver;

fn all(response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::OK, "text/plain", b"all")
}

fn add(Json(note): Json<String>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    json::reply(response, Status::CREATED, &note)
}

fn show(
    Path(id): Path<u32>,
    _: &mut Response<'_>,
    _: &mut Scope<'_, ()>,
) -> Result<Reply, Rejection> {
    let _ = id;
    Err(Rejection::not_found())
}

/// Answers with the body of the request, after two pauses.
fn later(body: &[u8], _: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Next<RouteFn<()>> {
    let (body, second) = (body.to_vec(), Duration::from_secs(1));
    Next::after(scope.now() + second, move |_, scope: &mut Scope<'_, ()>| {
        Next::after(scope.now() + second, move |response, _| {
            response.reply(Status::OK, "text/plain", &body)
        })
    })
}

/// Refuses a long body, fails after a second, or panics.
fn fails(body: &[u8], _: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Next<RouteFn<()>> {
    assert_ne!(body, b"panic", "told to");
    let second = Duration::from_secs(1);
    Next::after(scope.now() + second, |_, _: &mut Scope<'_, ()>| {
        Next::fail(Status::SERVICE_UNAVAILABLE)
    })
}

fn asks_itself(response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::OK, "text/plain", b"asked")
}

fn seed(cors: Option<Cors>) -> RouteSeed<()> {
    let router = match cors {
        Some(cors) => Router::new().cors(cors),
        None => Router::new(),
    };
    let router = router
        .get("/", all)
        .and_then(|router| router.post("/", add))
        .and_then(|router| router.get("/{id}", show))
        .and_then(|router| router.put("/later", later))
        .and_then(|router| router.body_bytes_max(9).put("/fails", fails))
        .and_then(|router| router.on(Method::Options, "/own", asks_itself));
    router.expect("routes").seed()
}

/// The answer to this request from a page, without the date and `Content-` fields.
fn ask(seed: RouteSeed<()>, start: &str, fields: &str, body: &str) -> String {
    let mut driver =
        Driver::<Connection<RouteFn<()>>>::new(HttpSeed::new(seed, ServerConfig::new()), ());
    let length = body.len();
    let head = format!("{start} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n");
    // The head is sent first: the function waits for its body.
    driver.send(head.as_bytes());
    driver.send(body.as_bytes());
    driver.advance(Duration::from_secs(2));
    let text = String::from_utf8(driver.take_received()).expect("text");
    let is_shown = |line: &&str| !line.starts_with("Date: ") && !line.starts_with("Content-");
    text.split("\r\n").filter(is_shown).collect::<Vec<_>>().join("|")
}

const PAGE: &str = "Origin: https://app.example\r\n";
const JSON: &str = "Origin: https://app.example\r\nContent-Type: application/json\r\n";
const PREFLIGHT: &str = "Origin: https://app.example\r\nAccess-Control-Request-Method: POST\r\n";

fn named() -> RouteSeed<()> {
    seed(Some(Cors::of(["https://app.example"]).expect("an origin")))
}

#[test]
fn a_preflight_is_answered_for_every_path_before_any_function() {
    for path in ["/", "/7", "/own", "/there/is/none"] {
        assert_eq!(
            ask(named(), &format!("OPTIONS {path}"), PREFLIGHT, ""),
            "HTTP/1.1 204 No Content|Vary: Origin|\
             Access-Control-Allow-Origin: https://app.example|\
             Access-Control-Allow-Methods: GET, HEAD, POST, PUT, PATCH, DELETE|\
             Access-Control-Allow-Headers: Content-Type||",
            "{path}"
        );
    }
}

#[test]
fn every_response_of_a_router_has_the_cors_fields() {
    let fields = "|Vary: Origin|Access-Control-Allow-Origin: https://app.example|";
    for (start, with, body, status, end) in [
        ("GET /", PAGE, "", "200 OK", "|all"),
        ("HEAD /", PAGE, "", "200 OK", "||"),
        ("POST /", JSON, "\"a\"", "201 Created", "|\"a\""),
        ("PUT /later", PAGE, "body", "200 OK", "|body"),
        ("OPTIONS /", PAGE, "", "204 No Content", "|Allow: GET, HEAD, OPTIONS, POST||"),
        ("OPTIONS /own", PAGE, "", "200 OK", "|asked"),
        // Refusals by the routing table, an argument, the body, the function.
        ("GET /there/is/none", PAGE, "", "404 Not Found", "}"),
        ("DELETE /", PAGE, "", "405 Method Not Allowed", "}"),
        ("GET /x", PAGE, "", "404 Not Found", "}"),
        ("POST /", PAGE, "\"a\"", "415 Unsupported Media Type", "}"),
        ("POST /", JSON, "\"a", "400 Bad Request", "}"),
        ("GET /7", PAGE, "", "404 Not Found", "}"),
        // Answers of the connection in place of a function.
        ("PUT /fails", PAGE, "0123456789", "413 Content Too Large", "}"),
        ("PUT /fails", PAGE, "late", "503 Service Unavailable", "}"),
        ("PUT /fails", PAGE, "panic", "500 Internal Server Error", "}"),
    ] {
        let answer = ask(named(), start, with, body);
        let begin = format!("HTTP/1.1 {status}{fields}");
        assert!(answer.starts_with(&begin) && answer.ends_with(end), "{start}: {answer}");
    }
    let other = ask(named(), "GET /", "Origin: https://evil.example\r\n", "");
    assert_eq!(other, "HTTP/1.1 200 OK|Vary: Origin||all");
}

#[test]
fn a_router_without_cors_sends_no_cors_fields() {
    assert_eq!(ask(seed(None), "GET /", PAGE, ""), "HTTP/1.1 200 OK||all");
    let options = ask(seed(None), "OPTIONS /", PREFLIGHT, "");
    assert_eq!(options, "HTTP/1.1 204 No Content|Allow: GET, HEAD, OPTIONS, POST||");
}
