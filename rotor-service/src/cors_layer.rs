//! `CorsLayer`: CORS around an async handler.

use std::fmt;

use rotor_async::http::{Answer, Handler, Request};
use rotor_http::server::{Head, Response, Scope};
use rotor_http::{MessageError, Status};

use crate::cors::{Cors, is_preflight};

impl Cors {
    /// Puts CORS around an async handler: it answers preflights itself, and adds its fields to
    /// whatever else is answered: by the handler, and by the connection in its place (413, 503 for a
    /// late handler, 500 for one that panics), so that the page learns of each. Only a head that is
    /// refused before a handler sees it (400, 408, 431, 501) is answered without them.
    ///
    /// A layer of your own around this one passes
    /// [`head_received`](rotor_async::http::Handler::head_received) on; else there are no fields.
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

/// The handler that [`Cors::layer`] makes.
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

    fn error_page(status: Status) -> Answer {
        H::error_page(status)
    }
}

impl<H> fmt::Debug for CorsLayer<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CorsLayer").field("cors", &self.cors).finish_non_exhaustive()
    }
}
