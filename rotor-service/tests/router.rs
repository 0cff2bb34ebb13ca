//! Functions behind routes, on a connection.

use std::time::Duration;

use rotor_http::server::{Head, Next, Reply, Response, Scope};
use rotor_http::testing::TestClient;
use rotor_http::{Method, Status};
use rotor_service::{
    Form, FromHead, Json, Path, Query, Rejection, RequestParts, RouteFn, RouteSeed, Router, json,
    or_reject,
};
use serde::{Deserialize, Serialize};

/// How long work on other threads may take.
const WORK_TIME_MAX: Duration = Duration::from_secs(60);

/// What functions were called with.
type Calls = Vec<String>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Note {
    text: String,
    tags: Option<serde_json::Value>,
}

/// A custom argument, defined by the test.
struct User(String);

impl FromHead for User {
    fn from_head(asked: &mut RequestParts<'_>) -> Result<User, Rejection> {
        let field = asked.head().field("X-User");
        let user = field.ok_or_else(|| {
            Rejection::new(Status::UNAUTHORIZED, "who are you?").field("WWW-Authenticate", "Who")
        })?;
        Ok(User(String::from_utf8_lossy(user).into_owned()))
    }
}

fn say(text: &str, response: &mut Response<'_>) -> Reply {
    response.reply(Status::OK, "text/plain", text.as_bytes())
}

fn all(response: &mut Response<'_>, calls: &mut Scope<'_, Calls>) -> Reply {
    calls.push("all".to_owned());
    say("all", response)
}

fn host(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, Calls>) -> Reply {
    say(head.authority().unwrap_or_default(), response)
}

fn add(Json(note): Json<Note>, response: &mut Response<'_>, calls: &mut Scope<'_, Calls>) -> Reply {
    calls.push(note.text);
    json::reply(response, Status::CREATED, &calls.len())
}

fn change(
    Path(id): Path<u8>,
    Path(name): Path<String>,
    Query(query): Query,
    User(user): User,
    Json(note): Json<Note>,
    response: &mut Response<'_>,
    _: &mut Scope<'_, Calls>,
) -> Result<Reply, Rejection> {
    let page: u8 = query.parse("page")?.unwrap_or(1);
    Ok(say(&format!("{id} {name} {page} {user} {}", note.text), response))
}

#[expect(clippy::too_many_arguments, reason = "as many as there may be")]
fn most(
    Path(a): Path<u8>,
    Path(b): Path<String>,
    Path(c): Path<i64>,
    Path(d): Path<bool>,
    Query(query): Query,
    User(user): User,
    body: &[u8],
    response: &mut Response<'_>,
    _: &mut Scope<'_, Calls>,
) -> Reply {
    let text = format!("{a} {b} {c} {d} {:?} {user} {}", query.get("q"), body.len());
    say(&text, response)
}

fn form(
    Form(form): Form,
    response: &mut Response<'_>,
    _: &mut Scope<'_, Calls>,
) -> Result<Reply, Rejection> {
    let name = form.get("name").ok_or_else(|| Rejection::new(Status::BAD_REQUEST, "no name"))?;
    Ok(say(name, response))
}

fn octets(body: &[u8], response: &mut Response<'_>, calls: &mut Scope<'_, Calls>) -> Reply {
    calls.push(format!("{} octets", body.len()));
    say(&body.escape_ascii().to_string(), response)
}

fn words(text: String, response: &mut Response<'_>, _: &mut Scope<'_, Calls>) -> Reply {
    say(&text, response)
}

/// Answers a second later, with the number of body bytes that the path says.
fn later(
    Path(count): Path<usize>,
    body: &[u8],
    response: &mut Response<'_>,
    calls: &mut Scope<'_, Calls>,
) -> Result<Next<RouteFn<Calls>>, Rejection> {
    calls.push("later".to_owned());
    let begin = body.get(..count).ok_or_else(|| Rejection::new(Status::BAD_REQUEST, "too few"))?;
    let text = begin.escape_ascii().to_string();
    let _ = response;
    Ok(Next::after(calls.now() + Duration::from_secs(1), move |response, _| say(&text, response)))
}

