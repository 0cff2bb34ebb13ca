//! `Intercepted`: a server with code that sees each request first.

use std::fmt;
use std::ops::ControlFlow;

use rotor_core::{Description, Scope};

use super::handler::{Next, Server};
use super::head::Head;
use super::reply::Reply;
use super::request_event::RequestEvent;
use super::response::Response;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// Code that sees each request before a server does: for authentication, rate limits, request ids.
/// The implementing type is separate from the server, so that [`Intercepted`] is no larger than the
/// handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say what to do with a request before its server",
    note = "implement `Intercept` for an empty type: `Server` and `intercept`"
)]
pub trait Intercept: 'static {
    /// The server that handles the requests that are let through.
    type Server: Server + 'static;

    /// Called once for each request, when its head has been received. `Continue` lets the request
    /// through; fields that were added with [`add_always`](Response::add_always) go into the
    /// response. `Break` responds to the request instead of the server; its body is not asked for.
    ///
    /// If this writes a status and returns `Continue` all the same, an error is logged and the
    /// server is not called. A panic is treated as a panic of the handler: the peer gets 500.
    fn intercept(
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, <Self::Server as Server>::Context>,
    ) -> ControlFlow<Reply>;
}

/// A server whose requests are seen by an [`Intercept`] first.
///
/// It has the server's context, seed and upgrade, so it can be used wherever the server can. Around
/// a [`Routed`](super::Routed) it sees all requests, inside one only those of its route. It costs
/// only that one call: the handlers get every call that they would get without this.
///
/// A head that is refused before a handler sees it (400, 408, 431, 501) is not intercepted. For
/// code around every call of a handler, see [`Around`](super::Around).
///
/// **To protect a part of a server, put the `Intercepted` around that part**, inside the `Routed`
/// that selects it, and make sure that no other server serves the same content. An intercept around
/// the whole server that checks the path can be bypassed: [`Head::path`] is the path as it was
/// sent, and a server that decodes it, such as [`StaticFiles`](crate::files::StaticFiles), serves
/// at `/%70rivate/a` the same file as at `/private/a`.
///
/// # Examples
///
/// A request without a known token gets 401, and every response says that it must not be framed:
/// also a 413 for a body that is too large, or a 500 for a handler that panics.
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use std::collections::HashSet;
/// use std::ops::ControlFlow::{self, Break, Continue};
///
/// use rotor::http::Status;
/// use rotor::http::server::{Head, Intercept, Intercepted, Reply, Response, Scope, Server};
/// # use rotor::http::server::{Connection, HttpSeed, Next, NoUpgrade, ServerConfig};
/// # use rotor_stream::testing::Driver;
///
/// /// What the whole program shares.
/// struct Shared {
///     tokens: HashSet<Vec<u8>>,
/// }
///
/// /// Lets requests through that have a known token.
/// struct WithToken<S>(std::marker::PhantomData<S>);
///
/// impl<S: Server<Context = Shared> + 'static> Intercept for WithToken<S> {
///     type Server = S;
///
///     fn intercept(
///         head: &Head<'_>,
///         response: &mut Response<'_>,
///         shared: &mut Scope<'_, Shared>,
///     ) -> ControlFlow<Reply> {
///         if let Err(misuse) = response.add_always("X-Frame-Options", "DENY") {
///             return Break(Err(misuse).into());
///         }
///         let token = head.field("Authorization").and_then(|value| value.strip_prefix(b"Bearer "));
///         if token.is_some_and(|token| shared.tokens.contains(token)) {
///             return Continue(());
///         }
///         let fields: &[(&str, &[u8])] = &[("WWW-Authenticate", b"Bearer")];
///         Break(response.reply_with(Status::UNAUTHORIZED, fields, "text/plain", b"no token"))
///     }
/// }
///
/// # struct Pages;
/// # impl Server for Pages {
/// #     type Context = Shared;
/// #     type Seed = ();
/// #     type Upgrade = NoUpgrade<Shared>;
/// #     fn headers_received(
/// #         (): (), _: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, Shared>,
/// #     ) -> Next<Self> {
/// #         response.reply(Status::OK, "text/plain", b"a page").into()
/// #     }
/// # }
/// type Guarded = Intercepted<WithToken<Pages>>;
/// # let shared = Shared { tokens: HashSet::from([b"abc".to_vec()]) };
/// # let mut driver = Driver::<Connection<Guarded>>::new(HttpSeed::new((), ServerConfig::new()), shared);
/// # driver.send(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer abc\r\n\r\n");
/// # assert!(driver.take_received().ends_with(b"a page"));
/// # driver.send(b"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer x\r\n\r\n");
/// # assert!(driver.take_received().starts_with(b"HTTP/1.1 401 Unauthorized\r\nX-Frame-Options: DENY\r\n"));
/// ```
#[doc(alias = "middleware")]
#[doc(alias = "interceptor")]
#[doc(alias = "filter")]
pub struct Intercepted<I: Intercept>(I::Server);

type ScopeMut<'a, 'b, I> = &'a mut Scope<'b, <<I as Intercept>::Server as Server>::Context>;

impl<I: Intercept> Server for Intercepted<I> {
    type Context = <I::Server as Server>::Context;
    type Seed = <I::Server as Server>::Seed;
    type Upgrade = <I::Server as Server>::Upgrade;

    const HEARS_END: bool = I::Server::HEARS_END;

    fn supports(method: Method<'_>) -> bool {
        I::Server::supports(method)
    }

    fn headers_received(
        seed: Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, I>,
    ) -> Next<Self> {
        match I::intercept(head, response, scope) {
            ControlFlow::Break(reply) => reply.into(),
            ControlFlow::Continue(()) if response.is_started() => {
                let name = std::any::type_name::<I>();
                log::error!("{name} wrote a part of a response to a request that it passes on");
                Next::finished()
            }
            ControlFlow::Continue(()) => {
                I::Server::headers_received(seed, head, response, scope).wrap(Intercepted)
            }
        }
    }

    fn handle(
        self,
        event: RequestEvent<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, I>,
    ) -> Next<Self> {
        self.0.handle(event, response, scope).wrap(Intercepted)
    }

    fn describe(&self, to: &mut Description) {
        self.0.describe(to);
    }

    fn bad_request(self, error: BodyError, scope: ScopeMut<'_, '_, I>) {
        self.0.bad_request(error, scope);
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        I::Server::emit_error_page(status, response);
    }
}

impl<I: Intercept<Server: fmt::Debug>> fmt::Debug for Intercepted<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Intercepted").field(&self.0).finish()
    }
}
