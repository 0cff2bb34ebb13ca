//! `PollOutcome`: the result of a poll. If the service and the body of its response are both
//! ready, one poll covers both, since each poll has a cost.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Body;
use rotor_core::{BoxError, with_causes};
use rotor_http::Status;
use rotor_http::server::Response;

use crate::outbound::{self, PumpOutcome};
use crate::upgrade::Upgrade;

/// The future of a service's call.
pub(crate) type CallFuture<B> = Pin<Box<dyn Future<Output = Result<http::Response<B>, BoxError>>>>;

/// The result of a poll. `T` is the seed of the protocol to upgrade to.
pub(crate) enum PollOutcome<B, T> {
    /// The service has not responded yet.
    Calling(CallFuture<B>),
    /// The body of the response was written as far as this says.
    Sending(Pin<Box<B>>, PumpOutcome),
    /// The response is complete.
    Done,
    /// The response cannot be completed.
    Failed(BoxError),
    /// Nothing was written; an error page with this status is sent.
    Refused(Status),
    Upgraded(T),
}

/// Polls the service, and begins the response once the service has returned it.
pub(crate) fn poll_call<B, T>(
    mut future: CallFuture<B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> PollOutcome<B, T>
where
    B: Body,
    B::Error: Into<BoxError>,
    T: Send + 'static,
{
    match future.as_mut().poll(context) {
        Poll::Pending => PollOutcome::Calling(future),
        Poll::Ready(Ok(answer)) => {
            drop(future);
            start_response(answer, context, response)
        }
        Poll::Ready(Err(error)) => {
            log::debug!("a service failed: {}", with_causes(&*error));
            PollOutcome::Refused(Status::INTERNAL_SERVER_ERROR)
        }
    }
}

/// Begins the response of the service.
fn start_response<B, T>(
    answer: http::Response<B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> PollOutcome<B, T>
where
    B: Body,
    B::Error: Into<BoxError>,
    T: Send + 'static,
{
    let (mut parts, body) = answer.into_parts();
    let has_upgrade = parts.headers.contains_key(http::header::UPGRADE);
    if parts.status == http::StatusCode::SWITCHING_PROTOCOLS {
        let upgrade = parts.extensions.remove::<Upgrade<T>>().and_then(Upgrade::take);
        let Some(seed) = upgrade.filter(|_| has_upgrade) else {
            return PollOutcome::Refused(Status::NOT_IMPLEMENTED);
        };
        return match outbound::write_head(&parts, &body, response) {
            Ok(_) => PollOutcome::Upgraded(seed),
            Err(misuse) => PollOutcome::Failed(misuse.into()),
        };
    }
    // axum returns this status if there is no upgrade. The status requires the name of a protocol
    // (RFC 9110 §15.5.22).
    if parts.status == http::StatusCode::UPGRADE_REQUIRED && !has_upgrade {
        return PollOutcome::Refused(Status::NOT_IMPLEMENTED);
    }
    let ended = match outbound::write_head(&parts, &body, response) {
        Ok(true) if outbound::is_bodiless(response, &body) => response.done(),
        Ok(true) => return poll_body(Box::pin(body), context, response),
        other => other.map(drop),
    };
    match ended {
        Ok(()) => PollOutcome::Done,
        Err(misuse) => PollOutcome::Failed(misuse.into()),
    }
}

/// Continues with the body of the response.
pub(crate) fn poll_body<B, T>(
    mut body: Pin<Box<B>>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> PollOutcome<B, T>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    match outbound::pump(body.as_mut(), context, response) {
        PumpOutcome::Done => PollOutcome::Done,
        PumpOutcome::Failed(error) => PollOutcome::Failed(error),
        pumped => PollOutcome::Sending(body, pumped),
    }
}
