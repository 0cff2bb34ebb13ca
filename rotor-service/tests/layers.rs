//! Layers around async handlers, and refusals, on a connection.

use std::time::Duration;

use rotor_async::http::{Answer, AsyncServer, Handler, Request};
use rotor_core::Scope;
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, Response, Server, ServerConfig,
};
use rotor_http::{Limits, Method, Status};
use rotor_service::{Compression, Cors, Encoder, Rejection, Routes, json, json_errors};
use rotor_stream::testing::Driver;

/// The head in one line, and the body.
fn ask<H: Handler<()>>(handler: H, start: &str, fields: &str, body: &str) -> (String, Vec<u8>) {
    let mut driver: Driver<Connection<AsyncServer<H, ()>>> =
        Driver::new(HttpSeed::new(handler, ServerConfig::new()), ());
    let length = body.len();
    let request =
        format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
    driver.send(request.as_bytes());
    let received = driver.take_received();
    let end = received.windows(4).position(|octets| octets == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&received[..end]).into_owned();
    let head = head.replace("\r\nDate: Thu, 01 Jan 1970 00:00:01 GMT", "").replace("\r\n", "|");
    (head, received[end + 4..].to_vec())
}

fn page() -> Answer {
    Answer::from("All work and no play. ".repeat(1_000))
}

/// The `Content-Length` of a head.
fn length(head: &str) -> Option<usize> {
    let (_, rest) = head.split_once("|Content-Length: ")?;
    rest.split('|').next()?.parse().ok()
}

#[test]
fn a_304_has_the_fields_of_the_200() {
    let layered = Compression::new()
        .layer(|_: Request| async { Answer::new(Status::NOT_MODIFIED).field("ETag", "\"1\"") });
    for (fields, said) in [
        (GZIP, "|ETag: W/\"1\"|Vary: Accept-Encoding|"),
        ("", "|ETag: \"1\"|Vary: Accept-Encoding|"),
        ("Accept-Encoding: gzip\r\nRange: bytes=0-5\r\n", "|ETag: \"1\"|"),
    ] {
        let (head, body) = ask(layered.clone(), "GET /", fields, "");
        assert!(format!("{head}|").contains(said), "{fields:?}: {head}");
        assert_eq!((head.contains("Vary"), body.len()), (said.contains("Vary"), 0), "{head}");
    }
}

const GZIP: &str = "Accept-Encoding: gzip\r\n";

#[test]
fn a_response_is_compressed_for_clients_that_accept_it() {
    let layered = Compression::new().layer(|_: Request| async { page() });
    for (fields, said) in [
        (GZIP, "|Content-Encoding: gzip|Vary: Accept-Encoding|"),
        ("", "|Vary: Accept-Encoding|"),
        ("Accept-Encoding: gzip;q=0, *;q=0\r\n", "|Vary: Accept-Encoding|"),
    ] {
        let (head, body) = ask(layered.clone(), "GET /", fields, "");
        assert!(format!("{head}|").contains(said), "{fields:?}: {head}");
        let is_coded = said.contains("gzip");
        assert_eq!((body.starts_with(&[0x1f, 0x8b]), body.len() < 1_000), (is_coded, is_coded));
        assert_eq!(head.contains("Content-Encoding"), is_coded, "{head}");
        assert_eq!(length(&head), Some(body.len()), "{head}");
        // HEAD has the same fields as GET.
        let (same, none) = ask(layered.clone(), "HEAD /", fields, "");
        assert_eq!((same, none.len()), (head, 0));
    }
    let (head, body) = ask(layered, "GET /", &format!("{GZIP}Range: bytes=0-5\r\n"), "");
    assert!(!head.contains("Vary") && !head.contains("Encoding") && body.len() == 22_000, "{head}");
}

