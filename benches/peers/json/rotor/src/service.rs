//! One request: its body, the sum, the delay, the answer.

use std::time::Duration;

use json_task::{BODY_BYTES_MAX, Settings, Way, answer, sum};
use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Reply, Response, Scope, Server};
use rotor::http::{Method, Status};

/// How long a job is waited for: longer than a queue takes in any run.
const JOB_TIME_MAX: Duration = Duration::from_secs(30);

/// A request whose body is to come.
pub struct Service;

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
        Next::recv(Service, RecvMode::Buffered(BODY_BYTES_MAX)).keep_deadline()
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, Settings>,
    ) -> Next<Self> {
        let (settings, body) = match scope.way {
            Way::Async1 => return delayed(sum(body), response, scope),
            Way::Async2 | Way::Sync => (**scope, body.to_vec()),
        };
        let work = move || settings.on_pool(&body);
        Next::offload(scope, JOB_TIME_MAX, work, |sum, response, scope| -> Next<Service> {
            match scope.way {
                Way::Sync => answered(sum, response).into(),
                _ => delayed(sum, response, scope),
            }
        })
    }
}

fn delayed(
    sum: Option<i64>,
    response: &mut Response<'_>,
    scope: &Scope<'_, Settings>,
) -> Next<Service> {
    if sum.is_none() {
        return answered(sum, response).into();
    }
    Next::after(scope.now() + scope.delay, move |response, _| answered(sum, response))
}

fn answered(sum: Option<i64>, response: &mut Response<'_>) -> Reply {
    match sum {
        Some(sum) => response.reply(Status::OK, "application/json", answer(sum).as_bytes()),
        None => response.reply(Status::BAD_REQUEST, "text/plain", b"not numbers\n"),
    }
}
