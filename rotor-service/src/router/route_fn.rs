//! `RouteFn`: the server of a router.

use std::fmt;
use std::sync::Arc;

use rotor_http::Status;
use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};

use super::asked::Asked;
use crate::refused::Refused;
use crate::routes::Routes;

/// What answers when the body is whole. One that captures nothing is no allocation.
type Answering<C> =
    dyn FnOnce(&[u8], &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>> + Send;

/// What is called with a head.
pub(super) type Calling<C> =
    dyn Fn(&mut Asked<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>> + Send + Sync;

/// A request that a function of a [`Router`](super::Router) answers: a [`Server`] whose seed is the
/// table.
///
/// ```text
///   head ──▶ route, arguments ─┬─▶ function ──────────────▶ answered, or waits as its `Next` says
///                              └─▶ RouteFn ── body whole ──▶ function ──▶ the same
/// ```
pub struct RouteFn<C: 'static> {
    answering: Box<Answering<C>>,
}

impl<C: 'static> RouteFn<C> {
    /// Has the body collected, and then answers with it.
    pub(super) fn with_body(
        octets_max: usize,
        answering: impl FnOnce(&[u8], &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>>
        + Send
        + 'static,
    ) -> Next<RouteFn<C>> {
        let state = RouteFn { answering: Box::new(answering) };
        Next::recv(state, RecvMode::Buffered(octets_max)).keep_deadline()
    }
}

impl<C: 'static> Server for RouteFn<C> {
    type Context = C;
    type Seed = RouteSeed<C>;
    type Upgrade = NoUpgrade<C>;

    fn headers_received(
        seed: RouteSeed<C>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        match seed.0.find(head.method(), head.path()) {
            Ok((route, parameters)) => {
                let mut asked = Asked::new(*head, &parameters, route.body_bytes_max);
                (route.calling)(&mut asked, response, scope)
            }
            Err(refused) => refused.reply(response).into(),
        }
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        (self.answering)(body, response, scope)
    }

    /// In the form in which functions refuse.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        Refused::of_connection(status).reply(response);
    }
}

impl<C: 'static> fmt::Debug for RouteFn<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFn").finish_non_exhaustive()
    }
}

/// The seed of [`RouteFn`]: a router's table, which the connections of one loop share.
pub struct RouteSeed<C: 'static>(Arc<Routes<Route<C>>>);

impl<C: 'static> RouteSeed<C> {
    pub(super) fn new(routes: Routes<Route<C>>) -> RouteSeed<C> {
        RouteSeed(Arc::new(routes))
    }
}

impl<C: 'static> Clone for RouteSeed<C> {
    fn clone(&self) -> RouteSeed<C> {
        RouteSeed(self.0.clone())
    }
}

impl<C: 'static> fmt::Debug for RouteSeed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A function in the table.
pub(super) struct Route<C: 'static> {
    calling: Arc<Calling<C>>,
    body_bytes_max: usize,
}

impl<C: 'static> Route<C> {
    pub(super) fn new(calling: Arc<Calling<C>>, body_bytes_max: usize) -> Route<C> {
        Route { calling, body_bytes_max }
    }
}

impl<C: 'static> Clone for Route<C> {
    fn clone(&self) -> Route<C> {
        Route { calling: self.calling.clone(), body_bytes_max: self.body_bytes_max }
    }
}
