//! The first rotor-http, 0.7.0, set up as in its own hello-world example: one loop, one thread.
//!
//! It cannot send files, and does not end a connection when asked to.
#![forbid(unsafe_code)]

use std::error::Error;
use std::time::Duration;

use rotor::mio::tcp::TcpListener;
use rotor::{Config, Loop, Scope, Time};
use rotor_http::server::{Fsm, Head, RecvMode, Response, Server};

/// As in its example.
const REQUEST_TIME_MAX: Duration = Duration::from_secs(10);

/// Larger than any body that is posted here.
const BODY_BYTES_MAX: usize = 4096;

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(&contract::address()?)?;
    contract::announce(listener.local_addr()?)?;
    let context = Context { body_64k: contract::body_64k() };
    let mut instance =
        Loop::new(&Config::new()).map_err(|e| format!("{e:?}"))?.instantiate(context);
    instance
        .add_machine_with(|scope| Fsm::<Request, _>::new(listener, (), scope))
        .map_err(|e| format!("{e:?}"))?;
    Ok(instance.run()?)
}

struct Context {
    body_64k: String,
}

enum Request {
    Hello,
    Large,
    NotFound,
}

impl Server for Request {
    type Seed = ();
    type Context = Context;

    fn headers_received(
        (): (),
        head: Head<'_>,
        _: &mut Response<'_>,
        scope: &mut Scope<'_, Context>,
    ) -> Option<(Request, RecvMode, Time)> {
        let state = match (head.method, head.path) {
            ("GET" | "POST", "/") => Request::Hello,
            ("GET", "/64k") => Request::Large,
            _ => Request::NotFound,
        };
        Some((state, RecvMode::Buffered(BODY_BYTES_MAX), scope.now() + REQUEST_TIME_MAX))
    }

    fn request_received(
        self,
        _: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Context>,
    ) -> Option<Request> {
        let (code, reason, body) = match self {
            Request::Hello => (200, "OK", contract::HELLO),
            Request::Large => (200, "OK", scope.body_64k.as_str()),
            Request::NotFound => (404, "Not Found", ""),
        };
        response.status(code, reason);
        response
            .add_header("Content-Type", b"text/plain")
            .expect("a name and value without line ends");
        response.add_length(body.len() as u64).expect("the only length");
        response.done_headers().expect("status and length are there");
        response.write_body(body.as_bytes());
        response.done();
        None
    }

    fn request_chunk(
        self,
        _: &[u8],
        _: &mut Response<'_>,
        _: &mut Scope<'_, Context>,
    ) -> Option<Request> {
        None // Only where bodies are received progressively.
    }

    fn request_end(self, _: &mut Response<'_>, _: &mut Scope<'_, Context>) -> Option<Request> {
        None // Only where bodies are received progressively.
    }

    fn timeout(self, _: &mut Response<'_>, _: &mut Scope<'_, Context>) -> Option<(Request, Time)> {
        None
    }

    fn wakeup(self, _: &mut Response<'_>, scope: &mut Scope<'_, Context>) -> Option<Request> {
        let _ = scope;
        Some(self)
    }
}