/// Answers with a sum that another thread computes.
fn sum(body: Vec<u8>, _: &mut Response<'_>, scope: &mut Scope<'_, Calls>) -> Next<RouteFn<Calls>> {
    let work = move || serde_json::from_slice::<Vec<u32>>(&body);
    let answer = or_reject(|numbers: Result<Vec<u32>, _>, response, _| {
        let numbers = numbers.map_err(|error| Rejection::new(Status::BAD_REQUEST, error))?;
        Ok::<_, Rejection>(say(&numbers.iter().sum::<u32>().to_string(), response))
    });
    Next::offload(scope, WORK_TIME_MAX, work, answer)
}

fn router() -> Result<Router<Calls>, rotor_service::RouteError> {
    Router::new()
        .get("/", all)?
        .get("/host", host)?
        .post("/notes", add)?
        .patch("/notes/{id}/{name}", change)?
        .post("/{a}/{b}/{c}/{d}", most)?
        .post("/form", form)?
        .put("/octets", octets)?
        .post("/words", words)?
        .post("/later/{count}", later)?
        .post("/sum", sum)?
        .delete("/closure", |response: &mut Response<'_>, _: &mut Scope<'_, Calls>| {
            say("closure", response)
        })?
        .on(Method::Get, "/refused", |_: &mut Response<'_>, _: &mut Scope<'_, Calls>| {
            Rejection::not_found()
        })?
        .body_bytes_max(10)
        .post("/short", octets)
}

type Service = TestClient<RouteFn<Calls>>;

fn service() -> Service {
    let seed: RouteSeed<Calls> = router().expect("routes").seed();
    TestClient::new(seed, Calls::new())
}

const JSON: &str = "Content-Type: application/json\r\n";

