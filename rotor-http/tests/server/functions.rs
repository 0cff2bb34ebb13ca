//! Functions as servers, and replies that are written whole.

use rotor_http::server::{
    Connection, Head, HttpSeed, Reply, Response, Scope, ServerConfig, ServerFn,
};
use rotor_http::{MessageError, Status};
use rotor_stream::testing::Driver;

use crate::probe::get;
use crate::wire;

type Function = fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, Vec<String>>) -> Reply;

/// Records the request, and replies as the path says: correctly, or with one of the mistakes.
fn by_path(
    head: &Head<'_>,
    response: &mut Response<'_>,
    paths: &mut Scope<'_, Vec<String>>,
) -> Reply {
    paths.push(head.path().to_owned());
    match head.path() {
        "/" => response.reply(Status::OK, "text/plain", b"hello"),
        "/with" => {
            response.reply_with(Status::NOT_FOUND, &[("X-A", b"b")], "text/plain", b"nothing")
        }
        "/steps" => in_steps(response).into(),
        "/type" => response.reply(Status::OK, "text/plain\r\nX-Admin: yes", b"hello"),
        "/field" => response.reply_with(Status::OK, &[("X-A", b"b\nc")], "text/plain", b"hello"),
        "/begun" => {
            let _begun = response.status(Status::OK);
            response.reply(Status::OK, "text/plain", b"hello")
        }
        "/gone" => response.reply(Status::NO_CONTENT, "text/plain", b""),
        "/same" => {
            response.reply_with(Status::NOT_MODIFIED, &[("ETag", b"\"a\"")], "text/plain", b"")
        }
        "/gone-with" => response.reply(Status::NO_CONTENT, "text/plain", b"hello"),
        "/cut" => response.add_length(1).into(),
        path => panic!("{path}"),
    }
}

fn in_steps(response: &mut Response<'_>) -> Result<(), MessageError> {
    response.status(Status::CREATED)?;
    response.add_length(2)?;
    response.done_headers()?;
    response.write_body(b"ok")?;
    response.done()
}

fn driver() -> Driver<Connection<ServerFn<Function, Vec<String>>>> {
    Driver::new(HttpSeed::<ServerFn<Function, _>>::new(by_path, ServerConfig::new()), Vec::new())
}

#[test]
fn a_function_replies_to_each_request_and_has_the_context() {
    let mut driver = driver();
    for (path, status, body) in
        [("/", 200, "hello"), ("/with", 404, "nothing"), ("/steps", 201, "ok")]
    {
        driver.send(&get(path));
        let answers = wire::answers(&driver.take_received());
        assert_eq!(answers.len(), 1, "{path}");
        assert_eq!(
            (answers[0].status, answers[0].body.as_slice()),
            (status, body.as_bytes()),
            "{path}"
        );
    }
    assert_eq!(*driver.test().context(), ["/", "/with", "/steps"]);
    assert!(driver.is_alive());
}

#[test]
fn a_status_without_a_body_is_sent_without_a_length() {
    let mut driver = driver();
    for (path, status) in [("/gone", "204 No Content"), ("/same", "304 Not Modified")] {
        driver.send(&get(path));
        let text = String::from_utf8(driver.take_received()).expect("text");
        assert!(
            text.starts_with(&format!("HTTP/1.1 {status}\r\n")) && text.ends_with("\r\n\r\n"),
            "{path}: {text}"
        );
        assert!(!text.contains("Content-"), "{path}: {text}");
    }
    assert!(driver.is_alive());
}

/// A body that a function cannot see is not taken for the next request.
#[test]
fn a_body_is_read_and_dropped() {
    let mut driver = driver();
    driver.send(b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 19\r\n\r\nGET /x HTTP/1.1\r\n\r\n");
    driver.send(&get("/steps"));
    let answers = wire::answers(&driver.take_received());
    assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [200, 201]);
    assert_eq!(*driver.test().context(), ["/", "/steps"]);
}

#[test]
fn an_invalid_reply_is_a_500_and_never_on_the_wire() {
    for path in ["/type", "/field", "/begun", "/cut", "/gone-with"] {
        let mut driver = driver();
        driver.send(&get(path));
        let received = driver.take_received();
        let answers = wire::answers(&received);
        assert_eq!(answers.iter().map(|answer| answer.status).collect::<Vec<_>>(), [500], "{path}");
        let text = String::from_utf8_lossy(&received);
        assert!(!text.contains("X-Admin") && !text.contains("X-A"), "{path}: {text}");
    }
}
