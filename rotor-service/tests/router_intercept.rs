//! Functions that see requests before the functions of a router's routes.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::Mutex;

use log::{LevelFilter, Log, Metadata, Record};
use rotor_http::Status;
use rotor_http::server::{Connection, Head, HttpSeed, Reply, Response, Scope, ServerConfig};
use rotor_service::{Cors, Path, Rejection, RouteError, RouteFn, Router};
use rotor_stream::testing::Driver;

/// The log lines of all tests.
static LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Lines;

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }
    fn log(&self, record: &Record<'_>) {
        LINES.lock().expect("no test panics with it").push(record.args().to_string());
    }
    fn flush(&self) {}
}

/// The functions that were called.
type Seen = Vec<String>;
type Routes = Result<Router<Seen>, RouteError>;
type Sc<'a, 'b> = &'a mut Scope<'b, Seen>;

fn seen(
    name: &'static str,
) -> impl Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, Seen>) + Send + Sync {
    move |head, response, seen| {
        seen.push(format!("{name} {}", head.path()));
        response.add_always("X-Seen", name).expect("a field");
    }
}

fn with_token(head: &Head<'_>, _: &mut Response<'_>, seen: Sc<'_, '_>) -> Result<(), Rejection> {
    seen.push("token".to_owned());
    head.field("Token").map(|_| ()).ok_or_else(|| {
        Rejection::new(Status::UNAUTHORIZED, "a token is needed").field("WWW-Authenticate", "Token")
    })
}

/// Redirects requests for an old path.
fn moved(
    head: &Head<'_>,
    response: &mut Response<'_>,
    _: Sc<'_, '_>,
) -> Result<ControlFlow<Reply>, Rejection> {
    match head.path() {
        "/old" => {
            let fields: &[(&str, &[u8])] = &[("Location", b"/new")];
            Ok(Break(response.reply_with(Status::FOUND, fields, "", b"")))
        }
        "/never" => Err(Rejection::not_found()),
        _ => Ok(Continue(())),
    }
}

fn page(response: &mut Response<'_>, seen: Sc<'_, '_>) -> Reply {
    seen.push("page".to_owned());
    response.reply(Status::OK, "text/plain", b"page")
}

fn put(id: Path<u32>, body: &[u8], response: &mut Response<'_>, seen: Sc<'_, '_>) -> Reply {
    seen.push(format!("put {} {}", id.0, body.len()));
    assert_ne!(id.0, 13, "a planned panic");
    response.reply(Status::OK, "text/plain", b"put")
}

fn no_page(_: &Head<'_>, response: &mut Response<'_>, seen: Sc<'_, '_>) -> Reply {
    seen.push("no page".to_owned());
    response.reply(Status::NOT_FOUND, "text/plain", b"no page")
}

/// The answer (status, `X-Seen`, body), and the functions that were called.
fn ask(router: &Router<Seen>, start: &str, fields: &str, body: &str) -> (String, String) {
    let seed = HttpSeed::new(router.seed(), ServerConfig::new());
    let mut driver = Driver::<Connection<RouteFn<Seen>>>::new(seed, Seen::new());
    let length = body.len();
    let head = format!("{start} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n");
    driver.send(head.as_bytes());
    driver.send(body.as_bytes());
    let text = String::from_utf8(driver.take_received()).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a whole answer");
    let status = head.get(9..12).expect("a status");
    let fields = head.split("\r\n").filter_map(|line| line.strip_prefix("X-Seen: "));
    let names: Vec<&str> = fields.collect();
    (format!("{status} {} {body}", names.join(",")), driver.context().join(", "))
}

fn check(router: &Router<Seen>, start: &str, fields: &str, answer: &str, called: &str) {
    let body = if start.starts_with("PUT") { "hello" } else { "" };
    let expected = (answer.to_owned(), called.to_owned());
    assert_eq!(ask(router, start, fields, body), expected, "{start}");
}

#[test]
fn interceptors_run_in_order_until_one_responds() {
    let site = |router: Router<Seen>| -> Routes {
        router.get("/new", page)?.put("/{id}", put).map(|router| router.intercept(seen("b")))
    };
    let router = site(Router::new().intercept(seen("a")).intercept(moved)).expect("routes");
    check(&router, "GET /new", "", "200 a,b page", "a /new, b /new, page");
    check(&router, "HEAD /new", "", "200 a,b ", "a /new, b /new, page");
    check(&router, "PUT /7", "", "200 a,b put", "a /7, b /7, put 7 5");
    check(&router, "GET /old", "", "302 a ", "a /old");
    check(&router, "PUT /old", "", "302 a ", "a /old");
    let not_found = "{\"error\":\"not found\"}";
    check(&router, "GET /never", "", &format!("404 a {not_found}"), "a /never");
    check(
        &router,
        "GET /none/such",
        "",
        &format!("404 a,b {not_found}"),
        "a /none/such, b /none/such",
    );
    let not_allowed = "{\"error\":\"method not allowed\"}";
    check(&router, "PUT /new", "", &format!("405 a,b {not_allowed}"), "a /new, b /new");
    check(&router, "OPTIONS /new", "", "204 a,b ", "a /new, b /new");
    let failed = "{\"error\":\"Internal Server Error\"}";
    check(&router, "PUT /13", "", &format!("500 a,b {failed}"), "a /13, b /13, put 13 5");
}

