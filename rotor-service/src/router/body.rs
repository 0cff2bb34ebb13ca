//! `FromBody`: arguments that are made of the body of a request.

use rotor_http::Status;
use rotor_http::server::Head;
#[cfg(feature = "json")]
use serde::de::DeserializeOwned;

#[cfg(feature = "json")]
use crate::json;
#[cfg(feature = "pairs")]
use crate::pairs::Pairs;
use crate::refused::Refused;

/// The argument of a route's function that is made of the whole body. A body of another kind than
/// the ones here implements this, or is read from `&[u8]`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not made of the body of a request",
    note = "it is `Json<T>`, `Form`, `String`, `Vec<u8>`, `&[u8]`, or a type that implements `FromBody`"
)]
pub trait FromBody: Sized {
    /// Looks whether the head says that it is one, before any of it is read. Default: it need not.
    ///
    /// # Errors
    ///
    /// Why the request is refused: with 415, as a rule.
    fn check(head: &Head<'_>) -> Result<(), Refused> {
        let _ = head;
        Ok(())
    }

    /// Makes it of the octets.
    ///
    /// # Errors
    ///
    /// Why the request is refused: the function is not called.
    fn from_body(body: &[u8]) -> Result<Self, Refused>;
}

/// A body that says that it is JSON, and is: see [`json::check_type`] and [`json::read`] for what
/// is refused. With the feature `json`.
#[cfg(feature = "json")]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Json<T>(pub T);

#[cfg(feature = "json")]
impl<T: DeserializeOwned> FromBody for Json<T> {
    fn check(head: &Head<'_>) -> Result<(), Refused> {
        json::check_type(head.field("Content-Type"))?;
        json::check_uncoded(head.fields().get_all("Content-Encoding"))
    }

    fn from_body(body: &[u8]) -> Result<Json<T>, Refused> {
        // It was collected up to the limit of its route.
        json::read(body, usize::MAX).map(Json)
    }
}

/// A body that says that it is a form without files (`application/x-www-form-urlencoded`). Refused
/// with 415 where it is something else, or nothing; with 400 where it is not UTF-8; with 413 beyond
/// 1,000 pairs. With the feature `pairs`.
#[cfg(feature = "pairs")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Form(pub Pairs);

#[cfg(feature = "pairs")]
impl FromBody for Form {
    fn check(head: &Head<'_>) -> Result<(), Refused> {
        const TYPE: &str = "application/x-www-form-urlencoded";
        let said = head.field("Content-Type").unwrap_or_default();
        let essence = said.split(|&octet| octet == b';').next().unwrap_or_default();
        if essence.trim_ascii().eq_ignore_ascii_case(TYPE.as_bytes()) {
            return Ok(());
        }
        let reason = format!("a body of the type {TYPE} is expected");
        Err(Refused::new(Status::UNSUPPORTED_MEDIA_TYPE, reason))
    }

    fn from_body(body: &[u8]) -> Result<Form, Refused> {
        Pairs::read(body).map(Form)
    }
}

/// Whatever the head says of it. Refused with 400 where it is not UTF-8.
impl FromBody for String {
    fn from_body(body: &[u8]) -> Result<String, Refused> {
        let text = str::from_utf8(body).map_err(|error| Refused::new(Status::BAD_REQUEST, error));
        text.map(str::to_owned)
    }
}

/// A copy of it, for work that another thread does.
impl FromBody for Vec<u8> {
    fn from_body(body: &[u8]) -> Result<Vec<u8>, Refused> {
        Ok(body.to_vec())
    }
}
