//! `IntoNext`: the types that a route's function may return.

use rotor_http::server::{Next, Reply, Response, Scope};

use super::route_fn::RouteFn;
use crate::refused::Rejection;

/// The return types of a route's function: a [`Reply`] that it has written, a [`Next`] that writes
/// it later ([`Next::offload`], [`Next::wait`], [`Next::after`]), a [`Rejection`], or a `Result` of
/// those.
///
/// To refuse after a wait, use [`or_reject`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no answer of a route's function for the context `{C}`",
    note = "it is a `Reply`, a `Next<RouteFn<C>>`, a `Rejection`, or a `Result` of those"
)]
pub trait IntoNext<C: 'static> {
    /// Turns the return value into the next state of the request.
    fn into_next(self, response: &mut Response<'_>) -> Next<RouteFn<C>>;
}

impl<C: 'static> IntoNext<C> for Reply {
    fn into_next(self, _: &mut Response<'_>) -> Next<RouteFn<C>> {
        self.into()
    }
}

impl<C: 'static> IntoNext<C> for Next<RouteFn<C>> {
    fn into_next(self, _: &mut Response<'_>) -> Next<RouteFn<C>> {
        self
    }
}

impl<C: 'static> IntoNext<C> for Rejection {
    fn into_next(self, response: &mut Response<'_>) -> Next<RouteFn<C>> {
        self.reply(response).into()
    }
}

impl<C: 'static, A: IntoNext<C>, E: IntoNext<C>> IntoNext<C> for Result<A, E> {
    fn into_next(self, response: &mut Response<'_>) -> Next<RouteFn<C>> {
        match self {
            Ok(answer) => answer.into_next(response),
            Err(refused) => refused.into_next(response),
        }
    }
}

/// Lets the closure that responds after a wait refuse with `?`. Pass the result to
/// [`Next::offload`] or [`Next::wait`]. A closure that never refuses should return the `Reply`
/// itself: for a bare `Ok`, the compiler could not infer the error type.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Next, Response, Scope};
/// use rotor_service::{Rejection, RouteFn, or_reject};
/// use std::time::Duration;
///
/// fn words(text: String, _: &mut Response<'_>, scope: &mut Scope<'_, ()>) -> Next<RouteFn<()>> {
///     let work = move || text.split_whitespace().count();
///     Next::offload(scope, Duration::from_secs(5), work, or_reject(|count: usize, response, _| {
///         if count == 0 {
///             return Err(Rejection::new(Status::BAD_REQUEST, "no words"));
///         }
///         Ok(response.reply(Status::OK, "text/plain", count.to_string().as_bytes()))
///     }))
/// }
/// ```
#[doc(alias = "or_refuse")]
pub fn or_reject<T, C: 'static, A: IntoNext<C>>(
    answer: impl FnOnce(T, &mut Response<'_>, &mut Scope<'_, C>) -> A + Send + 'static,
) -> impl FnOnce(T, &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>> + Send + 'static {
    move |value, response, scope| answer(value, response, scope).into_next(response)
}