#[test]
fn a_refused_request_gets_a_reason_and_its_body_is_not_requested() {
    let router = Router::new().intercept(with_token).put("/{id}", put).expect("a route");
    let refused = "401  {\"error\":\"a token is needed\"}";
    check(&router, "PUT /7", "", refused, "token");
    check(&router, "PUT /7", "Token: x\r\n", "200  put", "token, put 7 5");
    // A client that waits for permission to send gets the answer, and no permission.
    let seed = HttpSeed::new(router.seed(), ServerConfig::new());
    let mut driver = Driver::<Connection<RouteFn<Seen>>>::new(seed, Seen::new());
    driver.send(b"PUT /7 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n");
    let text = String::from_utf8(driver.take_received()).expect("text");
    assert!(text.starts_with("HTTP/1.1 401 "), "{text}");
    assert!(text.contains("\r\nWWW-Authenticate: Token\r\n"), "{text}");
}

#[test]
fn interceptors_of_a_nested_router_run_for_its_functions_only() {
    let inner = || -> Routes { Router::new().intercept(seen("inner")).get("/page", page) };
    let users = || -> Routes {
        let users = Router::new().intercept(with_token).intercept(seen("users"));
        let users = users.get("/", page)?.fallback(no_page).nest("/inner", inner()?);
        // Added after `nest`, but it still runs before the nested router.
        users.map(|users| users.intercept(seen("late")))
    };
    let router = || -> Routes {
        let router = Router::new().get("/login", page)?.nest("/{user}", users()?)?;
        Ok(router.intercept(seen("all")))
    };
    let router = router().expect("routes");
    let token = "Token: x\r\n";
    // A path that the prefix covers as well, but that is a route of another router.
    check(&router, "GET /login", "", "200 all page", "all /login, page");
    let refused = "401 all {\"error\":\"a token is needed\"}";
    // In any encoding of the path: the path of the route counts.
    for path in ["/eve", "/%65ve", "/eve/inner/page", "/eve/%69nner/page", "/eve/none"] {
        check(&router, &format!("GET {path}"), "", refused, &format!("all {path}, token"));
    }
    check(
        &router,
        "GET /eve",
        token,
        "200 all,users,late page",
        "all /eve, token, users /eve, late /eve, page",
    );
    check(
        &router,
        "GET /eve/inner/page",
        token,
        "200 all,users,late,inner page",
        "all /eve/inner/page, token, users /eve/inner/page, late /eve/inner/page, \
         inner /eve/inner/page, page",
    );
    // The fallback is a function of the users' router, also below the inner prefix.
    for path in ["/eve/none", "/eve/inner/none"] {
        check(
            &router,
            &format!("GET {path}"),
            token,
            "404 all,users,late no page",
            &format!("all {path}, token, users {path}, late {path}, no page"),
        );
    }
    // None of the users' functions is called.
    let not_allowed = "405 all {\"error\":\"method not allowed\"}";
    check(&router, "PUT /eve", token, not_allowed, "all /eve");
}

#[test]
fn a_preflight_is_answered_before_the_interceptors_run() {
    let router = Router::new().cors(Cors::any()).intercept(with_token).get("/", page);
    let router = router.expect("a route");
    let preflight = "Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n";
    check(&router, "OPTIONS /", preflight, "204  ", "");
    check(&router, "OPTIONS /", "", "401  {\"error\":\"a token is needed\"}", "token");
}

#[test]
fn an_interceptor_that_responds_and_continues_ends_the_request() {
    fn both(_: &Head<'_>, response: &mut Response<'_>, _: Sc<'_, '_>) {
        let _: Reply = response.reply(Status::OK, "text/plain", b"both");
    }
    log::set_logger(&Lines).expect("the first logger");
    log::set_max_level(LevelFilter::Error);
    let router = Router::new().intercept(both).intercept(seen("a")).get("/", page);
    check(&router.expect("a route"), "GET /", "", "200  both", "");
    let lines = LINES.lock().expect("no test panics with it").clone();
    let named = "::both wrote a part of a response to a request that it passes on";
    assert!(lines.iter().any(|line| line.ends_with(named)), "{lines:?}");
}
