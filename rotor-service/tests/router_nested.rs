//! Routers below a prefix, and the answers for paths without a route.

use rotor_http::server::{Connection, Head, HttpSeed, Reply, Response, Scope, ServerConfig};
use rotor_http::{Method, Status};
use rotor_service::{Cors, FromHead, Path, Rejection, RequestParts, RouteError, RouteFn, Router};
use rotor_stream::testing::Driver;

type Routes = Result<Router<()>, RouteError>;

/// The parameter of a prefix.
struct User(String);

impl FromHead for User {
    fn from_head(asked: &mut RequestParts<'_>) -> Result<User, Rejection> {
        Ok(User(asked.parameters().text("user")?.into_owned()))
    }
}

fn say(text: &str, response: &mut Response<'_>) -> Reply {
    response.reply(Status::OK, "text/plain", text.as_bytes())
}

fn home(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    say(&format!("home {}", head.path()), response)
}

fn note(Path(id): Path<u32>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    say(&format!("note {id}"), response)
}

fn note_of(
    User(user): User,
    Path(id): Path<u32>,
    response: &mut Response<'_>,
    _: &mut Scope<'_, ()>,
) -> Reply {
    say(&format!("note {id} of {user}"), response)
}

fn put(
    Path(id): Path<u32>,
    body: &[u8],
    response: &mut Response<'_>,
    _: &mut Scope<'_, ()>,
) -> Reply {
    say(&format!("put {id} {}", body.len()), response)
}

fn gone(
    text: &'static str,
) -> impl Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply + Copy {
    move |head, response, _| {
        let page = format!("{text} {} {}", head.method(), head.path());
        response.reply(Status::NOT_FOUND, "text/plain", page.as_bytes())
    }
}

fn length(body: &[u8], response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(Status::NOT_FOUND, "text/plain", body.len().to_string().as_bytes())
}

fn notes() -> Routes {
    Router::new()
        .get("/", home)?
        .get("/notes/", home)?
        .get("/notes/{id}", note)?
        .body_bytes_max(3)
        .put("/notes/{id}", put)
}

/// The status, the relevant fields, and the body.
fn ask(router: &Router<()>, start: &str, fields: &str, body: &str) -> String {
    let seed = HttpSeed::new(router.seed(), ServerConfig::new());
    let mut driver = Driver::<Connection<RouteFn<()>>>::new(seed, ());
    let length = body.len();
    let text =
        format!("{start} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n{fields}\r\n{body}");
    driver.send(text.as_bytes());
    let text = String::from_utf8(driver.take_received()).expect("text");
    let is_shown = |line: &&str| {
        !["Date: ", "Content-", "Connection: "].iter().any(|field| line.starts_with(field))
    };
    text.trim_start_matches("HTTP/1.1 ")
        .split("\r\n")
        .filter(is_shown)
        .collect::<Vec<_>>()
        .join("|")
}

const NOTHING: &str = r#"404 Not Found||{"error":"not found"}"#;

#[test]
fn a_nested_router_has_its_routes_below_the_prefix() {
    let router = notes().and_then(|notes| {
        Router::new()
            .get("/", home)?
            .delete("/api/notes/{id}", note)?
            .nest("/api", notes)?
            .nest("/users/{user}", Router::new().get("/notes/{id}", note_of)?.get("/{id}", note)?)
    });
    let router = router.expect("routes");
    for (start, body, expected) in [
        ("GET /", "", "200 OK||home /"),
        ("GET /api", "", "200 OK||home /api"),
        ("GET /api?q", "", "200 OK||home /api"),
        ("HEAD /api", "", "200 OK||"),
        ("GET /api/", "", NOTHING),
        ("GET /api/notes/", "", "200 OK||home /api/notes/"),
        ("GET /api/notes", "", NOTHING),
        ("GET /apinotes/7", "", NOTHING),
        ("GET /notes/7", "", NOTHING),
        ("GET /api/notes/7", "", "200 OK||note 7"),
        ("GET /api/notes/x", "", NOTHING),
        ("DELETE /api/notes/7", "", "200 OK||note 7"),
        ("PUT /api/notes/7", "abc", "200 OK||put 7 3"),
        (
            "PUT /api/notes/7",
            "abcd",
            r#"413 Content Too Large||{"error":"the body is larger than its limit"}"#,
        ),
        ("GET /users/eve/notes/7", "", "200 OK||note 7 of eve"),
        ("GET /users/a%2Fb/notes/7", "", "200 OK||note 7 of a/b"),
        ("GET /users/eve/7", "", "200 OK||note 7"),
        ("GET /users//notes/7", "", NOTHING),
        (
            "PATCH /api/notes/7",
            "",
            "405 Method Not Allowed|Allow: DELETE, GET, HEAD, OPTIONS, PUT||\
             {\"error\":\"method not allowed\"}",
        ),
        ("OPTIONS /api/notes/7", "", "204 No Content|Allow: DELETE, GET, HEAD, OPTIONS, PUT||"),
        ("OPTIONS *", "", "204 No Content|Allow: DELETE, GET, HEAD, OPTIONS, PUT||"),
    ] {
        assert_eq!(ask(&router, start, "", body), expected, "{start}");
    }
}

