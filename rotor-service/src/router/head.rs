//! `FromHead`: arguments that are read from the head of a request.

use std::str::FromStr;

use super::asked::RequestParts;
#[cfg(feature = "cookies")]
use crate::cookies::Cookies;
#[cfg(feature = "multipart")]
use crate::multipart::{Multipart, MultipartConfig};
#[cfg(feature = "pairs")]
use crate::pairs::Pairs;
use crate::refused::Rejection;
#[cfg(feature = "multipart")]
use crate::uncoded::check_uncoded;

/// An argument of a route's function that is read from the head of the request, before the body
/// arrives.
///
/// It is kept until the body is complete, so it must own its data.
///
/// # Examples
///
/// ```
/// use rotor_service::{RequestParts, FromHead, Rejection};
///
/// /// The user that a field of the request names.
/// struct User(String);
///
/// impl FromHead for User {
///     fn from_head(asked: &mut RequestParts<'_>) -> Result<User, Rejection> {
///         let user = asked.head().field("X-User").ok_or_else(Rejection::not_found)?;
///         Ok(User(String::from_utf8_lossy(user).into_owned()))
///     }
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not read from the head of a request",
    note = "it is `Path<T>`, `Query`, `Cookies`, `Multipart`, or a type that implements `FromHead`; \
            behind those, one that implements `FromBody` may stand"
)]
pub trait FromHead: Sized + Send + 'static {
    /// How many parameters of the path this argument takes. Default: none.
    const PARAMETERS: usize = 0;

    /// Reads the argument.
    ///
    /// # Errors
    ///
    /// The reason why the request is refused; the function is not called.
    fn from_head(asked: &mut RequestParts<'_>) -> Result<Self, Rejection>;
}

/// The next parameter of the path, percent-decoded. The first `Path` of a function is the first
/// parameter, the second `Path` is the second, and each may have its own type.
///
/// If a parameter is not a `T`, the request is refused with 404, since no resource has this name;
/// if it is not UTF-8, with 400. `T` is parsed by its [`FromStr`], so numbers may begin with a `+`
/// or with zeros.
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Reply, Response, Scope};
/// use rotor_service::{Path, Router};
///
/// fn line(
///     Path(order): Path<u64>,
///     Path(line): Path<String>,
///     response: &mut Response<'_>,
///     _: &mut Scope<'_, ()>,
/// ) -> Reply {
///     response.reply(Status::OK, "text/plain", format!("{line} of {order}").as_bytes())
/// }
///
/// let router = Router::new().get("/orders/{order}/lines/{line}", line)?;
/// # let router: Router<()> = router;
/// # Ok::<(), rotor_service::RouteError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Path<T>(pub T);

impl<T: FromStr + Send + 'static> FromHead for Path<T> {
    const PARAMETERS: usize = 1;

    fn from_head(asked: &mut RequestParts<'_>) -> Result<Path<T>, Rejection> {
        let text = asked.next_parameter()?;
        text.parse().map(Path).map_err(|_| Rejection::not_found())
    }
}

/// The query; empty if there is none. The request is refused with 400 if the query is not UTF-8,
/// with 413 if it has more than 1,000 pairs. Needs the feature `pairs`.
#[cfg(feature = "pairs")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Query(pub Pairs);

#[cfg(feature = "pairs")]
impl FromHead for Query {
    fn from_head(asked: &mut RequestParts<'_>) -> Result<Query, Rejection> {
        Pairs::read(asked.head().query().unwrap_or_default()).map(Query)
    }
}

/// The cookies of the request. Malformed ones are skipped. Needs the feature `cookies`.
#[cfg(feature = "cookies")]
impl FromHead for Cookies {
    fn from_head(asked: &mut RequestParts<'_>) -> Result<Cookies, Rejection> {
        let fields = asked.head().fields().iter();
        Ok(Cookies::read(fields.map(|field| (field.name, field.value))))
    }
}

/// The reader of a form with files, with the default limits. The function takes the body as
/// `&[u8]`, and passes it to the reader ([`Multipart::parts`]). Before the body arrives, the
/// request is refused with 415 if it declares another type or a compressed body, and with 400 if it
/// names no boundary. Needs the feature `multipart`.
///
/// For other limits, implement [`FromHead`] for a type of your own, with [`Multipart::new`].
///
/// # Examples
///
/// ```
/// # mod rotor { pub use rotor_http as http; }
/// use rotor::http::Status;
/// use rotor::http::server::{Reply, Response, Scope};
/// use rotor_service::{Multipart, Rejection, Router};
///
/// fn upload(
///     form: Multipart,
///     body: &[u8],
///     response: &mut Response<'_>,
///     _: &mut Scope<'_, ()>,
/// ) -> Result<Reply, Rejection> {
///     let files = form.parts(body)?.iter().filter(|part| part.head().is_file()).count();
///     Ok(response.reply(Status::OK, "text/plain", format!("{files} files").as_bytes()))
/// }
///
/// let router = Router::new().body_bytes_max(1 << 20).post("/upload", upload)?;
/// # let router: Router<()> = router;
/// # Ok::<(), rotor_service::RouteError>(())
/// ```
#[cfg(feature = "multipart")]
impl FromHead for Multipart {
    fn from_head(asked: &mut RequestParts<'_>) -> Result<Multipart, Rejection> {
        let head = asked.head();
        let form = Multipart::new(head.field("Content-Type"), &MultipartConfig::new())?;
        check_uncoded(head.fields().get_all("Content-Encoding"))?;
        Ok(form)
    }
}