fn request(start: &str, fields: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!("{start} HTTP/1.1\r\nHost: a\r\n{fields}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

/// The status and the body of the received answer; 0 without one.
fn answer(service: &mut Service) -> (u16, String) {
    let answer = service.take_response();
    answer.map_or((0, String::new()), |it| (it.status().code(), it.text().to_owned()))
}

fn ask(start: &str, fields: &str, body: &[u8]) -> (u16, String) {
    let mut service = service();
    service.send(&request(start, fields, body));
    answer(&mut service)
}

#[test]
fn a_function_gets_its_arguments_from_the_request() {
    let user = format!("X-User: eve\r\n{JSON}");
    let form = "Content-Type: Application/x-www-form-urlencoded;charset=utf-8\r\n";
    for (start, fields, body, expected) in [
        ("GET /", "", "", "all"),
        ("GET /host", "", "", "a"),
        ("POST /notes", JSON, r#"{"text":"b"}"#, "1"),
        ("PATCH /notes/7/a%2Fb?page=3", &user, r#"{"text":"t"}"#, "7 a/b 3 eve t"),
        ("PATCH /notes/7/%C3%A4", &user, r#"{"text":"t"}"#, "7 ä 1 eve t"),
        ("POST /1/b/-3/true?q=r", &user, "body", "1 b -3 true Some(\"r\") eve 4"),
        ("POST /form", form, "x=1&name=a+b%21", "a b!"),
        ("PUT /octets", "", "\0\x01", r"\x00\x01"),
        ("PUT /octets", "", "", ""),
        ("POST /words", "", "ä", "ä"),
        ("DELETE /closure", "", "dropped", "closure"),
    ] {
        let (status, said) = ask(start, fields, body.as_bytes());
        assert!(matches!(status, 200 | 201), "{start}: {status} {said}");
        assert_eq!(said, expected, "{start}");
    }
}

#[test]
fn an_invalid_request_gets_a_json_error_without_a_call() {
    let deep = format!(r#"{{"text":"a","tags":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    let user = format!("X-User: eve\r\n{JSON}");
    let coded = format!("{JSON}Content-Encoding: gzip\r\n");
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let coded_form = format!("{form}Content-Encoding: identity, gzip\r\n");
    let long = vec![b'x'; rotor_service::ROUTE_BODY_BYTES_MAX + 1];
    let many = "a=b&".repeat(1_001);
    let cases: [(&str, &str, &[u8], u16); 28] = [
        ("GET /none", "", b"", 404),
        ("GET /refused", "", b"", 404),
        ("PUT /notes", "", b"", 405),
        ("POST /notes", JSON, b"", 400),
        ("POST /notes", JSON, b"{", 400),
        ("POST /notes", JSON, br#"{"text":"a"} x"#, 400),
        ("POST /notes", JSON, b"{\"text\":\"\xff\"}", 400),
        ("POST /notes", JSON, deep.as_bytes(), 400),
        ("POST /notes", JSON, b"{}", 422),
        ("POST /notes", JSON, b"[1]", 422),
        ("POST /notes", JSON, br#"{"text":7}"#, 422),
        ("POST /notes", JSON, br#"{"text":"a","more":1}"#, 422),
        ("POST /notes", JSON, &long, 413),
        ("POST /notes", "", br#"{"text":"a"}"#, 415),
        ("POST /notes", "Content-Type: text/plain\r\n", br#"{"text":"a"}"#, 415),
        ("POST /notes", &coded, br#"{"text":"a"}"#, 415),
        // The head is checked first, in the order of the arguments.
        ("PATCH /notes/256/a", "", b"", 404),
        ("PATCH /notes/7/%ff", "", b"", 400),
        ("PATCH /notes/7/a?page=x", &user, br#"{"text":"t"}"#, 400),
        ("PATCH /notes/7/a?q=%ff", &user, b"{", 400),
        ("PATCH /notes/7/a", JSON, b"{", 401),
        ("POST /form", "", b"name=a", 415),
        ("POST /form", &coded_form, b"name=a", 415),
        ("POST /form", form, b"name=%ff", 400),
        ("POST /form", form, many.as_bytes(), 413),
        ("POST /form", form, b"other=a", 400),
        ("POST /words", "", b"\xff", 400),
        ("POST /short", "", b"12345678901", 413),
    ];
    for (start, fields, body, expected) in cases {
        let mut service = service();
        service.send(&request(start, fields, body));
        let (status, said) = answer(&mut service);
        assert_eq!(
            status,
            expected,
            "{start} {}: {said}",
            body[..body.len().min(40)].escape_ascii()
        );
        let error: serde_json::Value = serde_json::from_str(&said).expect(&said);
        assert!(error["error"].as_str().is_some_and(|reason| !reason.is_empty()), "{said}");
        assert!(service.context().is_empty(), "{start}: {:?}", service.context());
    }
}

#[test]
fn a_refusal_has_the_fields_that_its_status_requires() {
    let mut service = service();
    service.send(&request("PATCH /notes/7/a", JSON, b"{"));
    let refused = service.take_response().expect("it is whole");
    assert_eq!(refused.status(), Status::UNAUTHORIZED);
    assert_eq!(refused.field("WWW-Authenticate"), Some("Who"));
}

#[test]
fn json_is_sent_with_any_status_and_extra_fields() {
    let created = |response: &mut Response<'_>, _: &mut Scope<'_, Calls>| {
        json::reply_with(response, Status::CREATED, &[("Location", b"/notes/7")], &[7])
    };
    // A key that JSON does not allow.
    let unsaid = |response: &mut Response<'_>, _: &mut Scope<'_, Calls>| {
        let value = std::collections::BTreeMap::from([((), 1)]);
        json::reply_with(response, Status::CREATED, &[("Location", b"/notes/7")], &value)
    };
    let router = Router::new().get("/", created).and_then(|router| router.get("/unsaid", unsaid));
    let mut service = Service::new(router.expect("routes").seed(), Calls::new());
    let created = service.get("/");
    assert_eq!((created.status(), created.text()), (Status::CREATED, "[7]"));
    assert_eq!(created.field("Location"), Some("/notes/7"));
    assert_eq!(created.field("Content-Type"), Some("application/json"));
    let failed = service.get("/unsaid");
    assert_eq!(failed.status(), Status::INTERNAL_SERVER_ERROR);
    assert_eq!(failed.text(), r#"{"error":"internal error"}"#);
}

#[test]
fn a_head_refused_by_the_connection_gets_a_json_error() {
    for (head, expected) in [
        ("GET / HTTP/1.1\r\n\r\n", "Host is missing"),
        ("GET / HTTP/1.1\nHost: a\n\n", "a line does not end with CR LF"),
    ] {
        let mut service = service();
        service.send(head.as_bytes());
        assert_eq!(answer(&mut service), (400, format!("{{\"error\":\"{expected}\"}}")));
    }
}

#[test]
fn each_route_has_its_own_body_limit() {
    for (length, expected) in [(9, 200), (10, 200), (11, 413)] {
        assert_eq!(ask("POST /short", "", &vec![b'x'; length]).0, expected, "{length}");
    }
    let default = rotor_service::ROUTE_BODY_BYTES_MAX;
    for (length, expected) in [(default, 200), (default + 1, 413)] {
        assert_eq!(ask("PUT /octets", "", &vec![b'x'; length]).0, expected, "{length}");
    }
}

#[test]
fn the_router_answers_options_and_head() {
    let (status, said) = ask("OPTIONS /notes", "", b"");
    assert_eq!((status, said.as_str()), (204, ""));
    let head = service().request("HEAD", "/", &[], b"");
    assert_eq!((head.status(), head.text()), (Status::OK, ""));
}

#[test]
fn a_truncated_body_reaches_no_function() {
    let whole = request("POST /notes", JSON, br#"{"text":"b"}"#);
    for length in 1..whole.len() {
        let mut service = service();
        service.send(&whole[..length]);
        service.end();
        assert!(service.context().is_empty(), "{length}: {:?}", service.context());
    }
}

#[test]
fn a_body_may_arrive_in_any_pieces() {
    let whole = request("POST /notes", JSON, br#"{"text":"b"}"#);
    for cut in 1..whole.len() {
        let mut service = service();
        service.send(&whole[..cut]);
        service.send(&whole[cut..]);
        assert_eq!(answer(&mut service), (201, "1".to_owned()), "{cut}");
    }
}

#[test]
fn a_response_may_come_later() {
    let mut service = service();
    service.send(&request("POST /later/2", "", b"abc"));
    assert_eq!((answer(&mut service), service.context().len()), ((0, String::new()), 1));
    service.advance(Duration::from_millis(999));
    assert_eq!(answer(&mut service), (0, String::new()));
    service.advance(Duration::from_millis(1));
    assert_eq!(answer(&mut service), (200, "ab".to_owned()));
    service.send(&request("POST /later/4", "", b"abc"));
    assert_eq!(answer(&mut service), (400, r#"{"error":"too few"}"#.to_owned()));
    assert_eq!(ask("POST /sum", "", b"[1,2]"), (200, "3".to_owned()));
    // The refusal is in JSON, no matter where it comes from.
    service.test().world().refuse_jobs(true);
    service.send(&request("POST /sum", "", b"[1]"));
    let refused = (503, r#"{"error":"Service Unavailable"}"#.to_owned());
    assert_eq!(answer(&mut service), refused);
}

#[test]
fn only_registered_extension_methods_are_served() {
    let report = Method::Extension("REPORT");
    let inner = Router::new().on(Method::Extension("MKCOL"), "/b", all).expect("a route");
    let router = Router::new().on(report, "/a", all).and_then(|router| router.nest("/n", inner));
    let router = router.expect("routes").fallback(all).intercept(
        |_: &Head<'_>, _: &mut Response<'_>, calls: &mut Scope<'_, Calls>| {
            calls.push("seen".to_owned());
        },
    );
    for (start, expected, calls) in [
        ("REPORT /a", 200, "seen all"),
        ("MKCOL /n/b", 200, "seen all"),
        ("MKCOL /a", 405, "seen"),
        ("GET /a", 405, "seen"),
        ("MKCOL /none", 200, "seen all"),
        ("report /a", 501, ""),
        ("BREW /a", 501, ""),
        ("BREW /none", 501, ""),
        ("TRACE /a", 501, ""),
        ("CONNECT a:80", 501, ""),
    ] {
        let mut service = Service::new(router.seed(), Calls::new());
        service.send(&request(start, "", b""));
        let (status, said) = answer(&mut service);
        assert_eq!((status, service.context().join(" ").as_str()), (expected, calls), "{start}");
        if status == 501 {
            assert_eq!(said, r#"{"error":"Not Implemented"}"#, "{start}");
            assert!(service.is_ended(), "{start}: as by the connection");
        }
    }
}

#[cfg(all(feature = "cookies", feature = "multipart"))]
#[test]
fn cookies_and_forms_can_be_arguments() {
    use rotor_service::{Cookies, Multipart};

    let upload = |cookies: Cookies,
                  form: Multipart,
                  body: &[u8],
                  response: &mut Response<'_>,
                  calls: &mut Scope<'_, Calls>| {
        calls.push("upload".to_owned());
        let parts = form.parts(body)?;
        let names: Vec<&str> = parts.iter().map(|part| part.head().name()).collect();
        let user = cookies.get("user").unwrap_or("nobody");
        Ok::<_, Rejection>(say(&format!("{} of {user}", names.join("+")), response))
    };
    let router = Router::new().post("/", upload).expect("a route");
    let part = "--x\r\nContent-Disposition: form-data; name=a\r\n\r\nb\r\n";
    let (whole, cut) = (format!("{part}{part}--x--"), part.repeat(2));
    let form = "Content-Type: multipart/form-data; boundary=x\r\n";
    let coded = format!("{form}Content-Encoding: gzip\r\n");
    let cookie = format!("{form}Cookie: user=eve\r\n");
    for (fields, body, expected, calls) in [
        (&cookie[..], &whole, (200, "a+a of eve"), 1),
        (form, &whole, (200, "a+a of nobody"), 1),
        (form, &cut, (400, r#"{"error":"the form is cut short"}"#), 1),
        ("", &whole, (415, r#"{"error":"a form of the type multipart/form-data is expected"}"#), 0),
        (&coded, &whole, (415, r#"{"error":"a body without content coding is expected"}"#), 0),
    ] {
        let mut service = Service::new(router.seed(), Calls::new());
        service.send(&request("POST /", fields, body.as_bytes()));
        let (status, said) = answer(&mut service);
        assert_eq!((status, said.as_str()), expected, "{fields:?}");
        assert_eq!(service.context().len(), calls, "{fields:?}");
    }
}

/// A client that sends `Expect: 100-continue` is not told to send a form that nobody reads.
#[cfg(feature = "multipart")]
#[test]
fn a_request_that_is_not_a_form_is_refused_before_its_body() {
    use rotor_service::Multipart;

    let upload =
        |form: Multipart, body: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, Calls>| {
            form.parts(body).map(|parts| say(&format!("{} parts", parts.len()), response))
        };
    let router = Router::new().body_bytes_max(100).post("/", upload).expect("a route");
    let form = "Content-Type: multipart/form-data; boundary=x\r\n";
    let coded = format!("{form}Content-Encoding: identity, gzip\r\n");
    for (fields, length, status) in [
        (form, 100, "100"),
        (form, 101, "413"),
        ("", 100, "415"),
        ("Content-Type: multipart/mixed; boundary=x\r\n", 100, "415"),
        ("Content-Type: multipart/form-data\r\n", 100, "400"),
        (&coded, 100, "415"),
    ] {
        let mut service = Service::new(router.seed(), Calls::new());
        let start = format!("POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n{fields}");
        service.send(format!("{start}Content-Length: {length}\r\n\r\n").as_bytes());
        let said = String::from_utf8(service.take_received()).expect("ASCII");
        assert!(said.starts_with(&format!("HTTP/1.1 {status} ")), "{fields:?}: {said}");
        assert_eq!(said.matches("HTTP/1.1").count(), 1, "{said}");
    }
}
