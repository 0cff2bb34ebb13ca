//! `Polled`: what one poll has led to. The service, and then the body of its response, are polled
//! together where both are ready: a poll has its cost.

use std::pin::Pin;
use std::task::{Context, Poll};

use http_body::Body;
use rotor_core::BoxError;
use rotor_http::Status;
use rotor_http::server::Response;

use crate::outbound::{self, Pumped};
use crate::upgrade::Upgrade;

/// A service that was called.
pub(crate) type Calling<B> = Pin<Box<dyn Future<Output = Result<http::Response<B>, BoxError>>>>;

/// `T` is the seed of the protocol that may follow.
pub(crate) enum Polled<B, T> {
    /// The service has still to answer.
    Calls(Calling<B>),
    /// Of the body of the response so much has come.
    Sends(Pin<Box<B>>, Pumped),
    /// The response is complete.
    Done,
    /// The response cannot be completed.
    Failed(BoxError),
    /// Nothing was written: an error page of this status goes out.
    Refused(Status),
    Upgraded(T),
}

/// Polls the service, and begins its response once it has answered.
pub(crate) fn call<B, T>(
    mut future: Calling<B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> Polled<B, T>
where
    B: Body,
    B::Error: Into<BoxError>,
    T: Send + 'static,
{
    match future.as_mut().poll(context) {
        Poll::Pending => Polled::Calls(future),
        Poll::Ready(Ok(answer)) => {
            drop(future);
            begin(answer, context, response)
        }
        Poll::Ready(Err(error)) => {
            log::debug!("a service failed: {error}");
            Polled::Refused(Status::INTERNAL_SERVER_ERROR)
        }
    }
}

/// The service has answered.
fn begin<B, T>(
    answer: http::Response<B>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> Polled<B, T>
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
            return Polled::Refused(Status::NOT_IMPLEMENTED);
        };
        return match outbound::write_head(&parts, &body, response) {
            Ok(_) => Polled::Upgraded(seed),
            Err(misuse) => Polled::Failed(misuse.into()),
        };
    }
    // Said by axum where there is no upgrade to be had; it needs the name of one (RFC 9110
    // §15.5.22).
    if parts.status == http::StatusCode::UPGRADE_REQUIRED && !has_upgrade {
        return Polled::Refused(Status::NOT_IMPLEMENTED);
    }
    let ended = match outbound::write_head(&parts, &body, response) {
        Ok(true) if outbound::is_bodiless(response, &body) => response.done(),
        Ok(true) => return send(Box::pin(body), context, response),
        other => other.map(drop),
    };
    match ended {
        Ok(()) => Polled::Done,
        Err(misuse) => Polled::Failed(misuse.into()),
    }
}

/// Goes on with the response's body.
pub(crate) fn send<B, T>(
    mut body: Pin<Box<B>>,
    context: &mut Context<'_>,
    response: &mut Response<'_>,
) -> Polled<B, T>
where
    B: Body,
    B::Error: Into<BoxError>,
{
    match outbound::pump(body.as_mut(), context, response) {
        Pumped::Done => Polled::Done,
        Pumped::Failed(error) => Polled::Failed(error),
        pumped => Polled::Sends(body, pumped),
    }
}
