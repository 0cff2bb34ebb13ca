//! `Interceptors`: the functions that look at requests before those of their routes.

use std::ops::ControlFlow;
use std::sync::Arc;

use rotor_http::server::{Head, Reply, Response, Scope};

use crate::refused::Refused;

/// What a function that looks at requests first may return ([`Router::intercept`]): nothing, and
/// the request is let through; `Continue`, or `Break` with the [`Reply`] that it has written; or a
/// `Result` of those, to refuse with `?`.
///
/// [`Router::intercept`]: super::Router::intercept
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a function returns that looks at requests first",
    note = "it is `()`, a `ControlFlow<Reply>`, or a `Result` of those with `Refused`"
)]
pub trait IntoControlFlow {
    /// Returns whether the request goes on to the function of its route, after a refusal has been
    /// written.
    fn into_control_flow(self, response: &mut Response<'_>) -> ControlFlow<Reply>;
}

impl IntoControlFlow for () {
    fn into_control_flow(self, _: &mut Response<'_>) -> ControlFlow<Reply> {
        ControlFlow::Continue(())
    }
}

impl IntoControlFlow for ControlFlow<Reply> {
    fn into_control_flow(self, _: &mut Response<'_>) -> ControlFlow<Reply> {
        self
    }
}

impl<F: IntoControlFlow> IntoControlFlow for Result<F, Refused> {
    fn into_control_flow(self, response: &mut Response<'_>) -> ControlFlow<Reply> {
        match self {
            Ok(flow) => flow.into_control_flow(response),
            Err(refused) => ControlFlow::Break(refused.reply(response)),
        }
    }
}

/// A function that looks at requests first.
type Intercepting<C> =
    dyn Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> ControlFlow<Reply> + Send + Sync;

/// Functions that look at requests, in the order in which they do.
pub(super) struct Interceptors<C: 'static>(Vec<Arc<Intercepting<C>>>);

impl<C: 'static> Interceptors<C> {
    pub(super) const NONE: Interceptors<C> = Interceptors(Vec::new());

    /// Adds one behind those that are there.
    pub(super) fn push<F, R>(&mut self, function: F)
    where
        F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> R + Send + Sync + 'static,
        R: IntoControlFlow,
    {
        let intercepting =
            move |head: &Head<'_>, response: &mut Response<'_>, scope: &mut Scope<'_, C>| {
                let flow = function(head, response, scope).into_control_flow(response);
                if flow.is_continue() && response.is_started() {
                    // Two would answer. What is there is whole, or the connection makes it a 500.
                    let name = std::any::type_name::<F>();
                    log::error!("{name} has begun to answer a request that it lets through");
                    return ControlFlow::Break(Ok(()).into());
                }
                flow
            };
        self.0.push(Arc::new(intercepting));
    }

    /// Puts those of an outer router before these.
    pub(super) fn nest_in(&mut self, outer: &Interceptors<C>) {
        self.0.splice(0..0, outer.0.iter().cloned());
    }

    /// Calls one after the other, until one of them answers.
    #[inline]
    pub(super) fn call(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> ControlFlow<Reply> {
        self.0.iter().try_for_each(|function| function(head, response, scope))
    }
}

impl<C: 'static> Clone for Interceptors<C> {
    fn clone(&self) -> Interceptors<C> {
        Interceptors(self.0.clone())
    }
}
