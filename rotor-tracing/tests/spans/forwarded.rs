//! A wrapped handler gets every call that it would get without the wrapper.

use rotor_body::Body;
use rotor_core::{Cursor, Description, Machine, MachineView, Scope, Time};
use rotor_http::server::{
    Connection, Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Server, ServerConfig,
};
use rotor_http::{BodyError, Method, Status, Trailers};
use rotor_stream::Block;
use rotor_stream::testing::Driver;
use rotor_tracing::Traced;
use std::ops::ControlFlow;
use std::time::Duration;

use crate::notes::{Notes, serialize_tests};

type Context = Vec<String>;
type Sc<'a, 'b> = &'a mut Scope<'b, Context>;

/// Records its calls; the path of the request selects its mode.
struct Calls;

impl Calls {
    fn answer(what: &str, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push(what.to_owned());
        response.reply(Status::OK, "text/plain", what.as_bytes()).into()
    }
}

impl Server for Calls {
    type Context = Context;
    type Seed = u8;
    type Upgrade = NoUpgrade<Context>;

    const HEARS_END: bool = true;

    fn supports(method: Method<'_>) -> bool {
        method != Method::Patch
    }

    fn headers_received(
        seed: u8,
        head: &Head<'_>,
        _: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.push(format!("head {seed}"));
        let next = match head.path() {
            "/whole" => Next::recv(Calls, RecvMode::Buffered(100)),
            "/pieces" => Next::recv(Calls, RecvMode::Progressive(1)),
            "/blocks" => Next::recv(Calls, RecvMode::Blocks),
            "/stored" => Next::recv(Calls, RecvMode::Stored { ram_max: 100, max: 100 }),
            _ => Next::go_on(Calls),
        };
        next.deadline(scope.now() + Duration::from_secs(3))
    }

    fn request_received(self, _: &[u8], r: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("whole", r, scope)
    }

    fn request_chunk(self, _: &[u8], _: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push("chunk".into());
        Next::go_on(self).keep_deadline()
    }

    fn request_block(self, _: Block, _: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push("block".into());
        Next::go_on(self).keep_deadline()
    }

    fn request_end(
        self,
        _: &Trailers,
        response: &mut Response<'_>,
        scope: Sc<'_, '_>,
    ) -> Next<Self> {
        scope.push("end".into());
        response.status(Status::OK).expect("the first");
        response.add_length(2).expect("it has none");
        response.done_headers().expect("a head");
        response.write_body("1").expect("half of it");
        Next::go_on(self).keep_deadline()
    }

    fn request_stored(self, _: Body, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("stored", response, scope)
    }

    fn response_flushed(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        scope.push("flushed".into());
        response.write_body("2").and_then(|()| response.done()).expect("the other half");
        Next::finished()
    }

    fn timeout(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("timeout", response, scope)
    }

    fn wakeup(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("wakeup", response, scope)
    }

    fn draining(self, _: Time, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("draining", response, scope)
    }

    fn peer_ended(self, response: &mut Response<'_>, scope: Sc<'_, '_>) -> Next<Self> {
        Self::answer("ended", response, scope)
    }

    fn describe(&self, to: &mut Description) {
        to.set_state("as it says");
    }

    fn bad_request(self, _: BodyError, scope: Sc<'_, '_>) {
        scope.push("bad".into());
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        response.reply(status, "text/plain", b"its own page");
    }
}

type Test = Driver<Connection<Traced<Calls>>>;

fn check(path: &str, act: impl Fn(&mut Test), calls: &[&str]) {
    let play = || {
        let mut driver = Test::new(HttpSeed::new(7, ServerConfig::new()), Context::new());
        let head = format!("POST {path} HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
        driver.send(head.as_bytes());
        driver.send(b"2\r\nhi\r\n");
        act(&mut driver);
        assert_eq!(driver.context()[0], "head 7", "{path}");
        assert_eq!(driver.context()[1..], *calls, "{path}");
        assert_eq!(driver.failures(), [""; 0], "{path}");
        driver.take_received()
    };
    // With a span, and without.
    let mut traced = Vec::new();
    Notes::collect(|notes| {
        traced = play();
        let entered = notes.take().iter().filter(|note| *note == "> request").count();
        assert_eq!(entered, 1 + calls.len(), "{path}: each call is in the span");
    });
    assert_eq!(play(), traced, "{path}");
}

#[test]
fn a_wrapped_handler_gets_every_call() {
    let _alone = serialize_tests();
    let end = |driver: &mut Test| driver.send(b"0\r\n\r\n");
    check("/whole", end, &["whole"]);
    check("/pieces", end, &["chunk", "end", "flushed"]);
    check("/blocks", end, &["block", "end", "flushed"]);
    check("/stored", end, &["stored"]);
    check("/wait", |driver| driver.advance(Duration::from_secs(3)), &["timeout"]);
    check("/wait", |driver| driver.wakeup(), &["wakeup"]);
    check("/wait", |driver| driver.drain(Duration::from_secs(1)), &["draining"]);
    check("/whole", |driver| driver.end(), &["bad"]);
}

#[test]
fn methods_error_pages_and_descriptions_are_forwarded() {
    let _alone = serialize_tests();
    let mut driver = Test::new(HttpSeed::new(7, ServerConfig::new()), Context::new());
    driver.send(b"PATCH / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(driver.take_received().ends_with(b"its own page"));
    assert_eq!(driver.context().len(), 0);
    assert!(Traced::<Calls>::supports(Method::Delete));
    let mut driver = Test::new(HttpSeed::new(7, ServerConfig::new()), Context::new());
    driver.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    let (tell, told) = std::sync::mpsc::channel();
    let posted = driver.test().instance().broadcast().post(move |mut machines, _| {
        machines.scan_some(Cursor::START, 9, |_, _, seen| {
            let mut description = Description::new();
            if let MachineView::Waiting(machine) = seen {
                machine.describe(&mut description);
            }
            tell.send(description.state()).expect("somebody waits");
            ControlFlow::Continue(())
        });
    });
    assert!(posted.is_ok());
    driver.settle();
    assert_eq!(told.iter().collect::<Vec<_>>(), ["as it says"]);
}
