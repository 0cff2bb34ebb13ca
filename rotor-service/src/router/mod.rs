//! `Router`: a table of functions, each of which handles the requests of one route.

mod asked;
mod body;
mod by_prefix;
mod handler;
mod head;
mod interceptors;
mod into_next;
mod methods;
mod route_fn;

use std::fmt;
use std::sync::Arc;

use rotor_core::LoopKind;
use rotor_core::net::ListenerLayer;
use rotor_http::Method;
use rotor_http::server::{Head, Response, Scope, Serve, ServeError};

pub use self::asked::RequestParts;
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
pub use self::into_next::{IntoNext, or_reject};
use self::route_fn::{Route, Table};
pub use self::route_fn::{RouteFn, RouteSeed};
#[cfg(feature = "cors")]
use crate::cors::Cors;
use crate::routes::RouteError;

/// How many bytes of body a function gets at most, unless its router sets another limit.
pub const ROUTE_BODY_BYTES_MAX: usize = 64 << 10;

/// A table of functions: each handles the requests of one method and path.
///
/// **A function gets what its arguments ask for, and is not called if something is missing.** First
/// come the arguments that are read from the head ([`FromHead`]: [`Path`], `Query`, your own
/// types), then the complete body ([`FromBody`]: `Json`, `Form`, `String`, `Vec<u8>`; or `&[u8]`,
/// which is not copied), last the response and the scope. The function responds at once or
/// [later](IntoNext), or refuses with `?`. See [`RouteHandler`] for all forms of functions.
///
/// For each request, the router allocates only what the argument values need, and one box for them
/// if the function also takes a body.
///
/// | what arrives | response |
/// |--|--|
/// | a path that no route has, if there is no [`fallback`](Router::fallback) | 404 |
/// | a parameter that is not a number, if one is expected | 404 |
/// | a path that has routes, but for other methods | 405, with `Allow`; 204 for OPTIONS |
/// | a body of another type than expected, of no type, or compressed (then with `Accept-Encoding: identity`) | 415 |
/// | a body that is longer than [`body_bytes_max`](Router::body_bytes_max) | 413 |
/// | a body that is not JSON, nested too deep, or not UTF-8 | 400 |
/// | JSON of another shape | 422 |
/// | a body that ends too early | 400, if the client can still read; the function is not called |
///
/// Each of these responses has the reason as JSON, `{"error":".."}`.
///
/// # Examples
///
/// ```
/// # #[cfg(all(feature = "json", feature = "pairs"))] {
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Reply, Response, Scope};
/// use rotor_service::{Json, Path, Query, Rejection, Router, json};
///
/// type Notes = Vec<String>;
///
/// fn list(
///     Query(query): Query,
///     response: &mut Response<'_>,
///     notes: &mut Scope<'_, Notes>,
/// ) -> Result<Reply, Rejection> {
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
/// ) -> Result<Reply, Rejection> {
///     let note = notes.get(id).ok_or_else(Rejection::not_found)?;
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

    /// Sets how many bytes a body may have, for the functions that are added after this call. A
    /// longer body is refused with 413; if its length was announced, before it is sent. Default: 64
    /// KiB. The connection's own limit
    /// ([`buffered_body_bytes_max`](rotor_http::Limits::buffered_body_bytes_max)) applies as well.
    pub fn body_bytes_max(mut self, bytes: usize) -> Router<C> {
        self.body_bytes_max = bytes;
        self
    }

    /// Puts CORS in front of all routes, whether they are added before this call or after it. For
    /// the paths of a [nested](Router::nest) router that has its own CORS, only that applies.
    /// Default: none. Needs the feature `cors`.
    ///
    /// Preflights are answered before any function is called, for every path. Every other response
    /// gets the fields of [`Cors::check`], so that the page can see it: the responses of functions,
    /// at once or later, refusals, and errors of the connection (413 for a body that is too long,
    /// 503 if a function is too slow, 500 if it panics). Only a response to a head that is refused
    /// before a router sees it (400, 408, 431, 501) lacks the fields.
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

    /// Calls a function for each request, before the function of its route: for authentication,
    /// rate limits, request numbers and the like. The function either lets the request through,
    /// perhaps with fields that it has [added](Response::add_always) to the response, or responds
    /// itself. In that case the body is not requested, and no other function is called.
    ///
    /// The function is called for all requests, whether their routes are added before this call or
    /// after it, or do not exist. If there are several such functions, they are called in the order
    /// in which they were added, until one of them responds. Those of a [nested](Router::nest)
    /// router are called after those of the outer router, and only for requests that one of its
    /// routes or its [fallback](Router::fallback) handles. They are not called for a 404, a 405 or
    /// the 204 for OPTIONS, for which no function of the nested router is called.
    ///
    /// Preflights of [CORS](Router::cors) are answered before the function is called. It does not
    /// see a head that is refused before a router sees it (400, 408, 431, 501). If the function
    /// writes a status but then lets the request through, that is logged as an error, and no other
    /// function is called. If it panics, the response is a 500.
    ///
    /// To guard some of the routes, put them in a nested router and add the function there. Do not
    /// compare paths: [`Head::path`] is as it was sent, but a [`Path`] is decoded, so
    /// `/users/%61dmin` is `admin` as well.
    ///
    /// If a route's function needs a result of this check, such as the user, read it again with an
    /// argument type of your own ([`FromHead`]).
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use std::collections::HashSet;
    ///
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Reply, Response, Scope};
    /// use rotor_service::{Rejection, RouteError, Router};
    ///
    /// /// The context, with the tokens that are accepted.
    /// struct Shared {
    ///     tokens: HashSet<Vec<u8>>,
    /// }
    ///
    /// fn with_token(
    ///     head: &Head<'_>,
    ///     _: &mut Response<'_>,
    ///     shared: &mut Scope<'_, Shared>,
    /// ) -> Result<(), Rejection> {
    ///     let token = head.field("Authorization").and_then(|value| value.strip_prefix(b"Bearer "));
    ///     if token.is_some_and(|token| shared.tokens.contains(token)) {
    ///         return Ok(());
    ///     }
    ///     let refused = Rejection::new(Status::UNAUTHORIZED, "a token is needed");
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

    /// Adds a function that handles the requests of a route; see [`Routes`](crate::Routes) for the
    /// syntax of paths. A route for GET serves HEAD too, unless HEAD has its own.
    ///
    /// The method may be one that HTTP itself does not define (`Method::Extension("PROPFIND")`). A
    /// request whose method is not in any route of the router gets 501, and no function is called,
    /// as with every server ([`supports`](rotor_http::server::Server::supports)).
    ///
    /// # Errors
    ///
    /// The caller's mistake. The path is malformed, does not begin with a slash (except `*` for
    /// OPTIONS), cannot be distinguished from an earlier one, has a function for this method
    /// already, or has fewer parameters than the function takes. Or the method cannot have a
    /// function: CONNECT, TRACE, a text that is not a token, or one that is longer than
    /// [`BYTES_MAX`](rotor_http::Method::BYTES_MAX).
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
        let known = Method::new(name).filter(|_| name.len() <= Method::BYTES_MAX);
        if matches!(known, None | Some(Method::Connect | Method::Trace)) {
            return Err(RouteError::new(path, format!("no function is called for {name:?}")));
        }
        // RFC 9112 §3.2.4: this target is only for OPTIONS.
        if !path.starts_with('/') && (path != "*" || known != Some(Method::Options)) {
            return Err(RouteError::new(path, "it does not begin with a slash".to_owned()));
        }
        // matchit's escape for a literal brace.
        let parameter_count = path.replace("{{", "").matches('{').count();
        if F::PARAMETERS > parameter_count {
            let why = format!("{} parameters are taken of {parameter_count}", F::PARAMETERS);
            return Err(RouteError::new(path, why));
        }
        self.table.add(method, path, self.route(function))?;
        Ok(self)
    }

    /// Makes the table's entry for a function.
    fn route<F: RouteHandler<C, M>, M>(&self, function: F) -> Route<C> {
        let on_head = Arc::new(
            move |asked: &mut RequestParts<'_>,
                  response: &mut Response<'_>,
                  scope: &mut Scope<'_, C>| { function.call(asked, response, scope) },
        );
        Route::new(on_head, self.body_bytes_max)
    }

    /// Sets the function for paths that no route has, for example to send a page with 404. It is
    /// called for all [known](Router::on) methods. It is not called if the path has routes for
    /// other methods (405, or the methods in reply to OPTIONS), or if an argument or a function
    /// refuses with 404. The function takes no [`Path`]; the compiler checks this.
    ///
    /// For all paths below the prefix of a [nested](Router::nest) router, that router's fallback
    /// applies, or this one if it has none. Default: none, which means 404 with a reason in JSON.
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
    /// A function with a [`Path`] does not compile:
    ///
    /// ```compile_fail,E0080
    /// # use rotor_http::server::{Reply, Response, Scope};
    /// # use rotor_service::{Path, Router, Rejection};
    /// fn of_path(_: Path<u8>, _: &mut Response<'_>, _: &mut Scope<'_, ()>) -> Rejection {
    ///     Rejection::not_found()
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

    /// Adds all routes of another router, below a prefix. If the prefix is `/api`, the router's
    /// `/notes` becomes `/api/notes`, and its `/` becomes `/api`, not `/api/`.
    ///
    /// Both routers become one table, so if the methods of a path come from both, a 405 lists all
    /// of them in `Allow`. Functions see the whole path in the head. The nested router's
    /// [`fallback`](Router::fallback) and [`cors`](Router::cors) apply to the prefix and to all
    /// paths below it; if it has none, those of this router apply. Each of its functions keeps its
    /// limit on bodies and its [intercepting functions](Router::intercept).
    ///
    /// The prefix may have parameters. `Path` takes only parameters of the function's own router,
    /// so a function works in the same way wherever its router is nested. The parameters of the
    /// prefix are read by name:
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Reply, Response, Scope};
    /// use rotor_service::{RequestParts, FromHead, Path, Rejection, RouteError, Router};
    ///
    /// /// The owner of the notes: the parameter `{user}`.
    /// struct User(String);
    ///
    /// impl FromHead for User {
    ///     fn from_head(asked: &mut RequestParts<'_>) -> Result<User, Rejection> {
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
    /// The caller's mistake. The prefix is `/`, ends with a slash, consists of anything but whole
    /// segments and parameters, has two parameters of one name, or has a character that cannot be
    /// in a path. Or a route cannot be added, as in [`on`](Router::on), because of an existing
    /// route or of two parameters of one name. Or another router that is nested there has a
    /// fallback or CORS as well.
    #[doc(alias = "mount")]
    #[doc(alias = "merge")]
    pub fn nest(mut self, prefix: &str, router: Router<C>) -> Result<Router<C>, RouteError> {
        self.table.nest(&Prefix::parse(prefix)?, router.table)?;
        Ok(self)
    }

    /// Runs a server with these functions, and with a context for each loop, until the process is
    /// asked to end.
    ///
    /// # Errors
    ///
    /// As [`Serve::run`].
    pub fn run<K: LoopKind, L: ListenerLayer>(
        self,
        serve: Serve<K, L>,
        context: impl Fn() -> C + Clone + Send + 'static,
    ) -> Result<(), ServeError> {
        let router = Arc::new(self);
        serve.run::<RouteFn<C>>(move || (router.seed(), context()))
    }

    /// Makes the seed of [`RouteFn`], for a server that is set up by hand. Make one for each loop:
    /// its reference count is then not shared between threads.
    pub fn seed(&self) -> RouteSeed<C> {
        RouteSeed::new(self.table.clone())
    }
}

/// A clone shares the functions. It is for servers on several threads that are set up by hand.
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
