//! `Routed`: two servers side by side; each request goes to one of them.

use std::fmt;

use rotor_core::{Description, Scope};

use super::handler::{Next, Server};
use super::head::Head;
use super::request_event::RequestEvent;
use super::response::Response;
use super::rotor_routes::start_route;
use crate::semantics::error::BodyError;
use crate::semantics::method::Method;
use crate::semantics::status::Status;

/// Decides which of two servers a request goes to. The implementing type is separate from the
/// servers, so that [`Routed`] is no larger than the larger handler.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say which of two servers a request is for",
    note = "implement `Route` for an empty type: `First`, `Second` and `is_first`"
)]
#[doc(alias = "router")]
pub trait Route: 'static {
    /// The server of the requests for which [`is_first`](Route::is_first) returns `true`. It also
    /// writes the error pages.
    type First: Server;

    /// The server of all other requests.
    type Second: Server<
            Context = <Self::First as Server>::Context,
            Upgrade = <Self::First as Server>::Upgrade,
        >;

    /// Returns whether this request goes to the first server. Called once for each request, before
    /// either handler.
    fn is_first(head: &Head<'_>) -> bool;

    /// Returns whether this request goes to the first server, and may use the two seeds, for
    /// example a configured path. The connection calls this instead of `is_first`.
    ///
    /// The default calls `is_first`.
    fn is_first_of(
        head: &Head<'_>,
        first: &SeedOf<Self::First>,
        second: &SeedOf<Self::Second>,
    ) -> bool {
        let _ = (first, second);
        Self::is_first(head)
    }
}

/// A server made of two others: [`Route`] decides from each request's head which of them handles
/// it.
///
/// Each handler gets every call that it would get without this. For more than two servers, use
/// [`rotor_routes!`](crate::rotor_routes), which names them and their seeds. To wrap a single handler and change what it returns, use [`Next::map`].
/// Both servers see the whole path; to serve files below a part of the path, set
/// `FilesConfig::mounted_at`.
///
/// # Examples
///
/// An application and the files that belong to it:
///
/// ```
/// # mod rotor { pub use rotor_stream as stream; pub use rotor_http as http; }
/// use rotor::http::files::{Files, FilesConfig, StaticFiles};
/// use rotor::http::Status;
/// use rotor::http::server::{
///     Head, HttpSeed, Next, NoUpgrade, RecvMode, Response, Route, Routed, Scope, Server, ServerConfig,
/// };
///
/// /// What the whole program shares.
/// struct Shared {
///     notes: Vec<Vec<u8>>,
/// }
///
/// /// Takes notes.
/// struct Api;
///
/// impl Server for Api {
///     type Context = Shared;
///     type Seed = ();
///     type Upgrade = NoUpgrade<Shared>;
///
///     fn headers_received(
///         _: (),
///         _: &Head<'_>,
///         _: &mut Response<'_>,
///         _: &mut Scope<'_, Shared>,
///     ) -> Next<Self> {
///         Next::recv(Api, RecvMode::Buffered(1000)).keep_deadline()
///     }
///
///     fn request_received(
///         self,
///         note: &[u8],
///         response: &mut Response<'_>,
///         shared: &mut Scope<'_, Shared>,
///     ) -> Next<Self> {
///         shared.notes.push(note.to_vec());
///         let count = format!("{}\n", shared.notes.len());
///         response.reply(Status::OK, "text/plain", count.as_bytes()).into()
///     }
/// }
///
/// /// `/api/..` is the application's, everything else a file.
/// struct Site;
///
/// impl Route for Site {
///     type First = Api;
///     type Second = StaticFiles<Shared>;
///
///     fn is_first(head: &Head<'_>) -> bool {
///         head.path().starts_with("/api/")
///     }
/// }
///
/// # fn main() -> std::io::Result<()> {
/// # use rotor::stream::testing::Driver;
/// # use rotor::http::server::Connection;
/// # let root = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
/// let files: Files = FilesConfig::new(root).open()?;
/// let seed = HttpSeed::<Routed<Site>>::new(((), files), ServerConfig::new());
/// # let mut driver = Driver::<Connection<Routed<Site>>>::new(seed, Shared { notes: Vec::new() });
/// # driver.send(b"POST /api/note HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
/// # assert!(driver.take_received().ends_with(b"\r\n\r\n1\n"));
/// # driver.send(b"OPTIONS /lib.rs HTTP/1.1\r\nHost: a\r\n\r\n");
/// # assert!(driver.take_received().windows(6).any(|window| window == b"Allow:"));
/// # Ok(())
/// # }
/// ```
pub enum Routed<R: Route> {
    /// A handler of the first server.
    First(R::First),
    /// A handler of the second server.
    Second(R::Second),
}

type SeedOf<S> = <S as Server>::Seed;
type ScopeMut<'a, 'b, R> = &'a mut Scope<'b, <<R as Route>::First as Server>::Context>;

impl<R: Route> Server for Routed<R> {
    type Context = <R::First as Server>::Context;
    type Seed = (SeedOf<R::First>, SeedOf<R::Second>);
    type Upgrade = <R::First as Server>::Upgrade;

    const HEARS_END: bool = R::First::HEARS_END || R::Second::HEARS_END;

    /// Returns whether either server accepts the method. If a request then goes to the server that
    /// does not, the response is 501, too.
    fn supports(method: Method<'_>) -> bool {
        R::First::supports(method) || R::Second::supports(method)
    }

    fn headers_received(
        (first, second): Self::Seed,
        head: &Head<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, R>,
    ) -> Next<Self> {
        match R::is_first_of(head, &first, &second) {
            true => start_route(first, head, response, scope, Routed::First),
            false => start_route(second, head, response, scope, Routed::Second),
        }
    }

    fn handle(
        self,
        event: RequestEvent<'_>,
        response: &mut Response<'_>,
        scope: ScopeMut<'_, '_, R>,
    ) -> Next<Self> {
        match self {
            Routed::First(handler) => handler.handle(event, response, scope).wrap(Routed::First),
            Routed::Second(handler) => handler.handle(event, response, scope).wrap(Routed::Second),
        }
    }

    fn describe(&self, to: &mut Description) {
        match self {
            Routed::First(handler) => handler.describe(to),
            Routed::Second(handler) => handler.describe(to),
        }
    }

    fn bad_request(self, error: BodyError, scope: ScopeMut<'_, '_, R>) {
        match self {
            Routed::First(handler) => handler.bad_request(error, scope),
            Routed::Second(handler) => handler.bad_request(error, scope),
        }
    }

    fn emit_error_page(status: Status, response: &mut Response<'_>) {
        R::First::emit_error_page(status, response);
    }
}

impl<R: Route> fmt::Debug for Routed<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Routed::First(_) => "Routed::First",
            Routed::Second(_) => "Routed::Second",
        })
    }
}
