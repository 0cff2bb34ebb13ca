//! `Router`: a table of functions, each of which answers the requests of one route.

mod asked;
mod body;
mod by_prefix;
mod handler;
mod head;
mod interceptors;
mod into_next;
mod route_fn;

use std::fmt;
use std::sync::Arc;

use rotor_core::LoopKind;
use rotor_http::Method;
use rotor_http::server::{Head, Response, Scope, Serve, ServeError};

pub use self::asked::Asked;
#[cfg(feature = "pairs")]
pub use self::body::Form;
pub use self::body::FromBody;
#[cfg(feature = "json")]
pub use self::body::Json;
use self::by_prefix::Prefix;
pub use self::handler::RouteHandler;
#[cfg(feature = "pairs")]
pub use self::head::Query;
pub use self::head::{FromHead, Path};
pub use self::interceptors::IntoControlFlow;
pub use self::into_next::{IntoNext, or_refuse};
use self::route_fn::{Route, Table};
pub use self::route_fn::{RouteFn, RouteSeed};
#[cfg(feature = "cors")]
use crate::cors::Cors;
use crate::routes::RouteError;

/// How many octets of a body a function gets at most, unless its router sets another limit.
pub const ROUTE_BODY_BYTES_MAX: usize = 64 << 10;

/// A table of functions: each answers the requests of one method and path.
///
/// **A function gets what its arguments ask for, and is not called if something is missing.** First
/// come the arguments that are read from the head ([`FromHead`]: [`Path`], `Query`, types of
/// yours), then the complete body ([`FromBody`]: `Json`, `Form`, `String`, `Vec<u8>`; or `&[u8]`,
/// which is not copied), last the response and the scope. The function answers at once or
/// [later](IntoNext), or refuses with `?`. See [`RouteHandler`] for all forms of functions.
///
/// A request allocates only what its values need, and a box for its parameters if a body comes
/// after them.
///
/// | what came | answer |
/// |--|--|
/// | no route has the path, and there is no [`fallback`](Router::fallback) | 404 |
/// | a parameter is not a number where one is expected | 404 |
/// | the path exists for other methods | 405, with `Allow`; 204 for OPTIONS |
/// | a body of another type than expected, of no type, or compressed | 415 |
/// | a body that is longer than [`body_bytes_max`](Router::body_bytes_max) | 413 |
/// | a body that is not JSON, too deep, or not UTF-8 | 400 |
/// | JSON of another shape | 422 |
/// | a body that breaks off | 400, if the client can still read; the function is not called |
///
/// All of them have the reason as JSON, `{"error":".."}`.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "json", feature = "pairs"))] {
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Reply, Response, Scope};
/// use rotor_service::{Json, Path, Query, Refused, Router, json};
///
/// type Notes = Vec<String>;
///
/// fn list(
///     Query(query): Query,
///     response: &mut Response<'_>,
///     notes: &mut Scope<'_, Notes>,
/// ) -> Result<Reply, Refused> {
///     let limit = query.parse("limit")?.unwrap_or(20);
///     Ok(json::reply(response, Status::OK, &notes[..notes.len().min(limit)]))
/// }
///
/// fn add(
///     Json(note): Json<String>,
///     response: &mut Response<'_>,
///     notes: &mut Scope<'_, Notes>,
/// ) -> Reply {
///     notes.push(note);
///     json::reply(response, Status::CREATED, &(notes.len() - 1))
/// }
///
/// fn show(
///     Path(id): Path<usize>,
///     response: &mut Response<'_>,
///     notes: &mut Scope<'_, Notes>,
/// ) -> Result<Reply, Refused> {
///     let note = notes.get(id).ok_or_else(Refused::not_found)?;
///     Ok(json::reply(response, Status::OK, note))
/// }
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let router = Router::new().get("/notes", list)?.post("/notes", add)?.get("/notes/{id}", show)?;
/// # if false {
/// router.run(rotor::http::server::Serve::new("127.0.0.1:3000"), Notes::new)?;
/// # }
/// # Ok(())
/// # }
/// # main().unwrap();
/// # }
/// ```
#[doc(alias = "extractor")]
pub struct Router<C: 'static> {
    table: Table<C>,
    body_bytes_max: usize,
}

