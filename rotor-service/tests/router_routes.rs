//! Which functions can be added to a router.

use rotor_http::Method;
use rotor_http::server::{Reply, Response, Scope};
use rotor_service::{Path, Rejection, Router};

fn all(response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    response.reply(rotor_http::Status::OK, "text/plain", b"all")
}

#[test]
fn a_function_with_more_parameters_than_its_path_is_refused() {
    let two = |_: Path<u8>, _: Path<u8>, _: &mut Response<'_>, _: &mut Scope<'_, ()>| {
        Rejection::not_found()
    };
    for (path, is_added) in [
        ("/", false),
        ("/{a}", false),
        ("/{a}/{{b", false),
        ("/{a}/{b}", true),
        ("/{a}/{*b}", true),
    ] {
        let added = Router::new().put(path, two);
        assert_eq!(added.is_ok(), is_added, "{path}");
        if let Err(error) = added {
            assert!(error.to_string().contains("2 parameters"), "{error}");
        }
    }
}

#[test]
fn an_unreachable_function_is_refused() {
    let twice = Router::new().get("/a", all).and_then(|router| router.get("/a", all));
    let error = twice.expect_err("the first would not be").to_string();
    assert_eq!(error, "the route \"/a\" cannot be added: GET has a function there already");
    for path in ["a", "", "{a}", "**", "*"] {
        let error = Router::new().get(path, all).expect_err(path).to_string();
        assert!(error.contains("does not begin with a slash"), "{error}");
    }
    Router::new().on(Method::Options, "*", all).expect("all of the server");
    let long = "M".repeat(Method::BYTES_MAX + 1);
    for method in [
        Method::Connect,
        Method::Trace,
        Method::Extension("TRACE"),
        Method::Extension("a b"),
        Method::Extension(""),
        Method::Extension(&long),
    ] {
        let error = Router::new().on(method, "/a", all).expect_err(method.as_str()).to_string();
        assert!(error.contains(&format!("{:?}", method.as_str())), "{error}");
    }
    Router::new().on(Method::Extension(&long[1..]), "/a", all).expect("the longest that is read");
}
