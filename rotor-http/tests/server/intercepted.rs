//! `Intercepted`: an interceptor sees each request before its server does.

use std::ops::ControlFlow::{self, Break, Continue};

use rotor_core::{Description, Machine};
use rotor_http::Status;
use rotor_http::server::{
    Connection, Head, HttpSeed, Intercept, Intercepted, Next, NoUpgrade, RecvMode, Reply, Response,
    Scope, Server, ServerConfig,
};
use rotor_stream::testing::Driver;

use crate::probe::{get, post, request};
use crate::wire;

/// The interceptors and handlers that the requests have reached.
type Context = Vec<String>;
type Sc<'a, 'b> = &'a mut Scope<'b, Context>;

/// Echoes a body of at most 10 bytes.
struct Echo;

impl Server for Echo {
    type Context = Context;
    type Seed = u8;
    type Upgrade = NoUpgrade<Context>;

    fn headers_received(
        seed: u8,
        head: &Head<'_>,
        _: &mut Response<'_>,
        seen: Sc<'_, '_>,
    ) -> Next<Self> {
        seen.push(format!("server {} {seed}", head.path()));
        assert_ne!(head.path(), "/bug");
        Next::recv(Echo, RecvMode::Buffered(10)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        seen: Sc<'_, '_>,
    ) -> Next<Self> {
        seen.push(format!("server got {}", body.len()));
        response.reply(Status::OK, "text/plain", body).into()
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("echo");
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        // If the page cannot be written, the connection notices.
        let _: Reply = response.reply(status, "text/plain", b"the server's page");
    }
}

/// Numbers each answer, and refuses some requests.
struct NumberingInterceptor;

impl Intercept for NumberingInterceptor {
    type Server = Echo;

    fn intercept(
        head: &Head<'_>,
        response: &mut Response<'_>,
        seen: Sc<'_, '_>,
    ) -> ControlFlow<Reply> {
        seen.push(format!("door {}", head.path()));
        let number = seen.len().to_string();
        response.add_always("X-Number", number).expect("a field");
        match head.path() {
            "/refused" => Break(response.reply(Status::FORBIDDEN, "text/plain", b"no")),
            "/nothing" => Break(Ok(()).into()),
            "/both" => {
                let _: Reply = response.reply(Status::OK, "text/plain", b"whole");
                Continue(())
            }
            "/half" => {
                response.status(Status::OK).expect("the first");
                Continue(())
            }
            "/door-bug" => panic!("a planned panic"),
            _ => Continue(()),
        }
    }
}

type Test = Driver<Connection<Intercepted<NumberingInterceptor>>>;

fn test() -> Test {
    Driver::new(HttpSeed::new(7, ServerConfig::new()), Context::new())
}

/// Statuses, numbers and bodies of the answers.
fn answers(driver: &mut Test) -> Vec<(u16, Option<String>, String)> {
    let received = driver.take_received();
    let answers = wire::answers(&received);
    let seen = answers.iter().map(|answer| {
        let number = answer.field("X-Number").map(str::to_owned);
        (answer.status, number, answer.text().to_owned())
    });
    seen.collect()
}

#[test]
fn a_passed_request_reaches_the_server_with_the_added_fields() {
    let mut driver = test();
    driver.send(&[post("/a", "hello"), post("/b", "hi")].concat());
    let number = |number: &str| Some(number.to_owned());
    assert_eq!(
        answers(&mut driver),
        [(200, number("1"), "hello".to_owned()), (200, number("4"), "hi".to_owned())]
    );
    let expected =
        ["door /a", "server /a 7", "server got 5", "door /b", "server /b 7", "server got 2"];
    assert_eq!(*driver.context(), expected);
    assert_eq!(driver.failures(), [""; 0]);
}

#[test]
fn a_request_answered_by_the_interceptor_does_not_reach_the_server() {
    let mut driver = test();
    let refused = post("/refused", "hello");
    driver.send(&[refused.clone(), refused].concat());
    let page = |number: &str| (403, Some(number.to_owned()), "no".to_owned());
    assert_eq!(answers(&mut driver), [page("1"), page("2")]);
    assert_eq!(*driver.context(), ["door /refused", "door /refused"]);
}

#[test]
fn errors_have_the_added_fields_and_the_page_of_the_server() {
    let long = "x".repeat(11);
    for (asked, status) in [
        (post("/long", &long), 413),
        (get("/bug"), 500),
        (get("/door-bug"), 500),
        (get("/nothing"), 500),
    ] {
        let mut driver = test();
        driver.send(&asked);
        let expected = (status, Some("1".to_owned()), "the server's page".to_owned());
        assert_eq!(answers(&mut driver), [expected], "{}", asked.escape_ascii());
    }
    // No handler has seen these requests.
    for (asked, status) in [(&b"nonsense\r\n\r\n"[..], 400), (&request("TRACE /", "", ""), 501)] {
        let mut driver = test();
        driver.send(asked);
        assert_eq!(answers(&mut driver), [(status, None, "the server's page".to_owned())]);
        assert!(driver.context().is_empty());
    }
}

#[test]
fn an_interceptor_that_answers_and_passes_counts_as_answered() {
    let mut driver = test();
    driver.send(&get("/both"));
    assert_eq!(answers(&mut driver), [(200, Some("1".to_owned()), "whole".to_owned())]);
    assert_eq!(*driver.context(), ["door /both"]);
    let mut driver = test();
    driver.send(&get("/half"));
    // Nothing was sent of the half response that the handler did not complete.
    let page = "the server's page".to_owned();
    assert_eq!(answers(&mut driver), [(500, Some("1".to_owned()), page)]);
    assert_eq!(*driver.context(), ["door /half"]);
    assert!(driver.is_ended());
}

#[test]
fn handlers_behind_an_interceptor_describe_themselves() {
    let mut driver = test();
    driver.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n");
    let (_, machine) = driver.test().instance().machines().iter().next().expect("one");
    let mut description = Description::new();
    machine.describe(&mut description);
    assert_eq!(description.state(), "echo");
}
