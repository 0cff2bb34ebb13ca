//! `FromBody`: arguments that are made from the body of a request.

use rotor_http::Status;
use rotor_http::server::Head;
#[cfg(feature = "json")]
use serde::de::DeserializeOwned;

#[cfg(feature = "json")]
use crate::json;
#[cfg(feature = "pairs")]
use crate::pairs::Pairs;
use crate::refused::Rejection;
#[cfg(any(feature = "json", feature = "pairs"))]
use crate::uncoded::check_uncoded;

/// The argument of a route's function that is made from the whole body. For another kind of body,
/// implement this trait for a type of your own, or take `&[u8]` and read it in the function.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of the body of a request",
    note = "it is `Json<T>`, `Form`, `String`, `Vec<u8>`, `&[u8]`, or a type that implements `FromBody`"
)]
pub trait FromBody: Sized {
    /// Checks whether the head declares this kind of body, before any of it is read. The default
    /// requires nothing.
    ///
    /// # Errors
    ///
    /// The reason why the request is refused, usually with 415.
    fn check(head: &Head<'_>) -> Result<(), Rejection> {
        let _ = head;
        Ok(())
    }

    /// Makes the argument from the bytes of the body.
    ///
    /// # Errors
    ///
    /// The reason why the request is refused; the function is not called.
    fn from_body(body: &[u8]) -> Result<Self, Rejection>;
}

/// A body that is declared as JSON and read as a `T`. See [`json::check_type`] and [`json::read`]
/// for what is refused. Needs the feature `json`.
#[cfg(feature = "json")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Json<T>(pub T);

#[cfg(feature = "json")]
impl<T: DeserializeOwned> FromBody for Json<T> {
    fn check(head: &Head<'_>) -> Result<(), Rejection> {
        json::check_type(head.field("Content-Type"))?;
        check_uncoded(head.fields().get_all("Content-Encoding"))
    }

    fn from_body(body: &[u8]) -> Result<Json<T>, Rejection> {
        // Collecting the body has enforced the limit of its route.
        json::read(body, usize::MAX).map(Json)
    }
}

/// A body that is declared as a form without files (`application/x-www-form-urlencoded`). The
/// request is refused with 415 if its body has another declared type, none, or is compressed; with
/// 400 if it is not UTF-8; with 413 if it has more than 1,000 pairs. Needs the feature `pairs`.
#[cfg(feature = "pairs")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form(pub Pairs);

#[cfg(feature = "pairs")]
impl FromBody for Form {
    fn check(head: &Head<'_>) -> Result<(), Rejection> {
        const TYPE: &str = "application/x-www-form-urlencoded";
        let said = head.field("Content-Type").unwrap_or_default();
        let essence = said.split(|&byte| byte == b';').next().unwrap_or_default();
        if !essence.trim_ascii().eq_ignore_ascii_case(TYPE.as_bytes()) {
            return Err(Rejection::unsupported(format!("a body of the type {TYPE} is expected")));
        }
        check_uncoded(head.fields().get_all("Content-Encoding"))
    }

    fn from_body(body: &[u8]) -> Result<Form, Rejection> {
        Pairs::read(body).map(Form)
    }
}

/// The body as text, whatever type the head declares. It is refused with 400 if it is not UTF-8.
impl FromBody for String {
    fn from_body(body: &[u8]) -> Result<String, Rejection> {
        let text = str::from_utf8(body).map_err(|error| Rejection::new(Status::BAD_REQUEST, error));
        text.map(str::to_owned)
    }
}

/// A copy of the body, for example for work on another thread.
impl FromBody for Vec<u8> {
    fn from_body(body: &[u8]) -> Result<Vec<u8>, Rejection> {
        Ok(body.to_vec())
    }
}