#[test]
fn a_response_that_forbids_compression_is_unchanged() {
    type Make = fn() -> Answer;
    let cases: [(Make, &str); 8] = [
        (|| page().field("Content-Encoding", "br"), "Content-Encoding: br"),
        // Both are computed from the uncompressed bytes.
        (|| page().field("Content-Digest", "sha-256=:AA==:"), "Content-Digest"),
        (|| page().field("Repr-Digest", "sha-256=:AA==:"), "Repr-Digest"),
        (|| page().field("Content-Range", "bytes 0-1/5"), "Content-Range: bytes 0-1/5"),
        (|| page().field("Cache-Control", "private, no-transform"), "Cache-Control"),
        (|| Answer::new(Status::OK).body("image/png", vec![0; 5_000]), "image/png"),
        (|| Answer::text(Status::OK, "short"), "text/plain"),
        (|| Answer::new(Status::NO_CONTENT), "204"),
    ];
    for (answer, said) in cases {
        let (head, body) = ask(
            Compression::new().layer(move |_: Request| async move { answer() }),
            "GET /",
            GZIP,
            "",
        );
        assert!(head.contains(said) && !head.contains("gzip") && !head.contains("Vary"), "{head}");
        assert!(!body.starts_with(&[0x1f, 0x8b]));
    }
}

/// Answers with these fields, by `AcceptedCoding::reply`.
struct Replying;

type Fields = &'static [(&'static str, &'static [u8])];

impl Server for Replying {
    type Context = ();
    type Seed = (Status, Fields);
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        (status, fields): Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let sent = head.fields().iter().map(|field| (field.name, field.value));
        let page = page();
        let body = if status.forbids_body() { &[] } else { page.content() };
        Compression::new().check(sent).reply(response, status, fields, "text/plain", body).into()
    }
}

#[test]
fn a_compressed_reply_has_adjusted_fields() {
    let (ok, unchanged) = (Status::OK, Status::NOT_MODIFIED);
    let tagged: Fields = &[("etag", b"\"a\""), ("Accept-Ranges", b"bytes"), ("X-A", b"b")];
    let cases: [(Status, Fields, &str, &str); 11] = [
        (ok, tagged, GZIP, "etag: W/\"a\"|X-A: b|Content-Encoding: gzip|Vary: Accept-Encoding|"),
        (ok, tagged, "", "etag: \"a\"|Accept-Ranges: bytes|X-A: b|Vary: Accept-Encoding|"),
        (ok, &[("ETag", b"W/\"a\"")], GZIP, "ETag: W/\"a\"|Content-Encoding: gzip|"),
        (unchanged, tagged, GZIP, "etag: W/\"a\"|Accept-Ranges: bytes|X-A: b|Vary: Accept-"),
        (unchanged, tagged, "", "etag: \"a\"|Accept-Ranges: bytes|X-A: b|Vary: Accept-Encoding|"),
        (unchanged, tagged, "Accept-Encoding: gzip\r\nRange: bytes=0-\r\n", "etag: \"a\"|"),
        (
            ok,
            &[("content-encoding", b"br"), ("ETag", b"\"a\"")],
            GZIP,
            "content-encoding: br|ETag: \"a\"|",
        ),
        (ok, &[("Content-Range", b"bytes 0-1/5")], GZIP, "Content-Range: bytes 0-1/5|"),
        (ok, &[("cache-control", b"private, No-Transform")], GZIP, "cache-control: private, No-"),
        (ok, &[("digest", b"sha-256=AA=="), ("ETag", b"\"a\"")], GZIP, "|ETag: \"a\"|"),
        (ok, &[("content-md5", b"AA==")], GZIP, "content-md5: AA==|"),
    ];
    for (status, fields, sent, said) in cases {
        let seed = HttpSeed::new((status, fields), ServerConfig::new());
        let mut driver: Driver<Connection<Replying>> = Driver::new(seed, ());
        driver.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{sent}\r\n").as_bytes());
        let received = driver.take_received();
        let end = received.windows(4).position(|octets| octets == b"\r\n\r\n").expect("a head");
        let (head, body) = (String::from_utf8_lossy(&received[..end]), &received[end + 4..]);
        let head = format!("{}|", head.replace("\r\n", "|"));
        assert!(head.contains(said), "{fields:?} {sent:?}: {head}");
        let is_coded = said.contains("gzip");
        assert_eq!(head.contains("gzip"), is_coded, "{head}");
        assert_eq!(body.starts_with(&[0x1f, 0x8b]), is_coded, "{head}");
        assert_eq!(head.contains("Vary"), said.contains("Vary") || is_coded, "{head}");
    }
}

