//! `CorsLayer`: CORS around an async handler.

use std::fmt;

use rotor_async::http::{Answer, Handler, Request};
use rotor_http::Status;
use rotor_http::server::Scope;

use crate::cors::Cors;

impl Cors {
    /// Puts CORS around an async handler: it answers preflights itself, and adds its fields to the
    /// handler's answers. The connection's own errors (413, 503 for a late handler, 500 for one
    /// that panics) go out without them.
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

    fn handle(
        &self,
        request: Request,
        scope: &mut Scope<'_, C>,
    ) -> impl Future<Output = Answer> + 'static {
        let crossing = self.cors.check(request.method(), |name| request.field(name));
        let handled = (!crossing.is_preflight()).then(|| self.handler.handle(request, scope));
        async move {
            let answer = match handled {
                Some(future) => future.await.into(),
                None => Answer::new(Status::NO_CONTENT),
            };
            let fields = crossing.fields();
            fields.into_iter().fold(answer, |answer, (name, value)| answer.field(name, value))
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