impl<C: 'static> Router<C> {
    /// Makes a router without routes.
    pub fn new() -> Router<C> {
        Router { table: Table::new(), body_bytes_max: ROUTE_BODY_BYTES_MAX }
    }

    /// Sets how many octets a body may have, for the functions that are added after this call.
    /// Beyond: 413, before the body is sent if its length was announced. Default: 64 KiB. The
    /// connection's own limit
    /// ([`buffered_body_bytes_max`](rotor_http::Limits::buffered_body_bytes_max)) applies as well.
    pub fn body_bytes_max(mut self, octets: usize) -> Router<C> {
        self.body_bytes_max = octets;
        self
    }

    /// Puts CORS in front of all routes, whether they are added before this call or after it. Of a
    /// router that is [nested](Router::nest), its own counts. Default: none. With the feature
    /// `cors`.
    ///
    /// Preflights are answered before any function, for every path. Whatever else is answered has
    /// the fields of [`Cors::check`]: what functions write, at once or later, what is refused, and
    /// errors of the connection (413 for a body that is too long, 503 for a function that is late,
    /// 500 for one that panics), so that the page learns of each. Only a head that is refused before
    /// a router sees it (400, 408, 431, 501) is answered without them.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::server::{Reply, Response, Scope};
    /// use rotor::http::{Method, Status};
    /// use rotor_service::{Cors, Router};
    ///
    /// fn list(response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     response.reply(Status::OK, "application/json", b"[]")
    /// }
    ///
    /// let cors = Cors::of(["https://app.example"])?.methods(&[Method::Get]);
    /// let router = Router::new().cors(cors).get("/notes", list)?;
    /// # let router: Router<()> = router;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[cfg(feature = "cors")]
    #[doc(alias = "middleware")]
    #[doc(alias = "layer")]
    pub fn cors(mut self, cors: Cors) -> Router<C> {
        self.table.cors.set(cors);
        self
    }

    /// Has a function look at each request before the function of its route: who asks, how often,
    /// under which number. It lets the request through, with what it has
    /// [added](Response::add_always) to the answer, or answers it itself: a body is not asked for
    /// then, and nothing else called.
    ///
    /// It sees all requests, whether their routes are added before this call or after it, or there
    /// is none. Several such functions are called in the order in which they were added, until one
    /// of them answers. Those of a router that is [nested](Router::nest) see what comes to its
    /// routes and its [fallback](Router::fallback), after those of the outer router; 404, 405 and
    /// 204 for OPTIONS, for which no function of it is called, they do not.
    ///
    /// Preflights of [CORS](Router::cors) are answered before; a head that is refused before a
    /// router sees it (400, 408, 431, 501) is not seen. If the function writes a status and lets the
    /// request through all the same, that is logged as an error, and nothing else called. A panic
    /// costs the request: 500.
    ///
    /// What guards some of the routes is a function of the nested router that has them, and does not
    /// look for them by the path: [`Head::path`] is as it was sent, and a [`Path`] is decoded, so
    /// `/users/%61dmin` is `admin`, too.
    ///
    /// What functions need to know of what was found out, such as who the user is, is read by an
    /// argument of theirs ([`FromHead`]).
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use std::collections::HashSet;
    ///
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    /// use rotor_service::{Refused, RouteError, Router};
    ///
    /// /// What the whole program shares: who may come in.
    /// struct Shared {
    ///     tokens: HashSet<Vec<u8>>,
    /// }
    ///
    /// fn with_token(
    ///     head: &Head<'_>,
    ///     _: &mut Response<'_>,
    ///     shared: &mut Scope<'_, Shared>,
    /// ) -> Result<(), Refused> {
    ///     let token = head.field("Authorization").and_then(|value| value.strip_prefix(b"Bearer "));
    ///     if token.is_some_and(|token| shared.tokens.contains(token)) {
    ///         return Ok(());
    ///     }
    ///     let refused = Refused::new(Status::UNAUTHORIZED, "a token is needed");
    ///     Err(refused.field("WWW-Authenticate", "Bearer"))
    /// }
    ///
    /// fn unframed(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, Shared>) {
    ///     response.add_always("X-Frame-Options", "DENY").expect("a field");
    /// }
    ///
    /// fn list(response: &mut Response<'_>, _: &mut Scope<'_, Shared>) -> Reply {
    ///     response.reply(Status::OK, "application/json", b"[]")
    /// }
    ///
    /// fn site() -> Result<Router<Shared>, RouteError> {
    ///     let api = Router::new().intercept(with_token).get("/notes", list)?;
    ///     Router::new().intercept(unframed).nest("/api", api)
    /// }
    /// # site().unwrap();
    /// ```
    #[doc(alias = "middleware")]
    #[doc(alias = "layer")]
    #[doc(alias = "interceptor")]
    #[doc(alias = "before_request")]
    pub fn intercept<F, R>(mut self, function: F) -> Router<C>
    where
        F: Fn(&Head<'_>, &mut Response<'_>, &mut Scope<'_, C>) -> R + Send + Sync + 'static,
        R: IntoControlFlow,
    {
        self.table.interceptors.push(function);
        self
    }

    /// Makes a function answer the requests of a route; see [`Routes`](crate::Routes) for the syntax
    /// of paths. A route for GET serves HEAD too, unless HEAD has its own.
    ///
    /// The method may be one that HTTP does not define itself (`Method::Extension("PROPFIND")`). One
    /// that no route of the router has is answered with 501, without any function, as by each server
    /// ([`supports`](rotor_http::server::Server::supports)).
    ///
    /// # Errors
    ///
    /// The caller's fault: the path is malformed or does not begin with a slash (`*` for OPTIONS
    /// does not), cannot be told from an earlier one, has a function for this method already, or
    /// has fewer parameters than the function takes; the method is none that a function is called
    /// for: CONNECT, TRACE, no token, or longer than
    /// [`OCTETS_MAX`](rotor_http::Method::OCTETS_MAX).
    pub fn on<F, M>(
        mut self,
        method: Method<'_>,
        path: &str,
        function: F,
    ) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        let name = method.as_str();
        let known = Method::new(name).filter(|_| name.len() <= Method::OCTETS_MAX);
        if matches!(known, None | Some(Method::Connect | Method::Trace)) {
            return Err(RouteError::new(path, format!("no function is called for {name:?}")));
        }
        // RFC 9112 §3.2.4: that target is for OPTIONS alone.
        if !path.starts_with('/') && (path != "*" || known != Some(Method::Options)) {
            return Err(RouteError::new(path, "it does not begin with a slash".to_owned()));
        }
        // matchit's way to say a brace that is one.
        let there_are = path.replace("{{", "").matches('{').count();
        if F::PARAMETERS > there_are {
            let why = format!("{} parameters are taken of {there_are}", F::PARAMETERS);
            return Err(RouteError::new(path, why));
        }
        self.table.add(method, path, self.route(function))?;
        Ok(self)
    }

    /// What a function is in the table.
    fn route<F: RouteHandler<C, M>, M>(&self, function: F) -> Route<C> {
        let calling = Arc::new(
            move |asked: &mut Asked<'_>, response: &mut Response<'_>, scope: &mut Scope<'_, C>| {
                function.call(asked, response, scope)
            },
        );
        Route::new(calling, self.body_bytes_max)
    }

    /// Makes a function answer where no route has the path, whatever the method, of those that are
    /// [known](Router::on): with a page for 404, say. A path whose routes are for other methods is
    /// still answered with 405, and OPTIONS with its methods; so is what an argument or a function
    /// refuses with 404. The function takes no [`Path`], which the compiler checks.
    ///
    /// Of a router that is [nested](Router::nest), its own fallback counts for all paths below the
    /// prefix, and this one where it has none. Default: none, which is 404 with a reason in JSON.
    /// The last call counts.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    /// use rotor_service::Router;
    ///
    /// fn home(response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     response.reply(Status::OK, "text/html", b"<h1>Welcome</h1>")
    /// }
    ///
    /// fn not_found(_: &Head<'_>, response: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Reply {
    ///     response.reply(Status::NOT_FOUND, "text/html", b"<h1>This page is gone</h1>")
    /// }
    ///
    /// let router = Router::new().get("/", home)?.fallback(not_found);
    /// # let router: Router<()> = router;
    /// # Ok::<(), rotor_service::RouteError>(())
    /// ```
    ///
    /// One with a [`Path`] does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use rotor_http::server::{Reply, Response, Scope};
    /// # use rotor_service::{Path, Router, Refused};
    /// fn of_path(_: Path<u8>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Refused {
    ///     Refused::not_found()
    /// }
    ///
    /// let router: Router<()> = Router::new().fallback(of_path);
    /// ```
    #[doc(alias = "default_service")]
    #[doc(alias = "404")]
    pub fn fallback<F: RouteHandler<C, M>, M>(mut self, function: F) -> Router<C> {
        const { assert!(F::PARAMETERS == 0, "a fallback has no parameters of a path") }
        self.table.fallbacks.set(self.route(function));
        self
    }

    /// Puts all routes of another router below a prefix: its `/notes` under `/api` is `/api/notes`,
    /// and its `/` is `/api`, not `/api/`.
    ///
    /// Both routers are one table, so a path whose methods come from both is answered with 405 and
    /// `Allow` for both. Functions see the whole path in the head. The router's own
    /// [`fallback`](Router::fallback) and [`cors`](Router::cors) count for the prefix and all paths
    /// below it, and those of this router where it has none; each of its functions keeps its limit
    /// on bodies, and what [looks at its requests first](Router::intercept).
    ///
    /// The prefix may have parameters. `Path` takes those of the function's own router, so that it
    /// means the same wherever that is nested; those of the prefix have names:
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Reply, Response, Scope};
    /// use rotor_service::{Asked, FromHead, Path, Refused, RouteError, Router};
    ///
    /// /// Whose notes they are: `{user}`.
    /// struct User(String);
    ///
    /// impl FromHead for User {
    ///     fn from_head(asked: &mut Asked<'_>) -> Result<User, Refused> {
    ///         Ok(User(asked.parameters().text("user")?.into_owned()))
    ///     }
    /// }
    ///
    /// fn show(
    ///     User(user): User,
    ///     Path(id): Path<u32>,
    ///     response: &mut Response<'_>,
    ///     _: &mut Scope<'_, ()>,
    /// ) -> Reply {
    ///     response.reply(Status::OK, "text/plain", format!("{id} of {user}").as_bytes())
    /// }
    ///
    /// fn notes() -> Result<Router<()>, RouteError> {
    ///     Router::new().get("/notes/{id}", show)
    /// }
    ///
    /// // GET /users/eve/notes/7
    /// let router = Router::new().nest("/users/{user}", notes()?)?;
    /// # Ok::<(), RouteError>(())
    /// ```
    ///
    /// # Errors
    ///
    /// The caller's fault: the prefix is `/`, ends with a slash, has anything else than whole
    /// segments and parameters in it, two parameters of one name, or a character that no path is
    /// sent with; a route cannot be added, as in [`on`](Router::on), because of one that is there
    /// or of two parameters of one name; another router that is nested there has a fallback or CORS
    /// as well.
    #[doc(alias = "mount")]
    #[doc(alias = "merge")]
    pub fn nest(mut self, prefix: &str, router: Router<C>) -> Result<Router<C>, RouteError> {
        self.table.nest(&Prefix::read(prefix)?, router.table)?;
        Ok(self)
    }

    /// Is [`on`](Router::on) for GET and HEAD.
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn get<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Get, path, function)
    }

    /// Is [`on`](Router::on) for POST.
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn post<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Post, path, function)
    }

    /// Is [`on`](Router::on) for PUT.
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn put<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Put, path, function)
    }

    /// Is [`on`](Router::on) for PATCH.
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn patch<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Patch, path, function)
    }

    /// Is [`on`](Router::on) for DELETE.
    ///
    /// # Errors
    ///
    /// As `on`.
    pub fn delete<F, M>(self, path: &str, function: F) -> Result<Router<C>, RouteError>
    where
        F: RouteHandler<C, M>,
    {
        self.on(Method::Delete, path, function)
    }

    /// Serves with these functions, and a context for each of the loops, until the process is asked
    /// to end.
    ///
    /// # Errors
    ///
    /// As [`Serve::run`].
    pub fn run<K: LoopKind>(
        self,
        serve: Serve<K>,
        context: impl Fn() -> C + Clone + Send + 'static,
    ) -> Result<(), ServeError> {
        let router = Arc::new(self);
        serve.run::<RouteFn<C>>(move || (router.seed(), context()))
    }

    /// Makes the seed of [`RouteFn`], for a server that is set up by hand. Each loop gets one of
    /// its own, whose reference count no other thread touches.
    pub fn seed(&self) -> RouteSeed<C> {
        RouteSeed::new(self.table.clone())
    }
}

/// For a server that is set up by hand on several threads: the functions are shared.
impl<C: 'static> Clone for Router<C> {
    fn clone(&self) -> Router<C> {
        Router { table: self.table.clone(), body_bytes_max: self.body_bytes_max }
    }
}

impl<C: 'static> Default for Router<C> {
    fn default() -> Router<C> {
        Router::new()
    }
}

impl<C: 'static> fmt::Debug for Router<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.routes.fmt(f)
    }
}
