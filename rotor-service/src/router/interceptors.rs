//! `Interceptors`: the functions that are called before those of the routes.

use std::ops::ControlFlow;
use std::sync::Arc;

use rotor_http::server::{Head, Reply, Response, Scope};

use crate::refused::Rejection;

/// The return types of an intercepting function ([`Router::intercept`]): `()`, which lets the
/// request through; a `ControlFlow`, which is `Continue`, or `Break` with the [`Reply`] that the
/// function has written; or a `Result` of those, so that the function can refuse with `?`.
///
/// [`Router::intercept`]: super::Router::intercept
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not what a function returns that looks at requests first",
    note = "it is `()`, a `ControlFlow<Reply>`, or a `Result` of those with `Rejection`"
)]
pub trait IntoControlFlow {
    /// Returns whether the request continues to the function of its route. Writes the refusal, if
    /// it is one.
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

impl<F: IntoControlFlow> IntoControlFlow for Result<F, Rejection> {
    fn into_control_flow(self, response: &mut Response<'_>) -> ControlFlow<Reply> {
        match self {
            Ok(flow) => flow.into_control_flow(response),
            Err(refused) => ControlFlow::Break(refused.reply(response)),
        }
    }
}

/// An intercepting function.
type InterceptFn<C> =
    dyn Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> ControlFlow<Reply> + Send + Sync;

/// Intercepting functions, in the order in which they are called.
pub(super) struct Interceptors<C: 'static>(Vec<Arc<InterceptFn<C>>>);

impl<C: 'static> Interceptors<C> {
    pub(super) const NONE: Interceptors<C> = Interceptors(Vec::new());

    /// Adds a function after the others.
    pub(super) fn push<F, R>(&mut self, function: F)
    where
        F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> R + Send + Sync + 'static,
        R: IntoControlFlow,
    {
        let intercepting =
            move |head: &Head<'_>, response: &mut Response<'_>, scope: &mut Scope<'_, C>| {
                let flow = function(head, response, scope).into_control_flow(response);
                if flow.is_continue() && response.is_started() {
                    // The route's function must not respond as well. The connection sends what was
                    // written if that is a whole response; otherwise it sends a 500.
                    let name = std::any::type_name::<F>();
                    log::error!("{name} wrote a part of a response to a request that it passes on");
                    return ControlFlow::Break(Ok(()).into());
                }
                flow
            };
        self.0.push(Arc::new(intercepting));
    }

    /// Inserts the functions of an outer router before these.
    pub(super) fn prepend(&mut self, outer: &Interceptors<C>) {
        self.0.splice(0..0, outer.0.iter().cloned());
    }

    /// Calls the functions one after another, until one of them responds.
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
