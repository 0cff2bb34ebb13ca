//! The handler, in its three ways.

use json_task::{BODY_BYTES_MAX, Settings, Way, answer, sum};
use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor::http::{Method, Status};
use rotor::{Future, Outcome};

/// A request. The answer is due in the midst of the body, after the job, after the delay.
pub enum Service {
    /// The whole body is awaited.
    Whole,
    /// A thread of the pool has it.
    Working(Future<Option<i64>>),
    /// The sum is known; the answer waits for the deadline.
    Delayed(i64),
}

impl Server for Service {
    type Context = Settings;
    type Seed = ();
    type Upgrade = NoUpgrade<Settings>;

    fn headers_received(
        (): (),
        head: &Head<'_>,
        response: &mut Response<'_>,
        _: &mut Scope<'_, Settings>,
    ) -> Next<Self> {
        if head.method() != Method::Post || head.path() != "/" {
            return response.reply(Status::NOT_FOUND, "text/plain", b"404 Not Found\n").into();
        }
        Next::recv(Service::Whole, RecvMode::Buffered(BODY_BYTES_MAX)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Settings>,
    ) -> Next<Self> {
        if scope.way == Way::Async1 {
            return delayed(sum(body), response, scope);
        }
        let (settings, body) = (**scope, body.to_vec());
        match scope.offload(move || settings.on_pool(&body)) {
            Ok(sum) => Next::go_on(Service::Working(sum)).keep_deadline(),
            Err(_) => response.reply(Status::SERVICE_UNAVAILABLE, "text/plain", b"busy\n").into(),
        }
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, Settings>) -> Next<Self> {
        let Service::Working(future) = self else { return Next::go_on(self).keep_deadline() };
        match future.take() {
            Outcome::Pending(future) => Next::go_on(Service::Working(future)).keep_deadline(),
            Outcome::Value(Some(sum)) if scope.way == Way::Sync => answered(sum, response),
            Outcome::Value(sum) => delayed(sum, response, scope),
            Outcome::Lost(_) => Next::fail(Status::INTERNAL_SERVER_ERROR),
        }
    }

    fn timeout(self, response: &mut Response<'_>, _: &mut Scope<'_, Settings>) -> Next<Self> {
        match self {
            Service::Delayed(sum) => answered(sum, response),
            // The time for a handler has run out.
            _ => Next::fail(Status::SERVICE_UNAVAILABLE),
        }
    }
}

/// The answer is due after the delay.
fn delayed(
    sum: Option<i64>,
    response: &mut Response<'_>,
    scope: &Scope<'_, Settings>,
) -> Next<Service> {
    match sum {
        Some(sum) => Next::go_on(Service::Delayed(sum)).deadline(scope.now() + scope.delay),
        None => response.reply(Status::BAD_REQUEST, "text/plain", b"not numbers\n").into(),
    }
}

fn answered(sum: i64, response: &mut Response<'_>) -> Next<Service> {
    response.reply(Status::OK, "application/json", answer(sum).as_bytes()).into()
}
