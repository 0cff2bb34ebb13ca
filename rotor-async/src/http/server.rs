//! `AsyncServer`: a server whose handlers are async.

use std::fmt;
use std::marker::PhantomData;
use std::task::Poll;

use rotor_core::net::ListenerLayer;
use rotor_core::{LoopKind, Scope};
use rotor_http::Status;
use rotor_http::files::{Files, StaticFiles};
use rotor_http::server::{
    Head, Next, NoUpgrade, RecvMode, Response, Route, Routed, Serve, ServeError, Server,
};

use super::answer::Answer;
use super::handler::Handler;
use super::request::Request;
use crate::driven::Driven;

/// One request that an async function handles: a [`Server`] whose seed is the function.
///
/// ```text
///             body                             the future has ended
///   Request ────────▶ Answering (polled when woken) ──────────────▶ answered
/// ```
pub struct AsyncServer<H, C> {
    state: State<H>,
    context: PhantomData<fn(C)>,
}

enum State<H> {
    /// The body is being collected.
    Collecting(H, Box<Request>),
    Answering(Driven<Answer>),
}

/// Serves an async function at `address`, on the calling thread, until the process is asked to end;
/// see [`rotor_http::server::serve`].
///
/// # Errors
///
/// As [`Serve::run`].
pub fn serve<H: Handler<()> + Send>(
    address: impl fmt::Display,
    handler: H,
) -> Result<(), ServeError> {
    run(Serve::new(address), handler, || ())
}

/// Serves an async function with the settings of `serve`, and with a context for each loop.
///
/// # Errors
///
/// As [`Serve::run`].
pub fn run<H, C, K, L>(
    serve: Serve<K, L>,
    handler: H,
    context: impl Fn() -> C + Clone + Send + 'static,
) -> Result<(), ServeError>
where
    H: Handler<C> + Send,
    C: 'static,
    K: LoopKind,
    L: ListenerLayer,
{
    serve.run::<AsyncServer<H, C>>(move || (handler.clone(), context()))
}

/// Serves like [`run`], and also serves files: for the path where they are
/// [mounted](rotor_http::files::FilesConfig::mounted_at), and all paths below it. The function gets
/// all other requests.
///
/// ```no_run
/// # mod rotor { pub use rotor_http as http; }
/// use rotor_async::http::{Answer, Request, run_with_files};
/// use rotor::http::files::FilesConfig;
/// use rotor::http::server::Serve;
///
/// async fn hello(_: Request) -> Answer {
///     Answer::from("Hello!")
/// }
///
/// fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
///     let files = FilesConfig::new("public").mounted_at("/static").open()?;
///     Ok(run_with_files(Serve::new("127.0.0.1:3000"), hello, files, || ())?)
/// }
/// ```
///
/// # Errors
///
/// As [`Serve::run`].
pub fn run_with_files<H, C, K, L>(
    serve: Serve<K, L>,
    handler: H,
    files: Files,
    context: impl Fn() -> C + Clone + Send + 'static,
) -> Result<(), ServeError>
where
    H: Handler<C> + Send,
    C: 'static,
    K: LoopKind,
    L: ListenerLayer,
{
    serve.run::<Routed<HandlerOrFiles<H, C>>>(move || ((handler.clone(), files.clone()), context()))
}

/// Serves files where they are mounted, and calls the function for everything else.
struct HandlerOrFiles<H, C>(PhantomData<fn(H, C)>);

impl<H: Handler<C>, C: 'static> Route for HandlerOrFiles<H, C> {
    type First = AsyncServer<H, C>;
    type Second = StaticFiles<C>;

    fn is_first(_: &Head<'_>) -> bool {
        true
    }

    fn is_first_of(head: &Head<'_>, _: &H, files: &Files) -> bool {
        !files.are_at(head.path())
    }
}

impl<H: Handler<C>, C> AsyncServer<H, C> {
    fn with(state: State<H>) -> AsyncServer<H, C> {
        AsyncServer { state, context: PhantomData }
    }

    /// Writes a response, or as much of it as can be written. The rest is a bug of the handler.
    fn write_answer(answer: Answer, response: &mut Response<'_>) {
        if let Err(misuse) = answer.write(response) {
            log::error!("an answer was not written as it was asked for: {misuse}");
        }
    }

    fn run_handler(
        handler: &H,
        request: Request,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        let future = handler.handle(request, scope);
        let driven = Driven::new(async move { future.await.into() }, scope);
        AsyncServer::with(State::Answering(driven)).poll(response, scope)
    }

    fn poll(mut self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        let State::Answering(driven) = &mut self.state else {
            return Next::go_on(self).keep_deadline();
        };
        match driven.poll(scope) {
            Poll::Ready(answer) => {
                Self::write_answer(answer, response);
                Next::finished()
            }
            // If that is later than the connection's timeout for handlers, the timeout applies.
            Poll::Pending => match driven.deadline() {
                Some(time) => Next::wake_at(self, time),
                None => Next::go_on(self).keep_deadline(),
            },
        }
    }
}

impl<H: Handler<C>, C> Server for AsyncServer<H, C> {
    type Context = C;
    type Seed = H;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        handler: H,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if let Err(misuse) = handler.head_received(head, response) {
            log::error!("a field that every response is to have is invalid: {misuse}");
            return Next::fail(Status::INTERNAL_SERVER_ERROR);
        }
        let request = Request::new(head);
        if head.has_body() {
            let collecting = AsyncServer::with(State::Collecting(handler, Box::new(request)));
            // The limits of the connection still apply.
            return Next::recv(collecting, RecvMode::Buffered(usize::MAX)).keep_deadline();
        }
        AsyncServer::run_handler(&handler, request, response, scope)
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match self.state {
            State::Collecting(handler, mut request) => {
                request.set_body(body);
                AsyncServer::run_handler(&handler, *request, response, scope)
            }
            State::Answering(_) => Next::go_on(self).keep_deadline(),
        }
    }

    fn wakeup(self, response: &mut Response<'_>, scope: &mut Scope<'_, C>) -> Next<Self> {
        self.poll(response, scope)
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        Self::write_answer(H::error_page(status, response.refusal()), response);
    }
}

impl<H, C> fmt::Debug for AsyncServer<H, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.state {
            State::Collecting(_, request) => f.debug_tuple("Collecting").field(request).finish(),
            State::Answering(driven) => f.debug_tuple("Answering").field(driven).finish(),
        }
    }
}
