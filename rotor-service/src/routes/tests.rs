//! Tables of requests and of paths that are refused.

use std::borrow::Cow;

use rotor_http::Status;

use super::*;

fn table() -> Routes<&'static str> {
    let mut routes = Routes::new();
    for (method, path, value) in [
        (Method::Get, "/", "home"),
        (Method::Get, "/todos", "list"),
        (Method::Post, "/todos", "add"),
        (Method::Get, "/todos/{id}", "show"),
        (Method::Delete, "/todos/{id}", "remove"),
        (Method::Get, "/todos/new", "form"),
        (Method::Get, "/files/{*rest}", "file"),
        (Method::Put, "/only", "put"),
        (Method::Get, "/lists/{list}/{id}", "entry"),
    ] {
        routes.add(method, path, value).expect("a route");
    }
    routes
}

#[test]
fn a_method_and_a_path_lead_to_one_route_or_to_a_refusal() {
    let routes = table();
    for (method, path, expected) in [
        (Method::Get, "/", "home"),
        (Method::Get, "/todos", "list"),
        (Method::Head, "/todos", "list"),
        (Method::Post, "/todos", "add"),
        (Method::Get, "/todos/7", "show"),
        (Method::Get, "/todos/new", "form"),
        (Method::Get, "/files/a/b", "file"),
        (Method::Put, "/todos", "405 GET, HEAD, OPTIONS, POST"),
        (Method::Delete, "/todos/new", "405 GET, HEAD, OPTIONS"),
        (Method::Head, "/only", "405 OPTIONS, PUT"),
        (Method::Extension("GETT"), "/", "405 GET, HEAD, OPTIONS"),
        (Method::Get, "/todos/", "404 "),
        (Method::Get, "/todos/7/8", "404 "),
        (Method::Get, "/lists/a/7", "entry"),
        (Method::Get, "/lists//7", "404 "),
        (Method::Get, "/lists/a/", "404 "),
        (Method::Get, "/files/", "404 "),
        (Method::Get, "", "404 "),
        (Method::Options, "/todos", "204 GET, HEAD, OPTIONS, POST"),
        (Method::Options, "/only", "204 OPTIONS, PUT"),
        (Method::Options, "*", "204 DELETE, GET, HEAD, OPTIONS, POST, PUT"),
        (Method::Options, "/none", "404 "),
        (Method::Get, "*", "404 "),
        (Method::Get, "/TODOS", "404 "),
        (Method::Get, "/todos%2F7", "404 "),
    ] {
        let found = match routes.find(method, path) {
            Ok((value, _)) => (*value).to_owned(),
            Err(refused) => {
                format!("{} {}", refused.status().code(), refused.allow().unwrap_or_default())
            }
        };
        assert_eq!(found, expected, "{method} {path}");
    }
}

#[test]
fn the_first_differing_segment_decides_between_two_routes() {
    let mut routes = Routes::new();
    for path in
        ["/{a}/b/c", "/{a}/x/c", "/a/{b}/{c}", "/a/b/{c}", "/a/{b}/x/{*rest}", "/{a}/{b}/x/y"]
    {
        routes.add(Method::Get, path, path).expect("a route");
    }
    for (path, expected) in [
        ("/a/b/c", "/a/b/{c}"),
        // Though `/{a}/x/c` has fewer parameters.
        ("/a/x/c", "/a/{b}/{c}"),
        ("/x/b/c", "/{a}/b/c"),
        ("/x/b/x/y", "/{a}/{b}/x/y"),
        ("/a/b/x/y", "/a/{b}/x/{*rest}"),
        ("/a/b/x/y/z", "/a/{b}/x/{*rest}"),
    ] {
        assert_eq!(*routes.find(Method::Get, path).expect(path).0, expected, "{path}");
    }
}

#[test]
fn a_route_is_found_for_which_no_parameter_is_empty() {
    let mut routes = Routes::new();
    for path in [
        "/{*rest}",
        "/lists/{list}/{id}",
        "/a/{b}/{*rest}",
        "/a/b/c/{d}/e",
        "/x//{y}/z",
        "/x/{y}/{z}/z",
        "/u/v{version}/x",
        "/u/{tenant}/x",
    ] {
        routes.add(Method::Get, path, path).expect("a route");
    }
    for (path, expected) in [
        ("/lists/a/7", "/lists/{list}/{id} list=a id=7"),
        ("/lists//7", "/{*rest} rest=lists//7"),
        ("/lists//7/8", "/{*rest} rest=lists//7/8"),
        ("/a/x/c//", "/a/{b}/{*rest} b=x rest=c//"),
        ("/a/b//x", "/a/{b}/{*rest} b=b rest=/x"),
        ("/a/b/c//e", "/a/{b}/{*rest} b=b rest=c//e"),
        ("/a//c/d", "/{*rest} rest=a//c/d"),
        ("//b/x", "/{*rest} rest=/b/x"),
        ("/x//y/z", "/x//{y}/z y=y"),
        ("/x/y//z", "/{*rest} rest=x/y//z"),
        ("/u/v7/x", "/u/v{version}/x version=7"),
        ("/u/v/x", "/u/{tenant}/x tenant=v"),
    ] {
        let (found, parameters) = routes.find(Method::Get, path).expect(path);
        let parameters = parameters.0.as_ref().map(Params::iter);
        let parameters = parameters.into_iter().flatten();
        let found = parameters
            .fold((*found).to_owned(), |found, (name, value)| format!("{found} {name}={value}"));
        assert_eq!(found, expected, "{path}");
    }
}

