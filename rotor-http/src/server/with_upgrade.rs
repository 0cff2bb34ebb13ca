//! `WithUpgrade`: gives a server without upgrades the upgrade type of another server.

use std::fmt;
use std::marker::PhantomData;

use rotor_core::{Description, Scope};
use rotor_stream::Protocol;

use super::handler::{Next, Server};
use super::head::Head;
use super::request_event::RequestEvent;
use super::response::Response;
use crate::no_upgrade::NoUpgrade;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// A server `S` that never upgrades, as a server whose [`Upgrade`](Server::Upgrade) is `P`. With
/// it, `S` fits beside a server that does upgrade, because [`Routed`](super::Routed) requires the
/// same `Upgrade` of both.
///
/// It has the seed of `S`, and its handlers get every call that they would get without this. On
/// HTTP/2 they also get requests to switch protocols (RFC 8441), as GETs with `Upgrade`; without
/// this, `S` offers no such switch.
///
/// # Examples
///
/// Pages beside a WebSocket, or beside any other protocol that a connection may switch to:
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; pub use rotor_http as http; }
/// use rotor::http::server::{Head, NoUpgrade, Route, Server, WithUpgrade};
/// use rotor::stream::Protocol;
/// # use std::marker::PhantomData;
///
/// /// `/chat` switches to another protocol; everything else is a page.
/// struct Site<Pages, Door>(PhantomData<(Pages, Door)>);
///
/// impl<C, Pages, Door> Route for Site<Pages, Door>
/// where
///     C: 'static,
///     Pages: Server<Context = C, Upgrade = NoUpgrade<C>> + 'static,
///     Door: Server<Context = C, Upgrade: 'static> + 'static,
/// {
///     type First = WithUpgrade<Pages, Door::Upgrade>;
///     type Second = Door;
///
///     fn is_first(head: &Head<'_>) -> bool {
///         head.path() != "/chat"
///     }
/// }
/// ```
pub struct WithUpgrade<S, P> {
    inner: S,
    upgrade: PhantomData<fn(P)>,
}

type ScopeMut<'a, 'b, S> = &'a mut Scope<'b, <S as Server>::Context>;

impl<S, P> WithUpgrade<S, P> {
    fn new(inner: S) -> WithUpgrade<S, P> {
        WithUpgrade { inner, upgrade: PhantomData }
    }
}

/// Converts what the inner handler returns; that never upgrades.
fn wrap_next<S, P>(next: Next<S>) -> Next<WithUpgrade<S, P>>
where
    S: Server<Upgrade = NoUpgrade<<S as Server>::Context>> + 'static,
    P: Protocol<Context = S::Context> + 'static,
{
    next.map(WithUpgrade::new, |never| match never {})
}

impl<S, P> Server for WithUpgrade<S, P>
where
    S: Server<Upgrade = NoUpgrade<<S as Server>::Context>> + 'static,
    P: Protocol<Context = S::Context> + 'static,
{
    type Context = S::Context;
    type Seed = S::Seed;
    type Upgrade = P;

    const HEARS_END: bool = S::HEARS_END;

    fn supports(method: Method<'_>) -> bool {
        S::supports(method)
    }

    fn headers_received(
        seed: S::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, S>,
    ) -> Next<Self> {
        wrap_next(S::headers_received(seed, head, response, scope))
    }

    fn handle(
        self,
        event: RequestEvent<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, S>,
    ) -> Next<Self> {
        wrap_next(self.inner.handle(event, response, scope))
    }

    fn describe(&self, to: &mut Description) {
        self.inner.describe(to);
    }

    fn bad_request(self, error: BodyError, scope: ScopeMut<'_, '_, S>) {
        self.inner.bad_request(error, scope);
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        S::emit_error_page(status, response);
    }
}

impl<S: fmt::Debug, P> fmt::Debug for WithUpgrade<S, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WithUpgrade").field(&self.inner).finish()
    }
}