#[test]
fn prefixes_of_nested_routers_are_joined() {
    let inner = Router::new().get("/notes/{id}", note_of).expect("a route");
    let middle = Router::new().nest("/of/{user}", inner).expect("a prefix");
    let router = Router::new().nest("/{tenant}/v1", middle).expect("a prefix");
    assert_eq!(ask(&router, "GET /acme/v1/of/eve/notes/7", "", ""), "200 OK||note 7 of eve");
    assert_eq!(ask(&router, "GET /of/eve/notes/7", "", ""), NOTHING);
}

#[test]
fn conflicts_of_nested_and_existing_routes_are_refused() {
    let two = || Router::new().get("/a/{id}", note)?.get("/b", home);
    let fallback = || Ok(two()?.fallback(gone("x")));
    let crossed = || Ok(two()?.cors(Cors::any()));
    let cases: [(&str, Routes, &str); 14] = [
        ("", two(), "\"\" cannot be added: as a prefix, it begins with a slash"),
        ("api", two(), "\"api\" cannot be added: as a prefix, it begins with a slash"),
        ("/", two(), "\"/\" cannot be added: as a prefix, it has at least one segment"),
        ("/x/", two(), "\"/x/\" cannot be added: as a prefix, it ends without a slash"),
        ("/{*rest}", two(), "\"/{*rest}\" cannot be added: as a prefix, it has names and"),
        ("/{x", two(), "\"/{x\" cannot be added: as a prefix, it has names and"),
        ("/there", two(), "\"/there/b\" cannot be added: GET has a function there already"),
        (
            "/other",
            two(),
            "\"/other/a/{id}\" cannot be added: it cannot be told from \"/other/a/{x}\"",
        ),
        (
            "/p/{id}",
            two(),
            "\"/p/{id}/a/{id}\" cannot be added: two of its parameters have the name \"id\"",
        ),
        (
            "/with",
            fallback(),
            "\"/with\" cannot be added: a fallback is there already, for \"/with\"",
        ),
        (
            "/by/{y}",
            fallback(),
            "\"/by/{y}\" cannot be added: a fallback is there already, for \"/by/{x}\"",
        ),
        ("/with", crossed(), "\"/with\" cannot be added: CORS is there already, for \"/with\""),
        (
            "/api",
            Router::new().on(Method::Options, "*", home),
            "\"*\" cannot be added: it cannot be nested",
        ),
        (
            "/none",
            Router::new().get("none", home),
            "\"none\" cannot be added: it does not begin with",
        ),
    ];
    for (prefix, nested, expected) in cases {
        let outer = Router::new()
            .get("/there/b", home)
            .and_then(|router| router.get("/other/a/{x}", note))
            .and_then(|router| {
                router.nest("/with", Router::new().fallback(gone("with")).cors(Cors::any()))
            })
            .and_then(|router| router.nest("/by/{x}", Router::new().fallback(gone("by"))));
        let added = nested.and_then(|nested| outer?.nest(prefix, nested));
        let error = added.expect_err(prefix).to_string();
        assert!(error.contains(expected), "{error}");
    }
    let error =
        two().and_then(|router| router.get("/b", home)).expect_err("it is there").to_string();
    assert_eq!(error, "the route \"/b\" cannot be added: GET has a function there already");
}

