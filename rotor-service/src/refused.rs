//! `Rejection`: why a request is refused, as its peer is told.

use std::fmt;

#[cfg(any(feature = "async", feature = "router"))]
use rotor_http::RequestError;
use rotor_http::Status;
use rotor_http::server::{Reply, Response};

/// How many characters of a reason the peer gets at most, since the reason may quote what the peer
/// sent.
pub const REASON_CHARS_MAX: usize = 200;

/// A request that is refused because of what its peer sent: a status and a reason, which are sent
/// as JSON, `{"error":".."}`. The answer to OPTIONS is a `Rejection` as well, since it also goes to
/// the peer without a handler.
///
/// Do not use it for failures of the service itself: log those, and respond with 500.
#[doc(alias = "Refused")]
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rejection {
    status: Status,
    reason: String,
    allow: Option<String>,
    fields: Vec<(String, Vec<u8>)>,
}

impl Rejection {
    /// Refuses with this status and reason. The reason is cut to 200 characters.
    pub fn new(status: Status, reason: impl fmt::Display) -> Rejection {
        let reason = reason.to_string().chars().take(REASON_CHARS_MAX).collect();
        Rejection { status, reason, allow: None, fields: Vec::new() }
    }

    /// Refuses with 404.
    pub fn not_found() -> Rejection {
        Rejection::new(Status::NOT_FOUND, "not found")
    }

    /// Refuses with 405, and lists the existing methods in `Allow` (RFC 9110 §15.5.6).
    pub fn not_allowed(allow: impl Into<String>) -> Rejection {
        let refused = Rejection::new(Status::METHOD_NOT_ALLOWED, "method not allowed");
        Rejection { allow: Some(allow.into()), ..refused }
    }

    /// Responds to OPTIONS: 204, with the existing methods in `Allow` (RFC 9110 §9.3.7).
    pub fn options(allow: impl Into<String>) -> Rejection {
        Rejection { allow: Some(allow.into()), ..Rejection::new(Status::NO_CONTENT, "") }
    }

    /// Refuses with 415.
    #[cfg(any(
        feature = "json",
        all(feature = "router", any(feature = "multipart", feature = "pairs"))
    ))]
    pub(crate) fn unsupported(reason: impl fmt::Display) -> Rejection {
        Rejection::new(Status::UNSUPPORTED_MEDIA_TYPE, reason)
    }

    /// Makes an error of the connection look like a handler's refusal.
    #[cfg(any(feature = "async", feature = "router"))]
    pub(crate) fn from_connection_error(status: Status, why: Option<RequestError>) -> Rejection {
        match why {
            Some(why) => Rejection::new(status, why.reason()),
            None => Rejection::new(status, status.reason()),
        }
    }

    /// Adds a field to the response. For example, a 401 has to name an authentication scheme
    /// (`WWW-Authenticate`, RFC 9110 §15.5.2), and a 503 may say when to try again (`Retry-After`).
    ///
    /// If the field is not allowed in a response (it has a control byte, or declares a length), the
    /// peer gets 500 instead.
    ///
    /// # Examples
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor_service::Rejection;
    ///
    /// fn token(authorization: Option<&[u8]>) -> Result<&[u8], Rejection> {
    ///     authorization.and_then(|value| value.strip_prefix(b"Bearer ")).ok_or_else(|| {
    ///         Rejection::new(Status::UNAUTHORIZED, "a token is needed")
    ///             .field("WWW-Authenticate", "Bearer")
    ///     })
    /// }
    /// assert_eq!(token(Some(b"Bearer abc")), Ok(&b"abc"[..]));
    /// assert!(token(None).is_err_and(|refused| refused.status() == Status::UNAUTHORIZED));
    /// ```
    pub fn field(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Rejection {
        self.fields.push((name.into(), value.into()));
        self
    }

    /// Returns the fields that were added, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Returns the reason.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the value of `Allow`.
    pub fn allow(&self) -> Option<&str> {
        self.allow.as_deref()
    }

    /// Returns the body of the response. A 204 is sent without one.
    pub fn to_json(&self) -> String {
        let mut text = String::from("{\"error\":\"");
        for character in self.reason.chars() {
            match character {
                '"' => text.push_str("\\\""),
                '\\' => text.push_str("\\\\"),
                // RFC 8259 §7.
                '\0'..='\x1f' => text.push_str(&format!("\\u{:04x}", u32::from(character))),
                _ => text.push(character),
            }
        }
        text + "\"}"
    }

    /// Writes the response.
    pub fn reply(&self, response: &mut Response<'_>) -> Reply {
        let allow = self.allow.as_ref().map(|allow| ("Allow", allow.as_bytes()));
        let fields: Vec<(&str, &[u8])> = allow.into_iter().chain(self.fields()).collect();
        if self.status.forbids_body() {
            return response.reply_with(self.status, &fields, "", b"");
        }
        response.reply_with(self.status, &fields, "application/json", self.to_json().as_bytes())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.status, self.reason)
    }
}

impl std::error::Error for Rejection {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_escaped_as_json_and_truncated() {
        for (reason, expected) in [
            ("plain", r#"{"error":"plain"}"#),
            ("a \"b\" \\ c", r#"{"error":"a \"b\" \\ c"}"#),
            ("a\nb\u{1}", r#"{"error":"a\u000ab\u0001"}"#),
            ("ä€", r#"{"error":"ä€"}"#),
        ] {
            assert_eq!(Rejection::new(Status::BAD_REQUEST, reason).to_json(), expected);
        }
        for (count, left) in [(199, 199), (200, 200), (201, 200)] {
            let refused = Rejection::new(Status::BAD_REQUEST, "€".repeat(count));
            assert_eq!(refused.reason().chars().count(), left);
        }
    }
}
