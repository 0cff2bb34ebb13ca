//! The head of a request as handlers see it: what it means, not how it was written on the wire.

use std::any::Any;
use std::cell::Cell;
use std::net::SocketAddr;

use rotor_stream::ConnectionInfo;

use crate::h1::framing::Body;
use crate::h1::head::RequestHead;
use crate::h1::request_semantics::RequestSemantics;
use crate::semantics::fields::Fields;
use crate::semantics::method::Method;
use crate::semantics::trace_context::TraceContext;
use crate::semantics::version::Version;

/// The head of a request. It borrows from the connection's input, so a handler must copy what it
/// needs later.
///
/// No look-up allocates, and all work on octets: nothing is decoded.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    head: &'a RequestHead<'a>,
    terms: &'a RequestSemantics<'a>,
    connection: ConnectionInfo<'a>,
    ahead: Option<BodyAhead<'a>>,
}

/// A whole body that has come with its head, for the handler to take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyAhead<'a> {
    pub(crate) octets: &'a [u8],
    /// Beside the octets, so that heads stay covariant.
    pub(crate) is_taken: &'a Cell<bool>,
}

impl<'a> Head<'a> {
    #[inline]
    pub(crate) fn new(
        head: &'a RequestHead<'a>,
        terms: &'a RequestSemantics<'a>,
        connection: ConnectionInfo<'a>,
        ahead: Option<BodyAhead<'a>>,
    ) -> Head<'a> {
        Head { head, terms, connection, ahead }
    }

    /// Returns the method.
    pub fn method(&self) -> Method<'a> {
        self.head.method()
    }

    /// Returns the target as it was sent: usually path and query, `*` for OPTIONS, a whole URI from
    /// some proxies, an authority for CONNECT.
    pub fn target(&self) -> &'a str {
        self.head.target().as_str()
    }

    /// Returns the path of the target, not decoded: `/` for a whole URI without one, `*` for
    /// `OPTIONS *`, empty for CONNECT.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.head.path()
    }

    /// Returns what follows the `?` of the target, not decoded.
    pub fn query(&self) -> Option<&'a str> {
        self.head.target().query()
    }

    /// Returns the host that the request is for, with its port if there is one: from the target,
    /// otherwise from `Host`. It has been checked. It is absent only in HTTP/1.0.
    pub fn authority(&self) -> Option<&'a str> {
        self.terms.authority.map(|authority| authority.as_str())
    }

    /// Returns the version that the peer speaks.
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// Returns all fields, in order.
    pub fn fields(&self) -> Fields<'a> {
        self.head.fields()
    }

    /// Returns the value of the first field of this name; case does not matter.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.head.field(name)
    }

    /// Returns whether a body follows; it may turn out to be empty.
    pub fn has_body(&self) -> bool {
        self.terms.body != Body::Empty
    }

    /// Returns the length of the body, if it was announced.
    pub fn body_length(&self) -> Option<u64> {
        match self.terms.body {
            Body::Empty => Some(0),
            Body::Length(length) => Some(length),
            Body::Chunked | Body::UntilClose => None,
        }
    }

    /// Takes the body, if all of it has come with the head, as small ones usually do. Afterwards
    /// the request counts as one without a body: the handler is given nothing more of it, whatever
    /// it asks for.
    ///
    /// This spares the steps of asking for it, but nothing else changes: be ready for `None`, and
    /// then ask with [`Next::recv`](super::Next::recv). That is always so on HTTP/2, for chunks, if
    /// the peer waits for `100 Continue` or offers to upgrade, if the body is longer than
    /// [`drained_body_bytes_max`](crate::Limits::drained_body_bytes_max), and when called again.
    ///
    /// ```
    /// # mod rotor { pub use rotor_http as http; }
    /// use rotor::http::Status;
    /// use rotor::http::server::{Head, Next, NoUpgrade, RecvMode, Response, Scope, Server};
    ///
    /// struct Length;
    ///
    /// impl Server for Length {
    ///     type Context = ();
    ///     type Seed = ();
    ///     type Upgrade = NoUpgrade<()>;
    ///
    ///     fn headers_received(
    ///         _: (),
    ///         head: &Head<'_>,
    ///         response: &mut Response<'_>,
    ///         scope: &mut Scope<'_, ()>,
    ///     ) -> Next<Self> {
    ///         match head.take_body() {
    ///             Some(body) => Length.request_received(body, response, scope),
    ///             None => Next::recv(Length, RecvMode::Buffered(1 << 20)).keep_deadline(),
    ///         }
    ///     }
    ///
    ///     fn request_received(
    ///         self,
    ///         body: &[u8],
    ///         response: &mut Response<'_>,
    ///         _: &mut Scope<'_, ()>,
    ///     ) -> Next<Self> {
    ///         response.reply(Status::OK, "text/plain", body.len().to_string().as_bytes()).into()
    ///     }
    /// }
    /// ```
    pub fn take_body(&self) -> Option<&'a [u8]> {
        let BodyAhead { octets, is_taken } = self.ahead?;
        (!is_taken.replace(true)).then_some(octets)
    }

    /// Returns whether the peer waits for a sign before it sends the body. It gets `100 Continue`
    /// when the handler asks for the body, and none if the handler answers without it.
    pub fn expects_continue(&self) -> bool {
        self.terms.expects_continue
    }

    /// Returns whether the peer correctly offers to go on in a protocol that `Upgrade` names. If
    /// this is `false`, ignore `Upgrade`.
    ///
    /// It is also `true` for an extended CONNECT of HTTP/2 (RFC 8441), which appears as GET with
    /// its `:protocol` in `Upgrade`. To accept, answer with 101 in either version. A page (2xx)
    /// instead reaches only a peer of HTTP/1.1; one of HTTP/2 gets 501.
    pub fn wants_upgrade(&self) -> bool {
        self.terms.wants_upgrade
    }

    /// Returns the trace that the request is a part of, if it names a valid one. This searches the
    /// fields.
    #[doc(alias = "traceparent")]
    pub fn trace_context(&self) -> Option<TraceContext> {
        TraceContext::of(self.fields())
    }

    /// Returns the address that the request comes from, if the socket has addresses. It costs a
    /// system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.connection.peer_address()
    }

    /// Returns what the socket tells of its handshake, if that is a `T`: for TLS, the certificate
    /// of the client and the name that it asked for. `None` on other sockets.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection.session()
    }

    /// Returns whether the request came encrypted, so that its scheme is `https`. Encryption that a
    /// proxy in front has ended is not visible here.
    #[doc(alias = "https")]
    #[doc(alias = "scheme")]
    pub fn is_secure(&self) -> bool {
        self.connection.is_secure()
    }
}
