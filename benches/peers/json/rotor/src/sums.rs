//! One request: its body, the sum, the delay, the response.

use std::time::Duration;

use json_task::{Settings, Way, sum};
use rotor::backend::Clock;
use rotor::http::Status;
use rotor::http::server::{Next, Response, Scope};
use rotor_service::{Rejection, RouteFn, or_reject};

/// How long to wait for a job: longer than jobs are queued in any run.
const JOB_TIME_MAX: Duration = Duration::from_secs(30);

type Answer = Result<Next<RouteFn<Settings>>, Rejection>;

pub fn answer(body: &[u8], response: &mut Response<'_>, scope: &mut Scope<'_, Settings>) -> Answer {
    let settings = **scope;
    if settings.way == Way::Async1 {
        return answered(sum(body), response, scope);
    }
    let body = body.to_vec();
    let work = move || settings.on_pool(&body);
    Ok(Next::offload(scope, JOB_TIME_MAX, work, or_reject(answered)))
}

fn answered(
    sum: Option<i64>,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, Settings>,
) -> Answer {
    let sum = sum.ok_or_else(|| Rejection::new(Status::BAD_REQUEST, "not numbers"))?;
    let reply = move |response: &mut Response<'_>| {
        response.reply(Status::OK, "application/json", json_task::answer(sum).as_bytes())
    };
    match scope.way {
        Way::Sync => Ok(reply(response).into()),
        // From now, because the loop's time is from before the sum.
        _ => {
            let end = Clock::new().now() + scope.delay;
            Ok(Next::after(end, move |response, _| reply(response)))
        }
    }
}
