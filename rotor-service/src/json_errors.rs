//! `JsonErrors`: errors of the connection as JSON, for async handlers.

use rotor_async::http::{Answer, Handler, Request};
use rotor_http::server::{Head, Response, Scope};
use rotor_http::{MessageError, RequestError, Status};

use crate::refused::Rejection;

/// Wraps an async handler so that the connection's own error responses have the same form as the
/// handler's refusals: JSON, `{"error":".."}`.
///
/// These are responses to a body that is longer than the connection accepts (413), to a malformed
/// request (400), and for a handler that is too slow (503) or panics (500). The functions of a
/// `Router` need no such layer.
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor_async::http::{Answer, Request, serve};
/// use rotor::http::Status;
/// use rotor_service::{Rejection, json_errors};
///
/// async fn locked(_: Request) -> Result<Answer, Rejection> {
///     Err(Rejection::new(Status::FORBIDDEN, "it is locked"))
/// }
///
/// fn main() -> Result<(), rotor::http::server::ServeError> {
///     serve("127.0.0.1:3000", json_errors(locked))
/// }
/// ```
pub fn json_errors<H>(handler: H) -> JsonErrors<H> {
    JsonErrors(handler)
}

/// An async handler with JSON error pages; made by [`json_errors`].
#[derive(Clone, Debug)]
pub struct JsonErrors<H>(H);

impl<C, H: Handler<C>> Handler<C> for JsonErrors<H> {
    type Answer = H::Answer;

    fn head_received(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        self.0.head_received(head, response)
    }

    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = H::Answer> + 'static {
        self.0.handle(request, scope)
    }

    fn error_page(status: Status, why: Option<RequestError>) -> Answer {
        Rejection::from_connection_error(status, why).into()
    }
}
