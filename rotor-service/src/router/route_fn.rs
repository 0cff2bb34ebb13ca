//! `RouteFn`: the server of a router.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

use rotor_http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
use rotor_http::{Method, Status};

use super::asked::RequestParts;
use super::by_prefix::{ByPrefix, Prefix};
use super::interceptors::Interceptors;
#[cfg(feature = "cors")]
use crate::cors::Cors;
use crate::refused::Rejection;
use crate::routes::{NoRoute, Parameters, RouteError, Routes};

/// Responds when the body is complete. If it captures nothing, boxing it does not allocate.
type BodyFn<C> = dyn FnOnce(&[u8], &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>> + Send;

/// Called with a head.
pub(super) type HeadFn<C> = dyn Fn(&mut RequestParts<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>>
    + Send
    + Sync;

/// A request that a function of a [`Router`](super::Router) handles: a [`Server`] whose seed is the
/// router's table.
///
/// ```text
///   head ──▶ route, arguments ─┬─▶ function ──────────────▶ answered, or waits as its `Next` says
///                              └─▶ RouteFn ── body whole ──▶ function ──▶ the same
/// ```
pub struct RouteFn<C: 'static> {
    on_body: Box<BodyFn<C>>,
}

impl<C: 'static> RouteFn<C> {
    /// Waits for the whole body, and then calls `on_body` with it.
    pub(super) fn with_body(
        octets_max: usize,
        on_body: impl FnOnce(&[u8], &mut Response<'_>, &mut Scope<'_, C>) -> Next<RouteFn<C>>
        + Send
        + 'static,
    ) -> Next<RouteFn<C>> {
        let state = RouteFn { on_body: Box::new(on_body) };
        Next::recv(state, RecvMode::Buffered(octets_max)).keep_deadline()
    }
}

impl<C: 'static> Server for RouteFn<C> {
    type Context = C;
    type Seed = RouteSeed<C>;
    type Upgrade = NoUpgrade<C>;

    /// Accepts every method that a route may have. Whether a route has it is looked up in the
    /// table.
    fn supports(method: Method<'_>) -> bool {
        !matches!(method, Method::Connect | Method::Trace)
    }

    fn headers_received(
        seed: RouteSeed<C>,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        if let Method::Extension(name) = head.method()
            && !seed.0.routes.has_method(name)
        {
            // The response of the connection to a method that a server does not support.
            return Next::fail(Status::NOT_IMPLEMENTED);
        }
        #[cfg(feature = "cors")]
        if let Some(cors) = seed.0.cors.get(head.path()) {
            let crossing = cors.check(head.method(), |name| head.field(name));
            // Before the table is used: it may have no route for OPTIONS, or one that is not meant
            // for preflights.
            if crossing.is_preflight() {
                return crossing.reply(response).into();
            }
            if let Err(error) = crossing.add_always(response) {
                log::error!("CORS is configured with an invalid field: {error}");
                return Next::fail(Status::INTERNAL_SERVER_ERROR);
            }
        }
        if let ControlFlow::Break(reply) = seed.0.interceptors.call(head, response, scope) {
            return reply.into();
        }
        seed.0.call(head, response, scope)
    }

    fn request_received(
        self,
        body: &[u8],
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<Self> {
        (self.on_body)(body, response, scope)
    }

    /// Writes the error in the form of a refusal.
    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        Rejection::from_connection_error(status, response.refusal()).reply(response);
    }
}

impl<C: 'static> fmt::Debug for RouteFn<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteFn").finish_non_exhaustive()
    }
}

/// The seed of [`RouteFn`]: a router's table, which the connections of one loop share.
pub struct RouteSeed<C: 'static>(Arc<Table<C>>);

impl<C: 'static> RouteSeed<C> {
    pub(super) fn new(table: Table<C>) -> RouteSeed<C> {
        RouteSeed(Arc::new(table))
    }
}

impl<C: 'static> Clone for RouteSeed<C> {
    fn clone(&self) -> RouteSeed<C> {
        RouteSeed(self.0.clone())
    }
}

impl<C: 'static> fmt::Debug for RouteSeed<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.routes.fmt(f)
    }
}

