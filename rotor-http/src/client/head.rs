//! The head of a response as handlers see it.

use std::any::Any;

use rotor_stream::ConnectionInfo;

use crate::h1::framing::Body;
use crate::h1::head::ResponseHead;
use crate::h1::response_semantics::ResponseSemantics;
use crate::semantics::fields::Fields;
use crate::semantics::status::Status;
use crate::semantics::version::Version;

/// The head of a response. It borrows from the connection's input, so a handler copies what it
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

    /// Returns the value of the first field of this name, whatever its case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.head.field(name)
    }

    /// Returns whether a body follows, which may turn out to be empty. The response to HEAD has
    /// none.
    pub fn has_body(&self) -> bool {
        self.terms.body != Body::Empty
    }

    /// Returns the length of the body that follows, if it is known: 0 where none does, as behind the
    /// response to HEAD, whatever its fields say. What they say of another request's body is the
    /// [field](Head::field) `Content-Length`.
    pub fn body_length(&self) -> Option<u64> {
        match self.terms.body {
            Body::Empty => Some(0),
            Body::Length(length) => Some(length),
            Body::Chunked | Body::UntilClose => None,
        }
    }

    /// Returns whether the server was asked to go on in another protocol; its answer agrees to that
    /// (101) or refuses it.
    ///
    /// It is false if the request had no `Upgrade`, and on a connection of HTTP/2 whose server
    /// takes no other protocols on streams (RFC 8441 §3): there the request went out as a plain
    /// GET.
    pub fn answers_upgrade(&self) -> bool {
        self.answers_upgrade
    }

    /// Returns what the socket tells of its handshake as a `T`; with TLS, the certificate of the
    /// server. `None` on other sockets.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection.session()
    }

    /// Returns whether the response came encrypted, so that the scheme is `https`.
    #[doc(alias = "https")]
    pub fn is_secure(&self) -> bool {
        self.connection.is_secure()
    }
}