#[test]
fn fields_about_the_bytes_are_adjusted_when_compressing() {
    for (tag, said) in [("\"a\"", "|ETag: W/\"a\""), ("W/\"a\"", "|ETag: W/\"a\"")] {
        let answer = move |_: Request| async move {
            page().field("ETag", tag).field("Accept-Ranges", "bytes").field("Vary", "Origin")
        };
        let (head, _) = ask(Compression::new().layer(answer), "GET /", GZIP, "");
        assert!(head.contains(said) && !head.contains("Accept-Ranges"), "{head}");
        assert!(
            head.contains("|Vary: Origin") && head.contains("|Vary: Accept-Encoding"),
            "{head}"
        );
        let (plain, _) = ask(Compression::new().layer(answer), "GET /", "", "");
        assert!(plain.contains(&format!("|ETag: {tag}")) && plain.contains("Accept-Ranges"));
    }
}

/// A service as users write it.
async fn service(request: Request) -> Result<Answer, Rejection> {
    let mut routes = Routes::new();
    routes.add(Method::Post, "/notes", ()).expect("a route");
    routes.add(Method::Get, "/notes", ()).expect("a route");
    routes.find(request.method(), request.path())?;
    let number: u32 = json::read_body(&request, 10)?;
    json::answer(Status::OK, &number)
}

#[test]
fn options_lists_the_methods_also_behind_cors() {
    let (head, body) = ask(service, "OPTIONS /notes", "", "");
    assert_eq!(head, "HTTP/1.1 204 No Content|Allow: GET, HEAD, OPTIONS, POST");
    assert!(body.is_empty());
    assert!(ask(service, "OPTIONS /none", "", "").0.starts_with("HTTP/1.1 404 "));
    let (head, _) = ask(service, "OPTIONS *", "", "");
    assert_eq!(head, "HTTP/1.1 204 No Content|Allow: GET, HEAD, OPTIONS, POST");
    let (head, _) = ask(Cors::any().layer(service), "OPTIONS /notes", "Origin: http://b\r\n", "");
    assert!(head.contains("|Allow: GET") && head.contains("|Access-Control-Allow-Origin: *"));
}

#[test]
fn an_invalid_json_body_gets_its_status_and_a_json_error() {
    let deep = "[".repeat(9);
    for (fields, body, status) in [
        ("Content-Type: application/json\r\n", "7", "200"),
        ("Content-Type: Application/JSON ; charset=utf-8\r\n", " 7 ", "200"),
        ("Content-Type: application/vnd.api+json\r\n", "7", "200"),
        ("Content-Type: application/json\r\n", "7 x", "400"),
        ("Content-Type: application/json\r\n", "", "400"),
        // A number is expected, so the content of the value is not examined.
        ("Content-Type: application/json\r\n", deep.as_str(), "422"),
        ("Content-Type: application/json\r\n", "\"x\"", "422"),
        ("Content-Type: application/json\r\n", "12345678901", "413"),
        ("Content-Type: text/plain\r\n", "7", "415"),
        ("Content-Type: application/x-www-form-urlencoded\r\n", "7", "415"),
        ("Content-Type: application/jsonp\r\n", "7", "415"),
        ("Content-Type: text/html+json\r\n", "7", "415"),
        ("Content-Type: \r\n", "7", "415"),
        ("", "7", "415"),
        ("Content-Type: application/json\r\nContent-Encoding: gzip\r\n", "7", "415"),
        ("Content-Type: application/json\r\nContent-Encoding: identity\r\n", "7", "200"),
        (
            "Content-Type: application/json\r\nContent-Encoding: identity, , identity\r\n",
            "7",
            "200",
        ),
        ("Content-Type: application/json\r\nContent-Encoding: identity, gzip\r\n", "7", "415"),
        (
            "Content-Type: application/json\r\nContent-Encoding: identity\r\nContent-Encoding: gzip\r\n",
            "7",
            "415",
        ),
    ] {
        let (head, answered) = ask(service, "POST /notes", fields, body);
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{fields:?} {body:?}: {head}");
        if status != "200" {
            let text = String::from_utf8(answered).expect("text");
            assert!(head.contains("|Content-Type: application/json"), "{head}");
            assert!(text.starts_with("{\"error\":\"") && text.ends_with("\"}"), "{text}");
        }
    }
}

/// Panics or never ends.
async fn fails(request: Request) -> Answer {
    assert!(request.path() != "/panics", "asked to");
    std::future::pending().await
}

