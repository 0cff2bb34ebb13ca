//! `Method`: the request method. Registered methods are variants; any other method is kept as text.

use std::fmt;

use super::grammar;

/// A request method (RFC 9110 §9). Methods are case-sensitive: `get` is an extension method, not
/// `GET`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Method<'a> {
    /// `GET`
    Get,
    /// `HEAD`: the response has the fields of a response to `GET` but no body.
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `CONNECT`: its target is in authority form; a 2xx response turns the connection into a
    /// tunnel.
    Connect,
    /// `OPTIONS`, the only method whose target may be `*`.
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH` (RFC 5789)
    Patch,
    /// Any other token. A server that does not support the method responds with 501. A hand-made
    /// value whose text is a method above is sent as that method, and treated like it.
    Extension(&'a str),
}

impl<'a> Method<'a> {
    /// The maximum length of a method that is read, in bytes. Registered methods have at most 17
    /// bytes. A server responds to a longer method with 501.
    pub const BYTES_MAX: usize = 32;

    /// Parses a method. Returns `None` if the text is not a token (RFC 9110 §5.6.2).
    pub fn new(text: &'a str) -> Option<Method<'a>> {
        grammar::is_token(text.as_bytes()).then(|| Method::from_token(text))
    }

    /// Returns the method for a text that is known to be a token.
    #[inline]
    pub(crate) fn from_token(text: &'a str) -> Method<'a> {
        match text {
            "GET" => Method::Get,
            "HEAD" => Method::Head,
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "DELETE" => Method::Delete,
            "CONNECT" => Method::Connect,
            "OPTIONS" => Method::Options,
            "TRACE" => Method::Trace,
            "PATCH" => Method::Patch,
            other => Method::Extension(other),
        }
    }

    /// Returns the registered variant for the method's text, if there is one, however the value was
    /// made.
    pub(crate) fn normalized(self) -> Method<'a> {
        match self {
            Method::Extension(text) => Method::from_token(text),
            known => known,
        }
    }

    /// Returns the method as text, as it is sent.
    pub fn as_str(&self) -> &'a str {
        match *self {
            Method::Get => "GET",
            Method::Head => "HEAD",
            Method::Post => "POST",
            Method::Put => "PUT",
            Method::Delete => "DELETE",
            Method::Connect => "CONNECT",
            Method::Options => "OPTIONS",
            Method::Trace => "TRACE",
            Method::Patch => "PATCH",
            Method::Extension(other) => other,
        }
    }

    /// Returns whether the method is safe: it does not request any change on the server (RFC 9110
    /// §9.2.1).
    pub fn is_safe(&self) -> bool {
        matches!(self, Method::Get | Method::Head | Method::Options | Method::Trace)
    }

    /// Returns whether sending the request twice has the same effect as once (RFC 9110 §9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.is_safe() || matches!(self, Method::Put | Method::Delete)
    }
}

impl fmt::Display for Method<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_method_reads_back_as_itself() {
        for text in ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"]
        {
            let method = Method::new(text).expect("a token");
            assert_eq!(method.as_str(), text);
            assert!(!matches!(method, Method::Extension(_)), "{text}");
        }
        assert_eq!(Method::new("get"), Some(Method::Extension("get")));
        assert_eq!(Method::new(""), None);
        assert_eq!(Method::new("G T"), None);
    }
}
