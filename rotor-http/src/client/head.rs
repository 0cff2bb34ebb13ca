//! The head of a response as handlers see it.

use std::any::Any;

use rotor_stream::ConnectionInfo;

use crate::h1::framing::Body;
use crate::h1::head::ResponseHead;
use crate::h1::response_semantics::ResponseSemantics;
use crate::semantics::fields::Fields;
use crate::semantics::status::Status;
use crate::semantics::version::Version;

/// The head of a response. It borrows from the connection's input, so a handler has to copy what it
/// needs later.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    head: ResponseHead<'a>,
    terms: ResponseSemantics,
    answers_upgrade: bool,
    connection: ConnectionInfo<'a>,
}

impl<'a> Head<'a> {
    pub(super) fn new(
        head: ResponseHead<'a>,
        terms: ResponseSemantics,
        answers_upgrade: bool,
        connection: ConnectionInfo<'a>,
    ) -> Head<'a> {
        Head { head, terms, answers_upgrade, connection }
    }

    /// Returns the status.
    pub fn status(&self) -> Status {
        self.head.status()
    }

    /// Returns the reason phrase, which carries no meaning; empty if it is absent or not ASCII.
    pub fn reason(&self) -> &'a str {
        self.head.reason()
    }

    /// Returns the version that the server speaks.
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// Returns all fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        self.head.fields()
    }

    /// Returns the value of the first field with this name; the case is ignored.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.head.field(name)
    }

    /// Returns whether a body follows. The body may turn out to be empty. The response to HEAD has
    /// none.
    pub fn has_body(&self) -> bool {
        self.terms.body != Body::Empty
    }

    /// Returns the length of the body that follows, if it is known. It is 0 if no body follows, as
    /// in a response to HEAD, whatever the fields say. What such a response says about the body
    /// that a GET would return is in the [field](Head::field) `Content-Length`.
    pub fn body_length(&self) -> Option<u64> {
        match self.terms.body {
            Body::Empty => Some(0),
            Body::Length(length) => Some(length),
            Body::Chunked => None,
            // With HTTP/2, frames mark its end, and its length was announced at most as 0.
            Body::UntilClose => self.fields().get_str("Content-Length")?.parse().ok(),
        }
    }

    /// Returns whether the server was asked to switch to another protocol. Its response accepts
    /// that (101) or refuses it.
    ///
    /// This is false if the request had no `Upgrade`. It is also false on an HTTP/2 connection
    /// whose server does not support other protocols on streams (RFC 8441 §3): the request was then
    /// sent as a plain GET.
    pub fn answers_upgrade(&self) -> bool {
        self.answers_upgrade
    }

    /// Returns what the socket reports about its handshake, as a `T`; with TLS, the server's
    /// certificate. `None` for other sockets.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection.session()
    }

    /// Returns whether the response arrived encrypted, so that the scheme is `https`.
    #[doc(alias = "https")]
    pub fn is_secure(&self) -> bool {
        self.connection.is_secure()
    }
}
