//! `Parameters`: the parameters of a route's path, in a request.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use rotor_http::Status;

use crate::refused::Rejection;

/// The parameters of a route's path.
#[derive(Debug)]
pub struct Parameters<'t, 'p>(pub(super) Option<matchit::Params<'t, 'p>>);

impl<'p> Parameters<'_, 'p> {
    /// Makes an empty set, for a fallback.
    #[cfg(feature = "router")]
    pub(crate) fn none() -> Self {
        Parameters(None)
    }

    /// Returns a parameter as it was sent.
    pub fn raw(&self, name: &str) -> Option<&'p str> {
        self.0.as_ref()?.iter().find(|(own, _)| *own == name).map(|(_, value)| value)
    }

    /// Returns a parameter, percent-decoded (RFC 3986 §2.1).
    ///
    /// # Errors
    ///
    /// 400: it is not UTF-8 after decoding. 404: the route has no parameter of this name.
    pub fn text(&self, name: &str) -> Result<Cow<'p, str>, Rejection> {
        decode_parameter(self.raw(name).ok_or_else(Rejection::not_found)?)
    }

    /// Returns a parameter, percent-decoded, as another type, for example a number.
    ///
    /// # Errors
    ///
    /// 404: the parameter is not of that type, so no resource has this name; or the route has no
    /// parameter of this name. 400: it is not UTF-8 after decoding.
    pub fn parse<N: std::str::FromStr>(&self, name: &str) -> Result<N, Rejection> {
        self.text(name)?.parse().map_err(|_| Rejection::not_found())
    }

    /// Returns a parameter by its position in the path, from 0, as it was sent.
    #[cfg(feature = "router")]
    pub(crate) fn nth(&self, index: usize) -> Option<&'p str> {
        self.0.as_ref()?.iter().nth(index).map(|(_, value)| value)
    }
}

/// Percent-decodes a parameter.
pub(crate) fn decode_parameter(raw: &str) -> Result<Cow<'_, str>, Rejection> {
    let decoded = percent_decode_str(raw).decode_utf8();
    decoded.map_err(|_| Rejection::new(Status::BAD_REQUEST, "the path is not UTF-8"))
}