/// The answer, in one line, to a request with a body of this length. At most 100 bytes are
/// accepted.
fn asked<H: Handler<()>>(handler: H, start: &str, length: usize) -> String {
    let limits = Limits::new().buffered_body_bytes_max(100);
    let seed = HttpSeed::new(handler, ServerConfig::new().limits(limits));
    let mut driver: Driver<Connection<AsyncServer<H, ()>>> = Driver::new(seed, ());
    let head = format!("{start} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n");
    driver.send((head + &"x".repeat(length)).as_bytes());
    driver.advance(Duration::from_secs(60));
    String::from_utf8(driver.take_received()).expect("text").replace("\r\n", "|")
}

#[test]
fn connection_errors_after_the_head_have_the_cors_fields() {
    for (start, length, status, may_read) in [
        ("POST /", 101, "413", true),
        ("POST /", 100, "503", true),
        ("GET /panics", 0, "500", true),
        // No handler has seen the request.
        ("GET /\u{1}", 0, "400", false),
    ] {
        for said in [
            asked(Cors::any().layer(fails), start, length),
            asked(Cors::any().layer(json_errors(fails)), start, length),
            asked(json_errors(Cors::any().layer(fails)), start, length),
            asked(Compression::new().layer(Cors::any().layer(fails)), start, length),
        ] {
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
            let times = said.matches("|Access-Control-Allow-Origin: *|").count();
            assert_eq!(times, usize::from(may_read), "{said}");
        }
    }
    // Answers of layers and handlers have the field once as well.
    let layered = Compression::new().layer(json_errors(Cors::any().layer(service)));
    for (start, status) in [("OPTIONS /notes", "204"), ("GET /none", "404"), ("POST /notes", "415")]
    {
        let said = asked(layered.clone(), start, 1);
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
        assert_eq!(said.matches("Access-Control-Allow-Origin").count(), 1, "{said}");
    }
    // An invalid field name is a bug of the program.
    let said = asked(Cors::any().exposed_fields(&["a\r\nb"]).layer(service), "GET /none", 0);
    assert!(said.starts_with("HTTP/1.1 500 "), "{said}");
}

#[test]
fn the_outer_of_two_cors_layers_answers_a_preflight() {
    let asks = "Origin: http://b\r\nAccess-Control-Request-Method: PUT\r\n";
    let layered = Cors::any().layer(Cors::any().layer(service));
    let (head, _) = ask(layered, "OPTIONS /notes", asks, "");
    assert!(head.starts_with("HTTP/1.1 204 "), "{head}");
    assert_eq!(head.matches("Access-Control-Allow-Origin").count(), 1, "{head}");
}

#[cfg(feature = "per-thread")]
#[test]
fn work_without_a_thread_is_refused_with_503() {
    let own = rotor_service::PerThread::new(|| Ok::<_, std::convert::Infallible>(7));
    let handler = move |_: Request| {
        let own = own.clone();
        async move {
            let number = own.ask(|number| Ok::<_, std::convert::Infallible>(*number)).await?;
            json::answer(Status::OK, &number)
        }
    };
    let (head, body) = ask(handler.clone(), "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 200 ") && body == b"7", "{head}");

    let seed = HttpSeed::new(handler, ServerConfig::new());
    let mut driver: Driver<Connection<AsyncServer<_, ()>>> = Driver::new(seed, ());
    driver.test().world().refuse_jobs(true);
    driver.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    let refused = String::from_utf8(driver.take_received()).expect("text");
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.ends_with(r#"{"error":"busy: try again later"}"#), "{refused}");
}

#[test]
fn connection_errors_have_the_form_of_the_handlers_errors() {
    let both = |start: &str, length, status: &str, phrase: &str, why: Option<&str>| {
        let said = asked(fails, start, length);
        let text = match why {
            Some(why) => format!("||{status} {phrase}: {why}\n"),
            None => format!("||{status} {phrase}\n"),
        };
        let reason = why.unwrap_or(phrase);
        assert!(
            said.starts_with(&format!("HTTP/1.1 {status} ")) && said.ends_with(&text),
            "{said}"
        );
        let inner = json_errors(fails);
        let layers = [
            asked(inner.clone(), start, length),
            asked(Cors::any().layer(inner.clone()), start, length),
            asked(Compression::new().layer(inner), start, length),
            asked(json_errors(Cors::any().layer(fails)), start, length),
        ];
        let json = format!("||{{\"error\":\"{reason}\"}}");
        for said in layers {
            assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
            assert!(said.contains("|Content-Type: application/json|"), "{said}");
            assert!(said.ends_with(&json), "{said}");
        }
    };
    let too_large = "the body is larger than its limit";
    both("POST /", 101, "413", "Content Too Large", Some(too_large));
    both("POST /", 100, "503", "Service Unavailable", None);
    both("GET /panics", 0, "500", "Internal Server Error", None);
    let target = "the request target is empty or contains a byte that is not allowed";
    both("GET /\u{1}", 0, "400", "Bad Request", Some(target));
}

