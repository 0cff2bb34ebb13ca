//! `TunnelTarget`: a proxy, and the server to which it makes a tunnel.

use std::fmt;
use std::sync::Arc;

use rotor_stream::Host;

use crate::h1::message::{check_field, check_reserved};
use crate::semantics::authority::Authority;
use crate::semantics::error::MessageError;

/// A proxy, and the server to which it makes a tunnel: what a
/// [`TunnelStream`](super::TunnelStream) connects to.
///
/// It is a [`Destination`](rotor_stream::Destination) around the address or the name of the proxy.
/// The proxy resolves the server's name, so nothing on this side looks it up.
///
/// It is ordered, so it can be a key in pools of connections. Two targets are equal if proxy,
/// server and fields are, so a connection that was made with one user's credentials is not used
/// for another.
///
/// ```
/// # mod rotor { pub use rotor_http as http; pub use rotor_stream as stream; }
/// use rotor::http::client::TunnelTarget;
/// use rotor::stream::Host;
///
/// let proxy = Host::new("proxy.example", 3128);
/// let target = TunnelTarget::new(proxy, &Host::new("example.com", 443))?
///     .header("Proxy-Authorization", "Basic dXNlcjpwYXNz")?;
/// assert_eq!(target.server(), "example.com:443");
/// # Ok::<(), rotor::http::MessageError>(())
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[doc(alias = "CONNECT")]
pub struct TunnelTarget<A> {
    proxy: A,
    request: Arc<TunnelRequest>,
}

/// The request for a tunnel, which is the same for each connection to the server.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct TunnelRequest {
    /// Host and port of the server.
    server: String,
    /// More field lines, each with its line end.
    fields: Vec<u8>,
}

impl<A> TunnelTarget<A> {
    /// Creates a target from the address or name of a proxy, and the server to which it makes a
    /// tunnel.
    ///
    /// # Errors
    ///
    /// `HostField`: the server's name is no host name or IP address as RFC 3986 §3.2.2 allows it,
    /// or its port is 0. The caller's fault.
    pub fn new(proxy: A, server: &Host) -> Result<TunnelTarget<A>, MessageError> {
        let server = server.to_string();
        // RFC 9110 §9.3.6: the target of CONNECT has a port even if it is the scheme's default.
        let authority = Authority::parse(server.as_bytes());
        if authority.and_then(|authority| authority.port()).is_none() {
            return Err(MessageError::HostField);
        }
        let request = Arc::new(TunnelRequest { server, fields: Vec::new() });
        Ok(TunnelTarget { proxy, request })
    }

    /// Adds a field to the request for the tunnel, such as `Proxy-Authorization` (RFC 9110
    /// §11.7.2). The proxy reads it, and the server does not.
    ///
    /// # Errors
    ///
    /// `FieldName`, `FieldValue`, and `FieldReserved` for the fields that frame a message or govern
    /// a connection; `HostField` for `Host`, which the request has already. The caller's fault.
    pub fn header(
        mut self,
        name: &str,
        value: impl AsRef<[u8]>,
    ) -> Result<TunnelTarget<A>, MessageError> {
        let value = value.as_ref();
        check_field(name, value)?;
        check_reserved(name).map_err(|_| {
            MessageError::FieldReserved(
                "a request for a tunnel has no body, and no request follows it",
            )
        })?;
        if name.eq_ignore_ascii_case("Host") {
            return Err(MessageError::HostField);
        }
        let fields = &mut Arc::make_mut(&mut self.request).fields;
        for part in [name.as_bytes(), b": ", value, b"\r\n"] {
            fields.extend_from_slice(part);
        }
        Ok(self)
    }

    /// Returns the address or name of the proxy.
    pub fn proxy(&self) -> &A {
        &self.proxy
    }

    /// Returns the server's host and port, as they are sent to the proxy.
    pub fn server(&self) -> &str {
        &self.request.server
    }

    pub(super) fn request(&self) -> &Arc<TunnelRequest> {
        &self.request
    }

    /// Returns the target of the same server through this proxy.
    pub(super) fn from_request(proxy: A, request: Arc<TunnelRequest>) -> TunnelTarget<A> {
        TunnelTarget { proxy, request }
    }
}

impl TunnelRequest {
    /// Returns the request as it is sent (RFC 9112 §3.2.3).
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let TunnelRequest { server, fields } = self;
        let mut bytes = format!("CONNECT {server} HTTP/1.1\r\nHost: {server}\r\n").into_bytes();
        bytes.extend_from_slice(fields);
        bytes.extend_from_slice(b"\r\n");
        bytes
    }
}

/// Without the fields, which may contain a password.
impl<A: fmt::Debug> fmt::Debug for TunnelTarget<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut target = f.debug_struct("TunnelTarget");
        target.field("proxy", &self.proxy).field("server", &self.request.server);
        target.finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: &str, port: u16) -> Result<String, MessageError> {
        let target = TunnelTarget::new((), &Host::new(name, port))?;
        Ok(String::from_utf8(target.request().to_bytes()).expect("it is text"))
    }

    #[test]
    fn a_request_names_the_server_twice_with_its_port() {
        for (name, port, expected) in [
            (
                "example.com",
                443,
                "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
            ),
            ("192.0.2.1", 80, "CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: 192.0.2.1:80\r\n\r\n"),
            ("2001:db8::1", 1, "CONNECT [2001:db8::1]:1 HTTP/1.1\r\nHost: [2001:db8::1]:1\r\n\r\n"),
        ] {
            assert_eq!(request(name, port), Ok(expected.into()));
        }
    }

    #[test]
    fn a_server_that_is_no_host_with_a_port_is_refused() {
        for (name, port) in [
            ("", 443),
            ("a", 0),
            ("a b", 443),
            ("a\r\nX: y", 443),
            ("user@a", 443),
            ("a:1", 443),
            ("a/b", 443),
            ("ü.example", 443),
        ] {
            assert_eq!(request(name, port), Err(MessageError::HostField), "{name:?} {port}");
        }
    }

    #[test]
    fn fields_are_sent_in_order_and_checked() {
        let target = || TunnelTarget::new((), &Host::new("a", 1)).expect("it is a host");
        let both = target().header("A", "1").and_then(|target| target.header("B", b"\xff"));
        let bytes = both.expect("they are fields").request().to_bytes();
        assert_eq!(bytes, b"CONNECT a:1 HTTP/1.1\r\nHost: a:1\r\nA: 1\r\nB: \xff\r\n\r\n");
        for (name, value, error) in [
            ("A B", "", MessageError::FieldName),
            ("A", "1\r\nB: 2", MessageError::FieldValue),
            ("host", "b", MessageError::HostField),
        ] {
            assert_eq!(target().header(name, value).err(), Some(error), "{name}");
        }
        let reserved = target().header("Content-Length", "1").expect_err("there is no body");
        let advice = "a request for a tunnel has no body, and no request follows it";
        assert_eq!(reserved, MessageError::FieldReserved(advice));
    }

    #[test]
    fn targets_are_equal_only_with_the_same_credentials() {
        let target = || TunnelTarget::new((), &Host::new("a", 1)).expect("it is a host");
        let with = |value| target().header("Proxy-Authorization", value).expect("it is a field");
        assert_eq!(target(), target());
        assert_eq!(with("Basic eA=="), with("Basic eA=="));
        assert!(with("Basic eA==") != with("Basic eQ==") && with("Basic eA==") != target());
        assert!(!format!("{:?}", with("Basic eA==")).contains("eA=="), "a log has no password");
    }
}