/// The functions of a router, and what is done before they are called.
pub(super) struct Table<C: 'static> {
    pub(super) routes: Routes<Route<C>>,
    /// For paths that no route has.
    pub(super) fallbacks: ByPrefix<Route<C>>,
    /// For all requests, before their route is looked up.
    pub(super) interceptors: Interceptors<C>,
    #[cfg(feature = "cors")]
    pub(super) cors: ByPrefix<Cors>,
}

impl<C: 'static> Table<C> {
    pub(super) fn new() -> Table<C> {
        Table {
            routes: Routes::new(),
            fallbacks: ByPrefix::NONE,
            interceptors: Interceptors::NONE,
            #[cfg(feature = "cors")]
            cors: ByPrefix::NONE,
        }
    }

    /// Adds a route. If that fails, the table is unchanged.
    pub(super) fn add(
        &mut self,
        method: Method<'_>,
        path: &str,
        route: Route<C>,
    ) -> Result<(), RouteError> {
        if self.routes.has(method.as_str(), path) {
            return Err(RouteError::new(path, format!("{method} has a function there already")));
        }
        self.routes.add(method, path, route)
    }

    /// Adds everything in another table, below a prefix.
    pub(super) fn nest(&mut self, prefix: &Prefix, mut inner: Table<C>) -> Result<(), RouteError> {
        for (method, path, mut route) in inner.routes.into_routes() {
            if path == "*" {
                let why = "it cannot be nested, as it is about all of a server".to_owned();
                return Err(RouteError::new(&path, why));
            }
            route.prefix_parameters += prefix.parameters();
            route.interceptors.prepend(&inner.interceptors);
            // Routes store methods as text.
            self.add(Method::Extension(&method), &prefix.join(&path), route)?;
        }
        for route in inner.fallbacks.values_mut() {
            route.interceptors.prepend(&inner.interceptors);
        }
        self.fallbacks.nest(prefix, inner.fallbacks, "a fallback")?;
        #[cfg(feature = "cors")]
        self.cors.nest(prefix, inner.cors, "CORS")?;
        Ok(())
    }

    /// Calls the function of the request's route, or refuses the request.
    fn call(
        &self,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<RouteFn<C>> {
        match self.routes.look_up(head.method(), head.path()) {
            Ok((route, parameters)) => route.call(head, &parameters, response, scope),
            Err(NoRoute::Method(refused)) => refused.reply(response).into(),
            Err(NoRoute::Path) => match self.fallbacks.get(head.path()) {
                Some(fallback) => fallback.call(head, &Parameters::none(), response, scope),
                None => Rejection::not_found().reply(response).into(),
            },
        }
    }
}

impl<C: 'static> Clone for Table<C> {
    fn clone(&self) -> Table<C> {
        Table {
            routes: self.routes.clone(),
            fallbacks: self.fallbacks.clone(),
            interceptors: self.interceptors.clone(),
            #[cfg(feature = "cors")]
            cors: self.cors.clone(),
        }
    }
}

/// A function in the table.
pub(super) struct Route<C: 'static> {
    on_head: Arc<HeadFn<C>>,
    body_bytes_max: usize,
    /// How many of the path's parameters belong to prefixes instead of the function.
    prefix_parameters: usize,
    /// Those of the routers that were nested with the route.
    interceptors: Interceptors<C>,
}

impl<C: 'static> Route<C> {
    pub(super) fn new(on_head: Arc<HeadFn<C>>, body_bytes_max: usize) -> Route<C> {
        Route { on_head, body_bytes_max, prefix_parameters: 0, interceptors: Interceptors::NONE }
    }

    fn call(
        &self,
        head: &Head<'_>,
        parameters: &Parameters<'_, '_>,
        response: &mut Response<'_>,
        scope: &mut Scope<'_, C>,
    ) -> Next<RouteFn<C>> {
        if let ControlFlow::Break(reply) = self.interceptors.call(head, response, scope) {
            return reply.into();
        }
        let mut asked =
            RequestParts::new(*head, parameters, self.prefix_parameters, self.body_bytes_max);
        (self.on_head)(&mut asked, response, scope)
    }
}

impl<C: 'static> Clone for Route<C> {
    fn clone(&self) -> Route<C> {
        let Route { on_head, body_bytes_max, prefix_parameters, interceptors } = self;
        Route {
            on_head: on_head.clone(),
            body_bytes_max: *body_bytes_max,
            prefix_parameters: *prefix_parameters,
            interceptors: interceptors.clone(),
        }
    }
}
