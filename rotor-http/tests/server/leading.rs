//! Fields that wrappers of a handler add at the beginning of its response.

use rotor_http::server::{
    Connection, Head, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn,
};
use rotor_http::{MessageError, Status};
use rotor_stream::testing::Driver;

use crate::probe::get;
use crate::wire;

type Function = fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, ()>) -> Reply;

const OUTER: &[(&str, &[u8])] = &[("X-Outer", b"1"), ("Date", b"today")];
const INNER: &[(&str, &[u8])] = &[("X-Inner", b"2"), ("Vary", b"Origin")];
const BAD: &[(&str, &[u8])] = &[("X-Good", b"3"), ("X-Bad", b"4\r\nX-Admin: yes")];
const RESERVED: &[(&str, &[u8])] = &[("X-Good", b"3"), ("Content-Length", b"4")];

/// Answers as the path says.
fn by_path(head: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    match head.path() {
        "/whole" => response.reply(Status::OK, "text/plain", b"hello"),
        "/with" => response.reply_with(Status::OK, &[("Vary", b"Accept")], "text/plain", b"hello"),
        "/none" => response.reply(Status::NO_CONTENT, "", b""),
        "/early" => {
            response.interim(Status::EARLY_HINTS, &[]).expect("before the status");
            response.reply(Status::OK, "text/plain", b"hello")
        }
        "/nothing" => Ok(()).into(),
        path => panic!("{path}"),
    }
}

fn with_outer_fields(
    head: &Head<'_>,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, ()>,
) -> Reply {
    response.with_fields(OUTER, |response| {
        response.with_fields(INNER, |response| by_path(head, response, scope))
    })
}

fn ask(function: Function, path: &str) -> String {
    let seed = HttpSeed::<ServerFn<Function, _>>::new(function, ServerConfig::new());
    let mut driver = Driver::<Connection<ServerFn<Function, ()>>>::new(seed, ());
    driver.send(&get(path));
    let received = driver.take_received();
    assert_eq!(wire::answers(&received).len(), if path == "/early" { 2 } else { 1 });
    String::from_utf8(received).expect("text")
}

#[test]
fn a_response_begins_with_the_fields_of_all_surrounding_layers() {
    let fields = "X-Inner: 2\r\nVary: Origin\r\nX-Outer: 1\r\nDate: today\r\n";
    let ok = format!("HTTP/1.1 200 OK\r\n{fields}Content-Type: text/plain\r\n");
    for (path, expected) in [
        ("/whole", format!("{ok}Content-Length: 5\r\n\r\nhello")),
        ("/with", format!("{ok}Vary: Accept\r\nContent-Length: 5\r\n\r\nhello")),
        ("/none", format!("HTTP/1.1 204 No Content\r\n{fields}\r\n")),
        ("/early", format!("HTTP/1.1 103 Early Hints\r\n\r\n{ok}Content-Length: 5\r\n\r\nhello")),
    ] {
        assert_eq!(ask(with_outer_fields, path), expected, "{path}");
    }
    let page = ask(with_outer_fields, "/nothing");
    assert!(page.starts_with("HTTP/1.1 500 ") && !page.contains("X-Outer"), "{page}");
}

#[test]
fn an_invalid_field_refuses_the_status_and_leaves_nothing_behind() {
    fn with_invalid_fields(
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Reply {
        for (fields, expected) in [
            (BAD, MessageError::FieldValue),
            (RESERVED, MessageError::FieldReserved("call `add_length`")),
        ] {
            let (refused, is_started) = response.with_fields(fields, |response| {
                (response.status(Status::OK), response.is_started())
            });
            assert_eq!((refused, is_started), (Err(expected), false));
        }
        by_path(head, response, scope)
    }
    let answer = ask(with_invalid_fields, "/whole");
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"), "{answer}");
    assert!(!answer.contains("X-"), "{answer}");
}

fn with_permanent_fields(
    head: &Head<'_>,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, ()>,
) -> Reply {
    for (name, value, expected) in [
        ("X-Always", "1: 2", Ok(())),
        ("X-Empty", "", Ok(())),
        ("X-Bad", "4\r\nX-Admin: yes", Err(MessageError::FieldValue)),
        ("X Bad", "4", Err(MessageError::FieldName)),
        ("Content-Length", "4", Err(MessageError::FieldReserved("call `add_length`"))),
    ] {
        assert_eq!(response.add_always(name, value), expected);
    }
    response.with_fields(INNER, |response| by_path(head, response, scope))
}

#[test]
fn permanent_fields_are_in_every_response_to_their_request_only() {
    let kept = "X-Always: 1: 2\r\nX-Empty: \r\n";
    let fields = format!("X-Inner: 2\r\nVary: Origin\r\n{kept}");
    for (path, begin) in [
        ("/whole", format!("HTTP/1.1 200 OK\r\n{fields}Content-Type: text/plain\r\n")),
        (
            "/with",
            format!("HTTP/1.1 200 OK\r\n{fields}Content-Type: text/plain\r\nVary: Accept\r\n"),
        ),
        ("/none", format!("HTTP/1.1 204 No Content\r\n{fields}Date: ")),
        ("/early", format!("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n{fields}")),
        ("/nothing", format!("HTTP/1.1 500 Internal Server Error\r\n{kept}Content-Type: ")),
        ("/panics", format!("HTTP/1.1 500 Internal Server Error\r\n{kept}Content-Type: ")),
    ] {
        let answer = ask(with_permanent_fields, path);
        assert!(answer.starts_with(&begin) && !answer.contains("Bad"), "{path}: {answer}");
    }
    fn permanent_fields_on_one_path(
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, ()>,
    ) -> Reply {
        match head.path() {
            "/none" => with_permanent_fields(head, response, scope),
            _ => by_path(head, response, scope),
        }
    }
    let seed = HttpSeed::<ServerFn<Function, _>>::new(
        permanent_fields_on_one_path as Function,
        ServerConfig::new(),
    );
    let mut driver = Driver::<Connection<ServerFn<Function, ()>>>::new(seed, ());
    driver.send(&[get("/none"), get("/whole")].concat());
    let received = String::from_utf8(driver.take_received()).expect("text");
    assert_eq!(received.matches("X-Always").count(), 1, "{received}");
}