#[test]
fn a_fallback_answers_only_paths_without_a_route() {
    let router = notes().expect("routes").fallback(gone("outer"));
    for (start, expected) in [
        ("GET /none", "404 Not Found||outer GET /none"),
        ("POST /none?q", "404 Not Found||outer POST /none"),
        ("HEAD /none", "404 Not Found||"),
        ("OPTIONS /none", "404 Not Found||outer OPTIONS /none"),
        ("GET /", "200 OK||home /"),
        // The path has a route, so its answer counts.
        ("GET /notes/x", NOTHING),
        ("OPTIONS *", "204 No Content|Allow: GET, HEAD, OPTIONS, PUT||"),
        ("OPTIONS /", "204 No Content|Allow: GET, HEAD, OPTIONS||"),
        (
            "POST /",
            "405 Method Not Allowed|Allow: GET, HEAD, OPTIONS||\
             {\"error\":\"method not allowed\"}",
        ),
    ] {
        assert_eq!(ask(&router, start, "", ""), expected, "{start}");
    }
    // A custom route for the whole server applies, and the last fallback.
    let router = router.on(Method::Options, "*", home).expect("a route").fallback(gone("last"));
    assert_eq!(ask(&router, "OPTIONS *", "", ""), "200 OK||home *");
    assert_eq!(ask(&router, "GET /none", "", ""), "404 Not Found||last GET /none");
    // With a body, within its limit.
    let router = Router::new().body_bytes_max(3).fallback(length);
    assert_eq!(ask(&router, "PUT /a", "", "abc"), "404 Not Found||3");
    assert!(ask(&router, "PUT /a", "", "abcd").starts_with("413 "));
}

#[test]
fn a_nested_router_keeps_or_inherits_its_fallback_and_cors() {
    let page = "Origin: https://app.example\r\n";
    let api = || Ok::<_, RouteError>(notes()?.fallback(gone("api")).cors(Cors::any()));
    let site = |site: Router<()>| site.fallback(gone("site"));
    let router = api().and_then(|api| {
        let outer = Router::new().nest("/api", api)?.nest("/plain", notes()?)?;
        let below = notes()?.nest("/inner", Router::new().fallback(gone("inner")))?;
        outer.nest("/below", below)
    });
    let router = site(router.expect("routes"));
    let any_of = "|Access-Control-Allow-Origin: *|";
    let any = &format!("{any_of}|");
    for (start, expected) in [
        ("GET /", "404 Not Found||site GET /"),
        ("GET /apis", "404 Not Found||site GET /apis"),
        ("GET /plain/none", "404 Not Found||site GET /plain/none"),
        ("GET /plain/notes/7", "200 OK||note 7"),
        ("GET /below/x", "404 Not Found||site GET /below/x"),
        ("GET /below/inner", "404 Not Found||inner GET /below/inner"),
        ("GET /below/inner/x/y", "404 Not Found||inner GET /below/inner/x/y"),
        ("GET /api", &format!("200 OK{any}home /api")),
        ("GET /api/", &format!("404 Not Found{any}api GET /api/")),
        ("GET /api/none", &format!("404 Not Found{any}api GET /api/none")),
        ("GET /api/notes/7", &format!("200 OK{any}note 7")),
        (
            "POST /api/notes/7",
            &format!(
                "405 Method Not Allowed{any_of}Allow: GET, HEAD, OPTIONS, PUT||\
                 {{\"error\":\"method not allowed\"}}"
            ),
        ),
    ] {
        assert_eq!(ask(&router, start, page, ""), expected, "{start}");
    }
    // A preflight is answered for every path below the prefix, and for no other.
    let preflight = format!("{page}Access-Control-Request-Method: PUT\r\n");
    let answered = ask(&router, "OPTIONS /api/none", &preflight, "");
    assert!(answered.starts_with("204 No Content|Access-Control-Allow-Origin: *|"), "{answered}");
    let answered = ask(&router, "OPTIONS /plain/notes/7", &preflight, "");
    assert_eq!(answered, "204 No Content|Allow: GET, HEAD, OPTIONS, PUT||");
    // The outer router's CORS applies to nested routers without their own, whenever it is set.
    let named = Cors::of(["https://app.example"]).expect("an origin");
    let router = router.cors(named);
    let answered = ask(&router, "GET /plain/notes/7", page, "");
    assert!(answered.contains("|Access-Control-Allow-Origin: https://app.example|"), "{answered}");
    let answered = ask(&router, "GET /api/notes/7", page, "");
    assert_eq!(answered, format!("200 OK{any}note 7"));
}
