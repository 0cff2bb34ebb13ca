//! The head of a request as handlers see it: its meaning, not its form on the wire.

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
/// No look-up allocates, and all of them work on bytes: nothing is decoded.
#[derive(Clone, Copy, Debug)]
pub struct Head<'a> {
    head: &'a RequestHead<'a>,
    semantics: &'a RequestSemantics<'a>,
    connection: ConnectionInfo<'a>,
    early_body: Option<EarlyBody<'a>>,
}

/// A whole body that has arrived together with its head, and that the handler may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EarlyBody<'a> {
    pub(crate) bytes: &'a [u8],
    /// Beside the bytes, so that heads stay covariant.
    pub(crate) is_taken: &'a Cell<bool>,
}

impl<'a> Head<'a> {
    #[inline]
    pub(crate) fn new(
        head: &'a RequestHead<'a>,
        semantics: &'a RequestSemantics<'a>,
        connection: ConnectionInfo<'a>,
        early_body: Option<EarlyBody<'a>>,
    ) -> Head<'a> {
        Head { head, semantics, connection, early_body }
    }

    /// Returns the method.
    pub fn method(&self) -> Method<'a> {
        self.head.method()
    }

    /// Returns the target as it was sent: usually a path and a query, `*` for OPTIONS, a whole URI
    /// from some proxies, an authority for CONNECT.
    pub fn target(&self) -> &'a str {
        self.head.target().as_str()
    }

    /// Returns the path of the target, not decoded: `/` for a whole URI without one, `*` for
    /// `OPTIONS *`, empty for CONNECT.
    #[inline]
    pub fn path(&self) -> &'a str {
        self.head.path()
    }

    /// Returns the part of the target after the `?`, not decoded.
    pub fn query(&self) -> Option<&'a str> {
        self.head.target().query()
    }

    /// Returns the host that the request is for, with its port if there is one. It comes from the
    /// target, or from `Host` if the target has none, and is valid. It is absent only in HTTP/1.0.
    pub fn authority(&self) -> Option<&'a str> {
        self.semantics.authority.map(|authority| authority.as_str())
    }

    /// Returns the version of HTTP that the peer speaks.
    pub fn version(&self) -> Version {
        self.head.version()
    }

    /// Returns all fields, in the order in which they were sent.
    pub fn fields(&self) -> Fields<'a> {
        self.head.fields()
    }

    /// Returns the value of the first field of this name. The case of the name does not matter.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.head.field(name)
    }

    /// Returns whether a body follows. The body may turn out to be empty.
    pub fn has_body(&self) -> bool {
        self.semantics.body != Body::Empty
    }

    /// Returns the length of the body, if it was announced.
    pub fn body_length(&self) -> Option<u64> {
        match self.semantics.body {
            Body::Empty => Some(0),
            Body::Length(length) => Some(length),
            Body::Chunked => None,
            // Frames mark its end, whatever was announced; only 0 is announced here.
            Body::UntilClose => self.fields().get_str("Content-Length")?.parse().ok(),
        }
    }

    /// Takes the body, if all of it has arrived with the head, as small bodies usually have.
    /// Afterwards the request counts as one without a body: the handler receives nothing more of
    /// the body, whatever it asks for.
    ///
    /// This saves the steps of asking for the body, and changes nothing else. Handle `None` by
    /// asking for the body with [`Next::recv`](super::Next::recv). The result is always `None` on
    /// HTTP/2, for chunked bodies, if the peer waits for `100 Continue` or offers to upgrade, if
    /// the body is longer than [`drained_body_bytes_max`](crate::Limits::drained_body_bytes_max),
    /// and from the second call on.
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
        let EarlyBody { bytes, is_taken } = self.early_body?;
        (!is_taken.replace(true)).then_some(bytes)
    }

    /// Returns whether the peer waits for `100 Continue` before it sends the body. That is sent
    /// when the handler asks for the body, and not sent if the handler responds without asking.
    pub fn expects_continue(&self) -> bool {
        self.semantics.expects_continue
    }

    /// Returns whether the peer correctly offers to switch to a protocol that `Upgrade` names. If
    /// this is `false`, ignore `Upgrade`.
    ///
    /// This is also `true` for an extended CONNECT of HTTP/2 (RFC 8441), which appears as GET with
    /// its `:protocol` in `Upgrade`. To accept, respond with 101 in either version. A page (2xx)
    /// instead reaches only a peer of HTTP/1.1; a peer of HTTP/2 gets 501.
    pub fn wants_upgrade(&self) -> bool {
        self.semantics.wants_upgrade
    }

    /// Returns the trace that the request is part of, if its fields name a valid one. This searches
    /// the fields.
    #[doc(alias = "traceparent")]
    pub fn trace_context(&self) -> Option<TraceContext> {
        TraceContext::of(self.fields())
    }

    /// Returns the address that the request comes from, if the socket has addresses. This makes a
    /// system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.connection.peer_address()
    }

    /// Returns what the socket reports about its handshake, if that is a `T`: for TLS, the
    /// certificate of the client and the name that the client asked for. `None` on other sockets.
    #[doc(alias = "peer_certificates")]
    pub fn session<T: Any>(&self) -> Option<&'a T> {
        self.connection.session()
    }

    /// Returns whether the request came over an encrypted connection, so that its scheme is
    /// `https`. If a proxy in front has terminated the encryption, that is not visible here.
    #[doc(alias = "https")]
    #[doc(alias = "scheme")]
    pub fn is_secure(&self) -> bool {
        self.connection.is_secure()
    }
}