#[test]
fn an_explicit_options_route_is_used() {
    let mut routes = table();
    routes.add(Method::Options, "/only", "options").expect("a route");
    assert_eq!(*routes.find(Method::Options, "/only").expect("a route").0, "options");
    let refused = routes.find(Method::Get, "/only").expect_err("it is for others");
    assert_eq!(refused.allow(), Some("OPTIONS, PUT"));
}

#[test]
fn parameters_are_available_raw_and_decoded() {
    let routes = table();
    let text = |path| {
        let (_, parameters) = routes.find(Method::Get, path).expect("a route");
        parameters.text("id").map(Cow::into_owned).map_err(|refused| refused.status())
    };
    assert_eq!(text("/todos/a%20b"), Ok("a b".to_owned()));
    assert_eq!(text("/todos/%2F..%2F"), Ok("/../".to_owned()), "one segment, whatever is in it");
    assert_eq!(text("/todos/%zz"), Ok("%zz".to_owned()));
    assert_eq!(text("/todos/%ff"), Err(Status::BAD_REQUEST));
    assert_eq!(text("/"), Err(Status::NOT_FOUND));
    let (_, parameters) = routes.find(Method::Get, "/todos/7").expect("a route");
    assert_eq!((parameters.parse("id"), parameters.raw("id")), (Ok(7), Some("7")));
    let (_, parameters) = routes.find(Method::Get, "/todos/%37%20").expect("a route");
    assert_eq!(parameters.parse("id"), Ok("7 ".to_owned()), "as the text is");
    let (_, parameters) = routes.find(Method::Get, "/todos/%37").expect("a route");
    assert_eq!(parameters.parse("id"), Ok(7), "the same digit (RFC 3986 §2.3)");
    for path in ["/todos/x", "/todos/-1", "/todos/99999999999999999999"] {
        let (_, parameters) = routes.find(Method::Get, path).expect("a route");
        let status = parameters.parse::<u64>("id").map_err(|refused| refused.status());
        assert_eq!(status, Err(Status::NOT_FOUND), "{path}");
    }
}

#[test]
fn an_ambiguous_route_is_refused_and_an_equal_one_replaces() {
    let mut routes = table();
    for (path, why) in [
        ("todos", "does not begin with a slash"),
        ("", "does not begin with a slash"),
        ("{*rest}", "does not begin with a slash"),
        ("/todos/{other}", "cannot be told from \"/todos/{id}\""),
        ("/files/{*all}", "cannot be told from \"/files/{*rest}\""),
        ("/{", "valid name"),
        ("/{a}.txt", "with nothing behind it"),
        ("/{a}{b}", "one parameter at most"),
        ("/a/{*b}/c", "at the end"),
        ("/new/{a}/{*b}/c", "at the end"),
        ("/a/{b}/c/{b}", "two of its parameters have the name \"b\""),
        ("/a/{b}/{*b}", "the name \"b\""),
        ("/caf\u{e9}", "no path is sent with '\u{e9}'"),
        ("/{a}/\u{e9}", "no path is sent with '\u{e9}'"),
        ("/a b", "no path is sent with ' '"),
        ("/a?b={b}", "no path is sent with '?'"),
        ("/a#b", "no path is sent with '#'"),
        ("/users/<id>", "no path is sent with '<'"),
        ("/a>b", "no path is sent with '>'"),
        ("/a\"b", "no path is sent with '\"'"),
    ] {
        let error = routes.add(Method::Get, path, "x").expect_err("it is ambiguous").to_string();
        let pattern = format!("{path:?}");
        assert!(error.contains(&pattern) && error.contains(why), "{error}");
    }
    routes.add(Method::Get, "/new/{*rest}", "x").expect("a refused one leaves nothing behind");
    routes.add(Method::Get, "/a\\b^c|d`e", "x").expect("what a request target may have");
    routes.add(Method::Get, "/{{a}}/{{a}}/{a}", "x").expect("braces");
    routes.add(Method::Get, "/caf%C3%A9/{gr\u{f6}\u{df}e}", "x").expect("a name is only ours");
    routes.add(Method::Get, "/todos/{id}", "new").expect("it replaces");
    routes.add(Method::Patch, "/todos/{id}", "patch").expect("beside it");
    assert_eq!(*routes.find(Method::Get, "/todos/7").expect("a route").0, "new");
    assert_eq!(*routes.find(Method::Delete, "/todos/7").expect("a route").0, "remove");
    assert_eq!(*routes.find(Method::Patch, "/todos/7").expect("a route").0, "patch");
}
