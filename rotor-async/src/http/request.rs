//! `Request`: a complete request that owns its data.

use std::fmt;

use rotor_http::server::Head;
use rotor_http::{Method, Version};

/// A complete request that owns its data, so that a future can keep it.
#[derive(Clone, PartialEq, Eq)]
pub struct Request {
    method: String,
    target: String,
    /// The position of the path in the target; `None` if the target does not contain it: the `/` of
    /// an absolute URI without a path.
    path: Option<(usize, usize)>,
    version: Version,
    authority: Option<String>,
    fields: Vec<(String, Vec<u8>)>,
    is_secure: bool,
    body: Vec<u8>,
}

impl Request {
    /// Copies a head; the body is empty.
    pub fn new(head: &Head<'_>) -> Request {
        let fields = head.fields().iter();
        Request {
            method: head.method().as_str().to_owned(),
            path: slice_position(head.path(), head.target()),
            target: head.target().to_owned(),
            version: head.version(),
            authority: head.authority().map(str::to_owned),
            fields: fields.map(|field| (field.name.to_owned(), field.value.to_vec())).collect(),
            is_secure: head.is_secure(),
            body: Vec::new(),
        }
    }

    pub(super) fn set_body(&mut self, body: &[u8]) {
        self.body = body.to_vec();
    }

    /// Returns the method.
    pub fn method(&self) -> Method<'_> {
        Method::new(&self.method).unwrap_or(Method::Extension(&self.method))
    }

    /// Returns the target as it was sent.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the path, not decoded; see [`Head::path`].
    pub fn path(&self) -> &str {
        self.path.and_then(|(from, to)| self.target.get(from..to)).unwrap_or("/")
    }

    /// Returns the text after the `?`, not decoded.
    pub fn query(&self) -> Option<&str> {
        self.target.split_once('?').map(|(_, query)| query)
    }

    /// Returns the version that the peer speaks.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Returns the host that the request is for, with its port if it has one.
    pub fn authority(&self) -> Option<&str> {
        self.authority.as_deref()
    }

    /// Returns whether the request arrived over an encrypted connection.
    pub fn is_secure(&self) -> bool {
        self.is_secure
    }

    /// Returns the value of the first field of this name; case does not matter.
    pub fn field(&self, name: &str) -> Option<&[u8]> {
        self.fields().find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// Returns all fields, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.fields.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    /// Returns the complete body.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Returns the body, without copying it.
    pub fn into_body(self) -> Vec<u8> {
        self.body
    }
}

/// Returns the position of `part` in the text that it is a slice of.
fn slice_position(part: &str, text: &str) -> Option<(usize, usize)> {
    let from = part.as_ptr().addr().checked_sub(text.as_ptr().addr())?;
    let to = from + part.len();
    (to <= text.len()).then_some((from, to))
}

/// Omits the values of fields and the body, which may be secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("target", &self.target)
            .field("fields", &self.fields.len())
            .field("body", &self.body.len())
            .finish_non_exhaustive()
    }
}
