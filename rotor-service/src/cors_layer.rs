//! `CorsLayer`: CORS around an async handler.

use std::fmt;

use rotor_async::http::{Answer, Handler, Request};
use rotor_http::server::{Head, Response, Scope};
use rotor_http::{MessageError, RequestError, Status};

use crate::cors::{Cors, is_preflight};

impl Cors {
    /// Wraps an async handler with CORS: the layer answers preflights itself, and adds its fields
    /// to every other response. That includes the responses that the connection sends instead of
    /// the handler (413, 503 if the handler is too slow, 500 if it panics), so that the page can
    /// see each of them. Only a response to a head that is refused before a handler sees it (400,
    /// 408, 431, 501) lacks the fields.
    ///
    /// If you put a layer of your own around this one, it must forward
    /// [`head_received`](rotor_async::http::Handler::head_received); otherwise the fields are not
    /// added.
    ///
    /// ```no_run
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor_async::http::{Answer, Request, serve};
    /// use rotor_service::Cors;
    ///
    /// async fn hello(_: Request) -> Answer {
    ///     Answer::from("Hello!")
    /// }
    ///
    /// fn main() -> Result<(), rotor::http::server::ServeError> {
    ///     serve("127.0.0.1:3000", Cors::any().layer(hello))
    /// }
    /// ```
    pub fn layer<H>(self, handler: H) -> CorsLayer<H> {
        CorsLayer { cors: self, handler }
    }
}

/// An async handler with CORS; made by [`Cors::layer`].
#[derive(Clone)]
pub struct CorsLayer<H> {
    cors: Cors,
    handler: H,
}

impl<C, H: Handler<C>> Handler<C> for CorsLayer<H> {
    type Answer = Answer;

    fn head_received(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
    ) -> Result<(), MessageError> {
        let crossing = self.cors.check(head.method(), |name| head.field(name));
        crossing.add_always(response)?;
        match crossing.is_preflight() {
            true => Ok(()),
            false => self.handler.head_received(head, response),
        }
    }

    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = Answer> + 'static {
        let is_preflight = is_preflight(request.method(), |name| request.field(name));
        let handled = (!is_preflight).then(|| self.handler.handle(request, scope));
        async move {
            match handled {
                Some(future) => future.await.into(),
                None => Answer::new(Status::NO_CONTENT),
            }
        }
    }

    fn error_page(status: Status, why: Option<RequestError>) -> Answer {
        H::error_page(status, why)
    }
}

impl<H> fmt::Debug for CorsLayer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorsLayer").field("cors", &self.cors).finish_non_exhaustive()
    }
}