/// Sends lines, each as soon as there is room for it.
struct Lines {
    encoder: Option<Encoder>,
    left: u32,
}

impl Lines {
    fn pump(mut self, response: &mut Response<'_>) -> Next<Self> {
        while self.left > 0 && response.room() > 0 {
            self.left -= 1;
            let line = format!("line {} of many, all alike\n", self.left);
            let written = match &mut self.encoder {
                Some(encoder) => {
                    response.write_body(encoder.write(line.as_bytes()).expect("memory"))
                }
                None => response.write_body(line),
            };
            written.expect("an open body");
        }
        if self.left > 0 {
            return Next::go_on(self).keep_deadline();
        }
        if let Some(encoder) = self.encoder.take() {
            response.write_body(encoder.finish().expect("memory")).expect("an open body");
        }
        response.done().expect("an open body");
        Next::finished()
    }
}

impl Server for Lines {
    type Context = ();
    type Seed = ();
    type Upgrade = NoUpgrade<()>;

    fn headers_received(
        _: (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, ()>,
    ) -> Next<Self> {
        let fields = head.fields().iter().map(|field| (field.name, field.value));
        let encoding = Compression::new().check(fields).encoding(Status::OK, "text/plain", None);
        response.status(Status::OK).expect("first");
        for (name, value) in encoding.fields() {
            response.add_header(name, value).expect("a field");
        }
        response.add_chunked().and_then(|()| response.done_headers()).expect("a head");
        Lines { encoder: encoding.into_encoder(), left: 20_000 }.pump(response)
    }

    fn response_flushed(self, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Next<Self> {
        self.pump(response)
    }
}

#[test]
fn a_stream_is_compressed_as_it_is_written() {
    use std::io::Read;

    let asked = |fields: &str| {
        let mut driver: Driver<Connection<Lines>> =
            Driver::new(HttpSeed::new((), ServerConfig::new()), ());
        driver.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n").as_bytes());
        let received = driver.take_received();
        let end = received.windows(4).position(|octets| octets == b"\r\n\r\n").expect("a head");
        let (mut body, mut rest) = (Vec::new(), &received[end + 4..]);
        while let Some(line) = rest.windows(2).position(|octets| octets == b"\r\n") {
            let size = str::from_utf8(&rest[..line]).expect("a size");
            let size = usize::from_str_radix(size, 16).expect("a size");
            body.extend_from_slice(&rest[line + 2..line + 2 + size]);
            rest = &rest[line + 2 + size + 2..];
        }
        (String::from_utf8_lossy(&received[..end]).into_owned(), body)
    };
    let (head, plain) = asked("");
    assert!(!head.contains("Content-Encoding") && head.contains("Vary: Accept-Encoding"), "{head}");
    let (head, coded) = asked(GZIP);
    assert!(head.contains("Content-Encoding: gzip") && coded.len() < plain.len() / 4, "{head}");
    let mut decoded = Vec::new();
    flate2::read::GzDecoder::new(&coded[..]).read_to_end(&mut decoded).expect("it is whole");
    assert!(decoded == plain && plain.starts_with(b"line 19999 "));
}

#[test]
fn a_refusal_keeps_its_fields_and_an_invalid_field_is_a_500() {
    let refusing = |value: &'static str| {
        move |_: Request| async move {
            let refused = Rejection::new(Status::UNAUTHORIZED, "who?");
            Answer::from(refused.field("WWW-Authenticate", "Basic").field("X-Why", value))
        }
    };
    let (head, body) = ask(refusing("none"), "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 401 "), "{head}");
    assert!(format!("{head}|").contains("|WWW-Authenticate: Basic|X-Why: none|"), "{head}");
    assert_eq!(body, br#"{"error":"who?"}"#);
    let (head, _) = ask(refusing("a\r\nb"), "GET /", "", "");
    assert!(head.starts_with("HTTP/1.1 500 "), "{head}");
}
