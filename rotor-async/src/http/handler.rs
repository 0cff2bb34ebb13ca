//! `Handler`: makes the future for a request.

use std::fmt;

use rotor_core::Scope;
use rotor_http::server::{Head, Response};
use rotor_http::{MessageError, RequestError, Status};

use super::answer::Answer;
use super::request::Request;

/// Makes a future for each request: an async function, or a function that also gets the
/// [scope](with_scope).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no async handler for the context `{C}`",
    note = "it is an `async fn(Request) -> impl Into<Answer>`, or `with_scope` of a function `Fn(Request, &mut Scope<'_, C>)` that \
            returns a future of one"
)]
pub trait Handler<C>: Clone + 'static {
    /// The output of the future.
    type Answer: Into<Answer>;

    /// Called with the head of each request, before its body arrives. It may add fields that go
    /// with any response to the request, including an error page of the connection
    /// ([`add_always`](rotor_http::server::Response::add_always)). It must not write the response
    /// itself.
    ///
    /// The default adds no fields. A layer around a handler must call the handler's method.
    ///
    /// # Errors
    ///
    /// The caller's mistake: a field that is not allowed in a response. The peer gets 500.
    fn head_received(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        let _ = (head, response);
        Ok(())
    }

    /// Makes the future for a complete request. The connection polls it.
    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = Self::Answer> + 'static;

    /// Makes the response if the handler gives none: the request was refused earlier (because it is
    /// too long, for instance), or the future was too slow or panicked. See
    /// [`emit_error_page`](rotor_http::server::Server::emit_error_page). `why` is what is wrong with
    /// the request, if that is known; its [`reason`](RequestError::reason) contains no text from the
    /// peer.
    ///
    /// The default is a line of plain text, with the reason. A layer around a handler should return
    /// the handler's page, unless it has its own.
    fn error_page(status: Status, why: Option<RequestError>) -> Answer {
        let line = match why {
            Some(why) => format!("{} {}: {}\n", status.code(), status.reason(), why.reason()),
            None => format!("{} {}\n", status.code(), status.reason()),
        };
        Answer::new(status).body("text/plain", line)
    }
}

impl<C, F, W, A> Handler<C> for F
where
    F: Fn(Request) -> W + Clone + 'static,
    W: Future<Output = A> + 'static,
    A: Into<Answer>,
{
    type Answer = A;

    fn handle(&self, request: Request, _: &mut Scope<'_, C>) -> impl Future<Output = A> + 'static {
        self(request)
    }
}

/// Makes a handler from a function that also gets the scope. The function uses the scope to make
/// its future: it can create values to wait for ([`Scope::offload`], [`SpawnOn`](crate::SpawnOn),
/// requests to other machines), and take what it needs from the context. The future itself has no
/// access to scope and context, because other handlers run while it waits.
///
/// ```
/// # mod rotor { pub use rotor_core::*; pub use rotor_http as http; }
/// use rotor_async::http::{Answer, Request, run, with_scope};
/// use rotor::Scope;
/// use rotor::http::Status;
///
/// fn sum(request: Request, scope: &mut Scope<'_, ()>) -> impl Future<Output = Answer> + use<> {
///     let sum = scope.offload(move || request.body().iter().map(|&byte| u64::from(byte)).sum::<u64>());
///     async {
///         let Ok(sum) = sum else { return Answer::new(Status::SERVICE_UNAVAILABLE) };
///         match rotor_async::wait(sum).await {
///             Ok(sum) => Answer::text(Status::OK, format!("{sum}\n")),
///             Err(_panicked) => Answer::new(Status::INTERNAL_SERVER_ERROR),
///         }
///     }
/// }
///
/// # fn main() -> Result<(), rotor::http::server::ServeError> {
/// # if false {
/// run(rotor::http::server::Serve::new("127.0.0.1:3000"), with_scope(sum), || ())?;
/// # }
/// # Ok(())
/// # }
/// ```
pub fn with_scope<F>(function: F) -> WithScope<F> {
    WithScope(function)
}

/// A handler that gets the scope; made by [`with_scope`].
#[derive(Clone)]
pub struct WithScope<F>(F);

impl<C, F, W, A> Handler<C> for WithScope<F>
where
    F: Fn(Request, &mut Scope<'_, C>) -> W + Clone + 'static,
    W: Future<Output = A> + 'static,
    A: Into<Answer>,
{
    type Answer = A;

    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = A> + 'static {
        (self.0)(request, scope)
    }
}

impl<F> fmt::Debug for WithScope<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WithScope")
    }
}
