//! `Upstream`, what the context must provide, and what is answered if the upstream does not answer.

use std::fmt::Display;

use rotor::http::Status;
use rotor::http::client::{ClientError, Pool};
use rotor::http::server::{Next, Response, Scope, Server};
use rotor::with_causes;

use super::back::Back;
use super::warnings::Warnings;

/// What the context must provide.
pub(crate) trait Upstream: Sized + 'static {
    /// The type by which the pool identifies the upstream.
    type Origin: Clone + 'static;

    /// The pool of connections to the upstream.
    fn pool(&self) -> &Pool<Back<Self>, Self::Origin>;

    /// The name of the upstream, for clients that do not name a host.
    fn authority(&self) -> &str;

    /// Where failed requests are reported.
    fn warnings(&mut self) -> &mut Warnings;
}

pub(crate) fn warn<C: Upstream>(warning: impl Display, scope: &mut Scope<'_, C>) {
    let now = scope.now();
    scope.warnings().warn(warning, now);
}

/// Answers for an upstream that gives no answer, and reports that.
pub(crate) fn bad_gateway<S: Server<Context: Upstream>>(
    error: &ClientError,
    response: &mut Response<'_>,
    scope: &mut Scope<'_, S::Context>,
) -> Next<S> {
    let fault = error.fault();
    warn(
        format_args!("the upstream gives no answer ({fault:?} at fault): {}", with_causes(error)),
        scope,
    );
    fail(error.gateway_status(), response)
}

/// Answers with an error page of the proxy. If the upstream's response has begun, it is cut off
/// instead, so that it is not taken for complete.
pub(crate) fn fail<S: Server>(status: Status, response: &mut Response<'_>) -> Next<S> {
    if response.is_started() {
        return Next::fail(status);
    }
    page(status, response);
    Next::finished()
}

/// Answers with one line of text.
pub(crate) fn page(status: Status, response: &mut Response<'_>) {
    response.reply(status, "text/plain", format!("{status}\n").as_bytes());
}
